# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An algorithm of each file, beside an identity or finite differences."""

from __future__ import annotations

import pkgutil
from typing import Any

import numpy as np
from bench import arm, check, close, slope, state

import mbs_dynamics as mbs
from mbs_dynamics import algorithms
from mbs_dynamics.algorithms.frames import change_of_body_frame, change_of_inertial_frame
from mbs_dynamics.algorithms.verification import verify
from mbs_dynamics.closed_form import DynamicSystem, MovingSystem, System

FILES = {
    "arguments",  # of all of them
    *(f.__module__.rpartition(".")[2] for f in mbs.ALGORITHMS),
    "articulated",  # by forward dynamics, as the next
    "factorization",
    "inverse_kinematics",
    "kernels",  # by all of them
    "manipulability",
    "verification",
}


@check
def every_file(expected: set[str]) -> str:
    """No file of algorithms is left out here."""
    files = {name for _, name, _ in pkgutil.iter_modules(algorithms.__path__)}
    missing = {name for name in files if not name.startswith("_")} - FILES
    assert not missing, f"nothing here evaluates algorithms of {', '.join(sorted(missing))}"
    return f"{len(FILES)} files"


@check
def kinematics(expected: set[str]) -> None:
    """Twists, Jacobians and their rates, points, frames, derivatives, sensitivity."""
    q, qd, qdd, _ = state()
    last = arm().frames["tool"].body
    J = mbs.jacobian(arm(), q, "tool")
    close(J @ qd, mbs.twists(arm(), q, qd, bodies=["tool"])[0])
    close(
        mbs.jacobian_rate(arm(), q, qd, "tool"),
        slope(lambda x: mbs.jacobian(arm(), x, "tool"), q, qd),
        1e-7,
    )
    acceleration = mbs.accelerations(arm(), q, qd, qdd, bodies=["tool"])[0]
    close(acceleration, J @ qdd + mbs.jacobian_rate(arm(), q, qd, "tool") @ qd)
    hessian = mbs.kinematic_hessian(arm(), q, "tool")
    close(np.tensordot(hessian, qd, 1), mbs.jacobian_rate(arm(), q, qd, "tool"))
    relative = mbs.relative_jacobian(
        arm(), q, "tool", measured_at="tool", resolved_in="tool", relative_to=None
    )
    close(relative, J)
    C = mbs.forward_kinematics(arm(), q, bodies=["tool"])[0]
    point = np.array([0.1, -0.2, 0.3])
    at = mbs.point_jacobian(arm(), q, point, "tool")

    def place(x: Any) -> Any:
        C = mbs.forward_kinematics(arm(), x, bodies=["tool"])[0]
        return C[:3, :3] @ point + C[:3, 3]

    close(at @ qd, slope(place, q, qd), 1e-7)
    close(mbs.point_velocity(arm(), q, qd, point, "tool"), at @ qd)
    close(
        System(arm(), q).J_b[6 * last : 6 * last + 6],
        mbs.jacobian(arm(), q, arm().body_names[last]),
    )
    tool = np.linalg.inv(mbs.forward_kinematics(arm(), q)[last]) @ C  # in the frame of its body
    moved = change_of_body_frame(C @ np.linalg.inv(tool), tool, "body_fixed")
    close(moved @ mbs.jacobian(arm(), q, arm().body_names[last]), J)
    close(change_of_inertial_frame(C, "body_fixed"), np.eye(6))


@check
def inverse_kinematics(expected: set[str]) -> None:
    """Postures and rates that poses and twists ask for, and how well they can be had."""
    q, qd, _, _ = state()
    target = mbs.forward_kinematics(arm(), q, bodies=["tool"])[0]
    found = mbs.inverse_kinematics(arm(), target, "tool", q0=q + 0.1)
    assert found.success, found.reason
    close(mbs.forward_kinematics(arm(), found.q, bodies=["tool"])[0], target, 1e-7)
    J = mbs.jacobian(arm(), q, "tool")
    rates = mbs.inverse_differential_kinematics(arm(), q, J @ qd, "tool", damping=1e-6)
    close(J @ rates, J @ qd, 1e-6)
    close(mbs.singular_values(arm(), q, "tool"), np.linalg.svd(J)[1])
    close(mbs.manipulability(arm(), q, "tool"), np.sqrt(np.linalg.det(J @ J.T)))
    close(
        mbs.manipulability_gradient(arm(), q, "tool") @ qd,
        slope(lambda x: mbs.manipulability(arm(), x, "tool"), q, qd),
        1e-7,
    )


