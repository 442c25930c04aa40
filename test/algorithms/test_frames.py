# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Twists and Jacobians in any frames, against velocities of points on random mechanisms."""

import itertools

import numpy as np
import pytest
from mechanisms import MECHANISMS, every_mechanism, pose
from reference import Reference, assert_close, axial
from test_algorithms import POSITIONS

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.frames import (
    change_of_body_frame,
    change_of_inertial_frame,
    relative_jacobian,
    relative_twist,
)
from mbs_dynamics.algorithms.points import point_jacobian, point_velocity
from mbs_dynamics.lie import se3

GROUND = None
REPRESENTATIONS = ("body_fixed", "spatial", "hybrid", "mixed")

every_position = pytest.mark.parametrize("where", POSITIONS)
every_representation = pytest.mark.parametrize("representation", REPRESENTATIONS)


class Motion:
    """Poses of the bodies and the ground with their rates, from the reference."""

    def __init__(self, mechanism, q, qd):
        reference = Reference(mechanism, q)
        rates = np.einsum("iklm,k->ilm", reference.dC, qd)
        names = [*(f"body{i + 1}" for i in range(mechanism.nb)), GROUND]
        self.C = dict(zip(names, reference.C, strict=True))
        self.Cd = dict(zip(names, rates, strict=True))

    def twist(self, i, relative_to, measured_at, resolved_in):
        """The twist by its definition: the turning of i as seen from l, and the velocity, as seen
        from l, of the point fixed to i that is at the origin of j; both resolved in k."""
        C_l, Cd_l = self.C[relative_to], self.Cd[relative_to]
        seen = np.linalg.inv(C_l)
        D = seen @ self.C[i]
        Dd = seen @ self.Cd[i] - seen @ Cd_l @ seen @ self.C[i]
        omega = axial(Dd[:3, :3] @ D[:3, :3].T)
        point = np.linalg.inv(self.C[i]) @ self.C[measured_at][:, 3]  # fixed to i
        v = (Dd @ point)[:3]
        turn = self.C[resolved_in][:3, :3].T @ C_l[:3, :3]
        return np.concatenate([turn @ omega, turn @ v])


def some(names, count, seed):
    """Frames i, l, j, k in many combinations: all if there are few."""
    every = list(itertools.product([*names, GROUND], repeat=4))
    if len(every) <= count:
        return every
    rng = np.random.default_rng(seed)
    return [every[m] for m in rng.choice(len(every), count, replace=False)]


@pytest.mark.long
@every_position
@every_mechanism
def test_twist_of_any_body_relative_to_any_measured_and_resolved_anywhere(name, where):
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(5)
    q, qd = POSITIONS[where](rng, mechanism.n), rng.uniform(-2.0, 2.0, mechanism.n)
    motion, S = Motion(mechanism, q, qd), pose(rng)
    model = mechanism.model.with_frame("link", "body1", S)
    motion.C["link"], motion.Cd["link"] = motion.C["body1"] @ S, motion.Cd["body1"] @ S
    for i, l, j, k in some([*model.frames], 12, len(name)):
        frames = {"relative_to": l, "measured_at": j, "resolved_in": k}
        expected = motion.twist(i, l, j, k)
        V = relative_twist(model, q, qd, i, **frames)
        assert_close(V, expected, what=(i, frames))
        J = relative_jacobian(model, q, i, **frames)
        assert_close(J @ qd, V, 1e-12, (i, frames))


def test_equation_81_is_the_difference_of_twists_in_the_frame_of_the_second_body():
    """The formula's own two forms; the names in the text before it are swapped."""
    model = MECHANISMS["forest"].model
    q, qd, _ = model.random_state(5)
    C = mbs.forward_kinematics(model, q)
    V_spatial = mbs.twists(model, q, qd, representation="spatial")
    V_body = mbs.twists(model, q, qd)
    names = model.body_names
    for i, j in itertools.product((0, 2, 4, 7), repeat=2):
        to_j = np.linalg.inv(se3.Ad(C[j]))
        V = relative_twist(
            model, q, qd, names[i], relative_to=names[j], measured_at=names[j], resolved_in=names[j]
        )
        assert_close(V, to_j @ (V_spatial[i] - V_spatial[j]), 1e-12)
        assert_close(V, to_j @ V_spatial[i] - V_body[j], 1e-12)


