# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Least squares over physically possible inertias: the cone, the objective and its minimum."""

import numpy as np
import pytest
from identification_bench import TRUE

from mbs_dynamics.identification.consistent import (
    FROM_MATRIX,
    PAIRS,
    ConsistentLeastSquares,
    is_consistent,
    pseudo_inertia,
)
from mbs_dynamics.model.inertia import Inertia

PARAMETERS = np.array([body.inertia.parameters for body in TRUE.bodies])
JOINT_PRIORS = np.full((7, 4), 0.02)


def problem(seed=0, equations=300):
    """Return a problem with random equations, scaled as Gram matrices of real ones are."""
    made = ConsistentLeastSquares(PARAMETERS, JOINT_PRIORS)
    rng = np.random.default_rng(seed)
    size = len(made.description)
    A = rng.normal(size=(equations, size))
    target = made.description + 0.3 * rng.normal(size=size)
    return made, A.T @ A, A.T @ (A @ target + rng.normal(size=equations))


def test_the_pseudo_inertia_is_the_integral_over_the_mass():
    rng = np.random.default_rng(1)
    points, masses = rng.normal(size=(9, 3)), rng.uniform(0.1, 1.0, 9)
    tensor = sum(
        m * (x @ x * np.eye(3) - np.outer(x, x)) for m, x in zip(masses, points, strict=True)
    )
    inertia = Inertia(masses.sum(), masses @ points, tensor)
    X = np.column_stack([points, np.ones(9)])
    P = pseudo_inertia(inertia.parameters)
    np.testing.assert_allclose(P, X.T @ (masses[:, None] * X), atol=1e-12)
    entries = np.array([P[a, b] for a, b in PAIRS])
    np.testing.assert_allclose(FROM_MATRIX @ entries, inertia.parameters, atol=1e-12)
    assert is_consistent(inertia.parameters)
    assert not is_consistent(-inertia.parameters)


@pytest.mark.parametrize("long", [1.9, 2.1])
def test_what_can_exist_keeps_the_triangle_inequality(long):
    inertia = Inertia.from_com(1.0, (0.1, 0.0, 0.0), np.diag([1.0, 1.0, long]))
    assert is_consistent(inertia.parameters) == (long < 2.0)
    assert is_consistent(inertia.parameters) == (not inertia.violations())


def test_the_description_is_where_the_distance_is_zero_and_has_no_slope():
    made = ConsistentLeastSquares(PARAMETERS, JOINT_PRIORS)
    x = made.to_parameters @ made.description
    np.testing.assert_allclose(x[: 10 * TRUE.nb], PARAMETERS.ravel(), rtol=1e-9, atol=1e-9)
    size = len(x)
    zero = np.zeros((size, size)), np.zeros(size)
    least = made.value(*zero, 1.0, made.description)
    rng = np.random.default_rng(2)
    for _ in range(5):
        step = rng.normal(size=size)
        assert made.value(*zero, 1.0, made.description + 1e-3 * step) > least
    found = made.solve(*zero, 1.0, made.description + 0.1 * rng.uniform(size=size))
    np.testing.assert_allclose(found, made.description, atol=1e-2)


@pytest.mark.parametrize("weight", [1e-1, 1e2, 1e6])
def test_the_solution_has_no_slope_and_is_inside(weight):
    made, G, g = problem()
    y = made.solve(G, g, weight, made.description)
    value = made.value(G, g, weight, y)
    assert np.isfinite(value)
    h = 1e-6
    for k in range(0, len(y), 7):
        step = h * np.eye(len(y))[k]
        ahead, behind = (made.value(G, g, weight, y + s * step) for s in (1.0, -1.0))
        curvature = (ahead - 2.0 * value + behind) / h**2
        slope = (ahead - behind) / (2.0 * h)
        assert slope**2 / max(curvature, 1e-12) < 1e-2  # what a further step would gain
    x = made.to_parameters @ y
    assert all(is_consistent(one) for one in x[: 10 * TRUE.nb].reshape(-1, 10))


def test_what_cannot_exist_has_no_finite_value():
    made, G, g = problem()
    for k, value in ((0, -1.0), (10 * TRUE.nb, -1e-3)):  # a mass, and Coulomb friction
        y = made.description.copy()
        y[k] = value
        assert made.value(G, g, 1.0, y) == np.inf
