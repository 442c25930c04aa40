# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Rotor inertia in dynamics: Pinocchio and identities."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from reference import assert_close
from robots import all_files, robot
from twins import TO_PIN, Twin, floating, mixed

import mbs_dynamics as mbs

pytestmark = pytest.mark.filterwarnings("ignore::mbs_dynamics.ModelWarning")
METHODS = ("auto", "articulated_body", "udut", "mass_matrix")


def armed(model, seed=0):
    """The model with an armature of every joint, that of a joint with k velocities k numbers."""
    rng = np.random.default_rng(seed)
    joints = [body.joint for body in model.bodies]
    return model.with_armature(
        {x.name: rng.uniform(0.1, 0.5, x.nv if x.nv > 1 else ()) for x in joints}
    )


@pytest.mark.long
@pytest.mark.parametrize("name", ["mixed0", "mixed2", "solo12.urdf", "tiago_no_hand.urdf"])
def test_dynamics_of_pinocchio(name, monkeypatch):
    if name.endswith("urdf") and not all_files():
        pytest.skip("no example-robot-data")
    monkeypatch.setenv("MBS_BACKEND", "python")
    t = mixed(int(name[-1])) if name.startswith("mixed") else floating(robot(name))
    t = Twin(armed(t.model), t.pin)
    armature = np.zeros(t.pin.nv)
    for ours, theirs in t.joints:
        one = TO_PIN.get(ours.kind, np.eye(ours.nv)) @ (ours.armature * np.ones(ours.nv))
        armature[theirs.idx_v : theirs.idx_v + theirs.nv] = one
    t.pin.armature, m, T = armature, t.model, t.T
    (q, v, a), (pq, pv, pa) = t.state(1)
    M = pin.crba(t.pin, t.data, pq)
    assert_close(mbs.mass_matrix(m, q), T.T @ (np.triu(M) + np.triu(M, 1).T) @ T, 1e-12)
    M = mbs.mass_matrix(m, q)
    assert_close(mbs.kinetic_energy(m, q, v), 0.5 * v @ M @ v)
    assert_close(mbs.inverse_mass_matrix(m, q) @ M, np.eye(m.n), 1e-9)
    h = mbs.coriolis_matrix(m, q, v) @ v + mbs.gravity_torques(m, q)
    assert_close(mbs.bias_torques(m, q, v), h, 1e-11)
    tau = mbs.inverse_dynamics(m, q, v, a)
    assert_close(tau, T.T @ pin.rnea(t.pin, t.data, pq, pv, pa), 1e-12)
    if T.shape[0] > T.shape[1]:
        return  # mimic joints are free in Pinocchio
    for method in METHODS:
        back = T @ mbs.forward_dynamics(m, q, v, tau, method=method)
        assert_close(back, pin.aba(t.pin, t.data, pq, pv, T @ tau), 1e-9, method)
    pin.computeABADerivatives(t.pin, t.data, pq, pv, T @ tau)
    ours, back = mbs.forward_dynamics_derivatives(m, q, v, tau), np.linalg.inv(T)
    for found, theirs in zip(ours, (t.data.ddq_dq, t.data.ddq_dv, t.data.Minv), strict=True):
        theirs = np.triu(theirs) + np.triu(theirs, 1).T if theirs is t.data.Minv else theirs
        expected = back @ theirs @ (back.T if theirs is t.data.Minv else T)
        if found is ours.dqdd_dtau:
            expected = back @ theirs @ back.T
        assert_close(found, expected, 1e-9)