def reframed(mechanism, S_body, S_inertial):
    """The model of a mechanism with other frames on its bodies and another inertial frame."""
    homes, screws, inertias = [], [], []
    S = [*S_body, np.eye(4)]  # the last one is the ground's
    for i, p in enumerate(mechanism.parents):
        before = S_inertial if p == -1 else np.linalg.inv(S[p])
        homes.append(before @ mechanism.homes[i] @ S[i])
        Ad = se3.Ad(S[i])
        screws.append(np.linalg.inv(Ad) @ mechanism.screws[i])
        inertias.append(Ad.T @ mechanism.inertias[i] @ Ad)
    return mbs.Model.from_screws(mechanism.parents, homes, screws, inertias, frame="body_fixed")


def assert_changed(D, model, other, q, qd, representation):
    """Check that D (nb, 6, 6) takes twists, and its last matrix Jacobians, to another model's."""
    V, moved = (mbs.twists(m, q, qd, representation=representation) for m in (model, other))
    assert_close((D @ V[..., None])[..., 0], moved, 1e-12)
    last = {"body": model.body_names[-1], "representation": representation}
    J, J_moved = (mbs.jacobian(m, q, **last) for m in (model, other))
    assert_close(D[-1] @ J, J_moved, 1e-12)


@every_representation
@pytest.mark.parametrize("name", ["revolute chain", "tree", "forest"])
def test_change_of_body_frame(name, representation):
    mechanism = MECHANISMS[name]
    rng = np.random.default_rng(12)
    S = np.array([pose(rng) for _ in range(mechanism.nb)])
    model, other = mechanism.model, reframed(mechanism, S, np.eye(4))
    q, qd, _ = model.random_state(13)
    C = mbs.forward_kinematics(model, q)
    assert_close(mbs.forward_kinematics(other, q), C @ S, 1e-13)
    D = change_of_body_frame(C, S, representation)
    assert_changed(D, model, other, q, qd, representation)


@every_representation
@pytest.mark.parametrize("name", ["revolute chain", "tree", "forest"])
def test_change_of_inertial_frame(name, representation):
    mechanism = MECHANISMS[name]
    S = pose(np.random.default_rng(14))
    model = mechanism.model
    other = reframed(mechanism, [np.eye(4)] * mechanism.nb, S)
    q, qd, _ = model.random_state(15)
    D = np.tile(change_of_inertial_frame(S, representation), (mechanism.nb, 1, 1))
    assert_changed(D, model, other, q, qd, representation)


@every_mechanism
def test_point_moves_as_its_jacobian_says(name):
    """On a body near a root, one further out and the last."""
    mechanism, rng, h = MECHANISMS[name], np.random.default_rng(1), 1e-6
    q, qd, qdd = rng.uniform(-2.0, 2.0, (3, mechanism.n))
    point = rng.uniform(-0.7, 0.7, 3)
    for i in sorted({0, mechanism.nb // 2, mechanism.nb - 1}):
        body = mechanism.model.body_names[i]

        def position(q, i=i):
            return (mbs.forward_kinematics(mechanism.model, q)[i] @ [*point, 1.0])[:3]

        J = point_jacobian(mechanism.model, q, point, body)
        steps = h * np.eye(mechanism.n)
        slopes = [(position(q + step) - position(q - step)) / (2 * h) for step in steps]
        assert_close(J, np.transpose(slopes), 1e-8)
        assert_close(point_velocity(mechanism.model, q, qd, point, body), J @ qd)
        before, after = (
            point_velocity(mechanism.model, q + t * qd + t * t * qdd / 2, qd + t * qdd, point, body)
            for t in (-h, h)
        )
        rate = (after - before) / (2 * h)
        assert_close(mbs.point_acceleration(mechanism.model, q, qd, qdd, point, body), rate, 1e-7)
