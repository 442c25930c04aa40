# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Compilation of LLVM IR; the only module that uses llvmlite."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import re
from collections.abc import Callable
from typing import Any

from mbs_dynamics.compiler.codegen.builder import I32, I64, Prototype, name_of
from mbs_dynamics.compiler.codegen.llvm_batch import emit_batch
from mbs_dynamics.compiler.codegen.llvm_shared import emit_loop, emit_sines
from mbs_dynamics.compiler.jit import cache, elf
from mbs_dynamics.errors import BackendError
from mbs_dynamics.locks import Lock, held_during_forks

OLDEST = (0, 45)
"""The first version of llvmlite whose LLVM reads the IR of this package."""

LEVEL = 1
"""Of optimisation: as fast as 3 on straight-line code, and compiles far sooner."""

CODE = (
    {"codemodel": "small", "reloc": "pic"}
    if elf.SUPPORTED
    else {"codemodel": "jitdefault", "jit": True}
)
"""Code with its constants beside it is some 5 % faster than code for whatever address."""

PROCESSOR = "vendor_id", "cpu family", "model", "model name", "stepping", "flags"
"""Lines of /proc/cpuinfo that decide over machine code."""

lock = held_during_forks()
"""Held during every call of llvmlite, also when modules are freed: llvmlite has a lock of its own,
and a child forked while another thread holds it could never compile."""
symbols: dict[str, int] = {}
"""Addresses by the names that code gives them, for all code that is placed later."""


@functools.lru_cache(maxsize=1)
def _binding() -> Any:
    """Return llvmlite's binding with this machine's target set up once, under the lock."""
    _version()
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


def _version() -> str:
    """Return the version of llvmlite, each of which comes with one LLVM. Its import is quick."""
    try:
        with lock:  # a child would wait for the import of a thread that it does not have
            import llvmlite
    except ImportError as error:
        raise BackendError(
            f"the llvm backend needs llvmlite, which is not installed ({error}); install it, "
            "or use backend='python' or MBS_BACKEND=python"
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
        elf.check_execution()
    except BackendError as error:
        return str(error)
    return None


@functools.lru_cache(maxsize=1)
def _host() -> tuple[str, str, str]:
    """Return LLVM's triple, name and features of this processor."""
    llvm = _binding()
    features = llvm.get_host_cpu_features().flatten()
    return llvm.get_process_triple(), llvm.get_host_cpu_name(), features


@functools.lru_cache(maxsize=1)
def _processor() -> tuple[str, ...]:
    """Return texts that identify this processor; the last one lists its features."""
    if elf.SUPPORTED:  # without LLVM, which need not be imported for objects that are kept
        with contextlib.suppress(OSError, KeyError), open("/proc/cpuinfo", "rb") as file:
            lines = [line.partition(b":") for line in itertools.takewhile(bytes.strip, file)]
            entries = {name.strip().decode(): text.strip().decode() for name, _, text in lines}
            return tuple(entries[name] for name in PROCESSOR)
    with lock:
        return _host()


def _machine(llvm: Any) -> Any:
    """Return a new target machine for this CPU: an engine owns its own and deletes it."""
    triple, name, features = _host()
    target = llvm.Target.from_triple(triple)
    return target.create_target_machine(cpu=name, features=features, opt=LEVEL, **CODE)


@functools.lru_cache(maxsize=1)
def _emitter() -> Any:
    """Return the target machine that emits objects; to make one takes two milliseconds."""
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


class _Engine:
    """An object in memory, placed there by LLVM."""

    def __init__(self, code: bytes) -> None:
        elf.check_execution()
        with lock:
            llvm = _binding()
            for name, address in [*symbols.items()]:  # others may add some
                llvm.add_symbol(name, address)
            self._object = llvm.ObjectFileRef.from_data(code)
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(llvm))
            self._engine.add_object_file(self._object)
            self._engine.finalize_object()

    def __del__(self) -> None:
        with lock:
            self._engine.close()
            self._object.close()

    def address(self, name: str) -> int:
        return int(self._engine.get_function_address(name))


class MachineCode:
    """Compiled IR. It owns the memory of the code: keep it alive as long as an address is used.

    ``optimized`` says that the passes run that code of :mod:`codegen.builder` needs.
    """

    def __init__(self, ir: str, *, optimized: bool = False) -> None:
        name = cache.key(ir, _version(), *_processor(), f"{LEVEL} {CODE} {optimized}")
        code = cache.load(name)
        if code is None:
            with lock, _binding().parse_assembly(ir) as module:
                if optimized:
                    _optimize(_binding(), module)
                code = _emitter().emit_object(module)
            cache.store(name, code)
        if not optimized:  # a program: its object names what it calls
            for function in SHARED:
                if function.encode() in code:
                    shared(function)
        self._image = elf.Image(code, _address) if elf.SUPPORTED else _Engine(code)
        self.address = self._image.address
        """The function that returns the address of a function by its name."""


def assembly(ir: str) -> str:
    """Return the assembly of this processor that IR is compiled to.

    Raises BackendError if llvmlite is not installed or too old.
    """
    _version()
    with lock, _binding().parse_assembly(ir) as module:
        return str(_emitter().emit_assembly(module))


@functools.cache
def c_type(function: Prototype) -> Any:
    """Return the C type of a function. ctypes releases the interpreter lock while it runs."""
    integers = {I32: ctypes.c_int32, I64: ctypes.c_int64}
    types = function.returns, *function.parameters
    return ctypes.CFUNCTYPE(*[integers.get(name_of(x), ctypes.c_void_p) for x in types])


def _address(name: str) -> int:
    return symbols.get(name) or elf.address_in_process(name)


LANES = (2, 4, 8)
"""How many doubles there are in vector registers."""

SHARED: dict[str, Callable[[], str]] = {
    "mbs.loop": emit_loop,
    **{f"mbs.batch{lanes}": functools.partial(emit_batch, lanes) for lanes in LANES},
    **{f"mbs.sincos{lanes}": functools.partial(emit_sines, lanes) for lanes in LANES},
}
"""Emitters of the IR of functions that programs call by name."""

_shared_lock = Lock()


def shared(name: str, emit: Callable[[], str] | None = None) -> int:
    """Return the address of a function that all kernels share, compiled when first asked for.

    ``emit`` returns its IR; by default it is one of :data:`SHARED`. Raises BackendError if llvmlite
    is not installed or too old, or if no new code may run.
    """
    with _shared_lock:
        if name not in symbols:
            code = MachineCode((emit or SHARED[name])(), optimized=True)
            # when the interpreter ends, it frees what modules refer to, while threads may run it
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(code))
            symbols[name] = code.address(name)
    return symbols[name]


@functools.lru_cache(maxsize=1)
def vector_lanes() -> int:
    """Return how many doubles fit in a vector register of this processor."""
    names = set(re.split(r"[\s,+]+", _processor()[-1]))
    return 8 if "avx512f" in names else 4 if "avx" in names else 2
