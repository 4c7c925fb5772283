"""What Numba has no words for, in LLVM's own vector types, which every processor that Numba knows can run.

LLVM does not find these by itself: in a weighted sum of table rows the lanes (labels) are the short inner loop, and the
sum runs over the outer one; a search for a maximum must keep NaN's order. All of it is here and nowhere else, because
it leans on parts of Numba and llvmlite that may change. ``simd`` has a plain twin of each, which gives the same bits,
and takes those where these cannot be compiled.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic, models, register_model

LANES = 8  # float64 numbers that are worked on at once; the compiler makes of it what the processor has
_FLOAT = ir.FloatType()


# Rows of a table, any number of labels wide: two vectors of ``width`` numbers cover width + 1 to 2 width labels, one
# from the first label on and one up to the last. Where they overlap they hold the same numbers, since all is read
# before anything is written.


def _vector(width: int) -> Any:
    return ir.VectorType(_FLOAT, width) if width > 1 else _FLOAT


def _data(context: Any, builder: Any, sig: Any, args: Any, position: int) -> Any:
    return context.make_array(sig.args[position])(context, builder, args[position]).data


def _stride(context: Any, builder: Any, sig: Any, args: Any, position: int) -> Any:
    return builder.extract_value(context.make_array(sig.args[position])(context, builder, args[position]).shape, 1)


def _cells(builder: Any, data: Any, place: Any, ends: Sequence[Any], kind: Any) -> list[Any]:
    """Pointers to the two vectors of a row that begins at ``place``."""
    return [_as(builder, builder.gep(data, [builder.add(place, end)]), kind) for end in ends]


def _read(builder: Any, cells: Sequence[Any]) -> list[Any]:
    return [builder.load(cell, align=4) for cell in cells]


def _write(builder: Any, values: Sequence[Any], cells: Sequence[Any]) -> None:
    for value, cell in zip(values, cells, strict=True):
        builder.store(value, cell, align=4)


def _entry(builder: Any, sig: Any, position: int, indices: Any, e: Any, begin: Any) -> Any:
    """The row of a table that entry e is about: index[e], or e - begin without an index."""
    if sig.args[position] == types.none:
        return builder.sub(e, begin)
    return builder.zext(builder.load(builder.gep(indices, [e])), begin.type)


@intrinsic
def combine_two(
    _context: Any,
    width: Any,
    table: Any,
    index: Any,
    value: Any,
    first: Any,
    last: Any,
    low: Any,
    high: Any,
    out: Any,
    place: Any,
) -> Any:
    """out[place + l] = sum over e in first..last-1 of value[e] * table[index[e], l], of the labels l of both vectors.

    They begin at low and at high. None for value: 1; for index: the row is e - first. out is counted flat.
    """
    if not isinstance(width, types.IntegerLiteral):
        return None
    kind = _vector(width.literal_value)
    number = types.int64
    signature = types.void(width, table, index, value, number, number, number, number, out, number)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = partial(_data, context, builder, sig, args)
        begin, end, ends = args[4], args[5], args[6:8]
        stride = _stride(context, builder, sig, args, 1)
        indices = None if sig.args[2] == types.none else data(2)
        sums = [cgutils.alloca_once_value(builder, ir.Constant(kind, None)) for _ in ends]
        with cgutils.for_range_slice(builder, begin, end, ir.Constant(begin.type, 1)) as (e, _):
            row = _entry(builder, sig, 2, indices, e, begin)
            terms = _read(builder, _cells(builder, data(1), builder.mul(row, stride), ends, kind))
            if sig.args[3] != types.none:
                weight = _broadcast(builder, builder.load(builder.gep(data(3), [e])), width.literal_value)
                terms = [builder.fmul(term, weight) for term in terms]
            for term, total in zip(terms, sums, strict=True):
                builder.store(builder.fadd(builder.load(total), term), total)
        _write(builder, [builder.load(total) for total in sums], _cells(builder, data(8), args[9], ends, kind))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def scatter_two(
    _context: Any,
    width: Any,
    c: Any,
    D: Any,
    place: Any,
    index: Any,
    value: Any,
    first: Any,
    last: Any,
    low: Any,
    high: Any,
    table: Any,
) -> Any:
    """table[index[e], l] += c * value[e] * D[place + l] for e in first..last-1 and the labels l of both vectors.

    As ``combine_two`` has them. D is counted flat.
    """
    if not isinstance(width, types.IntegerLiteral):
        return None
    kind = _vector(width.literal_value)
    number = types.int64
    signature = types.void(width, types.float32, D, number, index, value, number, number, number, number, table)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = partial(_data, context, builder, sig, args)
        begin, end, ends = args[6], args[7], args[8:10]
        stride = _stride(context, builder, sig, args, 10)
        indices = None if sig.args[4] == types.none else data(4)
        directions = _read(builder, _cells(builder, data(2), args[3], ends, kind))
        with cgutils.for_range_slice(builder, begin, end, ir.Constant(begin.type, 1)) as (e, _):
            row = _entry(builder, sig, 4, indices, e, begin)
            weight = args[1]
            if sig.args[5] != types.none:
                weight = builder.fmul(weight, builder.load(builder.gep(data(5), [e])))
            weight = _broadcast(builder, weight, width.literal_value)
            cells = _cells(builder, data(10), builder.mul(row, stride), ends, kind)
            old = _read(builder, cells)
            new = [builder.fadd(o, builder.fmul(weight, d)) for o, d in zip(old, directions, strict=True)]
            _write(builder, new, cells)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def adagrad_two(
    _context: Any, width: Any, scale: Any, h: Any, U: Any, place: Any, low: Any, high: Any, W: Any, q: Any, at: Any
) -> Any:
    """Adagrad's step (``kernels/adagrad.py``) of the labels of both vectors: of U[place:], for W[at:] and q[at:].

    All three are counted flat.
    """
    if not isinstance(width, types.IntegerLiteral):
        return None
    kind = _vector(width.literal_value)
    real, number = types.float32, types.int64
    signature = types.void(width, real, real, U, number, number, number, W, q, number)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = partial(_data, context, builder, sig, args)
        scale, h = (_broadcast(builder, args[k], width.literal_value) for k in (1, 2))
        one = _broadcast(builder, ir.Constant(_FLOAT, 1.0), width.literal_value)
        name = "llvm.sqrt.f32" if kind is _FLOAT else f"llvm.sqrt.v{kind.count}f32"
        root = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind]), name)
        ends = args[5:7]
        w_cells, q_cells = (_cells(builder, data(k), args[9], ends, kind) for k in (7, 8))
        gradients = [builder.fmul(u, scale) for u in _read(builder, _cells(builder, data(3), args[4], ends, kind))]
        squares = [builder.fadd(s, builder.fmul(g, g)) for s, g in zip(_read(builder, q_cells), gradients, strict=True)]
        lengths = [builder.call(root, [builder.fadd(one, s)]) for s in squares]
        weights = [
            builder.fadd(w, builder.fdiv(builder.fmul(h, g), length))
            for w, g, length in zip(_read(builder, w_cells), gradients, lengths, strict=True)
        ]
        _write(builder, squares, q_cells)
        _write(builder, weights, w_cells)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def add_two(
    _context: Any, width: Any, A: Any, a: Any, B: Any, b: Any, low: Any, high: Any, out: Any, place: Any
) -> Any:
    """out[place + l] = A[a + l] + B[b + l] of the labels l of both vectors; all counted flat."""
    if not isinstance(width, types.IntegerLiteral):
        return None
    kind, number = _vector(width.literal_value), types.int64

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = partial(_data, context, builder, sig, args)
        left, right = (_read(builder, _cells(builder, data(k), args[k + 1], args[5:7], kind)) for k in (1, 3))
        sums = [builder.fadd(x, y) for x, y in zip(left, right, strict=True)]
        _write(builder, sums, _cells(builder, data(7), args[8], args[5:7], kind))
        return context.get_dummy_value()

    return types.void(width, A, number, B, number, number, number, out, number), generate


@intrinsic
def best_two(
    _context: Any, width: Any, P: Any, place: Any, K: Any, low: Any, high: Any, best: Any, back: Any, row: Any
) -> Any:
    """best[row + 1, b] = the largest of best[row, a] + P[place + a K + b] over a, and back[row + 1, b] that a.

    For the labels b of both vectors. The last a wins a tie. P is counted flat; best and back have K columns. back None:
    nobody asks for the a.
    """
    if not isinstance(width, types.IntegerLiteral):
        return None
    lanes = width.literal_value
    kind, number = _vector(lanes), types.int64
    signature = types.void(width, P, number, number, number, number, best, back, number)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = partial(_data, context, builder, sig, args)
        place, K, ends, row = args[2], args[3], args[4:6], args[8]
        asked = sig.args[7] != types.none
        cell = context.get_value_type(sig.args[7].dtype) if asked else ir.IntType(16)
        places = ir.VectorType(cell, lanes) if lanes > 1 else cell
        here = builder.mul(row, K)

        def scores(a: Any) -> list[Any]:
            before = _broadcast(builder, builder.load(builder.gep(data(6), [builder.add(here, a)])), lanes)
            terms = _read(builder, _cells(builder, data(1), builder.add(place, builder.mul(a, K)), ends, kind))
            return [builder.fadd(before, term) for term in terms]

        zero, one = (ir.Constant(K.type, k) for k in (0, 1))
        tops = [cgutils.alloca_once_value(builder, score) for score in scores(zero)]
        args_ = [cgutils.alloca_once_value(builder, ir.Constant(places, None)) for _ in ends]
        with cgutils.for_range_slice(builder, one, K, one) as (a, _):
            label = _broadcast(builder, builder.trunc(a, cell), lanes)
            for score, top, arg in zip(scores(a), tops, args_, strict=True):
                wins = builder.fcmp_ordered(">=", score, builder.load(top))
                builder.store(builder.select(wins, score, builder.load(top)), top)
                builder.store(builder.select(wins, label, builder.load(arg)), arg)
        there = builder.add(here, K)
        _write(builder, [builder.load(top) for top in tops], _cells(builder, data(6), there, ends, kind))
        for arg, end in zip(args_, ends if asked else (), strict=asked):
            to = _as(builder, builder.gep(data(7), [builder.add(there, end)]), places)
            builder.store(builder.load(arg), to, align=sig.args[7].dtype.bitwidth // 8)
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def forward_two(_context: Any, width: Any, E: Any, place: Any, K: Any, low: Any, high: Any, best: Any, row: Any) -> Any:
    """E[place + a K + b] *= best[row, a] for all a, then over their sum, which is left in best[row + 1, b].

    For the labels b of both vectors. E is counted flat; best has K columns.
    """
    if not isinstance(width, types.IntegerLiteral):
        return None
    lanes = width.literal_value
    kind, number = _vector(lanes), types.int64
    signature = types.void(width, E, number, number, number, number, best, number)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        data = partial(_data, context, builder, sig, args)
        place, K, ends, row = args[2], args[3], args[4:6], args[7]
        here, zero, one = builder.mul(row, K), ir.Constant(K.type, 0), ir.Constant(K.type, 1)
        sums = [cgutils.alloca_once_value(builder, ir.Constant(kind, None)) for _ in ends]

        def cells(a: Any) -> list[Any]:
            return _cells(builder, data(1), builder.add(place, builder.mul(a, K)), ends, kind)

        with cgutils.for_range_slice(builder, zero, K, one) as (a, _):
            before = _broadcast(builder, builder.load(builder.gep(data(6), [builder.add(here, a)])), lanes)
            terms = [builder.fmul(term, before) for term in _read(builder, cells(a))]
            _write(builder, terms, cells(a))
            for term, total in zip(terms, sums, strict=True):
                builder.store(builder.fadd(builder.load(total), term), total)
        totals = [builder.load(total) for total in sums]
        ones = _broadcast(builder, ir.Constant(_FLOAT, 1.0), lanes)
        inverses = [builder.fdiv(ones, total) for total in totals]
        with cgutils.for_range_slice(builder, zero, K, one) as (a, _):
            both = zip(_read(builder, cells(a)), inverses, strict=True)
            _write(builder, [builder.fmul(term, inverse) for term, inverse in both], cells(a))
        _write(builder, totals, _cells(builder, data(6), builder.add(here, K), ends, kind))
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


def _as(builder: Any, pointer: Any, to: Any) -> Any:
    return builder.bitcast(pointer, to.as_pointer())


def _broadcast(builder: Any, scalar: Any, width: int) -> Any:
    if width == 1:
        return scalar
    vector = ir.VectorType(scalar.type, width)
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), width), None)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), zeros)


# Products of rows with a vector of weights

_DOUBLES, _FLOATS = ir.VectorType(ir.DoubleType(), 8), ir.VectorType(ir.FloatType(), 8)
# eight vectors to the vector of their sums: (lower half of a and b) + (upper half), then quarters, then eighths
_HALVES = (
    ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15)),
    ((0, 1, 8, 9, 4, 5, 12, 13), (2, 3, 10, 11, 6, 7, 14, 15)),
    ((0, 8, 2, 10, 4, 12, 6, 14), (1, 9, 3, 11, 5, 13, 7, 15)),
)


def _row_sums(builder: Any, vectors: Sequence[Any]) -> Any:
    for halves in _HALVES:
        lower, upper = (ir.Constant(ir.VectorType(ir.IntType(32), LANES), list(half)) for half in halves)
        n = len(vectors) // 2
        vectors = [
            builder.fadd(builder.shuffle_vector(a, b, lower), builder.shuffle_vector(a, b, upper))
            for a, b in zip(vectors[:n], vectors[n:], strict=True)
        ]
    return vectors[0]


def _eights(n_sums: int, context: Any, builder: Any, sig: Any, args: Any) -> Any:
    """Arguments: features, first row, number of rows, n_sums padded weights, n_sums places for the sums."""

    def data(position: int) -> Any:
        return context.make_array(sig.args[position])(context, builder, args[position]).data

    def load(pointer: Any, place: Any, kind: Any, align: int) -> Any:
        return builder.load(builder.bitcast(builder.gep(pointer, [place]), kind.as_pointer()), align=align)

    first, n = args[1], args[2]

    def number(k: int) -> Any:
        return ir.Constant(first.type, k)

    features = context.make_array(sig.args[0])(context, builder, args[0])
    stride = builder.extract_value(features.shape, 1)
    begins = (number(0), builder.sub(stride, number(LANES)))  # of the two vectors within a row
    weights = [[load(data(3 + k), number(half), _DOUBLES, 8) for half in (0, LANES)] for k in range(n_sums)]
    with cgutils.for_range_slice(builder, number(0), n, number(LANES)) as (j, _):
        products: list[list[Any]] = [[] for _ in range(n_sums)]
        for i in range(LANES):
            cell = builder.mul(builder.add(first, builder.add(j, number(i))), stride)
            f, g = (
                builder.fpext(load(features.data, builder.add(cell, begin), _FLOATS, 4), _DOUBLES) for begin in begins
            )
            for k, (v, w) in enumerate(weights):
                products[k].append(builder.fadd(builder.fmul(f, v), builder.fmul(g, w)))
        for k in range(n_sums):
            out = builder.bitcast(builder.gep(data(3 + n_sums + k), [j]), _DOUBLES.as_pointer())
            builder.store(_row_sums(builder, products[k]), out, align=8)
    return context.get_dummy_value()


@intrinsic
def dot_eights(_context: Any, features: Any, first: Any, n: Any, w: Any, S: Any) -> Any:
    """S[:n] = features[first:first+n] w, n divisible by 8."""
    signature = types.void(features, types.int64, types.int64, w, S)
    return signature, partial(_eights, 1)


@intrinsic
def dot_eights_twice(_context: Any, features: Any, first: Any, n: Any, w: Any, u: Any, S: Any, V: Any) -> Any:
    """S[:n] = features[first:first+n] w and V[:n] = ... u, reading the features once."""
    signature = types.void(features, types.int64, types.int64, w, u, S, V)
    return signature, partial(_eights, 2)


@intrinsic
def add_eights(_context: Any, features: Any, first: Any, n: Any, D: Any, U: Any) -> Any:
    """U[:M] += features[first:first+n]' D, row by row but those where D is 0; M from 8 to 16."""
    signature = types.void(features, types.int64, types.int64, D, U)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def data(position: int) -> Any:
            return context.make_array(sig.args[position])(context, builder, args[position]).data

        def cell(pointer: Any, place: Any, kind: Any) -> Any:
            return _as(builder, builder.gep(pointer, [place]), kind)

        zero, one = (ir.Constant(args[1].type, k) for k in (0, 1))
        stride = _stride(context, builder, sig, args, 0)
        begins = (zero, builder.sub(stride, ir.Constant(stride.type, LANES)))  # of the two vectors within a row
        rows, weights, sums = data(0), data(3), data(4)
        totals = [
            cgutils.alloca_once_value(builder, builder.load(cell(sums, begin, _DOUBLES), align=8)) for begin in begins
        ]
        with cgutils.for_range_slice(builder, zero, args[2], one) as (j, _):
            d = builder.load(builder.gep(weights, [j]))
            with builder.if_then(builder.fcmp_unordered("!=", d, ir.Constant(d.type, 0.0))):
                weight, row = _broadcast(builder, d, LANES), builder.mul(builder.add(args[1], j), stride)
                for begin, total in zip(begins, totals, strict=True):
                    f = builder.load(cell(rows, builder.add(row, begin), _FLOATS), align=4)
                    term = builder.fmul(weight, builder.fpext(f, _DOUBLES))
                    builder.store(builder.fadd(builder.load(total), term), total)
        for begin, total in zip(begins, totals, strict=True):
            builder.store(builder.load(total), cell(sums, begin, _DOUBLES), align=8)
        return context.get_dummy_value()

    return signature, generate


