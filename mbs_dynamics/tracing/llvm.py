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
from typing import Any

from mbs_dynamics.errors import BackendError
from mbs_dynamics.tracing.llvm_body import WIDTH
from mbs_dynamics.tracing.llvm_shared import emit_shared

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


def _machine(llvm: Any) -> Any:
    """Return a new target machine for this CPU: an engine owns its own and deletes it."""
    return llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=1,  # level 1 is as fast as 3 on straight-line code and compiles far sooner
        codemodel="jitdefault",
        jit=True,
    )


class MachineCode:
    """Compiled IR. It owns the memory of the code: keep it alive as long as an address is used."""

    def __init__(self, ir: str) -> None:
        with _lock:  # LLVM's context is shared by the process
            llvm = _binding()
            module = llvm.parse_assembly(ir)
            self._engine = llvm.create_mcjit_compiler(module, _machine(llvm))
            self._engine.finalize_object()

    def address(self, name: str) -> int:
        """Return the address of a function."""
        return int(self._engine.get_function_address(name))


class Shared:
    """What the kernels of a process share, compiled."""

    def __init__(self) -> None:
        self.lanes = vector_lanes()
        widths = {WIDTH, self.lanes}
        self._code = MachineCode(emit_shared(widths))
        for name in (f"mbs.sincos{n}" for n in widths):
            _binding().add_symbol(name, self._code.address(name))
        self.loop = LOOP(self._code.address("mbs.loop"))


_shared_lock = threading.Lock()
_shared: Shared | None = None


def shared() -> Shared:
    """Return what the kernels of this process share; compiled once. Code that calls it needs it.

    Raises BackendError if llvmlite is not installed.
    """
    global _shared
    with _shared_lock:
        if _shared is None:
            _shared = Shared()
    return _shared


@functools.lru_cache(maxsize=1)
def vector_lanes() -> int:
    """Return how many doubles fit in a vector register of this processor."""
    with _lock:
        features = _binding().get_host_cpu_features()
    if features.get("avx512f"):
        return 8
    return 4 if features.get("avx") else 2
