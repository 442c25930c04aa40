# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels called through machine code: references, memory, garbage collection and threads."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from native_bench import new_kernel, one_state
from waiting import TIMEOUT

from mbs_dynamics.compiler.runtime.native import layout

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.backend_independent  # the back end is llvm


@pytest.fixture(scope="module")
def kernel():
    return new_kernel()


CALLS = 100_000


def counts(things: Any) -> list[int]:
    return [sys.getrefcount(x) for x in things]


def test_no_reference_is_lost_or_kept(kernel):
    arguments = one_state()
    watched = [*arguments, *kernel.defaults, kernel]
    if layout.supported():
        watched.append(np.dtype(np.float64))  # np.empty, of the slow path, may itself keep one
    kernel(*arguments)
    before = counts(watched)
    for _ in range(CALLS):
        kernel(*arguments)
    for _ in range(CALLS):
        kernel(*arguments[:3])
    after = counts(watched)
    assert after == before
    found = kernel(*arguments)
    own = counts((np.ones(2),))[0]
    assert counts(found) == [own + layout.supported()] * 3  # the kernel's, to use them again


ENDING = """
import threading, time
import numpy as np
from mbs_dynamics.compiler import Kernel, sin, trace

def several(x):
    y = sin(x[0])
    for _ in range(60):
        y = sin(y * x[1] + x[2])
    return y

kernel = Kernel(trace(several, {"x": (3,)}, name="f"), backend="llvm")
x = np.ones((90_000, 3))
kernel(x)

def work():
    while True:
        kernel(x)

for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.1)
"""


@pytest.mark.process
def test_a_process_ends_while_threads_evaluate():
    """Code that all kernels share exists as long as a thread may run it."""
    running = [subprocess.Popen([sys.executable, "-c", ENDING]) for _ in range(2)]
    for _ in range(6):
        running.append(subprocess.Popen([sys.executable, "-c", ENDING]))
        assert running.pop(0).wait(timeout=TIMEOUT) == 0
    assert [process.wait(timeout=TIMEOUT) for process in running] == [0, 0]
