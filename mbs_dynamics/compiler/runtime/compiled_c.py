# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The back end c: a program in C, compiled by the system's compiler, and called through ctypes.

What is compiled is the code that is exported (:mod:`codegen.c`), in double precision,
and a loop over states around it. The shared objects are kept in the cache of compiled objects, and
trusted as it trusts them (:mod:`jit.cache`).
"""

from __future__ import annotations

import _ctypes
import contextlib
import ctypes
import functools
import os
import platform
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from pathlib import Path

from mbs_dynamics.compiler.codegen.c import c_function
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.jit import cache
from mbs_dynamics.compiler.runtime.batches import Addresses, Evaluator, View
from mbs_dynamics.compiler.runtime.buffers import Buffers
from mbs_dynamics.errors import BackendError

COMPILER = "cc"
FLAGS = (
    *("-std=c99", "-O1", "-fPIC", "-shared", "-w"),
    *("-ffp-contract=off", "-fno-math-errno"),
)
"""Straight-line code is as fast as with -O2, which takes half as long again to compile. Numbers are
those of IEEE 754; errno is nobody's."""

PROGRAM = "mbs_program"
"""The name of the program's function in the shared object."""

LOOP = ctypes.CFUNCTYPE(
    ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64
)
"""C type of the loop over states. ctypes releases the interpreter lock."""

LIBRARY = """#include <math.h>
#include <stdint.h>
#include <stdlib.h>

{definition}
int64_t mbs_loop(int64_t states, char *const *pointers, const int64_t *strides, int64_t guards)
{{
  char *now[{ports}];
  int64_t status = 0;
  double *const workspace = {workspace};
  if ({needed} && !workspace) return -1;
  for (int p = 0; p < {ports}; ++p) now[p] = pointers[p];
  for (int64_t i = 0; i < states && !status; ++i) {{
    const int failed = {name}({arguments});
    if (failed) status = i * guards + failed;
    for (int p = 0; p < {ports}; ++p) now[p] += strides[p];
  }}
  free(workspace);
  return status;
}}
"""
"""A program and the loop over its states, which returns what :meth:`Evaluator.evaluate` does."""


def emit_library(program: Program) -> str:
    """Return the C source of what this back end compiles."""
    function = c_function(program, name=PROGRAM)
    ports = len(program.inputs) + len(program.outputs)
    arguments = [f"(double *)now[{p}]" for p in range(ports)]
    arguments += ["workspace"] if function.workspace else []
    return LIBRARY.format(
        definition=function.definition,
        ports=max(ports, 1),
        workspace=f"malloc({function.workspace} * sizeof(double))" if function.workspace else "0",
        needed=int(function.workspace > 0),
        name=PROGRAM,
        arguments=", ".join(arguments),
    )


class CompiledC(Evaluator):
    """A program as a shared object."""

    def __init__(self, program: Program) -> None:
        self.program = program
        library = _library(emit_library(program))
        weakref.finalize(self, _ctypes.dlclose, library._handle).atexit = False
        self._loop = LOOP(("mbs_loop", library))

    def one(self, buffers: Buffers) -> int:
        """Evaluate the state in these buffers."""
        return self._loop(1, buffers.pointers, buffers.no_strides, 0)  # type: ignore[no-any-return]

    def one_by_one(self, first: int, last: int, views: Sequence[View]) -> int:
        """Evaluate one state after the other."""
        at, guards = Addresses(views, first), len(self.program.guards)
        status = int(self._loop(last - first, at.pointers, at.strides, guards))
        return status + first * guards if status > 0 else status


def _library(source: str) -> ctypes.CDLL:
    """Return the shared object of a source, which was kept or is compiled now."""
    name = cache.key(source, *_compiler(), *FLAGS)
    kept = cache.load(name)
    with tempfile.TemporaryDirectory(prefix="mbs_dynamics-") as folder:  # of this user alone
        if kept is not None:
            with contextlib.suppress(OSError):  # what was kept may be damaged
                return _opened(folder, kept)
        code = _compiled(source, Path(folder))
        try:
            library = _opened(folder, code)
        except OSError as error:
            raise BackendError(
                f"what {COMPILER} compiled cannot be loaded: {error}{_remedy(folder)}"
            ) from None
        cache.store(name, code)
        return library


def _opened(folder: str, code: bytes) -> ctypes.CDLL:
    """Load a shared object; a name is never used twice, for the loader knows files by names."""
    handle, path = tempfile.mkstemp(".so", dir=folder)
    with os.fdopen(handle, "wb") as file:
        file.write(code)
    return ctypes.CDLL(path)


def _remedy(folder: str) -> str:
    """Return what to do where the system runs no code from files in a folder."""
    if not os.statvfs(folder).f_flag & os.ST_NOEXEC:
        return ""
    return (
        f"; {Path(folder).parent} does not permit execution (it is mounted noexec): set TMPDIR to "
        "a folder that does"
    )


def _compiled(source: str, folder: Path) -> bytes:
    text, library = folder / "program.c", folder / "program.so"
    text.write_text(source, encoding="ascii")
    _run([*FLAGS, str(text), "-o", str(library), "-lm"])
    return library.read_bytes()


@functools.lru_cache(maxsize=1)
def _compiler() -> tuple[str, str]:
    """Return what decides over machine code besides the source."""
    return _run(["--version"]), f"{platform.machine()} {platform.libc_ver()}"


def _run(arguments: Sequence[str]) -> str:
    """Run the compiler and return what it says; raise BackendError if it cannot do it."""
    instead = "use another back end, such as backend='python' or MBS_BACKEND=python"
    try:
        done = subprocess.run([COMPILER, *arguments], capture_output=True, text=True, check=False)
    except OSError as error:
        raise BackendError(
            f"the c backend needs a C compiler named {COMPILER}, which cannot be run ({error}); "
            f"install one (on Debian and Ubuntu: sudo apt install gcc libc6-dev), or {instead}"
        ) from error
    if done.returncode:
        said = "\n".join((done.stderr or done.stdout).splitlines()[:10])
        raise BackendError(
            f"the C compiler {COMPILER} failed ({done.returncode}); it needs the headers of the C "
            f"library (on Debian and Ubuntu: libc6-dev); or {instead}; it says:\n{said}"
        )
    return done.stdout
