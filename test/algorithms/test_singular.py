# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Mass matrices that are singular or indefinite, and arguments that make no sense: errors by name.

Where a mass matrix is singular at every state, tracing already says so; where it depends on the
state or on a payload, the kernel does, in each back end, and for a batch with the index.
"""

from dataclasses import replace

import numpy as np
import pytest
from backends import BACKENDS
from mechanisms import random_mechanism
from reference import Reference, assert_close

import mbs_dynamics as mbs
from mbs_dynamics import linearize
from mbs_dynamics.algorithms.factorization import factorize
from mbs_dynamics.representation.tree import Tree

METHODS = ("articulated_body", "udut", "mass_matrix")
SOLVERS = [
    *[(mbs.forward_dynamics, 3, {"method": method}) for method in METHODS],
    (mbs.inverse_mass_matrix, 1, {}),
    (mbs.forward_dynamics_derivatives, 3, {}),
    (linearize, 3, {}),
]
every_solver = pytest.mark.parametrize(
    ("solver", "arrays", "options"),
    SOLVERS,
    ids=[" ".join((f.__name__, *options.values())) for f, _, options in SOLVERS],
)
every_backend = pytest.mark.parametrize("backend", BACKENDS)


@every_solver
def test_a_leaf_without_mass(solver, arrays, options):
    with pytest.warns(mbs.ModelWarning, match="joint2"):
        model = random_mechanism(1, (-1, 0), ["revolute"], massless=(1,)).model
    zeros = [np.zeros(2)] * arrays
    with pytest.raises(mbs.SingularError, match="'joint2'"):
        mbs.compile(solver, model, **options)
    with pytest.raises(mbs.SingularError, match="'joint2'"):
        solver(model, *zeros, **options)
    assert_close(mbs.mass_matrix(model, zeros[0])[1], [0.0, 0.0])
    assert mbs.bias_torques(model, *zeros[:1], np.ones(2)).shape == (2,)


def coaxial(seed):
    """A chain of four, where joints 2 and 3 have the same axis and nothing lies between them."""
    mechanism = random_mechanism(seed, range(-1, 3), ["revolute"], massless=(1,))
    home, X = mechanism.homes[2], mechanism.screws[1]
    R, p = home[:3, :3], home[:3, 3]
    screws = mechanism.screws.copy()
    screws[2] = [*(R.T @ X[:3]), *(R.T @ (X[3:] - np.cross(p, X[:3])))]
    return replace(mechanism, screws=screws)


@every_backend
@pytest.mark.parametrize("method", METHODS)
def test_axes_that_coincide_with_nothing_between(method, backend):
    """The pivot is not zero but rounding, of either sign, if that is not known before any q."""
    for seed in range(4):
        mechanism = coaxial(seed)
        q = np.random.default_rng(seed).uniform(-3.0, 3.0, (5, 4))
        for each in q:
            with pytest.raises(mbs.SingularError, match="'joint2'"):
                mbs.compile(mbs.forward_dynamics, mechanism.model, backend=backend, method=method)(
                    each, each, each
                )
            with pytest.raises(mbs.SingularError, match="'joint2'"):
                factorize(Tree(mechanism.model), Reference(mechanism, each).mass_matrix())


@every_backend
@pytest.mark.parametrize("method", METHODS)
def test_little_inertia_is_not_none(method, backend):
    """A speck of dust between bodies of a kilogram: M is badly conditioned, but regular."""
    mechanism = coaxial(0)
    masses, tensors = mechanism.masses.copy(), mechanism.tensors.copy()
    masses[1], tensors[1] = 1e-9, 1e-10 * np.eye(3)
    light = replace(mechanism, masses=masses, tensors=tensors)
    q, qd, qdd = np.random.default_rng(1).uniform(-2.0, 2.0, (3, 4))
    reference = Reference(light, q)
    tau = reference.inverse_dynamics(qd, qdd)
    kernel = mbs.compile(mbs.forward_dynamics, light.model, backend=backend, method=method)
    found = kernel(q, qd, tau)
    assert_close(found, qdd, 1e-4)
    assert_close(reference.inverse_dynamics(qd, found), tau, 1e-13)
