# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of the period against their equations, solved by eigenvalues."""

from types import SimpleNamespace

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.compiler import Kernel, trace
from mbs_dynamics.control.period import laws, references
from mbs_dynamics.control.period.torques import torques
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.representation.tree import Tree
from mbs_dynamics.resources import robot_path

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
N, TOOL = MODEL.n, "tool"
RNG = np.random.default_rng(0)


def inertia_at(tree, q, commanded):
    M = mbs.mass_matrix(tree, q, representation="body_fixed")
    return laws.Inertia.of(M, commanded)


def joint_law(q, qd, reference, stiffness, ratio, most, commanded):
    tree = Tree(MODEL)
    gains = laws.Springs(stiffness, ratio[0], most[0])
    linear = np.zeros(N)
    given = inertia_at(tree, q, commanded), gains, linear, (q, qd), reference
    result = laws.joint_impedance(tree, *given, "body_fixed")
    return np.concatenate([result.torques, result.lead, [result.share]])


def link_law(q, qd, pose, twist, posture, stiffness, ratio, most, commanded):
    tree = Tree(MODEL)
    C = mbs.forward_kinematics(tree, q, bodies=[TOOL])[0][:3]
    J = mbs.jacobian(tree, q, TOOL, representation="hybrid")
    result, _ = laws.link_impedance(
        inertia_at(tree, q, commanded), J, laws.Springs(stiffness, ratio[0], most[0]), ratio[1],
        ratio[2], (C, q, qd), (pose, twist, *posture), np.zeros(3),
    )  # fmt: skip
    return np.concatenate([result.torques, result.lead, [result.share]])


def compiled(function, **shapes):
    return Kernel(trace(function, shapes, name=function.__name__))


def forces_of(W, x, xd, ratio, most):
    """Return x + D xd with modes that are softened, and W^-1, damped at singularities."""
    w2, U = np.linalg.eigh(W)
    square = np.maximum(w2, 1e-9 * w2[-1] + 1e-30)
    soft = np.minimum(1.0, most / square)
    forces = U @ (soft * (U.T @ x) + 2.0 * ratio * np.sqrt(soft / square) * (U.T @ xd))
    inverse = (U * (w2 / (w2 * w2 + (1e-3 * w2[-1]) ** 2))) @ U.T
    return forces, inverse, w2[-1] > most


def at_random(k):
    """Return a state, the commanded joints, their inertia and its inverse, ratio and fastest."""
    q, qd = MODEL.random_state(seed=k)[:2]
    own = np.arange(N) if k % 2 else np.array([0, 1, 2, 4, 5, 6])
    commanded = np.isin(np.arange(N), own).astype(float)
    M = mbs.mass_matrix(MODEL, q)
    inverse = np.zeros((N, N))
    inverse[np.ix_(own, own)] = np.linalg.inv(M[np.ix_(own, own)])
    return q, qd, commanded, M, inverse, RNG.uniform(0.2, 2.0), 10.0 ** RNG.uniform(3.0, 7.0)


@pytest.mark.long
def test_joint_impedance_is_its_equation():
    kernel = compiled(
        joint_law, q=(N,), qd=(N,), reference=(3, N), stiffness=(N,), ratio=(1,), most=(1,),
        commanded=(N,),
    )  # fmt: skip
    softened = set()
    for k in range(100):
        q, qd, c, M, inverse, ratio, most = at_random(k)
        q_d, qd_d, qdd_d = reference = RNG.normal(size=(3, N)) * c + [q * (1 - c), 0 * q, 0 * q]
        K = RNG.uniform(1.0, 300.0, N) * (RNG.random(N) > 0.1) * c
        root = np.sqrt(K)
        W = root[:, None] * inverse * root
        forces, _, soft = forces_of(W, root * (q_d - q), root * (qd_d - qd), ratio, most)
        ahead = M @ qdd_d + mbs.coriolis_matrix(MODEL, q, qd) @ qd_d
        found = kernel(q, qd, reference, K, np.array([ratio]), np.array([most]), c)
        expected = c * (ahead + root * forces)
        np.testing.assert_allclose(found[:N], expected, atol=1e-9 * (1.0 + abs(expected).max()))
        assert (found[-1] < 1.0) == soft
        softened.add(bool(soft))
    assert softened == {True, False}