@check
def dynamics(expected: set[str]) -> None:
    """M qdd + h = tau, and what follows from it."""
    q, qd, qdd, _ = state()
    M, h = mbs.mass_matrix(arm(), q), mbs.bias_torques(arm(), q, qd)
    tau = mbs.inverse_dynamics(arm(), q, qd, qdd)
    close(M @ qdd + h, tau)
    verify(mbs.compile(mbs.mass_matrix, arm()), mbs.mass_matrix, arm())
    close(M @ mbs.inverse_mass_matrix(arm(), q), np.eye(arm().n), 1e-9)
    for method in ("articulated_body", "udut", "mass_matrix"):
        close(mbs.forward_dynamics(arm(), q, qd, tau, method=method), qdd, 1e-9)
    C = mbs.coriolis_matrix(arm(), q, qd)
    close(C @ qd + mbs.gravity_torques(arm(), q), h)
    close(np.einsum("ijk,j,k->i", mbs.christoffel_symbols(arm(), q), qd, qd), C @ qd)
    close(C + C.T, slope(lambda x: mbs.mass_matrix(arm(), x), q, qd), 1e-7)
    close(qd @ M @ qd / 2, mbs.kinetic_energy(arm(), q, qd))
    p, rate = mbs.generalized_momentum(arm(), q, qd)
    close(p, M @ qd)
    close(rate, C.T @ qd - mbs.gravity_torques(arm(), q))
    gravity = mbs.gravity_torques(arm(), q)
    close(slope(lambda x: mbs.potential_energy(arm(), x), q, qd), gravity @ qd, 1e-6)
    Y = mbs.inverse_dynamics_regressor(arm(), q, qd, qdd)
    close(Y @ np.ravel(mbs.inertial_parameters(arm())), tau)
    base = mbs.base_parameters(arm())
    beta = base.combination @ np.ravel(mbs.inertial_parameters(arm()))
    close(Y[:, list(base.columns)] @ beta, tau, 1e-8)
    by_q, by_qd, by_qdd = mbs.inverse_dynamics_derivatives(arm(), q, qd, qdd)
    close(by_q @ qd, slope(lambda x: mbs.inverse_dynamics(arm(), x, qd, qdd), q, qd), 1e-6)
    close(by_qd @ qd, slope(lambda x: mbs.inverse_dynamics(arm(), q, x, qdd), qd, qd), 1e-6)
    close(by_qdd, M)
    A, B = mbs.linearize(arm(), q, qd, tau)
    n = arm().n
    close(A[n:, :n], -np.linalg.solve(M, by_q), 1e-8)
    close(B[n:], np.linalg.inv(M), 1e-8)
    wrenches = mbs.joint_wrenches(arm(), q, qd, qdd)
    assert wrenches.shape == (arm().nb, 6)


@check
def task_space(expected: set[str]) -> None:
    """The inertia that a wrench on the tool feels, and momenta about the centre of mass."""
    q, qd, *_ = state()
    J, M = mbs.jacobian(arm(), q, "tool"), mbs.mass_matrix(arm(), q)
    inertia = mbs.operational_space_inertia(arm(), q, "tool")
    close(inertia @ J @ np.linalg.solve(M, J.T), np.eye(6), 1e-9)
    close(J @ mbs.dynamically_consistent_inverse(arm(), q, "tool"), np.eye(6), 1e-9)
    A, bias = (mbs.centroidal_momentum_matrix(arm(), q), mbs.centroidal_momentum_bias(arm(), q, qd))
    close(A @ qd, mbs.centroidal_momentum(arm(), q, qd))
    close(mbs.centroidal_momentum_matrix_rate(arm(), q, qd) @ qd, bias)


@check
def closed_form(expected: set[str]) -> None:
    """The equations of the papers as matrices, beside the recursions."""
    q, qd, qdd, qddd = state()
    moving, system = MovingSystem(arm(), q, qd, qdd, qddd), DynamicSystem(arm(), q, qd, qdd)
    close(moving.bodies(moving.Vd_b), mbs.accelerations(arm(), q, qd, qdd))
    close(system.torques, mbs.inverse_dynamics(arm(), q, qd, qdd))
    close(system.mass_matrix, mbs.mass_matrix(arm(), q))
