# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""Compilation of LLVM IR. Nothing else knows llvmlite."""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Mapping
from typing import Any

from mbs_dynamics.errors import BackendError
from mbs_dynamics.tracing import cache
from mbs_dynamics.tracing.llvm_batch import emit_batch
from mbs_dynamics.tracing.llvm_body import WIDTH
from mbs_dynamics.tracing.llvm_shared import emit_shared

LEVEL = 1
"""Of optimisation: as fast as 3 on straight-line code, and compiles far sooner."""

FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)
"""C type of a program's function, for one state."""

LOOP = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
)
"""C type of the loop of :mod:`mbs_dynamics.tracing.llvm_shared`. ctypes releases the interpreter
lock."""

BATCH = ctypes.CFUNCTYPE(
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_void_p,
    ctypes.c_int64,
)
"""C type of the driver of :mod:`mbs_dynamics.tracing.llvm_batch`."""

_lock = threading.Lock()
_llvm: Any = None


def _binding() -> Any:
    """Return llvmlite's binding with this machine's target set up once, under the lock."""
    global _llvm
    if _llvm is None:
        try:
            import llvmlite.binding as llvm
        except ImportError as error:
            raise BackendError(
                f"the llvm backend needs llvmlite, which is not installed ({error}); install it, "
                "or use backend='python' or MBS_BACKEND=python"
            ) from error
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        _llvm = llvm
    return _llvm


@functools.lru_cache(maxsize=1)
def _processor() -> tuple[str, str, str, str, str]:
    """Return what decides over machine code besides the IR; the first two are for LLVM."""
    llvm = _binding()
    version = ".".join(str(part) for part in llvm.llvm_version_info)
    return (
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
        llvm.get_process_triple(),
        version,
        f"opt={LEVEL}",
    )


def _machine(llvm: Any) -> Any:
    """Return a new target machine for this CPU: an engine owns its own and deletes it."""
    name, features, triple, *_ = _processor()
    return llvm.Target.from_triple(triple).create_target_machine(
        cpu=name,
        features=features,
        opt=LEVEL,
        codemodel="jitdefault",
        jit=True,
    )


class MachineCode:
    """Compiled IR. It owns the memory of the code: keep it alive as long as an address is used."""

    def __init__(self, ir: str) -> None:
        with _lock:  # LLVM's context is shared by the process
            llvm, processor = _binding(), _processor()
        name = cache.key(ir, *processor)
        code = cache.load(name)
        if code is None:
            with _lock:
                code = _machine(llvm).emit_object(llvm.parse_assembly(ir))
            cache.store(name, code)
        with _lock:
            self._object = llvm.ObjectFileRef.from_data(code)
            self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _machine(llvm))
            self._engine.add_object_file(self._object)
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return the address of a function."""
        return int(self._engine.get_function_address(name))

    def export(self, name: str) -> None:
        """Let later code call a function of this code, which must never be freed."""
        add_symbols({name: self.address(name)})


def add_symbols(addresses: Mapping[str, int]) -> None:
    """Give names to addresses, for code that is compiled later."""
    with _lock:
        for name, address in addresses.items():
            _binding().add_symbol(name, address)


class Shared:
    """What the kernels of a process share, compiled."""

    def __init__(self) -> None:
        self._code = MachineCode(emit_shared())
        self._code.export(f"mbs.sincos{WIDTH}")
        self.loop = LOOP(self._code.address("mbs.loop"))


class _Batch:
    """What the vector code of a process shares, for one number of lanes."""

    def __init__(self, lanes: int) -> None:
        self._code = MachineCode(emit_batch(lanes))
        if lanes != WIDTH:
            self._code.export(f"mbs.sincos{lanes}")
        self.driver = BATCH(self._code.address("mbs.batch"))


_shared_lock = threading.Lock()
_shared: Shared | None = None
_batch: dict[int, _Batch] = {}


def shared() -> Shared:
    """Return what the kernels of this process share; compiled once. Code that calls it needs it.

    Raises BackendError if llvmlite is not installed.
    """
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Shared()
    return _shared


def batch_driver(lanes: int) -> Callable[..., int]:
    """Return the driver of bodies with so many lanes, of the IR of :func:`emit_batch`."""
    shared()
    with _shared_lock:
        if lanes not in _batch:
            _batch[lanes] = _Batch(lanes)
    return _batch[lanes].driver


@functools.lru_cache(maxsize=1)
def vector_lanes() -> int:
    """Return how many doubles fit in a vector register of this processor."""
    with _lock:
        features = _binding().get_host_cpu_features()
    if features.get("avx512f"):
        return 8
    return 4 if features.get("avx") else 2
