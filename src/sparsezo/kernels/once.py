"""Machine code is made once, of a whole loop: what a kernel calls is linked into it as it was lowered.

Numba optimises a function and makes machine code of it before it links it into its caller, where all that is done
again: at each of a loop's six levels, for what is only ever run as a part of the outermost. So here a form that is
compiled because its caller is (an inner one) goes into the caller, and into the cache, as bitcode that is not optimised
yet, and Python cannot call it. If Python does after all, it is compiled as a whole, and both forms are in the cache.

This leans on what is private to Numba. Where that is missing, or SPARSEZO_PLAIN_KERNELS is set, all works without, and
compiling takes twice as long.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from numba.core import event, sigutils
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler_lock import global_compiler_lock
from numba.core.environment import lookup_environment
from numba.core.registry import cpu_target

_ENVIRONMENT = "_ZN08NumbaEnv"  # how Numba names what a function needs of Python
_PRIVATE = ("_optimize_final_module", "_finalize_final_module", "_finalize_dynamic_globals",
            "_verify_declare_only_symbols", "serialize_using_object_code", "serialize_using_bitcode")  # fmt: skip


class _Depth(event.Listener):  # type: ignore[misc]
    """How deep within the compilation of a kernel we are: 0 outside, 1 in its own, more in that of what it calls.

    What somebody else compiles, and a kernel calls, is not inner: Python may call it by its own dispatcher.
    """

    def __init__(self) -> None:
        self._within: list[bool] = []  # whether it is ours; looked at only by who holds Numba's compiler lock

    @property
    def now(self) -> int:
        return len(self._within)

    @property
    def inner(self) -> bool:
        return len(self._within) > 1 and self._within[-1]

    def on_start(self, compilation: event.Event) -> None:
        dispatcher = compilation.data["dispatcher"]
        ours = getattr(dispatcher, "as_a_whole", False)
        if self._within or ours:
            module = getattr(dispatcher.py_func, "__module__", None) or ""
            self._within.append(ours or module.startswith(("numba.", "sparsezo.")))

    def on_end(self, _compilation: event.Event) -> None:
        if self._within:
            self._within.pop()

    @contextlib.contextmanager
    def loading(self) -> Iterator[None]:
        """What is read from the cache is inner where what is compiled would be."""
        if not self._within:
            yield
            return
        self._within.append(True)
        try:
            yield
        finally:
            self._within.pop()


_depth = _Depth()


class _Library(JITCodeLibrary):  # type: ignore[misc]
    inner = False

    def _is_inner(self) -> bool:
        return _depth.inner and getattr(self, "_compiled_object", None) is None

    def _optimize_final_module(self) -> None:
        if not self._is_inner():
            super()._optimize_final_module()

    def _finalize_final_module(self) -> None:
        if self._is_inner():
            self._finalize_dynamic_globals()
            self._verify_declare_only_symbols()
            self._finalized = self.inner = True
            return
        super()._finalize_final_module()
        if _depth.now:
            for variable in self._final_module.global_variables:
                found = lookup_environment(variable.name) if variable.name.startswith(_ENVIRONMENT) else None
                if found is not None:
                    self.codegen.set_env(variable.name, found)

    def serialize_using_object_code(self) -> Any:
        return self.serialize_using_bitcode() if self.inner else super().serialize_using_object_code()


def _install() -> bool:
    """Whether Numba is as it has to be; all libraries are ours from now on, and as Numba's own outside of kernels."""
    codegen = cpu_target.target_context.codegen()
    engine: Any = getattr(codegen, "_engine", None)
    set_env: Any = getattr(codegen, "set_env", None)
    if (
        getattr(codegen, "_library_class", None) is not JITCodeLibrary
        or not all(hasattr(JITCodeLibrary, name) for name in _PRIVATE)
        or not hasattr(engine, "is_symbol_defined")
        or set_env is None
    ):
        return False

    def set_where_it_is(name: str, environment: Any) -> None:
        if engine.is_symbol_defined(name):  # else it is nowhere in machine code: of an inner form
            set_env(name, environment)

    codegen._library_class, codegen.set_env = _Library, set_where_it_is
    event.register("numba:compile", _depth)
    return True


_installed: bool | None = None


def as_a_whole(dispatcher: Any) -> None:
    """From now on this dispatcher's forms are compiled as a whole, or as a part of another's."""
    global _installed
    if _installed is None:
        _installed = _install()
    compiler: Any = getattr(dispatcher, "_compiler", None)
    cache: Any = getattr(dispatcher, "_cache", None)
    if not _installed or not hasattr(compiler, "_customize_flags") or not hasattr(cache, "_index_key"):
        return
    customize, add = compiler._customize_flags, dispatcher.add_overload

    def customized(flags: Any) -> Any:
        flags = customize(flags)
        if _depth.inner:
            flags.no_cpython_wrapper = True
        return flags

    def add_overload(form: Any) -> None:
        if getattr(form.library, "inner", False):
            dispatcher.overloads[tuple(form.signature.args)] = form  # and Python does not see it
        else:
            add(form)

    def compile_form(signature: Any) -> Any:
        with global_compiler_lock:
            arguments = tuple(sigutils.normalize_signature(signature)[0])
            found = dispatcher.overloads.get(arguments)
            if not _depth.now and found is not None and getattr(found.library, "inner", False):
                del dispatcher.overloads[arguments]
            return type(dispatcher).compile(dispatcher, signature)

    compiler._customize_flags, dispatcher.add_overload, dispatcher.compile = customized, add_overload, compile_form
    dispatcher.as_a_whole = True
    cached_as_a_whole(dispatcher)


def cached_as_a_whole(dispatcher: Any) -> None:
    """Likewise, once caching was enabled anew: inner forms are found as such."""
    if not getattr(dispatcher, "as_a_whole", False):
        return
    cache = dispatcher._cache
    key, load = cache._index_key, cache.load_overload

    def index_key(signature: Any, codegen: Any) -> Any:
        return (*key(signature, codegen), "inner") if _depth.now else key(signature, codegen)

    def load_overload(signature: Any, context: Any) -> Any:
        with _depth.loading():
            return load(signature, context)

    cache._index_key, cache.load_overload = index_key, load_overload
