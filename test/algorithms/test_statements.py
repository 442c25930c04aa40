# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Statements of the papers that no other test makes: identities of the quantities they define."""

import itertools

import numpy as np
import pytest
from bracket_sums import bracket
from mechanisms import MECHANISMS, pose, screw
from reference import Reference, assert_close, exponential, hat

import mbs_dynamics as mbs
from mbs_dynamics.closed_form import MovingSystem, System
from mbs_dynamics.closed_form.accelerations import angular, linear
from mbs_dynamics.closed_form.kinematics import shift, turn
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.se3 import Ad, ad, inverse
from mbs_dynamics.model.joint import one_screw
from mbs_dynamics.model.joints import Connection
from mbs_dynamics.representation import from_body_fixed

REPRESENTATIONS = ("body_fixed", "spatial", "hybrid", "mixed")

every_representation = pytest.mark.parametrize("representation", REPRESENTATIONS)


def test_unit_screws_of_the_three_kinds_of_joints():
    """(2), and the screw (0, 0, 1 - s, 0, 0, s + h (1 - s)) below (3)."""
    rng = np.random.default_rng(1)
    S_parent, S_body = np.array([pose(rng) for _ in range(6)]).reshape(2, 3, 4, 4)
    h = 0.07
    Z = [(0, 0, 1, 0, 0, 0), (0, 0, 1, 0, 0, h), (0, 0, 0, 0, 0, 1)]
    model = mbs.Model.from_joints(
        Connection(
            name=f"j{i}",
            joint=one_screw("Z", Z[i]),
            body=f"b{i}",
            parent=f"b{i - 1}" if i else None,
            S_parent=S_parent[i],
            S_body=S_body[i],
        )
        for i in range(3)
    )
    assert [joint.kind for joint in model.joints] == ["revolute", "screw", "prismatic"]
    assert_close([joint.pitch for joint in model.joints[:2]], [0.0, h])
    assert model.joints[2].pitch == np.inf
    q = np.array([0.4, -1.1, 0.3])
    turned = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in (*q[:2], 0.0)]
    C = np.eye(4)
    for i, along in enumerate((0.0, h * q[1], q[2])):
        D = np.eye(4)
        D[:2, :2], D[2, 3] = turned[i], along
        C = C @ S_parent[i] @ D @ np.linalg.inv(S_body[i])
    assert_close(System(model, q).C[2], C)


def test_poses_move_points():
    """(60), (63)."""
    rng = np.random.default_rng(2)
    C, b = pose(rng), rng.normal(size=3)
    R, r = C[:3, :3], C[:3, 3]
    assert_close(se3.pose(R, r) @ [*b, 1.0], [*(r + R @ b), 1.0])
    system, i, j = System(MECHANISMS["forest"].model, rng.uniform(-3, 3, 8)), 6, 3
    R, r = system.R, system.r
    expected = se3.pose(R[i].T @ R[j], R[i].T @ (r[j] - r[i]))
    assert_close(system.C_rel(i, j), expected)
    assert_close(system.C[i] @ system.C_rel(i, j), system.C[j])


def test_shift_and_turn():
    """(75): Ad_C = Ad_r Ad_R."""
    C = pose(np.random.default_rng(3))
    R, r = C[:3, :3], C[:3, 3]
    zero, eye = np.zeros((3, 3)), np.eye(3)
    assert_close(turn(R, R), np.block([[R, zero], [zero, R]]))
    assert_close(shift(r), np.block([[eye, zero], [np.cross(eye, r), eye]]))
    assert_close(shift(r) @ turn(R, R), Ad(C))


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "screw"])
def test_conjugated_and_differentiated_exponentials(kind):
    """(76), (77)."""
    rng = np.random.default_rng(4)
    S, X, t, h = pose(rng), screw(rng, kind), 1.3, 1e-5
    assert_close(S @ se3.exp(X * t) @ np.linalg.inv(S), se3.exp(Ad(S) @ X * t))
    slope = (se3.exp(X * (t + h)) - se3.exp(X * (t - h))) / (2.0 * h)
    assert_close(se3.hat(X) @ se3.exp(X * t), slope, 1e-9)
    assert_close(se3.exp(X * t) @ se3.hat(X), slope, 1e-9)


