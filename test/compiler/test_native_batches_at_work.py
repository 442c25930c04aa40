# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Batches through machine code: references, threads, chance."""

from __future__ import annotations

import itertools
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from layouts import LAYOUTS
from native_bench import (
    SHAPES,
    new_kernel,
    one_state,
    ordinary,
    outcome,
    same,
    states,
    with_vector_code,
)
from test_native_fuzz import CALLS

from mbs_dynamics.compiler import Kernel, trace
from mbs_dynamics.compiler.passes.strategy import LEAST_STATES
from mbs_dynamics.errors import ArgumentError, SingularError

pytest.importorskip("llvmlite")
pytestmark = [pytest.mark.backend_independent, ordinary]  # the back end is llvm


@pytest.fixture(scope="module")
def kernel():
    return with_vector_code()


def test_no_reference_is_lost_or_kept(kernel):
    arguments = states(LEAST_STATES + 1)
    bad = [np.full_like(arguments[0], -20.0), *arguments[1:]]
    watched = [*arguments, *kernel.defaults, kernel]

    def work(times: int) -> None:
        for _ in range(times):
            kernel(*arguments)
            kernel(*arguments[:3])
            assert isinstance(outcome(kernel, bad), SingularError)
            assert isinstance(outcome(kernel, [*arguments[:3], arguments[3][:-1]]), ArgumentError)

    work(10)
    before = [sys.getrefcount(x) for x in watched]
    work(1000)
    assert [sys.getrefcount(x) for x in watched] == before


def test_one_kernel_in_several_threads(kernel):
    """One call has the vector code's memory, the others take the slow path meanwhile."""

    def work(seed: int) -> None:
        rows = (LEAST_STATES, 300, 5000)[seed % 3]
        arguments = states(rows, seed)
        wanted = Kernel._slow(kernel, arguments)
        start.wait()
        for _ in range(200):
            assert same(kernel(*arguments), wanted)

    start = threading.Barrier(6)
    with ThreadPoolExecutor(6) as pool:
        for future in [pool.submit(work, seed) for seed in range(6)]:
            future.result(timeout=120)


def test_threads_that_need_vector_code_first_at_once():
    arguments = states(300)
    for _ in range(20):
        kernel = new_kernel()
        start = threading.Barrier(4)

        def work(kernel: Any = kernel, start: Any = start) -> Any:
            start.wait()
            return [kernel(*arguments) for _ in range(5)][-1]

        with ThreadPoolExecutor(4) as pool:
            waiting = [pool.submit(work) for _ in range(4)]
            found = [future.result(timeout=120) for future in waiting]
        for a, b in itertools.pairwise(found):
            assert same(a, b)


CHANCE = np.array([0.65, *[0.05] * 7])
"""Of arrays as they come, and of each other layout."""


@pytest.mark.filterwarnings("ignore")
def test_batches_by_chance_give_what_the_slow_path_gives(kernel):
    rng = np.random.default_rng(31 if CALLS == 20_000 else None)
    kinds: dict[str, int] = {}
    for k in range(CALLS // 10):
        rows = int(rng.choice([1, 2, 9, LEAST_STATES - 1, LEAST_STATES, 77, 200, 0]))
        lengths = [rows if rng.random() < 0.95 else int(rng.integers(80)) for _ in SHAPES]
        given = [x[:n] for x, n in zip(states(200, k), lengths, strict=True)]
        one = one_state(k)
        given = [x if rng.random() < 0.7 else y for x, y in zip(given, one, strict=True)]
        for i, layout in enumerate(rng.choice(np.array([None, *LAYOUTS]), 4, p=CHANCE)):
            if layout is not None and given[i].ndim > len(list(SHAPES.values())[i]):
                given[i] = layout(given[i])
        if rng.random() < 0.05:
            given[0] = given[0].copy() - 20.0 * (rng.random(given[0].shape) < 0.01)
        arguments = given[: 3 if rng.random() < 0.3 else 4]
        kept = [x.copy(order="K") for x in arguments]
        before = kernel.slow_calls
        found = outcome(kernel, arguments)
        fast = kernel.slow_calls == before
        wanted = outcome(Kernel.__call__, [kernel, *kept])
        assert same(found, wanted), (k, rows, found, wanted)
        kind = type(found).__name__ if isinstance(found, Exception) else "fast" * fast or "slow"
        kinds[kind] = kinds.get(kind, 0) + 1
    assert min(kinds[kind] for kind in ("fast", "slow", "ArgumentError", "SingularError")) > 10


def test_vector_code_goes_with_its_kernel():
    """Results of a batch outlive the kernel, and calls after it has gone find nothing of it."""
    for _ in range(50):
        kernel = Kernel(trace(lambda x: x * 2.0, {"x": (3,)}, name="f"), backend="llvm")
        x = np.ones((LEAST_STATES, 3))
        kernel(x)
        found = kernel(x)
        del kernel
        np.testing.assert_array_equal(found, 2.0 * x)
