# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Compilation of LLVM IR; the only module that uses llvmlite."""

from __future__ import annotations

import ctypes
import functools
import itertools
import mmap
import os
import platform
import re
import sys
from collections.abc import Callable
from typing import Any

from mbs_dynamics.compiler.codegen.llvm_drivers import driver_name, emit_driver
from mbs_dynamics.compiler.codegen.llvm_sines import emit_sines, sines
from mbs_dynamics.compiler.jit import cache
from mbs_dynamics.errors import BackendError
from mbs_dynamics.locks import Lock, held_during_forks

OLDEST = (0, 45)
"""The first version of llvmlite whose LLVM reads the IR of this package."""

LEVEL = 1
"""Optimisation level. Straight-line code is as fast as with level 3, and compiles much faster."""

CODE = (
    {"codemodel": "small", "reloc": "pic"}
    if sys.platform == "linux" and platform.machine() == "x86_64"
    else {"codemodel": "jitdefault", "jit": True}
)
"""Code that has its constants nearby is up to 7 % faster than code for arbitrary addresses."""

lock = held_during_forks()
"""Held during every call of llvmlite, also when modules are freed: llvmlite has a lock of its own,
and a child forked while another thread holds it could never compile."""
_numbers = itertools.count()
"""Names of libraries of the loader."""

symbols: dict[str, int] = {}
"""Addresses of external symbols by name, for all code that is linked later."""


@functools.lru_cache(maxsize=1)
def _binding() -> Any:
    """Return llvmlite's binding with this machine's target set up once, under the lock."""
    _version()
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _version() -> str:
    """Return the version of llvmlite, which determines that of LLVM. Its import is fast."""
    try:
        with lock:  # a forked child would wait forever for an import in another thread
            import llvmlite
    except ImportError as error:
        raise BackendError(
            f"the llvm backend needs llvmlite ({error}); install it: pip install llvmlite, or "
            "use backend='python' or MBS_BACKEND=python"
        ) from error
    version = str(llvmlite.__version__)
    numbers = re.match(r"(\d+)\.(\d+)", version)  # of builds without one nothing is known
    if numbers and tuple(map(int, numbers.groups())) < OLDEST:
        raise BackendError(
            f"the llvm backend needs llvmlite {OLDEST[0]}.{OLDEST[1]} or later, and found "
            f"{version}; upgrade it, or use backend='python' or MBS_BACKEND=python"
        )
    return version


@functools.lru_cache(maxsize=1)
def problem() -> str | None:
    """Return why this back end cannot be used here; None if it can."""
    try:
        _version()
        check_execution()
    except BackendError as error:
        return str(error)
    return None


@functools.lru_cache(maxsize=1)
def _host() -> tuple[str, str, str]:
    """Return LLVM's triple, name and features of this processor."""
    with lock:
        llvm = _binding()
        features = llvm.get_host_cpu_features().flatten()
        return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


def _machine(llvm: Any) -> Any:
    """Return a new target machine for this CPU: an engine owns its own and deletes it."""
    triple, name, features = _host()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=name, features=features, opt=LEVEL, **CODE)


@functools.lru_cache(maxsize=1)
def _linker() -> Any:
    """Return LLVM's loader of objects."""
    return _binding().create_lljit_compiler(_machine(_binding()))


@functools.lru_cache(maxsize=1)
def _emitter() -> Any:
    """Return the target machine that emits objects; creating one takes two milliseconds."""
    return _machine(_binding())


def _optimize(llvm: Any, module: Any) -> None:
    """Promote variables on the stack to values, and remove empty blocks."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_simplify_cfg_pass()
    passes.add_sroa_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_new_gvn_pass()
    passes.run(module, llvm.create_pass_builder(_emitter(), llvm.create_pipeline_tuning_options()))


@functools.lru_cache(maxsize=1)
def check_execution() -> None:
    """Raise BackendError if the system forbids the execution of memory that was written to.

    SELinux, systemd and prctl(PR_SET_MDWE) can be configured to forbid it.
    """
    if not hasattr(mmap, "MAP_ANONYMOUS"):  # elsewhere LLVM reports it
        return
    memory = mmap.mmap(-1, mmap.PAGESIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    memory[0] = 0
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    read_and_execute = 1 | 4
    if _process().mprotect(ctypes.c_void_p(address), mmap.PAGESIZE, read_and_execute):
        raise BackendError(
            f"the system does not let new machine code run ({os.strerror(ctypes.get_errno())}); "
            "permit it (see SELinux's execmem, systemd's MemoryDenyWriteExecute), or use "
            "backend='python' or MBS_BACKEND=python"
        )


@functools.lru_cache(maxsize=1)
def _process() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


class MachineCode:
    """A compiled function. Keep it alive as long as its ``address`` is used.

    ``name`` is that of the function in the IR. ``optimized`` says that the passes run that code of
    :mod:`codegen.builder` needs.
    """

    def __init__(self, ir: str, name: str, *, optimized: bool = False) -> None:
        check_execution()
        key = cache.key(ir, _version(), *_host(), f"{LEVEL} {CODE} {optimized}")
        code = cache.load(key)
        if code is None:
            with lock, _binding().parse_assembly(ir) as module:
                if optimized:
                    _optimize(_binding(), module)
                code = _emitter().emit_object(module)
            cache.store(key, code)
        if not optimized:  # a program: its object names what it calls
            for function in SHARED:
                if function.encode() in code:
                    shared(function)
        with lock:
            library = _binding().JITLibraryBuilder().add_object_img(code).add_current_process()
            for symbol, address in [*symbols.items()]:  # other threads may add symbols
                library.import_symbol(symbol, address)
            self._library = library.export_symbol(name).link(_linker(), f"{next(_numbers)}")
            self.address = int(self._library[name])

    def __del__(self) -> None:
        if hasattr(self, "_library") and not sys.is_finalizing():
            with lock:
                self._library.close()


LANES = (2, 4, 8)
"""Numbers of doubles in a vector register."""

SHARED: dict[str, Callable[[], str]] = {
    **{driver_name(lanes): functools.partial(emit_driver, lanes) for lanes in (1, *LANES)},
    **{sines(lanes).name: functools.partial(emit_sines, lanes) for lanes in LANES},
}
"""Functions that programs call by name, with what emits their IR."""

_shared_lock = Lock()


def shared(name: str, emit: Callable[[], str] | None = None) -> int:
    """Return the address of a function that all kernels share, compiled on the first request.

    ``emit`` returns its IR; by default it is one of :data:`SHARED`. Raises BackendError if llvmlite
    is not installed or too old, or if no new code may run.
    """
    with _shared_lock:
        if name not in symbols:
            code = MachineCode((emit or SHARED[name])(), name, optimized=True)
            # never freed: at exit, threads may still run it after modules are freed
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
            symbols[name] = code.address
    return symbols[name]


@functools.lru_cache(maxsize=1)
def vector_lanes() -> int:
    """Return the number of doubles in a vector register of this processor."""
    names = set(re.split(r"[\s,+]+", _host()[-1]))
    return 8 if "avx512f" in names else 4 if "avx" in names else 2
