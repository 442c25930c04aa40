# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Kinematics and dynamics beside identities and finite differences."""

from __future__ import annotations

import numpy as np
from bench import arm, check, close, slope, state

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.verification import verify
from mbs_dynamics.closed_form import DynamicSystem


@check
def kinematics(expected: set[str]) -> None:
    """Twists, Jacobians and their rates, and inverse kinematics."""
    q, qd, qdd, _ = state()
    J, Jd = mbs.jacobian(arm(), q, "tool"), mbs.jacobian_rate(arm(), q, qd, "tool")
    close(J @ qd, mbs.twists(arm(), q, qd, bodies=["tool"])[0])
    close(Jd, slope(lambda x: mbs.jacobian(arm(), x, "tool"), q, qd), 1e-7)
    close(J @ qdd + Jd @ qd, mbs.accelerations(arm(), q, qd, qdd, bodies=["tool"])[0])
    target = mbs.forward_kinematics(arm(), q, bodies=["tool"])[0]
    found = mbs.inverse_kinematics(arm(), target, "tool", q0=q + 0.1)
    assert found.success, found.reason
    close(mbs.forward_kinematics(arm(), found.q, bodies=["tool"])[0], target, 1e-7)
    close(mbs.manipulability(arm(), q, "tool"), np.sqrt(np.linalg.det(J @ J.T)))


@check
def dynamics(expected: set[str]) -> None:
    """M qdd + h = tau, and what follows from it."""
    q, qd, qdd, _ = state()
    M, h = mbs.mass_matrix(arm(), q), mbs.bias_torques(arm(), q, qd)
    tau = mbs.inverse_dynamics(arm(), q, qd, qdd)
    close(M @ qdd + h, tau)
    close(DynamicSystem(arm(), q, qd, qdd).torques, tau)
    verify(mbs.compile(mbs.mass_matrix, arm()), mbs.mass_matrix, arm())
    for method in ("articulated_body", "udut", "mass_matrix"):
        close(mbs.forward_dynamics(arm(), q, qd, tau, method=method), qdd, 1e-9)
    C, gravity = mbs.coriolis_matrix(arm(), q, qd), mbs.gravity_torques(arm(), q)
    close(C @ qd + gravity, h)
    close(C + C.T, slope(lambda x: mbs.mass_matrix(arm(), x), q, qd), 1e-7)
    close(slope(lambda x: mbs.potential_energy(arm(), x), q, qd), gravity @ qd, 1e-6)
    close(qd @ M @ qd / 2, mbs.kinetic_energy(arm(), q, qd))
    Y = mbs.inverse_dynamics_regressor(arm(), q, qd, qdd)
    close(Y @ np.ravel(mbs.inertial_parameters(arm())), tau)
    by_q, by_qd, by_qdd = mbs.inverse_dynamics_derivatives(arm(), q, qd, qdd)
    close(by_q @ qd, slope(lambda x: mbs.inverse_dynamics(arm(), x, qd, qdd), q, qd), 1e-6)
    close(by_qd @ qd, slope(lambda x: mbs.inverse_dynamics(arm(), q, x, qdd), qd, qd), 1e-6)
    close(by_qdd, M)
    J = mbs.jacobian(arm(), q, "tool")
    inertia = mbs.operational_space_inertia(arm(), q, "tool")
    close(inertia @ J @ np.linalg.solve(M, J.T), np.eye(6), 1e-9)
