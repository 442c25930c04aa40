# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Inertias of rigid bodies against sums over their points, by definition."""

from typing import Any

import exact
import numpy as np
import pytest
from backends import BACKENDS, compiled

from mbs_dynamics.lie import se3
from mbs_dynamics.model.inertia import Inertia, spatial_inertia

SEEDS = range(4)


def points_of(seed: int) -> tuple[Any, Any]:
    """Return masses and places of points, the truth for everything here."""
    rng = np.random.default_rng(seed)
    places = rng.uniform(-0.4, 0.4, (7, 3)) + rng.uniform(-1.0, 1.0, 3)
    return rng.uniform(0.1, 2.0, 7), places


def momentum(masses: Any, places: Any, V: Any) -> Any:
    p = masses[:, None] * (V[3:] + np.cross(V[:3], places))
    return np.concatenate([np.cross(places, p).sum(0), p.sum(0)])


def matrix(masses: Any, places: Any) -> Any:
    """Return the matrix of the momentum, column by column."""
    return np.stack([momentum(masses, places, e) for e in np.eye(6)], axis=1)


def at_com(masses: Any, places: Any) -> tuple[float, Any, Any]:
    """Return mass, centre of mass and the tensor about it."""
    com = masses @ places / masses.sum()
    arms = zip(masses, places - com, strict=True)
    tensor = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in arms)
    return masses.sum(), com, tensor


def seen_from(C: Any, places: Any) -> Any:
    """Return places in the frame in which their own one has the pose C."""
    return places @ C[:3, :3].T + C[:3, 3]


def twists(count: int, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(count, 6))


def pose(seed: int) -> Any:
    return exact.exponential(se3.hat(twists(1, seed)[0]))


def close(found: Any, wanted: Any, tolerance: float = 1e-13) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=tolerance * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("seed", SEEDS)
def test_matrix_momentum_and_energy_are_sums_over_the_points(seed):
    masses, places = points_of(seed)
    mass, com, tensor = at_com(masses, places)
    inertia, M = Inertia.from_com(mass, com, tensor), matrix(masses, places)
    close(inertia.matrix(), M)
    close(spatial_inertia(mass, com, tensor), M)
    for V in twists(3, seed):
        close(inertia @ V, momentum(masses, places, V))
        speeds = V[3:] + np.cross(V[:3], places)
        close(0.5 * V @ (inertia @ V), 0.5 * masses @ (speeds**2).sum(1))
    close(inertia.com, com)
    close(inertia.tensor_at_com, tensor)
    close(inertia.moment, masses @ places)


@pytest.mark.parametrize("seed", SEEDS)
def test_transformed_is_the_body_seen_from_another_frame(seed):
    (masses, places), C = points_of(seed), pose(seed)
    found = Inertia.from_com(*at_com(masses, places)).transformed(C)
    close(found.matrix(), matrix(masses, seen_from(C, places)))
    inverse = np.linalg.inv(se3.Ad(C))
    close(found.matrix(), inverse.T @ matrix(masses, places) @ inverse)
    np.testing.assert_array_equal(found.tensor, found.tensor.T)
    close(found.transformed(se3.inverse(C)).matrix(), matrix(masses, places))


@pytest.mark.parametrize("seed", SEEDS)
def test_rotated_and_shifted(seed):
    (masses, places), C = points_of(seed), pose(seed)
    turn, shift = se3.pose(C[:3, :3], np.zeros(3)), se3.pose(np.eye(3), C[:3, 3])
    inertia = Inertia.from_com(*at_com(masses, places))
    close(inertia.rotated(C[:3, :3]).matrix(), matrix(masses, seen_from(turn, places)))
    close(inertia.shifted(C[:3, 3]).matrix(), matrix(masses, seen_from(shift, places)))


@pytest.mark.parametrize("backend", BACKENDS)
def test_traced(backend):
    def moved(p: Any, C: Any, V: Any) -> Any:
        inertia = Inertia.from_parameters(p).transformed(C) + Inertia.from_parameters(p)
        return {"M": inertia.matrix(), "P": inertia @ V, "p": inertia.parameters}

    kernel = compiled(moved, backend, {"p": (10,), "C": (4, 4), "V": (6,)})
    for seed in SEEDS:
        (masses, places), C, V = points_of(seed), pose(seed), twists(1, seed)[0]
        M, P, p = kernel(Inertia.from_com(*at_com(masses, places)).parameters, C, V)
        close(M, matrix(masses, places) + matrix(masses, seen_from(C, places)))
        close(P, M @ V)
        close(Inertia.from_parameters(p).matrix(), M)


def solids() -> Any:
    """Real bodies, thin and thick, light and heavy, near and far."""
    masses, places = points_of(8)
    for scale in (1e-9, 1e-3, 1.0, 1e6):
        for count in (1, 2, 3, 7):  # a point, a rod, a plate, a body
            for offset in (0.0, 1.0, 100.0):
                yield Inertia.from_com(*at_com(masses[:count] * scale, places[:count] + offset))
    yield Inertia.zero()
    yield Inertia.from_com(1.0, (0, 0, 0), np.diag([1.0, 2.0, 3.0]))  # a plate, exactly
    yield Inertia.from_com(1.0, (0, 0, 0), np.diag([0.0, 2.0, 2.0]))  # a rod, exactly


def test_real_bodies_violate_nothing():
    for inertia in solids():
        assert inertia.violations() == []
        close(Inertia.from_matrix(inertia.matrix()).matrix(), inertia.matrix(), 1e-15)


def test_violations():
    R = pose(34)[:3, :3]
    for turn in (np.eye(3), R):
        negative = Inertia.from_com(2.0, (0.1, 0.2, 0.3), turn @ np.diag([-0.5, 1.0, 1.2]) @ turn.T)
        assert ["semidefinite" in said for said in negative.violations()] == [True]
        flat = Inertia.from_com(2.0, (0.1, 0.2, 0.3), turn @ np.diag([1.0, 1.5, 2.75]) @ turn.T)
        assert ["triangle" in said for said in flat.violations()] == [True]


def test_the_rate_along_a_twist_is_that_of_the_matrix():
    body, V = Inertia.from_matrix(matrix(*points_of(4))), np.random.default_rng(4).normal(size=6)
    M, ad = body.matrix(), se3.ad(V)
    np.testing.assert_allclose(body.rate(V).matrix(), -ad.T @ M - M @ ad, atol=1e-13)
