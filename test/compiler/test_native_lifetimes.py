# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels called through machine code: references, memory, garbage collection and threads."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from native_bench import new_kernel, one_state, outcome, same
from waiting import TIMEOUT

from mbs_dynamics.compiler import Kernel, trace
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


@pytest.mark.slow
def test_no_memory_is_kept(kernel):
    arguments = one_state()
    lists = [x.tolist() for x in arguments]
    singular = [np.array([-9.5, 0.0, 0.0]), *arguments[1:]]
    one = Kernel(trace(lambda x: x * 2.0, {"x": (500,)}, name="one"), backend="llvm")
    big, several = np.zeros(500), [np.repeat(arguments[0][None], 9, 0), *arguments[1:]]

    def work(times: int) -> None:
        for _ in range(times):
            kernel(*arguments)
            kernel(*several)
            one(big)
            outcome(kernel, singular)
            outcome(kernel, lists)
            outcome(kernel, lists[:1])

    tracemalloc.start()  # NumPy reports the data of its arrays to it as well
    try:
        work(50)
        grown = []
        for _ in range(4):  # what is lost is lost each time; a table of Python's grows now and then
            gc.collect()
            before = tracemalloc.get_traced_memory()[0]
            work(500)
            gc.collect()
            grown.append(tracemalloc.get_traced_memory()[0] - before)
    finally:
        tracemalloc.stop()
    assert min(grown) < 5_000, grown  # each time less than any object has


def test_calls_from_several_threads(kernel):
    def work(seed: int) -> None:
        arguments = one_state(seed)
        lists = [x.tolist() for x in arguments]
        batch = np.stack([arguments[0]] * 50)
        wanted = kernel(*arguments)
        start.wait()
        for _ in range(300):
            assert same(kernel(*arguments), wanted)
            assert same(kernel(*lists), wanted)
            batched = kernel(batch, *arguments[1:])
            np.testing.assert_allclose(batched[0], np.stack([wanted[0]] * 50), rtol=1e-15)

    start = threading.Barrier(8)
    with ThreadPoolExecutor(8) as pool:
        for future in [pool.submit(work, seed) for seed in range(8)]:
            future.result(timeout=TIMEOUT)


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