def free_mechanisms():
    """Mechanisms each of whose joints has a coordinate of its own, at some q, with a reference."""
    for name in ("revolute chain", "screw chain", "tree", "forest"):
        mechanism = MECHANISMS[name]
        q = np.random.default_rng(5).uniform(-3.0, 3.0, mechanism.n)
        yield mechanism, System(mechanism.model, q), q, Reference(mechanism, q)


def column(system, i, j):
    """Return J_i,j^b of joint j on the path to body i."""
    return (system.A_b @ system.X_b)[6 * i : 6 * i + 6, j]


def test_derivatives_of_relative_poses():
    """(15) of the kinematics paper; (2), the second of that number, (3) and (4)."""
    for mechanism, system, _, reference in free_mechanisms():
        for i, path in enumerate(system.paths):
            C_i, dC_i = reference.C[i], reference.dC[i]
            back = np.linalg.inv(C_i)
            for j in path:
                J_ij = hat(column(system, i, j))
                assert_close(back @ dC_i[j], J_ij)
                C_ij, C_ji = back @ reference.C[j], np.linalg.inv(reference.C[j]) @ C_i
                X_j = inverse(system.home[j]) @ hat(system.screws_spatial[j][:, 0]) @ system.home[j]
                for k in range(mechanism.n):
                    J_ik = np.zeros((4, 4))
                    if k in path and k > j:
                        J_ik = hat(column(system, i, k))
                    dC_ij = back @ (reference.dC[j, k] - dC_i[k] @ C_ij)
                    dC_ji = -C_ji @ dC_ij @ C_ji
                    assert_close(-J_ik @ C_ij, dC_ij)
                    assert_close(C_ji @ J_ik, dC_ji)
                    dJ_ij = back @ (reference.ddC[i, j, k] - dC_i[k] @ back @ dC_i[j])
                    assert_close(dC_ij @ X_j @ C_ji + C_ij @ X_j @ dC_ji, dJ_ij)


def test_columns_from_each_description_of_a_joint():
    """(16), (28), (38) to (40), (50): by X_j, by Y_j, and by Z_j with any joint frame."""
    S = pose(np.random.default_rng(6))
    for mechanism, system, q, reference in free_mechanisms():
        rep = {kind: mbs.REPRESENTATIONS[kind](mechanism.model, q) for kind in REPRESENTATIONS}
        for i, path in enumerate(system.paths):
            J = {kind: reference.jacobian(i, kind) for kind in REPRESENTATIONS}
            for j in path:
                X, Y, A = system.screw_body[j], system.screws_spatial[j][:, 0], system.home[j]
                Z = Ad(inverse(S)) @ X
                for kind, C in (("body_fixed", system.C_rel(i, j)), ("spatial", system.C[j])):
                    for found in (Ad(C) @ X, Ad(C @ inverse(A)) @ Y, Ad(C @ S) @ Z):
                        assert_close(found, J[kind][:, j])
                assert_close(column(system, i, j), J["body_fixed"][:, j])
                R, R_j = system.R[i], system.R[j]
                hybrid = turn(R_j, R_j) @ X
                assert_close(system.X_h[6 * j : 6 * j + 6, j], hybrid)
                assert_close(shift(system.r_rel(i, j)) @ hybrid, J["hybrid"][:, j])
                A_ij = system.A_h[6 * i : 6 * i + 6, 6 * j : 6 * j + 6]
                assert_close(A_ij @ hybrid, J["hybrid"][:, j])
                assert_close(turn(R, R) @ J["body_fixed"][:, j], J["hybrid"][:, j])
                if i == j:
                    assert_close(hybrid, rep["hybrid"].screw(j)[:, 0])
                    for kind in REPRESENTATIONS:
                        assert_close(rep[kind].screw(j)[:, 0], J[kind][:, j])


