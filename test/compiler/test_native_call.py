# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels called through machine code: the fast path is taken, for one state and for batches."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from native_bench import expected, new_kernel, one_by_one, one_state, ordinary, same, states
from numpy.lib.stride_tricks import as_strided
from waiting import TIMEOUT

from mbs_dynamics.compiler import Kernel
from mbs_dynamics.compiler.runtime.machine import LEAST_STATES
from mbs_dynamics.compiler.runtime.native import layout

pytest.importorskip("llvmlite")
pytestmark = ordinary


def test_arrays_of_one_state_take_the_fast_path():
    kernel = new_kernel()
    x, A, s, g = one_state()
    frozen = x.copy()
    frozen.flags.writeable = False
    part = np.arange(12.0).reshape(4, 3)[2]
    transposed = as_strided(x, (3,), (8,))
    odd = as_strided(A, (2, 3), (24, 8))
    before = kernel.slow_calls
    for arguments in (
        (x, A, s, g),
        (x, A, s),
        (frozen, A, s, g),
        (part, A, s, g),
        (transposed, odd, s),
        (x, A, np.array(2.0), g),
        (x, x.reshape(1, 3).repeat(2, 0), s),
    ):
        for found, wanted in zip(kernel(*arguments), expected(*arguments), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-14, atol=1e-14)
        kernel(*arguments)
    assert kernel.slow_calls == before


@pytest.fixture(scope="module")
def kernel():
    """Return a kernel that has compiled its vector code."""
    kernel = new_kernel()
    kernel(*states(LEAST_STATES))
    assert kernel.slow_calls == 1
    return kernel


@pytest.mark.parametrize("rows", [1, 7, LEAST_STATES - 1, LEAST_STATES, LEAST_STATES + 7, 300])
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


FIELDS = [(name, field) for name in ("ARRAY", "TUPLE") for field in getattr(layout, name).fields]


@pytest.mark.parametrize(("struct", "field"), FIELDS)
def test_a_layout_with_other_offsets_is_not_followed(monkeypatch, struct, field):
    fields = getattr(layout, struct).fields
    offset, kind = fields[field]
    monkeypatch.setitem(fields, field, (offset + 8, kind))
    assert "layout of objects" in layout.unsupported_reason.__wrapped__()  # without its memory