# The largest of many

_VALUES, _PLACES = ir.VectorType(ir.DoubleType(), LANES), ir.VectorType(ir.IntType(64), LANES)


@intrinsic
def lane_leaders(_context: Any, S: Any, n: Any, value: Any, place: Any) -> Any:
    """value[l], place[l] = the largest of S[l], S[l + 8], ... below n and where it first stands; n divisible by 8.

    LLVM makes no vector code of a search for a maximum by itself, as it must keep NaN's order; here NaN never leads.
    """
    signature = types.void(S, types.int64, value, place)

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        def data(position: int) -> Any:
            return context.make_array(sig.args[position])(context, builder, args[position]).data

        def vector(pointer: Any, kind: Any) -> Any:
            return builder.bitcast(pointer, kind.as_pointer())

        def number(k: int) -> Any:
            return ir.Constant(args[1].type, k)

        best = cgutils.alloca_once_value(builder, ir.Constant(_VALUES, [float("-inf")] * LANES))
        best_at = cgutils.alloca_once_value(builder, ir.Constant(_PLACES, [0] * LANES))
        here_at = cgutils.alloca_once_value(builder, ir.Constant(_PLACES, list(range(LANES))))
        with cgutils.for_range_slice(builder, number(0), args[1], number(LANES)) as (j, _):
            s = builder.load(vector(builder.gep(data(0), [j]), _VALUES), align=8)
            top, at, here = builder.load(best), builder.load(best_at), builder.load(here_at)
            leads = builder.fcmp_ordered(">", s, top)
            builder.store(builder.select(leads, s, top), best)
            builder.store(builder.select(leads, here, at), best_at)
            builder.store(builder.add(here, ir.Constant(_PLACES, [LANES] * LANES)), here_at)
        builder.store(builder.load(best), vector(data(2), _VALUES), align=8)
        builder.store(builder.load(best_at), vector(data(3), _PLACES), align=8)
        return context.get_dummy_value()

    return signature, generate


