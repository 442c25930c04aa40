# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Inertias of rigid bodies against sums over their points, by definition."""

from __future__ import annotations

from typing import Any

import exact
import numpy as np
import pytest
from backends import BACKENDS, compiled

from mbs_dynamics.lie import se3
from mbs_dynamics.model.inertia import Inertia, spatial_inertia


class Points:
    """A rigid body of point masses, the truth for everything here."""

    def __init__(self, seed: int, count: int = 7, size: float = 0.4) -> None:
        rng = np.random.default_rng(seed)
        self.masses = rng.uniform(0.1, 2.0, count)
        self.points = rng.uniform(-size, size, (count, 3)) + rng.uniform(-1.0, 1.0, 3)

    def seen_from(self, C: Any) -> Points:
        """The same body in the frame in which its own one has the pose C."""
        moved = object.__new__(Points)
        moved.masses = self.masses
        moved.points = self.points @ C[:3, :3].T + C[:3, 3]
        return moved

    def velocities(self, V: Any) -> Any:
        return V[3:] + np.cross(V[:3], self.points)

    def momentum(self, V: Any) -> Any:
        p = self.masses[:, None] * self.velocities(V)
        return np.concatenate([np.cross(self.points, p).sum(0), p.sum(0)])

    def energy(self, V: Any) -> float:
        return float(0.5 * self.masses @ (self.velocities(V) ** 2).sum(1))

    def matrix(self) -> Any:
        """The matrix of the momentum, column by column."""
        return np.stack([self.momentum(e) for e in np.eye(6)], axis=1)

    @property
    def com(self) -> Any:
        return self.masses @ self.points / self.masses.sum()

    @property
    def tensor_at_com(self) -> Any:
        arms = self.points - self.com
        terms = [
            m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(self.masses, arms, strict=True)
        ]
        return np.sum(terms, axis=0)

    def inertia(self) -> Inertia:
        return Inertia.from_com(self.masses.sum(), self.com, self.tensor_at_com)


SEEDS = range(4)


def twists(count: int, seed: int) -> Any:
    return np.random.default_rng(seed).normal(size=(count, 6))


def pose(seed: int) -> Any:
    return exact.exponential(se3.hat(twists(1, seed)[0]))


def close(found: Any, wanted: Any, tolerance: float = 1e-13) -> None:
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=tolerance * (1 + np.abs(wanted).max()))


@pytest.mark.parametrize("seed", SEEDS)
def test_matrix_momentum_and_energy_are_sums_over_the_points(seed):
    body = Points(seed)
    inertia = body.inertia()
    close(inertia.matrix(), body.matrix())
    close(spatial_inertia(body.masses.sum(), body.com, body.tensor_at_com), body.matrix())
    for V in twists(3, seed):
        close(inertia @ V, body.momentum(V))
        close(0.5 * V @ (inertia @ V), body.energy(V))
    close(inertia.com, body.com)
    close(inertia.tensor_at_com, body.tensor_at_com)
    assert inertia.mass == body.masses.sum()
    close(inertia.moment, body.masses @ body.points)


@pytest.mark.parametrize("seed", SEEDS)
def test_transformed_is_the_body_seen_from_another_frame(seed):
    body, C = Points(seed), pose(seed)
    found = body.inertia().transformed(C)
    close(found.matrix(), body.seen_from(C).matrix())
    inverse = np.linalg.inv(se3.Ad(C))
    close(found.matrix(), inverse.T @ body.matrix() @ inverse)
    np.testing.assert_array_equal(found.tensor, found.tensor.T)
    close(found.transformed(se3.inverse(C)).matrix(), body.matrix())
    close(found.tensor_at_com, C[:3, :3] @ body.tensor_at_com @ C[:3, :3].T)


@pytest.mark.parametrize("seed", SEEDS)
def test_rotated_and_shifted(seed):
    body, C = Points(seed), pose(seed)
    turn, shift = se3.pose(C[:3, :3], np.zeros(3)), se3.pose(np.eye(3), C[:3, 3])
    close(body.inertia().rotated(C[:3, :3]).matrix(), body.seen_from(turn).matrix())
    close(body.inertia().shifted(C[:3, 3]).matrix(), body.seen_from(shift).matrix())


@pytest.mark.parametrize("backend", BACKENDS)
def test_traced(backend):
    def moved(p: Any, C: Any, V: Any) -> Any:
        inertia = Inertia.from_parameters(p).transformed(C) + Inertia.from_parameters(p)
        return {"M": inertia.matrix(), "P": inertia @ V, "p": inertia.parameters}

    kernel = compiled(moved, backend, {"p": (10,), "C": (4, 4), "V": (6,)})
    for seed in SEEDS:
        body, C, V = Points(seed), pose(seed), twists(1, seed)[0]
        M, P, p = kernel(body.inertia().parameters, C, V)
        close(M, body.matrix() + body.seen_from(C).matrix())
        close(P, body.momentum(V) + body.seen_from(C).momentum(V))
        close(Inertia.from_parameters(p).matrix(), M)


def solids() -> Any:
    """Real bodies, thin and thick, light and heavy, near and far."""
    for scale in (1e-9, 1e-3, 1.0, 1e6):
        for count in (1, 2, 3, 8):  # a point, a rod, a plate, a body
            for offset in (0.0, 1.0, 100.0):
                body = Points(count)
                body.masses, body.points = body.masses[:count] * scale, body.points[:count] + offset
                yield body.inertia()
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
    body, V = Inertia.from_matrix(Points(4).matrix()), np.random.default_rng(4).normal(size=6)
    M, ad = body.matrix(), se3.ad(V)
    np.testing.assert_allclose(body.rate(V).matrix(), -ad.T @ M - M @ ad, atol=1e-13)