def test_spatial_and_hybrid_joint_screws():
    """(57) and (107), which hold as printed at q = 0 only, (59) and (106)."""
    for mechanism, system, q, _ in free_mechanisms():
        rest = System(mechanism.model, np.zeros(mechanism.n))
        moving = MovingSystem(mechanism.model, q, np.zeros(mechanism.n))
        J_h = system.A_h @ system.X_h
        Ys = [screws[:, 0] for screws in system.screws_spatial]
        for j, (X, Y, A) in enumerate(zip(system.screw_body, Ys, system.home, strict=True)):
            hybrid = from_body_fixed(system.C[j], "hybrid") @ X
            J_s = from_body_fixed(system.C[j], "spatial") @ X
            assert_close(moving.screws_s[j], J_s)
            assert_close(shift(system.r[j]) @ hybrid, J_s)
            R = system.R[j]
            assert_close(Ad(A) @ turn(R.T, R.T) @ hybrid, Y)
            assert_close(shift(rest.r[j]) @ from_body_fixed(rest.C[j], "hybrid") @ X, Y)
            for i, path in enumerate(system.paths):
                if j in path:
                    column_h = J_h[6 * i : 6 * i + 6, j]
                    assert_close(shift(system.r[i]) @ column_h, J_s)
                    converted = mbs.convert_jacobian(
                        column_h[:, None], system.C[i], source="hybrid", target="spatial"
                    )
                    assert_close(converted[:, 0], J_s)


def test_table_3():
    """Its conversions of twists, with (47), (54), (55), (58), and (82), (98) to (100)."""
    C = pose(np.random.default_rng(7))
    R, r = C[:3, :3], C[:3, 3]
    zero, eye = np.zeros((3, 3)), np.eye(3)
    r_hat = so3.hat(r)
    to_mixed = np.block([[R.T, zero], [-r_hat, eye]])
    from_mixed = np.linalg.inv(to_mixed)
    table = {  # rows: to s, b, h, m; columns: from s, b, h, m
        "spatial": [np.eye(6), Ad(C), shift(r), from_mixed],
        "body_fixed": [np.linalg.inv(Ad(C)), np.eye(6), turn(R.T, R.T), turn(eye, R.T)],
        "hybrid": [shift(-r), turn(R, R), np.eye(6), turn(R, eye)],
        "mixed": [to_mixed, turn(eye, R), turn(R.T, eye), np.eye(6)],
    }
    for target, row in table.items():
        for source, matrix in zip(("spatial", "body_fixed", "hybrid", "mixed"), row, strict=True):
            converted = mbs.convert_twist(np.eye(6), C, source=source, target=target)
            assert_close(converted.T, matrix, what=f"{source} to {target}")


def test_what_jacobians_do_not_depend_on():
    """Remarks 5 and 11: J^b not on the first joint; J_j^s on those before joint j alone."""
    mechanism = MECHANISMS["screw chain"]
    q, last = np.random.default_rng(8).uniform(-3.0, 3.0, mechanism.n), "body6"
    H_b = mbs.kinematic_hessian(mechanism.model, q, last, representation="body_fixed")
    H_s = mbs.kinematic_hessian(mechanism.model, q, last, representation="spatial")
    assert not H_b[:, :, 0].any()
    for j, k in itertools.product(range(mechanism.n), repeat=2):
        assert H_b[:, j, k].any() == (j < k)
        assert H_s[:, j, k].any() == (k < j)


DIRECTIONS = {  # joints 1, 3, 4 and 7 of the tree lead to body 7
    "tree": [(0,), (1,), (2,), (3,), (6,), (2, 3), (3, 2), (3, 3), (6, 0), (2, 6, 3), (3, 3, 2)],
    "mimics": [(0,), (1,), (2,), (1, 1), (0, 1), (1, 0), (1, 0, 1)],
}


