# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The back ends by name, and a C compiler, for tests that evaluate with each of them."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from waiting import TIMEOUT

from mbs_dynamics.compiler import Kernel, Program, trace
from mbs_dynamics.compiler.codegen.c import emit_c
from mbs_dynamics.compiler.passes.pipeline import lower

LLVM = pytest.param(
    "llvm",
    marks=pytest.mark.skipif(
        importlib.util.find_spec("llvmlite") is None, reason="llvmlite is not installed"
    ),
)

COMPILER = shutil.which("cc")
WITHOUT_COMPILER = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler named cc")


def needs_compiler(test: Any) -> Any:
    """Mark a test that runs a C compiler."""
    return pytest.mark.process(WITHOUT_COMPILER(test))


BACKENDS = (LLVM, "python")


def compiled(
    function: Callable[..., Any], backend: str, inputs: Mapping[str, tuple[int, ...]]
) -> Kernel:
    """Trace a function of arrays of these shapes and compile it."""
    return Kernel(trace(function, inputs, name="traced"), backend=backend)


EVALUATORS = (*BACKENDS, pytest.param("exported", marks=(WITHOUT_COMPILER, pytest.mark.process)))
"""The back ends, and the C that :func:`c_function` compiles with all warnings."""


def run_python(code: str, *arguments: Any, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, which imports this package."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    given = {"env": environment, "timeout": TIMEOUT, "capture_output": True, "text": True}
    return subprocess.run(command, check=False, **given)


STRICT = ("-std=c99", "-O1", "-Wall", "-Wextra", "-Werror", "-pedantic", "-shared", "-fPIC")


def c_function(program: Program, folder: Path) -> Any:
    """Emit and compile C; return a function of arrays to its status and the flat outputs."""
    folder = Path(tempfile.mkdtemp(dir=folder))  # a loaded library must not be overwritten
    text, library = folder / f"{program.name}.c", folder / f"{program.name}.so"
    text.write_text("#include <math.h>\n\n" + emit_c(lower(program, "c")).definition)
    subprocess.run([COMPILER, *STRICT, text, "-o", library, "-lm"], check=True)
    function = getattr(ctypes.CDLL(str(library)), program.name)
    function.restype = ctypes.c_int

    def call(*inputs: Any) -> tuple[int, list[Any]]:
        arrays = [np.ascontiguousarray(x, dtype=float) for x in inputs]
        outputs = [np.empty(port.size) for port in program.outputs]
        status = function(*[ctypes.c_void_p(x.ctypes.data) for x in (*arrays, *outputs)])
        return status, outputs

    return call
