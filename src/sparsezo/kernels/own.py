"""A user's own function in compiled code: a rule's coefficient, a task's decoder and loss (docs/rules.md, tasks.md).

A NamedTuple of the loop may hold an ``OwnFunction``, and compiled code calls it: ``call(task.decode, S, y)``. Its type
there is its name and the content of the files that it is compiled from. So a loop is compiled once for each state of
these, is kept among the loops of others, and is never a stale one.

    half = OwnFunction(function, "rule half").compiled(float64[::1], float64)
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from numba import types
from numba.core.errors import NumbaError
from numba.extending import NativeValue, models, overload, register_model, typeof_impl, unbox

from sparsezo.errors import UsageError
from sparsezo.kernels.jit import OPTIONS, own_kernel

_DISPATCHERS: dict[str, Any] = {}  # OwnFunction.known_by -> what Numba makes of it


class OwnFunction:
    """A function of somebody's own; ``what`` it is, for messages. It may allocate, and name kernels and numbers."""

    def __init__(self, function: Callable[..., Any], what: str) -> None:
        self.function = getattr(function, "py_func", function)  # also where it is Numba's already
        self.what = what
        code = self.function.__code__
        self.place = f"{Path(code.co_filename).name}:{code.co_firstlineno}"
        if not Path(code.co_filename).is_file():
            raise UsageError(f"{what}: compiled code is known by its file; write {code.co_name} in one, and import it")
        if code.co_freevars:
            raise UsageError(
                f"{what}: {self.place} is made inside another function, whose values it has; write it alone"
            )
        dispatcher, content = own_kernel(self.function)
        self.known_by = f"{code.co_qualname}:{code.co_firstlineno} {content}"
        _DISPATCHERS.setdefault(self.known_by, dispatcher)

    def compiled(self, *arguments: Any, number: bool = True) -> OwnFunction:
        """Itself, once it is compiled for arguments of these types; UsageError in one line where it cannot be, or
        where it gives no ``number`` though it should."""
        wanted = list(inspect.signature(self.function).parameters)
        if len(wanted) != len(arguments):
            raise UsageError(f"{self.what}: {self.place} takes {', '.join(wanted)}, and must take {len(arguments)}")
        dispatcher = _DISPATCHERS[self.known_by]
        try:
            dispatcher.compile(arguments)
        except NumbaError as error:
            raise UsageError(f"{self.what}: {self.place} cannot be compiled: {_first_cause(error)}") from None
        given = dispatcher.overloads[arguments].signature.return_type
        if number and not isinstance(given, types.Float | types.Integer | types.Boolean):
            raise UsageError(f"{self.what}: {self.place} returns {given}; it must return a number")
        return self

    def __call__(self, *arguments: Any) -> Any:
        return _DISPATCHERS[self.known_by](*arguments)

    def __reduce__(self) -> tuple[object, ...]:
        return OwnFunction, (self.function, self.what)


def _first_cause(error: NumbaError) -> str:
    """Of Numba's many lines the one that says what is wrong, and where."""
    plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    lines = [line.strip() for line in plain.splitlines() if line.strip()]
    said = next((line for line in lines if not line.startswith(("Failed in", "During", "- ", ">>>"))), str(error))
    where = [line.removeprefix("File ").rstrip(":").replace('"', "").replace(", line ", ":") for line in lines
             if line.startswith('File "')]  # fmt: skip
    return f"{said} ({where[-1]})" if where else said


class OwnType(types.Type):  # type: ignore[misc]
    """What an ``OwnFunction`` is to compiled code: nothing but its name."""

    def __init__(self, known_by: str) -> None:
        self.known_by = known_by
        super().__init__(name=f"Own({known_by})")


register_model(OwnType)(models.OpaqueModel)


@typeof_impl.register(OwnFunction)
def _typeof(function: OwnFunction, _context: Any) -> OwnType:
    return OwnType(function.known_by)


@unbox(OwnType)
def _unbox(_type: Any, _object: Any, context: Any) -> Any:
    return NativeValue(context.context.get_dummy_value())


def call(function: OwnFunction, *arguments: Any) -> Any:
    """In compiled code: ``function`` of the arguments."""
    return function(*arguments)


@overload(call, strict=False, jit_options=OPTIONS)
def _call(function: Any, *_arguments: Any) -> Callable[..., Any] | None:
    if not isinstance(function, OwnType):
        return None
    dispatcher = _DISPATCHERS[function.known_by]

    def called(function: Any, *arguments: Any) -> Any:
        return dispatcher(*arguments)

    return called
