# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Batches through machine code: rows one by one, vector code, and arrays to write into."""

from __future__ import annotations

import numpy as np
import pytest
from layouts import OTHERS, SIDE_BY_SIDE, part_of_wider, transposed
from native_bench import (
    Subclass,
    new_filling,
    one_by_one,
    one_state,
    ordinary,
    outcome,
    room,
    same,
    states,
    with_vector_code,
)

from mbs_dynamics.compiler.passes.strategy import LARGEST_BATCH, LEAST_STATES
from mbs_dynamics.compiler.runtime import batches
from mbs_dynamics.errors import ArgumentError, SingularError

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
        out = room(kernel, rows)
        assert kernel(*arguments, out=out) is out
        for found in (kernel(*arguments), out):
            for a, b in zip(found, wanted, strict=True):
                assert a.shape == b.shape
                np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)
    assert kernel.slow_calls == before


@pytest.mark.parametrize("rows", [5, LEAST_STATES + 3])
def test_one_output_is_written_into_an_array(rows):
    filling = new_filling()
    x, y = np.random.default_rng(1).normal(size=(rows, 3)), np.array(2.0)
    out, margin = np.full((rows + 2, 3, 3), np.nan), np.full((rows, 3, 3), np.nan)
    filling(x, y, out=margin)
    before = filling.slow_calls
    target = out[1:-1]
    assert filling(x, y, out=target) is target
    assert filling.slow_calls == before
    np.testing.assert_array_equal(target, margin)
    assert np.isnan(out[[0, -1]]).all()


@pytest.mark.parametrize("rows", [5, LEAST_STATES + 3])
def test_arrays_of_other_kinds_take_the_slow_path(kernel, rows):
    arguments = states(rows)
    wanted = kernel(*arguments)
    y, s, B = room(kernel, rows)
    frozen, whole = y.copy(), np.full(6 * rows + 1, np.nan)
    frozen.flags.writeable = False
    last = np.moveaxis(np.empty((2, 3, rows)), -1, 0)
    good = [(y, s, whole[1:].reshape(rows, 2, 3)), (y.view(Subclass), s, B), (y, s, last)]
    wrong = [
        *((), (y, s), (y, s, B, B), [y, s, B], y, (s, y, B), (frozen, s, B), (None, s, B), "out"),
        (y[:-1], s, B),
        (y, s, np.zeros((rows + 1, 2, 3))),
        (y, s[0], B),
        tuple(x[0] for x in (y, s, B)),
    ]
    for k, out in enumerate([*good, *wrong]):
        before = kernel.slow_calls
        found = outcome(lambda *x, o=out: kernel(*x, out=o), arguments)
        assert kernel.slow_calls == before + (k > 0)
        if k < len(good):
            assert found is out
            assert same([np.ascontiguousarray(np.asarray(x)) for x in found], wanted)
        else:
            assert isinstance(found, ArgumentError)


@pytest.mark.parametrize("rows", [5, LEAST_STATES + 3])
def test_parts_of_states_take_the_fast_path(kernel, rows):
    """Such as q = x[:, :n] and qd = x[:, n:] of states x."""
    arguments, before = states(rows), kernel.slow_calls
    wanted = kernel(*arguments)
    for layout in SIDE_BY_SIDE:
        assert same(kernel(*[layout(x) for x in arguments]), wanted)
    whole = np.zeros((rows, 5))
    whole[:, :3] = arguments[0]
    out = room(kernel, rows)
    assert kernel(whole[:, :3], *arguments[1:], out=out) is out
    assert same(out, wanted)
    assert kernel.slow_calls == before
    shared = whole.reshape(-1)[: 2 * rows].reshape(rows, 2)
    kernel(whole[:, :3], *arguments[1:], out=(shared, *out[1:]))
    np.testing.assert_array_equal(shared, wanted[0])
    assert kernel.slow_calls == before + 1


@pytest.mark.parametrize("rows", [5, LEAST_STATES + 3])
def test_other_layouts_take_the_slow_path(kernel, rows):
    arguments = states(rows)
    wanted = kernel(*arguments)
    for layout in OTHERS:
        before = kernel.slow_calls
        given = [layout(x) for x in arguments]
        assert same(kernel(*given), wanted)
        out = tuple(transposed(x) for x in room(kernel, rows))
        assert kernel(*given, out=out) is out
        assert same([np.ascontiguousarray(x) for x in out], wanted)
        assert kernel.slow_calls == before + 2, layout
    mixed = [transposed(arguments[0]), *arguments[1:3], part_of_wider(arguments[3])]
    assert same(kernel(*mixed), wanted)
    x, A, s, g = arguments
    for same_in_all in (np.broadcast_to(x[:, :1], x.shape), np.broadcast_to(x[:1, :1], x.shape)):
        assert same(kernel(same_in_all, A, s, g), kernel(same_in_all.copy(), A, s, g))


@pytest.mark.parametrize("rows", [5, LEAST_STATES + 3])
def test_arrays_may_overlap_the_inputs(kernel, rows):
    arguments = states(rows)
    wanted = kernel(*arguments)
    for which in ((3, 2, 1), (3, None, None), (None, 2, None), (None, None, 1)):
        given = [x.copy() for x in arguments]
        fresh = room(kernel, rows)
        out = tuple(
            fresh[k] if port is None else given[port].reshape(fresh[k].shape)
            for k, port in enumerate(which)
        )
        before = kernel.slow_calls
        assert same(kernel(*given, out=out), wanted)
        assert kernel.slow_calls == before + 1
    both = np.zeros(8 * rows)
    out = (both[: 2 * rows].reshape(rows, 2), np.zeros(rows), both[-6 * rows :].reshape(-1, 2, 3))
    before = kernel.slow_calls
    assert same(kernel(*arguments, out=out), wanted)  # side by side
    assert kernel.slow_calls == before
    out = (both[rows : 3 * rows].reshape(rows, 2), np.zeros(rows), out[2])
    kernel(*arguments, out=out)
    assert kernel.slow_calls == before + 1


@pytest.mark.parametrize("rows", [9, LEAST_STATES, 500])
def test_where_a_guard_fails_the_state_is_named(kernel, rows):
    x, A, s, g = states(rows)
    wanted = kernel(x, A, s, g)
    bad = x.copy()
    bad[rows - 3] = bad[rows - 1] = -9.5
    for _ in range(3):
        for out in (None, room(kernel, rows)):
            with pytest.raises(SingularError, match=rf"state \[{rows - 3}\]"):
                kernel(bad, A, s, g, out=out)
    before = kernel.slow_calls
    assert same(kernel(x, A, s, g), wanted)
    assert kernel.slow_calls == before


def test_large_results_and_large_batches_go_to_python(kernel):
    rows = LARGEST_BATCH // (8 * 6) + 1
    arguments = states(rows)
    before = kernel.slow_calls
    found = kernel(*arguments)
    assert kernel.slow_calls == before + 1
    assert found[2].__array_interface__["data"][0] % batches.LINE == 0
    kernel(*arguments, out=(out := room(kernel, rows)))
    assert kernel.slow_calls == before + 1
    assert same(out, found)
    fewer = kernel(*[x[:-1] for x in arguments])
    assert kernel.slow_calls == before + 1
    assert same(fewer, [x[:-1] for x in found])
