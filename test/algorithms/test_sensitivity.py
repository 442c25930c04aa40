# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Geometric sensitivities, against differences of models whose bodies are placed elsewhere."""

from dataclasses import replace

import numpy as np
import pytest
from cases import mostly_slow
from interpreted import evaluated
from mechanisms import MECHANISMS, VARIED, pose
from reference import assert_close, twist
from twins import mixed

import mbs_dynamics as mbs
from mbs_dynamics.lie import se3
from mbs_dynamics.model.orders import path

STEP = 1e-3
MODELS = {**{name: each.model for name, each in MECHANISMS.items()}, "mixed": mixed(4).model}

every_model = pytest.mark.parametrize("name", mostly_slow(MODELS, (*VARIED, "mixed")))


class Case:
    """A model with a frame on one of its bodies, and parameters of several joints."""

    def __init__(self, name):
        rng, model = np.random.default_rng(len(name)), MODELS[name]
        body = int(rng.integers(model.nb))
        self.model = model.with_frame("tip", model.body_names[body], pose(rng))
        self.q, self.qd, self.qdd = model.random_state(len(name))
        to_body = path(model, body)
        chosen = [*to_body[-2:], to_body[0], rng.integers(model.nb)]  # one perhaps elsewhere
        self.joints = [model.bodies[i].joint.name for i in chosen]
        self.screws = rng.normal(size=(len(chosen), 6))

    def displaced(self, k, size):
        """The model with B_i exp(U_k pi_k) for B_i."""
        D = se3.exp(size * self.screws[k])
        bodies = [
            replace(body, home_rel=body.home_rel @ D) if body.joint.name == self.joints[k] else body
            for body in self.model.bodies
        ]
        return replace(self.model, bodies=tuple(bodies))

    def derivative(self, quantity):
        """Central differences of fourth order, by each parameter; its index is the last one."""
        slopes = []
        for k in range(len(self.joints)):
            near, nearer = (
                quantity(self.displaced(k, h)) - quantity(self.displaced(k, -h))
                for h in (STEP, STEP / 2)
            )
            slopes.append((8 * nearer - near) / (6 * STEP))
        return np.stack(slopes, axis=-1)


@every_model
def test_pose_and_jacobian(name):
    case = Case(name)
    given = case.q, case.screws, "tip", case.joints

    def C(model):
        return evaluated(mbs.forward_kinematics, model, case.q, bodies=["tip"])[0]

    dC = case.derivative(C)
    for representation in mbs.REPRESENTATIONS:
        same = {"representation": representation}

        def J(model, same=same):
            return evaluated(mbs.jacobian, model, case.q, "tip", **same)

        K = evaluated(mbs.pose_sensitivity, case.model, *given, **same)
        expected = [twist(C(case.model), dC[..., k], representation) for k in range(len(K.T))]
        assert_close(K, np.stack(expected, axis=1), 1e-10, representation)
        dJ = evaluated(mbs.jacobian_sensitivity, case.model, *given, **same)
        assert_close(dJ, case.derivative(J), 1e-10, representation)


@every_model
def test_torques(name):
    case = Case(name)
    motion = case.q, case.qd, case.qdd

    def torques(model):
        return evaluated(mbs.inverse_dynamics, model, *motion, representation="spatial")

    found = evaluated(mbs.torque_sensitivity, case.model, *motion, case.screws, case.joints)
    assert_close(found, case.derivative(torques), 1e-8)
