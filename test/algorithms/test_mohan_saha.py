# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The equations of Mohan and Saha in their own letters, and in their order: v and f come first.

The matrices are built by the closed forms, and products and recursions of them are written down as
in the paper, corrected where it is wrong. The algorithms must give the same.
"""

from functools import lru_cache

import numpy as np
import pytest
from reference import assert_close, upper_factor
from rigid_body_equations import hybrid_wrench

import mbs_dynamics as mbs
from examples.puma_study import PUMA, puma
from mbs_dynamics.algorithms.factorization import factorize
from mbs_dynamics.algorithms.mass_matrix import composite_inertias
from mbs_dynamics.closed_form import DynamicSystem
from mbs_dynamics.lie import so3
from mbs_dynamics.model.dh import DHRow, DHTable
from mbs_dynamics.representation import operators
from mbs_dynamics.representation.tree import Tree

ARMS = {
    "puma": PUMA,
    "sliding": DHTable(
        (
            DHRow(0.3, 0.2, 0.7, 0.1, 2.0, "revolute"),
            DHRow(0.1, 0.4, -1.1, 0.5, 1.5, "prismatic"),
            DHRow(0.2, -0.3, 0.4, -0.6, 1.0, "revolute"),
            DHRow(0.4, 0.1, 1.3, 0.9, 0.5, "prismatic"),
        )
    ),
}
every_arm = pytest.mark.parametrize("arm", ARMS)
SWAP = np.roll(np.eye(6), 3, axis=0)


@lru_cache
def robot(arm):
    """The system of an arm in motion, and the matrices of the paper."""
    model = puma() if arm == "puma" else mbs.Model.from_dh(ARMS[arm])
    q, qd, qdd = np.random.default_rng(len(arm)).uniform(-2.0, 2.0, (3, model.n))
    system = DynamicSystem(model, q, qd, qdd)
    swap = system.diagonal([SWAP] * model.nb)
    N_l, N_d = swap @ system.A_h @ swap, swap @ system.X_h
    M_h = [b.inertia.rotated(R).matrix() for b, R in zip(model.bodies, system.R, strict=True)]
    return system, swap, N_l, N_d, [SWAP @ M @ SWAP for M in M_h]


def block(matrix, i, j):
    return matrix[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]


@every_arm
def test_decoupled_natural_orthogonal_complement(arm):
    """(1) to (8), (21), (22): N_l and N_d, of positions and axes alone, are A^h and X^h."""
    system, swap, N_l, N_d, _ = robot(arm)
    n, O = system.model.n, system.r
    for i in range(n):
        z, zero = system.R[i][:, 2], np.zeros(3)
        p = [*z, *zero] if ARMS[arm].rows[i].kind == "prismatic" else [*zero, *z]
        assert_close(N_d[6 * i : 6 * i + 6, i], p)
        for j in range(i + 1):
            a = O[j] - O[i]  # corrected: it points from O_i to O_j
            A = np.block([[np.eye(3), so3.hat(a)], [np.zeros((3, 3)), np.eye(3)]])
            assert_close(block(N_l, i, j), A)
            for k in range(j + 1):  # (6), corrected
                assert_close(block(N_l, i, j) @ block(N_l, j, k), block(N_l, i, k))
        assert not N_l[6 * i : 6 * i + 6, 6 * i + 6 :].any()
    assert_close(N_l @ N_d, swap @ system.J_h)
    V = mbs.twists(system.model, np.ravel(system.position), system.qd, representation="hybrid")
    for t in (V.reshape(-1), system.V_h):
        assert_close(N_l @ N_d @ system.qd, swap @ t)


@every_arm
def test_dynamics_with_the_orthogonal_complement(arm):
    """(10), and (16) to (29), corrected: phi keeps gamma and gravity."""
    system, swap, N_l, N_d, M = robot(arm)
    model, q = system.model, np.ravel(system.position)
    qd, qdd = system.qd, system.qdd
    N, M_all = N_l @ N_d, system.diagonal(M)
    gamma = []
    for M_i, V in zip(M, system.bodies(system.V_h), strict=True):  # (17b) in compact form
        w, Mw = V[:3], M_i[:, 3:] @ V[:3]
        gamma += [*np.cross(w, Mw[:3]), *np.cross(w, Mw[3:])]
    Nd_rate = swap @ system.Jd_h  # N_l d/dt N_d + d/dt N_l N_d
    upward = np.tile([*-np.asarray(model.gravity), 0.0, 0.0, 0.0], model.nb)
    t_rate = N @ qdd + Nd_rate @ qd  # (24)
    tau = N.T @ (M_all @ (t_rate + upward) + gamma)  # (23)
    assert_close(tau, mbs.inverse_dynamics(model, q, qd, qdd))
    assert_close(tau, system.torques)
    inertia_wrenches = (swap @ (M_all @ t_rate + gamma)).reshape(-1, 6)  # (16), moment first
    motions = zip(system.bodies(system.V_h), system.bodies(system.Vd_h), strict=True)
    for M_i, motion, expected in zip(M, motions, inertia_wrenches, strict=True):
        assert_close(hybrid_wrench(SWAP @ M_i @ SWAP, *motion), expected)
    assert_close(mbs.kinetic_energy(model, q, qd), 0.5 * qd @ N.T @ M_all @ N @ qd)  # (10)
    gim = N_d.T @ N_l.T @ M_all @ N_l @ N_d  # (26)
    assert_close(gim, mbs.mass_matrix(model, q))
    assert_close(gim, system.mass_matrix)
    phi = tau - N.T @ (M_all @ (Nd_rate @ qd + upward) + gamma)  # (27)
    assert_close(phi, gim @ qdd)  # (25)
    assert_close(phi, tau - mbs.bias_torques(model, q, qd))
    M_tilde = composite_inertias(Tree(model), operators("hybrid", model, np.asarray(q)))
    carried = np.zeros((6, 6))
    for i in reversed(range(model.n)):  # (28), (29)
        composite = M[i] + carried
        carried = block(N_l, i, i - 1).T @ composite @ block(N_l, i, i - 1) if i else carried
        assert_close(SWAP @ np.asarray(M_tilde[i].matrix(), dtype=float) @ SWAP, composite)
        for j in range(i + 1):
            p_i, p_j = N_d[6 * i : 6 * i + 6, i], N_d[6 * j : 6 * j + 6, j]
            assert_close(p_i @ composite @ block(N_l, i, j) @ p_j, gim[i, j])


@every_arm
def test_recursive_forward_dynamics(arm):
    """(30) to (37), corrected: the factors of the mass matrix, and the accelerations."""
    system, _, N_l, N_d, M = robot(arm)
    model, q = system.model, np.ravel(system.position)
    qd, qdd = system.qd, system.qdd
    n = model.n
    p = [N_d[6 * i : 6 * i + 6, i] for i in range(n)]
    A = [block(N_l, i, i - 1) if i else np.zeros((6, 6)) for i in range(n)]
    phi = mbs.mass_matrix(model, q) @ qdd
    m_hat, psi, phi_hat = np.zeros(n), np.zeros((n, 6)), np.zeros(n)
    eta, carried = np.zeros(6), np.zeros((6, 6))
    for i in reversed(range(n)):
        M_hat = M[i] + carried
        psi_hat = M_hat @ p[i]
        m_hat[i] = p[i] @ psi_hat
        psi[i] = psi_hat / m_hat[i]
        phi_hat[i] = phi[i] - p[i] @ eta
        eta = A[i].T @ (psi[i] * phi_hat[i] + eta)
        carried = A[i].T @ (M_hat - np.outer(psi_hat, psi[i])) @ A[i]
    mu, found = np.zeros(6), np.zeros(n)
    for i in range(n):
        mu = A[i] @ mu
        found[i] = phi_hat[i] / m_hat[i] - psi[i] @ mu
        mu = p[i] * found[i] + mu
    assert_close(found, qdd)
    factors = factorize(Tree(model), mbs.mass_matrix(model, q))
    U = upper_factor(factors)
    assert_close(np.array(factors.D, dtype=float), m_hat)
    assert_close(U @ phi_hat, phi)  # (30)
    assert_close(np.array(factors.solution(phi), dtype=float), qdd)
    for j in range(n):
        for i in range(j):
            assert_close(float(U[i, j]), p[i] @ block(N_l, j, i).T @ psi[j])
    tau = mbs.inverse_dynamics(model, q, qd, qdd)
    assert_close(mbs.forward_dynamics(model, q, qd, tau, method="udut"), qdd)


@pytest.mark.parametrize("method", ["udut", "mass_matrix", "articulated_body"])
def test_puma_there_and_back_along_the_trajectory(method):
    """(38): the torques of the motion give the motion back, at all times and by all methods."""
    model, period = puma(), 10.0
    t, w = np.linspace(0.0, period, 101)[:, None] * np.ones(6), 2.0 * np.pi / period
    q = np.pi * t / period - 0.5 * np.sin(w * t)
    qd = np.pi / period - 0.5 * w * np.cos(w * t)
    qdd = 0.5 * w**2 * np.sin(w * t)
    tau = mbs.inverse_dynamics(model, q, qd, qdd)
    assert_close(mbs.forward_dynamics(model, q, qd, tau, method=method), qdd)
    assert_close(q[[0, -1]], np.outer([0.0, np.pi], np.ones(6)))


def test_derivation_of_the_equations_of_motion():
    """(B.1b) and (B.5), of the energy of a hub: both lack what the cross product stands for."""
    model, h = puma(), 1e-5
    q, qd = np.random.default_rng(7).uniform(-2.0, 2.0, (2, model.n))

    def at(q):
        system = DynamicSystem(model, q, qd)
        hub, axes = np.diag([0.2, 0.5, 0.9]), system.J_h[-6:-3]
        momentum = system.R[-1] @ hub @ system.R[-1].T @ axes @ qd
        return axes, momentum, 0.5 * qd @ axes.T @ momentum

    def slopes(along):
        return [
            (a - b) / (2.0 * h) for a, b in zip(at(q + h * along), at(q - h * along), strict=True)
        ]

    axes, momentum, _ = at(q)
    for j, along in enumerate(np.eye(model.n)):
        axes_slope, _, energy_slope = slopes(along)
        omega_slope = axes_slope @ qd + np.cross(axes @ qd, axes[:, j])
        assert_close(slopes(qd)[0][:, j], omega_slope, 1e-8)  # (B.5)
        assert_close(energy_slope, momentum @ omega_slope, 1e-8)  # (B.1b)
        assert abs(energy_slope - momentum @ axes_slope @ qd) > 1e-3  # as printed
