# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Geometric sensitivities, against finite differences of mechanisms that are built otherwise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from cases import mostly_slow
from interpreted import evaluated
from mechanisms import MECHANISMS, every_mechanism, pose
from reference import Reference, assert_close, exponential, hat, twist
from test_algorithms import POSITIONS

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.sensitivity import jacobian_sensitivity, pose_sensitivity
from mbs_dynamics.model import Frame
from mbs_dynamics.model.orders import path

REPRESENTATIONS = ("body_fixed", "spatial", "hybrid", "mixed")
STEP = 1e-3

most_positions_slow = pytest.mark.parametrize("where", mostly_slow(POSITIONS, ("tiny", "generic")))


def with_frame(model, name, body, placement):
    frames = {name: Frame(name, body, placement)}
    return mbs.Model(model.name, model.bodies, model.gravity, frames)


class Case:
    """A mechanism, a frame on its last body or on body 2, and parameters of several joints."""

    def __init__(self, name, where="generic"):
        rng = np.random.default_rng(len(name))
        self.mechanism = mechanism = MECHANISMS[name]
        self.q = POSITIONS[where](rng, mechanism.n)
        self.body = rng.integers(mechanism.nb)
        self.placement = pose(rng)
        self.model = with_frame(mechanism.model, "tip", int(self.body), self.placement)
        to_body = path(self.model, int(self.body))
        chosen = [
            *to_body[-2:],
            to_body[0],
            rng.integers(mechanism.nb),
        ]  # with one perhaps elsewhere
        self.joints = [f"joint{i + 1}" for i in chosen]
        self.screws = rng.normal(size=(len(chosen), 6))

    def reference(self, parameters):
        """The reference with B_i(pi) = B_i exp(U_1 pi_1) ... exp(U_m pi_m)."""
        homes = self.mechanism.homes.copy()
        for joint, U, pi in zip(self.joints, self.screws, parameters, strict=True):
            i = int(joint.removeprefix("joint")) - 1
            homes[i] = homes[i] @ exponential(hat(U * pi))
        return Reference(replace(self.mechanism, homes=homes), self.q)

    def derivative(self, quantity):
        """Central differences of fourth order, by each parameter; its index is the last one."""
        slopes = []
        for unit in np.eye(len(self.joints)):
            near, nearer = (
                quantity(self.reference(h * unit)) - quantity(self.reference(-h * unit))
                for h in (STEP, STEP / 2)
            )
            slopes.append((8 * nearer - near) / (6 * STEP))
        return np.stack(slopes, axis=-1)


@pytest.mark.long
@most_positions_slow
@every_mechanism
def test_pose_and_jacobian(name, where):
    case = Case(name, where)
    C = case.reference(np.zeros(len(case.joints))).pose(case.body, case.placement)
    dC = case.derivative(lambda reference: reference.pose(case.body, case.placement))
    for representation in REPRESENTATIONS:
        args = case.model, case.q, case.screws, "tip", case.joints
        K = pose_sensitivity(*args, representation=representation)
        expected = [twist(C, dC[..., k], representation) for k in range(len(case.joints))]
        assert_close(K, np.stack(expected, axis=1), 1e-10, representation)

        def jacobian(reference, representation=representation):
            return reference.jacobian(case.body, representation, case.placement)

        dJ = jacobian_sensitivity(*args, representation=representation)
        assert_close(dJ, case.derivative(jacobian), 1e-10, representation)


@pytest.mark.long
@most_positions_slow
@every_mechanism
def test_torques(name, where):
    case = Case(name, where)
    mechanism, rng = case.mechanism, np.random.default_rng(7)
    qd, qdd = rng.uniform(-1.0, 1.0, (2, mechanism.n))

    def torques(parameters):
        homes = mechanism.homes.copy()
        for joint, U, pi in zip(case.joints, case.screws, parameters, strict=True):
            i = int(joint.removeprefix("joint")) - 1
            homes[i] = homes[i] @ exponential(hat(U * pi))
        model = replace(mechanism, homes=homes).model
        return evaluated(mbs.inverse_dynamics, model, case.q, qd, qdd, representation="spatial")

    found = mbs.torque_sensitivity(case.model, case.q, qd, qdd, case.screws, case.joints)
    for k, unit in enumerate(np.eye(len(case.joints))):
        near, nearer = (torques(h * unit) - torques(-h * unit) for h in (STEP, STEP / 2))
        assert_close(found[:, k], (8 * nearer - near) / (6 * STEP), 1e-8, what=case.joints[k])
