# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Points and frames offset from bodies, against the definitions, Pinocchio and differences."""

from __future__ import annotations

import numpy as np
from mechanisms import MECHANISMS, every_mechanism
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.points import (
    point_jacobian,
    point_velocity,
)


def state(n):
    rng = np.random.default_rng(n)
    return rng.uniform(-3.0, 3.0, n), rng.uniform(-2.0, 2.0, n), rng.uniform(-0.7, 0.7, 3)


def some_bodies(mechanism):
    """One near a root, one further out and the last."""
    return sorted({0, mechanism.nb // 2, mechanism.nb - 1})


@every_mechanism
def test_point_moves_as_its_jacobian_says(name):
    mechanism = MECHANISMS[name]
    q, qd, point = state(mechanism.n)
    qdd, h = np.random.default_rng(1).uniform(-2.0, 2.0, mechanism.n), 1e-6
    for i in some_bodies(mechanism):
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