@pytest.mark.long
def test_cartesian_impedance_is_its_equation_with_a_posture_that_leaves_the_link_alone():
    kernel = compiled(
        link_law, q=(N,), qd=(N,), pose=(3, 4), twist=(6,), posture=(2, N), stiffness=(6,),
        ratio=(3,), most=(1,), commanded=(N,),
    )  # fmt: skip
    for k in range(100):
        q, qd, c, M, inverse, ratio, most = at_random(k)
        in_target, w = float(k % 3 == 0), 2.0 * (k % 5 > 0)
        C = mbs.forward_kinematics(MODEL, q, bodies=[TOOL])[0]
        off, twist, posture = RNG.normal(size=6), RNG.normal(size=6), RNG.normal(size=(2, N))
        target = se3.pose(so3.exp(off[:3]) @ C[:3, :3], C[:3, 3] + 0.1 * off[3:])
        K = RNG.uniform(1.0, 1000.0, 6) * (RNG.random(6) > 0.1)
        B = np.kron(np.eye(2), target[:3, :3] if in_target else np.eye(3))
        S = np.sqrt(K)[:, None] * B.T
        angle = so3.log(target[:3, :3] @ C[:3, :3].T)
        E_d, E = np.eye(6), np.eye(6)
        E_d[:3, :3], E[:3, :3] = so3.dexp_inv(angle), so3.dexp_inv(angle).T
        J = S @ E @ (mbs.jacobian(MODEL, q, TOOL, representation="hybrid") * c)
        x = S @ np.concatenate([angle, target[:3, 3] - C[:3, 3]])
        rate = S @ E_d @ twist - J @ qd
        forces, damped, soft = forces_of(J @ inverse @ J.T, x, rate, ratio, most)
        a = c * (w * w * (posture[0] - q) + 2.0 * ratio * w * (posture[1] - qd))
        expected = c * (M @ a) + J.T @ (forces - damped @ (J @ a))
        gains = np.array([ratio, in_target, w])
        found = kernel(q, qd, target[:3], twist, posture, K, gains, np.array([most]), c)
        np.testing.assert_allclose(found[:N], expected, atol=1e-9 * (1.0 + abs(expected).max()))
        assert (found[-1] < 1.0) == soft


@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_an_orientation_error_keeps_its_side_at_half_a_turn(noise):
    before, signs = np.zeros(3), []
    for turn in np.linspace(3.0, 3.5, 200):
        C = se3.pose(so3.exp(np.array([0.0, 0.0, turn]) + noise * RNG.normal(size=3)), np.zeros(3))
        before = laws.orientation_error(C[:3], np.eye(4)[:3], before)
        signs.append(np.sign(before[2]))
    assert set(signs) == {-1.0}


def test_a_reference_stays_within_its_limits_and_meets_its_target_exactly():
    e, v, dt = np.array([[1.0], [-0.3]]), np.zeros((2, 1)), 0.004
    fastest, acceleration = np.array([[0.5], [0.5]]), np.array([[2.0], [1.0]])
    for _ in range(1000):
        u, met = references.approached(e, v, 0.0 * e, fastest, acceleration, dt)
        assert (abs(u) <= fastest + 1e-12).all()
        assert (abs(u - v) <= acceleration * dt + 1e-12).all()
        e, v = np.where(met, 0.0, e - u * dt), np.where(met, 0.0, u)
    assert not e.any()
    assert not v.any()


def test_the_damping_of_the_momentum_never_drives_the_arm():
    rng, n = np.random.default_rng(0), 4
    fastest, braked = np.full(n, 2.0), 0
    for _ in range(300):
        a, true = rng.normal(size=n), rng.choice([1.0, 8.0]) * rng.normal(size=n)
        known = rng.random(n) < 0.9
        seen = np.where(known, np.clip(true, -fastest, fastest), rng.normal(size=n))
        s = SimpleNamespace(
            interval=np.full(n, 0.01), settling=1.0, damping=np.zeros(n), friction=np.zeros(n),
            spring_low=np.full(n, -9.0), spring_high=np.full(n, 9.0), zone=0.0,
        )  # fmt: skip
        p = SimpleNamespace(settle_time=1.0, commanded=np.ones(n), fastest=fastest)
        M, zero, x = np.outer(a, a) + 0.1 * np.eye(n), np.zeros(n), SimpleNamespace(now=0.5)
        damping = torques(s, x, p, M, zero, seen, zero, zero, known).damping
        power = float(np.where(known, damping, 0.0) @ true)
        assert power <= 1e-12
        braked += power < 0.0
    assert braked > 50
