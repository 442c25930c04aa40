# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Batches through machine code: rows one by one, and vector code."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from layouts import LAYOUTS, OTHERS, SIDE_BY_SIDE, part_of_wider, transposed
from native_bench import (
    SHAPES,
    new_kernel,
    one_by_one,
    one_state,
    ordinary,
    outcome,
    same,
    states,
    with_vector_code,
)
from test_native_fuzz import CALLS
from waiting import TIMEOUT

from mbs_dynamics.compiler import Kernel, trace
from mbs_dynamics.compiler.passes.strategy import LARGEST_BATCH, LEAST_STATES
from mbs_dynamics.compiler.runtime import states as in_memory
from mbs_dynamics.errors import SingularError

pytest.importorskip("llvmlite")
pytestmark = [pytest.mark.backend_independent, ordinary]  # the back end is llvm


@pytest.fixture(scope="module")
def kernel():
    return with_vector_code()


ROWS = [1, 7, LEAST_STATES - 1, LEAST_STATES, LEAST_STATES + 1, LEAST_STATES + 7, 300, 1001]


@pytest.mark.parametrize("rows", ROWS)
def test_batches_take_the_fast_path(kernel, rows):
    batched, (x, A, s, g) = states(rows), one_state()
    before = kernel.slow_calls
    for arguments in (
        batched,
        batched[:3],
        (batched[0], A, s),
        (x, batched[1], s, g),
        (x, A, batched[2], g),
        (x, A, s, batched[3]),
    ):
        wanted = one_by_one(kernel, arguments, rows)
        for a, b in zip(kernel(*arguments), wanted, strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)
    assert kernel.slow_calls == before


@pytest.mark.parametrize("rows", [5, LEAST_STATES + 3])
def test_parts_of_states_take_the_fast_path(kernel, rows):
    """Such as q = x[:, :n] and qd = x[:, n:] of states x."""
    arguments, before = states(rows), kernel.slow_calls
    wanted = kernel(*arguments)
    for layout in SIDE_BY_SIDE:
        assert same(kernel(*[layout(x) for x in arguments]), wanted)
    whole = np.zeros((rows, 5))
    whole[:, :3] = arguments[0]
    assert same(kernel(whole[:, :3], *arguments[1:]), wanted)
    assert kernel.slow_calls == before


@pytest.mark.parametrize("rows", [5, LEAST_STATES + 3])
def test_other_layouts_take_the_slow_path(kernel, rows):
    arguments = states(rows)
    wanted = kernel(*arguments)
    for layout in OTHERS:
        before = kernel.slow_calls
        given = [layout(x) for x in arguments]
        assert same(kernel(*given), wanted)
        assert kernel.slow_calls == before + 1, layout
    mixed = [transposed(arguments[0]), *arguments[1:3], part_of_wider(arguments[3])]
    assert same(kernel(*mixed), wanted)
    x, A, s, g = arguments
    for same_in_all in (np.broadcast_to(x[:, :1], x.shape), np.broadcast_to(x[:1, :1], x.shape)):
        assert same(kernel(same_in_all, A, s, g), kernel(same_in_all.copy(), A, s, g))


@pytest.mark.parametrize("rows", [9, LEAST_STATES, 500])
def test_where_a_guard_fails_the_state_is_named(kernel, rows):
    x, A, s, g = states(rows)
    wanted = kernel(x, A, s, g)
    bad = x.copy()
    bad[rows - 3] = bad[rows - 1] = -9.5
    for _ in range(3):
        with pytest.raises(SingularError, match=rf"state \[{rows - 3}\]"):
            kernel(bad, A, s, g)
    before = kernel.slow_calls
    assert same(kernel(x, A, s, g), wanted)
    assert kernel.slow_calls == before


def test_large_results_go_to_python(kernel):
    rows = LARGEST_BATCH // (8 * 6) + 1
    arguments = states(rows)
    before = kernel.slow_calls
    found = kernel(*arguments)
    assert kernel.slow_calls == before + 1
    assert found[2].__array_interface__["data"][0] % in_memory.LINE == 0
    fewer = kernel(*[x[:-1] for x in arguments])
    assert kernel.slow_calls == before + 1
    assert same(fewer, [x[:-1] for x in found])


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
            future.result(timeout=TIMEOUT)


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
            found = [future.result(timeout=TIMEOUT) for future in waiting]
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
