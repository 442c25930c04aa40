# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Batches of programs in two halves, and matrices that are filled one row after the other."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from cases import mostly_slow
from mechanisms import FOREST, TREE, random_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.compiler.codegen import llvm_halves, llvm_memory
from mbs_dynamics.compiler.frontend.loop_program import LoopProgram, twins_of
from mbs_dynamics.compiler.frontend.loops import CELL, PAIRS, ROWS, Forest
from mbs_dynamics.compiler.frontend.spans import BELOW
from mbs_dynamics.compiler.passes.fission import halves
from mbs_dynamics.compiler.passes.loop_pairs import goes_by_rows, grouped
from mbs_dynamics.compiler.runtime.batches import Vector, View

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.backend_independent  # the back end is llvm

ALGORITHMS = (
    mbs.mass_matrix,
    mbs.inverse_mass_matrix,
    mbs.coriolis_matrix,
    mbs.inverse_dynamics_derivatives,
    mbs.forward_dynamics_derivatives,
)
FEW = (mbs.inverse_mass_matrix, mbs.coriolis_matrix)
"""One with loops over columns, and one with loops over pairs."""

TREES = {
    "chain of 8": range(-1, 7),
    "chain of 11": range(-1, 10),
    "two bodies": range(-1, 1),
    "tree in another order": TREE,
    "several roots": FOREST,
    "branches of a chain": (*range(-1, 12), 5, 13, 14, 2, 16, 17, 18),
    "star": (-1, *[0] * 11),
}
MARGIN = 5
"""Entries between the results of states, which nothing may touch."""


@pytest.fixture
def loops(loops: Any, halved: Any) -> Any:
    """Return a switch: whether loops over bodies stay loops, in two halves, whatever the model."""

    def switch(on: bool) -> None:
        loops(on)
        halved()

    return switch


def compiled(function: Any, parents: Any) -> Any:
    model = random_mechanism(7, parents, kinds=("revolute",)).model
    return mbs.compile(function, model, backend="llvm")


def states(function: Any, n: int, count: int) -> list[Any]:
    arrays = len(algorithm_of(function).required)
    return list(np.random.default_rng(3).uniform(-2.0, 2.0, (arrays, count, n)))


def one_by_one(kernel: Any, arrays: list[Any]) -> list[Any]:
    found = [kernel(*state) for state in zip(*arrays, strict=True)]
    found = [each if isinstance(each, tuple) else (each,) for each in found]
    return [np.array(each) for each in zip(*found, strict=True)]


def together(kernel: Any, vector: Vector, arrays: list[Any]) -> list[Any]:
    """Return the results of a batch, between which there are entries that must not change."""
    count = len(arrays[0])
    rows = [View(x, 8 * x.shape[1]) for x in arrays]
    rows += [View(np.ascontiguousarray(x), 0) for x in kernel.defaults]
    room = [np.full((count + 1, port.size + MARGIN), 7.0) for port in kernel.outputs]
    rows += [View(x, 8 * x.shape[1]) for x in room]
    assert vector.evaluate(count, rows) == 0
    for x in room:
        assert (x[:, -MARGIN:] == 7.0).all()
        assert (x[count] == 7.0).all()
    return [
        x[:count, : port.size].reshape(count, *port.shape)
        for x, port in zip(room, kernel.outputs, strict=True)
    ]


@pytest.mark.parametrize("name", mostly_slow(TREES, ("chain of 8", "several roots")))
def test_halves_give_what_single_states_and_straight_code_give(name, loops):
    for function in ALGORITHMS if name == "branches of a chain" else FEW:
        loops(False)
        straight = compiled(function, TREES[name])
        loops(True)
        kernel = compiled(function, TREES[name])
        arrays = states(function, kernel.inputs[0].shape[0], 21)
        expected = one_by_one(kernel, arrays)
        for a, b in zip(expected, one_by_one(straight, arrays), strict=True):
            assert_close(a, b, 1e-11 * max(1.0, np.abs(b).max()), function.__name__)
        for lanes in (2, 4, 8) if function is mbs.coriolis_matrix else (8,):
            vector = Vector(kernel.program, lanes)
            assert any(vector.direct)
            for a, b in zip(together(kernel, vector, arrays), expected, strict=True):
                assert_close(a, b, 1e-13 * max(1.0, np.abs(b).max()), function.__name__)


