# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Back ends that cannot be used here: what is chosen instead, and what is reported."""

import json
import sys

import numpy as np
import pytest
from backends import run_python

from mbs_dynamics.compiler import Kernel, default_backend, trace
from mbs_dynamics.compiler.jit import machine_code
from mbs_dynamics.errors import BackendError, log_once

llvmlite = pytest.importorskip("llvmlite")
PROGRAM = trace(lambda x: 2.0 * x, {"x": (3,)}, name="twice")


@pytest.fixture
def anew(monkeypatch):
    """Let the choice of the back end be made anew, with nothing said in the environment."""
    monkeypatch.delenv("MBS_BACKEND", raising=False)
    found = machine_code.problem, log_once, machine_code.check_execution
    for function in found:
        function.cache_clear()
    yield monkeypatch
    monkeypatch.undo()
    for function in found:
        function.cache_clear()


def no_llvmlite(patch):
    patch.setitem(sys.modules, "llvmlite", None)  # every import of it fails


def old_llvmlite(patch):
    patch.setattr(llvmlite, "__version__", "0.39.1")


def test_with_an_old_llvmlite_plain_python_is_chosen_and_reported_once(anew, caplog):
    old_llvmlite(anew)
    assert default_backend() == "python"
    kernels = [Kernel(PROGRAM) for _ in range(3)]
    assert {made.backend for made in kernels} == {"python"}
    np.testing.assert_array_equal(kernels[0](np.arange(3.0)), [0.0, 2.0, 4.0])
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("mbs_dynamics", "WARNING")
    assert "plain Python" in record.message


@pytest.mark.parametrize("problem", [old_llvmlite, no_llvmlite])
@pytest.mark.parametrize("named", [True, False], ids=["by argument", "by the environment"])
def test_unusable_llvm_that_was_asked_for_is_an_error(anew, caplog, problem, named):
    problem(anew)
    anew.setenv("MBS_CACHE", "0")
    anew.setenv("MBS_BACKEND", "" if named else "llvm")
    with pytest.raises(BackendError, match="needs llvmlite"):
        Kernel(PROGRAM, backend="llvm" if named else None)
    assert not caplog.records


HARDENED = """
import ctypes, json, logging, sys
PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN = 65, 1
if ctypes.CDLL(None).prctl(PR_SET_MDWE, PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0):
    sys.exit(77)
import numpy as np
import mbs_dynamics as mbs
from mbs_dynamics.compiler import Kernel, trace
program = trace(lambda x: 2.0 * x, {"x": (3,)}, name="twice")
kernel = Kernel(program)
try:
    Kernel(program, backend="llvm")
except mbs.BackendError as error:
    print(json.dumps([kernel.backend, kernel(np.ones(3)).tolist(), str(error)]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has PR_SET_MDWE")
@pytest.mark.process
def test_a_process_that_may_not_run_new_code_uses_plain_python():
    done = run_python(HARDENED, MBS_BACKEND="", PYTHON_JIT="0")  # CPython's own cannot run either
    if done.returncode == 77:
        pytest.skip("Linux has no PR_SET_MDWE before 6.3")
    assert done.returncode == 0, done.stderr
    backend, found, error = json.loads(done.stdout)
    assert (backend, found) == ("python", [2.0, 2.0, 2.0])
    assert "Permission denied" in error
    assert done.stderr.count("kernels are plain Python") == 1
