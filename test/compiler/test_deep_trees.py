# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Deep trees: articulated bodies give the inverse mass matrix that factors of M give."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from mechanisms import random_mechanism

import mbs_dynamics as mbs
from mbs_dynamics.compiler.passes import strategy
from mbs_dynamics.representation import formulas

TREES = {"chain": (-1, 0, 1, 2), "branches": (-1, 0, 0, 1, -1, 4)}


def model_of(name: str, **options: Any) -> mbs.Model:
    return random_mechanism(11, TREES[name], **options).model


def computed(model: mbs.Model) -> list[Any]:
    q, qd, tau = model.random_state(3)
    return [mbs.inverse_mass_matrix(model, q), *mbs.forward_dynamics_derivatives(model, q, qd, tau)]


@pytest.mark.parametrize("name", TREES)
def test_deep_trees_are_solved_otherwise_with_the_same_result(name, monkeypatch):
    monkeypatch.setattr(formulas, "ARTICULATED", math.inf)
    expected = computed(model_of(name))
    monkeypatch.setattr(formulas, "ARTICULATED", 0.0)
    for common_frame in (math.inf, 0.0):  # pairs of bodies meet in the bodies, or in the ground
        monkeypatch.setattr(formulas, "PAIRS_IN_GROUND", common_frame)
        found = computed(model_of(name))
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-11 * np.abs(b).max())
        assert np.array_equal(found[0], found[0].T)


@pytest.mark.parametrize("representation", ["spatial", "hybrid", "mixed"])
def test_in_every_representation(representation, monkeypatch):
    monkeypatch.setattr(formulas, "ARTICULATED", 0.0)
    model = model_of("branches")
    q = model.random_state(4).q
    inverse = mbs.inverse_mass_matrix(model, q, representation=representation)
    np.testing.assert_allclose(inverse @ mbs.mass_matrix(model, q), np.eye(model.n), atol=1e-10)


def test_a_joint_that_moves_nothing_is_named_in_deep_trees(monkeypatch):
    monkeypatch.setattr(formulas, "ARTICULATED", 0.0)
    model = model_of("branches", massless=[5])
    with pytest.raises(mbs.SingularError, match="joint6"):
        mbs.inverse_mass_matrix(model, np.zeros(model.n))


def test_many_small_trees_are_loops(monkeypatch):
    parents = [i - 1 if i % 3 else -1 for i in range(12)]
    q, qd, tau = random_mechanism(12, parents).model.random_state(4)

    def found() -> tuple[list[bool], list[Any]]:
        model = random_mechanism(12, parents).model
        functions = (mbs.mass_matrix, mbs.inverse_mass_matrix, mbs.forward_dynamics_derivatives)
        kernels = [mbs.compile(function, model) for function in functions]
        arrays = [(q,), (q,), (q, qd, tau)]
        results = [kernel(*x) for kernel, x in zip(kernels, arrays, strict=True)]
        return [kernel.program.in_loops for kernel in kernels], [*results[:2], *results[2]]

    chosen, expected = found()
    assert not any(chosen)
    for name in ("ARTICULATED", "PAIRS_IN_GROUND"):
        monkeypatch.setattr(formulas, name, 0.0)
    monkeypatch.setattr(strategy, "MANY", 10)
    assert not any(found()[0])  # straight code leaves out more zeros
    monkeypatch.setattr(strategy, "SCATTERED", 100)
    chosen, results = found()
    assert all(chosen)
    for a, b in zip(results, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=0.0, atol=1e-11 * np.abs(b).max())