def test_batches_of_any_layout(loops):
    loops(True)
    kernel = compiled(mbs.mass_matrix, TREES["chain of 11"])
    (q,) = states(mbs.mass_matrix, 11, 300)
    found = kernel(q)
    turned = np.empty((11, 11, 300)).transpose(2, 0, 1)
    assert kernel(np.asfortranarray(q), out=turned) is turned
    apart = np.empty((300, 11, 22))[:, :, ::2]
    assert_close(turned, found, 1e-13 * np.abs(found).max())
    with pytest.raises(mbs.ArgumentError):
        kernel(q, out=apart)
    (expected,) = one_by_one(kernel, [q[:3]])
    assert_close(found[:3], expected, 1e-13 * np.abs(expected).max())


def test_large_batches_in_threads(loops, monkeypatch):
    loops(True)
    monkeypatch.setattr("mbs_dynamics.compiler.runtime.batches.STATES_PER_THREAD", 100)
    kernel = compiled(mbs.inverse_mass_matrix, TREES["chain of 11"])
    arrays = states(mbs.inverse_mass_matrix, 11, 333)
    found = {}
    for threads in ("1", "3"):
        monkeypatch.setenv("MBS_THREADS", threads)
        found[threads] = kernel(*arrays)
    assert np.array_equal(found["1"], found["3"])
    assert np.array_equal(found["1"], found["1"].transpose(0, 2, 1))


def test_the_state_that_fails_is_said(loops):
    loops(True)
    model = random_mechanism(11, (-1, 0, 0, 1, -1, 4), massless=[5]).model
    kernel = mbs.compile(mbs.inverse_mass_matrix, model, backend="llvm")
    vector = Vector(kernel.program, 8)
    assert any(vector.direct)
    assert len(kernel.program.guards) == 6
    with pytest.raises(mbs.SingularError, match=r"joint6.*state \[0\]"):
        kernel(*states(mbs.inverse_mass_matrix, model.n, 260))


def test_an_empty_heap_is_said(loops, monkeypatch):
    loops(True)
    monkeypatch.setattr(llvm_memory, "STACK", 0)
    emit = llvm_halves.emit_halves

    def greedy(*args: Any) -> str:
        return re.sub(r"@malloc\(i64 \d+\)", f"@malloc(i64 {1 << 62})", emit(*args))

    monkeypatch.setattr(llvm_halves, "emit_halves", greedy)
    kernel = compiled(mbs.mass_matrix, TREES["chain of 8"])
    with pytest.raises(MemoryError, match="mass_matrix"):
        kernel(*states(mbs.mass_matrix, 8, 300))


def test_fewer_lanes_where_memory_is_large(monkeypatch, loops):
    loops(True)
    program = compiled(mbs.mass_matrix, TREES["chain of 8"]).program
    assert Vector(program, 8).lanes == 8
    monkeypatch.setattr(llvm_halves, "CACHE", 1)
    assert [Vector(program, lanes).lanes for lanes in (2, 4, 8)] == [2, 4, 4]
    whole = Vector(program, 8, divided=False)
    assert whole.lanes == 8
    assert not any(whole.direct)


def test_which_programs_have_halves(loops):
    small = compiled(mbs.mass_matrix, range(-1, 28)).program
    assert isinstance(small, LoopProgram)
    assert halves(small) is None
    columns = compiled(mbs.inverse_mass_matrix, range(-1, 28)).program
    assert halves(columns) is not None
    loops(True)
    assert halves(compiled(mbs.inverse_dynamics, TREES["chain of 8"]).program) is None
    regressor = compiled(mbs.inverse_dynamics_regressor, TREES["chain of 8"]).program
    assert halves(regressor) is None
    program = compiled(mbs.mass_matrix, TREES["chain of 8"]).program
    parts = halves(program)
    assert parts is not None
    assert {step.sort for step in parts.rows.steps} == {ROWS}
    stored = [x.place.space for s in parts.rows.steps for t in s.turns.values() for x in t.stores]
    assert CELL not in stored
    assert parts.direct == (False, True)
    late = program.changed(steps=program.steps[::-1])
    assert halves(late) is None  # what rows compute is wanted before


def test_rows_of_a_matrix_are_filled_in_order(loops):
    loops(True)
    program = compiled(mbs.coriolis_matrix, TREES["chain of 11"]).program
    groups = list(grouped(program, 1))
    assert [(step.sort, step.span) for step in groups[-1]] == [(PAIRS, BELOW), (PAIRS, "")]
    assert not twins_of(step for steps in groups for step in steps)
    assert twins_of(program.steps)
    star = compiled(mbs.coriolis_matrix, TREES["star"]).program
    assert not any(goes_by_rows(star, step) for step in star.steps)
    assert [len(steps) for steps in grouped(star, 1)] == [1] * len(star.steps)


def test_roots():
    forest = Forest((-1, 0, 1, -1, 3, 3), (0,) * 6)
    assert forest.roots == [0, 0, 0, 3, 3, 3]
