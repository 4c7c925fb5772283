"""Two things that Numba has no words for: sums of rows in vector registers, and asking memory in advance.

``combine_lanes`` is the inner loop of nearly all this package does, a weighted sum of table rows.
LLVM does not find this by itself: the lanes (labels) are the short inner loop, and the sum runs over the outer one.
So the loop is written in LLVM's own vector types, which every processor that Numba knows can run. The order of
additions within a lane is that of the plain loop in ``sparse.combine``, so both give the same bits.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_FLOAT = ir.FloatType()


@intrinsic
def combine_lanes(
    _context: Any, lanes: Any, table: Any, index: Any, value: Any, first: Any, last: Any, out: Any
) -> Any:
    """out[:lanes] = sum over e in first..last-1 of value[e] * table[index[e], :lanes].

    lanes is a literal; table (float32, 2d) has that many columns. None for value: 1; for index: the row is e - first.
    """
    if not isinstance(lanes, types.IntegerLiteral):
        return None
    signature = types.void(lanes, table, index, value, types.int64, types.int64, out)
    widths = _widths(lanes.literal_value)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def data(position: int) -> Any:
            return context.make_array(sig.args[position])(context, builder, args[position]).data

        begin, end = args[4], args[5]
        stride = ir.Constant(begin.type, lanes.literal_value)
        types_ = [ir.VectorType(_FLOAT, w) if w > 1 else _FLOAT for w in widths]
        sums = [cgutils.alloca_once_value(builder, ir.Constant(t, None)) for t in types_]
        with cgutils.for_range_slice(builder, begin, end, ir.Constant(begin.type, 1)) as (e, _):
            if sig.args[2] == types.none:
                row = builder.sub(e, begin)
            else:
                row = builder.zext(builder.load(builder.gep(data(2), [e])), begin.type)
            cell = builder.gep(data(1), [builder.mul(row, stride)])
            weight = None if sig.args[3] == types.none else builder.load(builder.gep(data(3), [e]))
            for t, w, s in zip(types_, widths, sums, strict=True):
                term = builder.load(_as(builder, cell, t), align=4)
                if weight is not None:
                    term = builder.fmul(term, _broadcast(builder, weight, w))
                builder.store(builder.fadd(builder.load(s), term), s)
                cell = builder.gep(cell, [ir.Constant(begin.type, w)])
        cell = data(6)
        for t, w, s in zip(types_, widths, sums, strict=True):
            builder.store(builder.load(s), _as(builder, cell, t), align=4)
            cell = builder.gep(cell, [ir.Constant(begin.type, w)])
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def prefetch_element(_context: Any, array: Any, place: Any) -> Any:
    """Ask the memory for array's element number ``place`` (counted flat), to be there when it is needed."""
    signature = types.void(array, types.int64)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        cells = context.make_array(sig.args[0])(context, builder, args[0]).data
        byte = ir.IntType(8).as_pointer()
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        declared = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
        cell = builder.bitcast(builder.gep(cells, [args[1]]), byte)
        builder.call(declared, [cell, *(ir.Constant(number, flag) for flag in (0, 2, 1))])  # read, second level, data
        return context.get_dummy_value()

    return signature, generate


def _widths(lanes: int) -> list[int]:
    """9 -> 8 + 1; 4 -> 4; 7 -> 4 + 1 + 1 + 1."""
    widths = []
    for width in (8, 4, 1):
        widths += [width] * (lanes // width)
        lanes %= width
    return widths


def _as(builder: Any, pointer: Any, to: Any) -> Any:
    return builder.bitcast(pointer, to.as_pointer())


def _broadcast(builder: Any, scalar: Any, width: int) -> Any:
    if width == 1:
        return scalar
    vector = ir.VectorType(_FLOAT, width)
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), None)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)