@pytest.mark.parametrize("name", DIRECTIONS)
@every_representation
def test_derivatives_of_jacobians(representation, name):
    """Of orders 1 to 3, against central differences of those of one order less."""
    mechanism = MECHANISMS[name]
    model, n, h = mechanism.model, mechanism.n, 1e-5
    q = np.random.default_rng(9).uniform(-3.0, 3.0, n)
    same = {"representation": representation}
    for joints in DIRECTIONS[name]:
        step = h * np.eye(n)[joints[-1]]
        ahead, behind = (
            mbs.jacobian_derivative(model, at, "body7", joints[:-1], **same)
            for at in (q + step, q - step)
        )
        found = mbs.jacobian_derivative(model, q, "body7", joints, **same)
        assert_close(found, (ahead - behind) / (2.0 * h), 1e-8, joints)


def test_brackets_of_first_order():
    """(5) and (7), (15), and (25) as corrected."""
    for mechanism, system, q, reference in free_mechanisms():
        i = mechanism.nb - 1
        body, path = f"body{i + 1}", system.paths[i]
        b, s, h = (reference.jacobian(i, kind).T for kind in REPRESENTATIONS[:3])
        expected = np.zeros((3, 6, mechanism.n, mechanism.n))
        for j, k in itertools.product(path, repeat=2):
            if j < k:
                expected[0, :, j, k] = bracket(b[j], b[k])
                by_one_screw = ad(system.screw_body[k]) @ column(system, k, j)
                assert_close(-Ad(system.C_rel(i, k)) @ by_one_screw, bracket(b[j], b[k]))
            if k < j:
                expected[1, :, j, k] = bracket(s[k], s[j])
                expected[2, :, j, k] = bracket(angular(h[k]), h[j])
            else:
                expected[2, :, j, k] = bracket(h[j], linear(h[k]))
        for kind, brackets in zip(REPRESENTATIONS[:3], expected, strict=True):
            H = mbs.kinematic_hessian(mechanism.model, q, body, representation=kind)
            assert_close(H, brackets, what=kind)


def test_three_forms_of_the_rate_of_the_hybrid_jacobian():
    """(27): (ad_rd + Ad_r ad_w) 0X = Ad_r (ad_rd + ad_w) 0X = Ad_r (ad_V - ad_rd_i) 0X."""
    for mechanism, _, q, _ in free_mechanisms():
        moving = MovingSystem(
            mechanism.model, q, np.random.default_rng(10).normal(size=mechanism.n)
        )
        V = moving.bodies(moving.V_h)

        def first(i, j, moving=moving, V=V):
            return ad(linear(V[j] - V[i])) + shift(moving.r_rel(i, j)) @ ad(angular(V[j]))

        def second(i, j, moving=moving, V=V):
            return shift(moving.r_rel(i, j)) @ (ad(linear(V[j] - V[i])) + ad(angular(V[j])))

        for form in (first, second):
            assert_close(moving.over_paths(form) @ moving.X_h @ moving.N, moving.Jd_h)


def test_bracket_is_the_screw_product():
    """(114), (115)."""
    for a, b in np.random.default_rng(12).normal(size=(20, 2, 6)):
        x, y, u, v = a[:3], a[3:], b[:3], b[3:]
        expected = np.concatenate([np.cross(x, u), np.cross(y, u) + np.cross(x, v)])
        assert_close(bracket(a, b), expected)
        assert_close(ad(a) @ b, expected)


def test_rate_of_a_screw_in_a_moving_frame():
    """(117): Ad_C^-1 d/dt (Ad_C X) = Xd + [V^b, X]."""
    rng = np.random.default_rng(13)
    C, h = pose(rng), 1e-5
    V, X, Xd = rng.normal(size=(3, 6))

    def in_space(t):
        return Ad(C @ exponential(hat(V * t))) @ (X + Xd * t)

    slope = (in_space(h) - in_space(-h)) / (2.0 * h)
    assert_close(np.linalg.inv(Ad(C)) @ slope, Xd + bracket(V, X), 1e-9)