# Eight numbers as one value: what is written with them stays in registers


class LanesType(types.Type):
    """Numba's type of eight float32 numbers."""

    def __init__(self) -> None:
        super().__init__(name="Lanes")


_LANES = LanesType()


@register_model(LanesType)
class _LanesModel(models.PrimitiveModel):  # type: ignore[misc]
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _FLOATS)


def _lanes_at(context: Any, builder: Any, kind: Any, array: Any, place: Any) -> Any:
    cells = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(cells, [place]), _FLOATS.as_pointer())


@intrinsic
def load(_context: Any, array: Any, place: Any) -> Any:
    """The eight numbers of array from number ``place`` (counted flat)."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.load(_lanes_at(context, builder, sig.args[0], *args), align=4)

    return _LANES(array, types.int64), generate


@intrinsic
def store(_context: Any, array: Any, place: Any, lanes: Any) -> Any:
    """The other way."""

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        builder.store(args[2], _lanes_at(context, builder, sig.args[0], *args[:2]), align=4)
        return context.get_dummy_value()

    return types.void(array, types.int64, _LANES), generate


@intrinsic
def fill(_context: Any, number: Any) -> Any:
    """The same number in all lanes."""
    return _LANES(types.float32), lambda _context, builder, _sig, args: _broadcast(builder, args[0], LANES)


@intrinsic
def add(_context: Any, x: Any, y: Any) -> Any:
    return _LANES(_LANES, _LANES), lambda _context, builder, _sig, args: builder.fadd(*args)


@intrinsic
def times(_context: Any, x: Any, y: Any) -> Any:
    return _LANES(_LANES, _LANES), lambda _context, builder, _sig, args: builder.fmul(*args)


@intrinsic
def sum_lanes(_context: Any, lanes: Any) -> Any:
    """The sum of the lanes: halves, then quarters, then eighths."""

    def generate(_context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        sums = args[0]
        for width in (4, 2, 1):
            places = [ir.Constant(ir.VectorType(ir.IntType(32), width), [*range(k, k + width)]) for k in (0, width)]
            sums = builder.fadd(*(builder.shuffle_vector(sums, sums, half) for half in places))
        return builder.extract_element(sums, ir.Constant(ir.IntType(32), 0))

    return types.float32(_LANES), generate
