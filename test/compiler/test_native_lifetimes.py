# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels called through machine code: references, memory, garbage collection and threads."""

import gc
import subprocess
import sys
import tracemalloc
import weakref
from typing import Any

import numpy as np
import pytest
from backends import run_python
from native_bench import new_kernel, one_state, outcome, states
from waiting import TIMEOUT

from mbs_dynamics.compiler.runtime.machine import LEAST_STATES
from mbs_dynamics.compiler.runtime.native import layout

pytest.importorskip("llvmlite")


@pytest.fixture(scope="module")
def kernel():
    return new_kernel()


CALLS = 100_000


def counts(things: Any) -> list[int]:
    return [sys.getrefcount(x) for x in things]


def test_no_reference_is_lost_or_kept(kernel):
    arguments = one_state()
    watched = [*arguments, *kernel.defaults, kernel]
    if layout.unsupported_reason() is None:
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
    kept = layout.unsupported_reason() is None  # by the kernel, to use them again
    assert counts(found) == [own + kept] * 3


@pytest.mark.parametrize("rows", [9, LEAST_STATES + 1])
def test_batches_lose_and_keep_no_references(kernel, rows):
    x, *others = one_state()
    several = np.repeat(x[None], rows, 0)
    watched = [several, *others, *kernel.defaults, kernel]
    for _ in range(10):
        kernel(several, *others)
    before = counts(watched)
    for _ in range(CALLS // 10):
        found = kernel(several, *others)
    assert counts(watched) == before
    assert counts(found) == counts((np.ones(2),)) * 3


@pytest.mark.slow
def test_no_memory_is_kept(kernel):
    arguments = one_state()
    lists = [x.tolist() for x in arguments]
    singular = [np.array([-9.5, 0.0, 0.0]), *arguments[1:]]
    several = [np.repeat(arguments[0][None], 9, 0), *arguments[1:]]

    def work(times: int) -> None:
        for _ in range(times):
            kernel(*arguments)
            kernel(*several)
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


def test_kernels_are_freed_at_once_whichever_way_they_were_called():
    arguments = one_state()
    gc.disable()
    try:
        for given in (arguments, [x.tolist() for x in arguments], states(LEAST_STATES)):
            kernel = new_kernel()
            kernel(*given)
            dead = [weakref.ref(x) for x in (kernel, kernel._evaluator)]
            del kernel
            assert [reference() for reference in dead] == [None, None]
    finally:
        gc.enable()


COLLECTED = """
import gc, random
from mbs_dynamics.compiler import Kernel, trace

program = trace(lambda x: x * 2.0, {"x": (3,)}, name="f")


class Holder:
    pass


gc.disable()
for seed in range(15):
    choose = random.Random(seed).random
    kernel = Kernel(program, backend="llvm")
    holder = Holder()
    holder.cycle, holder.kernel = holder, kernel
    if choose() < 0.5:
        kernel.holder = holder
    if choose() < 0.5:
        del kernel
    for _ in range(int(3 * choose())):
        gc.collect(int(3 * choose()))  # changes the order in which the collector finds things
    kernel = holder = None
    gc.collect()
"""


@pytest.mark.process
def test_kernels_in_cycles_are_freed_in_any_order():
    """Freed memory is overwritten by the C library here, so that using it does not go unseen."""
    done = run_python(COLLECTED, PYTHONMALLOC="malloc", MALLOC_PERTURB_="34")
    assert done.returncode == 0, done.stderr


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
    for _ in range(2):
        running = [subprocess.Popen([sys.executable, "-c", ENDING]) for _ in range(2)]
        assert [process.wait(timeout=TIMEOUT) for process in running] == [0, 0]
