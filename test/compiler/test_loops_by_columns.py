# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loops over columns in chains: column by column they give what straight-line code gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import mostly_slow
from mechanisms import random_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.compiler.codegen.llvm_columns import VECTORS, goes_by_columns
from mbs_dynamics.compiler.frontend.loops import COLUMNS
from mbs_dynamics.compiler.runtime.batches import LEAST_STATES

pytest.importorskip("llvmlite")
pytestmark = pytest.mark.backend_independent  # the back end is llvm

ALGORITHMS = (mbs.inverse_mass_matrix, mbs.forward_dynamics_derivatives)
LENGTHS = (2, 4, 7, 8, 9, 8 * VECTORS - 1, 8 * VECTORS, 8 * VECTORS + 1, 41)
KINDS = {"revolute": ("revolute",), "mixed": ("revolute", "prismatic", "screw")}


def model_of(parents: Any, kinds: str = "mixed") -> mbs.Model:
    return random_mechanism(11, parents, KINDS[kinds]).model


def compiled(function: Any, model: mbs.Model) -> Any:
    return mbs.compile(function, model, backend="llvm")


def states(function: Any, n: int, count: int) -> list[Any]:
    arrays = len(algorithm_of(function).required)
    return list(np.random.default_rng(3).uniform(-2.0, 2.0, (arrays, count, n)))


def outputs(found: Any) -> tuple[Any, ...]:
    return found if isinstance(found, tuple) else (found,)


def has_columns(kernel: Any) -> bool:
    program = kernel.program
    return program.in_loops and any(step.sort == COLUMNS for step in program.steps)


@pytest.mark.parametrize("n", mostly_slow(LENGTHS, (4, 9)))
@pytest.mark.parametrize("function", ALGORITHMS, ids=lambda x: algorithm_of(x).name)
def test_chains_give_what_straight_code_gives(loops, halved, function, n):
    halved()
    arrays = states(function, n, LEAST_STATES + 3)
    loops(False)
    straight = compiled(function, model_of(range(-1, n - 1)))
    loops(True)
    kernel = compiled(function, model_of(range(-1, n - 1)))
    assert has_columns(kernel)
    assert ".side" in kernel.to_llvm()
    room = [np.full((len(arrays[0]) + 2, *port.shape), np.nan) for port in kernel.outputs]
    inside = tuple(x[1:-1] for x in room)
    kernel(*arrays, out=inside if len(inside) > 1 else inside[0])
    for k in (0, 1, len(arrays[0]) - 1):
        state = [x[k] for x in arrays]
        expected, found = outputs(straight(*state)), outputs(kernel(*state))
        for a, b, c in zip(expected, found, inside, strict=True):
            size = max(1.0, np.abs(a).max())
            assert_close(b, a, 1e-10 * size)
            assert_close(c[k], b, 1e-11 * size)
    for x in room:
        assert np.isnan(x[[0, -1]]).all()
        assert np.isfinite(x[1:-1]).all()


@pytest.mark.parametrize("n", [9, 40])
def test_the_inverse_is_symmetric_to_the_bit(loops, n):
    loops(True)
    kernel = compiled(mbs.inverse_mass_matrix, model_of(range(-1, n - 1), "revolute"))
    (q,) = states(mbs.inverse_mass_matrix, n, LEAST_STATES)
    for X in (kernel(q[0]), *kernel(q)):
        np.testing.assert_array_equal(X, X.T)


def test_trees_go_row_by_row(loops):
    loops(True)
    for parents in ((-1, 0, 1, 1, 3), (-1, 0, -1, 2), (-1, 0, 1, 2)):
        kernel = compiled(mbs.inverse_mass_matrix, model_of(parents))
        chain = list(parents) == list(range(-1, len(parents) - 1))
        steps = [step for step in kernel.program.steps if step.sort == COLUMNS]
        assert goes_by_columns(kernel.program, steps) == chain
        assert (".side" in kernel.to_llvm()) == chain


def test_what_another_loop_reads_stays_in_its_rows(loops):
    """One of the loops alone would leave out what the other one takes from it."""
    loops(True)
    program = compiled(mbs.inverse_mass_matrix, model_of(range(-1, 9))).program
    first, second = (step for step in program.steps if step.sort == COLUMNS)
    assert goes_by_columns(program, [first, second])
    assert not goes_by_columns(program, [first])
