# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Batches through machine code: rows one by one, and vector code."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from native_bench import (
    one_by_one,
    one_state,
    ordinary,
    same,
    states,
    with_vector_code,
)
from waiting import TIMEOUT

from mbs_dynamics.compiler import Kernel
from mbs_dynamics.compiler.runtime.machine import LEAST_STATES

pytest.importorskip("llvmlite")
pytestmark = ordinary  # the back end is llvm


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


def test_one_kernel_in_several_threads(kernel):
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
