# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The Newton-Euler equations of one body, in all their forms, against moving_bodies.py."""

import numpy as np
import pytest
import rigid_body_equations as rigid_body
from moving_bodies import Ad, Motion, frames, twist_in
from reference import assert_close, exponential, hat, twist

from mbs_dynamics.closed_form.accelerations import angular, linear
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.model.inertia import Inertia

TOLERANCE = 1e-13


def test_spatial(scene):
    """(36), (37), (38)."""
    motion, W = scene.twist("spatial"), scene.wrench("spatial")
    assert_close(scene.M_s @ motion[0], scene.sum_of(scene.velocities), TOLERANCE)  # (35)
    assert_close(rigid_body.spatial_wrench(scene.M_s, *motion), W, TOLERANCE)
    assert_close(rigid_body.spatial_momentum_rate(scene.M_s, *motion), W, TOLERANCE)


def test_rate_of_the_spatial_inertia(scene):
    """(37) by the product rule, and Remark 2: Md - 2 C is skew, with C = -ad_V^T M."""
    inverse = np.linalg.inv(scene.C)
    A, A_rate = Ad(inverse, -inverse @ scene.Cd @ inverse)
    V, _ = scene.twist("spatial")
    Md = A_rate.T @ scene.M_b @ A + A.T @ scene.M_b @ A_rate
    assert_close(rigid_body.spatial_inertia_rate(scene.M_s, V), Md, TOLERANCE)
    skew = Md + 2.0 * se3.ad(V).T @ scene.M_s
    assert_close(skew, -skew.T, TOLERANCE)
    assert np.abs(skew).max() > 1e-2


def test_body_fixed(scene):
    """(41), (42), (43)."""
    motion, W = scene.twist("body_fixed"), scene.wrench("body_fixed")
    assert_close(rigid_body.body_fixed_wrench(scene.M_b, *motion), W, TOLERANCE)
    inertia = Inertia.from_matrix(scene.M_b)
    assert_close(rigid_body.body_fixed_components(inertia, *motion), W, TOLERANCE)


def test_body_fixed_at_the_centre_of_mass(centred):
    """(44), (45), (46); the matrix is that of (39)."""
    M, motion, W = centred.M_b, centred.twist("body_fixed"), centred.wrench("body_fixed")
    assert_close(M[:3, 3:], np.zeros((3, 3)), TOLERANCE)
    assert_close(rigid_body.body_fixed_wrench_at_com(M, *motion), W, TOLERANCE)
    at_com = rigid_body.body_fixed_components_at_com(M[5, 5], M[:3, :3], *motion)
    assert_close(at_com, W, TOLERANCE)


def test_hybrid(scene):
    """(51), (53), (54), (55)."""
    motion, W = scene.twist("hybrid"), scene.wrench("hybrid")
    inertia = Inertia.from_matrix(scene.M_b).rotated(scene.R)
    assert_close(inertia.matrix(), scene.M_h, TOLERANCE)
    assert_close(rigid_body.hybrid_wrench(scene.M_h, *motion), W, TOLERANCE)
    assert_close(rigid_body.hybrid_components(inertia, *motion), W, TOLERANCE)


def test_hybrid_momentum(scene):
    """(52) corrected: its print holds at the centre of mass only."""
    V, Vd = scene.twist("hybrid")
    w = np.array([*V[:3], 0.0, 0.0, 0.0])
    Md = -se3.ad(w).T @ scene.M_h - scene.M_h @ se3.ad(w)  # the inertia turns with the body
    Pi, Pid = scene.M_h @ V, Md @ V + scene.M_h @ Vd
    W = scene.wrench("hybrid")
    assert_close(rigid_body.hybrid_wrench_from_momentum(Pi, Pid, V), W, TOLERANCE)
    assert np.abs(Pid - W).max() > 1e-2
    moved = np.concatenate([np.cross(V[3:], Pi[3:]), np.zeros(3)])
    assert_close(Pid + moved, W, TOLERANCE)


def test_hybrid_at_the_centre_of_mass(centred):
    """(47), (48), (49), (50); and (52) as printed."""
    M, (V, Vd), W = centred.M_h, centred.twist("hybrid"), centred.wrench("hybrid")
    assert_close(Inertia.from_matrix(centred.M_b).rotated(centred.R).matrix(), M, TOLERANCE)
    assert_close(rigid_body.hybrid_wrench_at_com(M, V, Vd), W, TOLERANCE)
    at_com = rigid_body.hybrid_components_at_com(M[5, 5], M[:3, :3], V, Vd)
    assert_close(at_com, W, TOLERANCE)
    w = so3.hat(V[:3])
    Theta_rate = w @ M[:3, :3] - M[:3, :3] @ w
    Pid = M @ Vd + np.array([*(Theta_rate @ V[:3]), 0.0, 0.0, 0.0])
    assert_close(Pid, W, TOLERANCE)
    assert_close(rigid_body.hybrid_wrench_from_momentum(M @ V, Pid, V), W, TOLERANCE)


def test_mixed(scene):
    """(56), (57)."""
    inertia = Inertia.from_matrix(scene.M_b)
    W = rigid_body.mixed_components(inertia, scene.R, *scene.twist("mixed"))
    assert_close(W, scene.wrench("mixed"), TOLERANCE)


def test_mixed_at_the_centre_of_mass(centred):
    """(58)."""
    M = centred.M_b
    W = rigid_body.hybrid_components_at_com(M[5, 5], M[:3, :3], *centred.twist("mixed"))
    assert_close(W, centred.wrench("mixed"), TOLERANCE)


@pytest.mark.parametrize("name", ["fixed", "inertial", "body", "tumbling"])
def test_any_frame(scene, name):
    """(59), (60), (61); corrected below it: j = 0 is the spatial form, j = i the body-fixed."""
    frame = frames(scene)[name]
    A, _ = Ad(frame.C, frame.Cd)
    M = rigid_body.inertia_in_frame(scene.M_s, frame.C)
    assert_close(M, A.T @ scene.M_s @ A, TOLERANCE)
    W = rigid_body.wrench_in_frame(M, *twist_in(scene, frame), frame.V_b)
    assert_close(W, A.T @ scene.wrench("spatial"), TOLERANCE)


@pytest.mark.parametrize("k", ["fixed", "inertial", "body", "tumbling"])
@pytest.mark.parametrize("j", ["fixed", "body", "tumbling"])
def test_any_frame_and_any_axes(scene, j, k):
    """(62), (63), (64); below it: j = i and k = 0 is the hybrid form."""
    at = frames(scene)
    J, K = at[j], at[k]
    if j == k == "tumbling":
        K = Motion(scene.rng)  # another one
    turned = np.zeros((2, 4, 4))  # R_k,j as a pose, and its rate
    turned[0] = np.eye(4)
    turned[0, :3, :3] = K.R.T @ J.R
    turned[1, :3, :3] = K.Cd[:3, :3].T @ J.R + K.R.T @ J.Cd[:3, :3]
    T, T_rate = Ad(*turned)
    V, Vd = twist_in(scene, J)
    A, _ = Ad(J.C, J.Cd)
    M = rigid_body.inertia_at_and_in(scene.M_s, J.C, J.R.T @ K.R)
    assert_close(M, T @ A.T @ scene.M_s @ A @ T.T, TOLERANCE)  # T is orthogonal
    W = rigid_body.wrench_at_and_in(M, T @ V, T_rate @ V + T @ Vd, T @ J.V_b, K.V_b[:3])
    assert_close(W, T @ A.T @ scene.wrench("spatial"), TOLERANCE)


def test_kinematic_reconstruction(scene):
    """(88), (89) for an increment on the right, C = C_k-1 exp(X), for which V^s is corrected."""
    X, Xd = scene.rng.normal(size=(2, 6))
    wide = np.block([[hat(X), hat(Xd)], [np.zeros((4, 4)), hat(X)]])
    E, Ed = exponential(wide)[:4, :4], exponential(wide)[:4, 4:]  # exp(X) and its rate
    C, Cd = scene.C @ E, scene.C @ Ed
    assert_close(se3.dexp(-X) @ Xd, twist(C, Cd, "body_fixed"), TOLERANCE)
    V_s = twist(C, Cd, "spatial")
    assert_close(se3.Ad(scene.C) @ se3.dexp(X) @ Xd, V_s, TOLERANCE)
    assert np.abs(se3.dexp(X) @ Xd - V_s).max() > 1e-2  # as printed: for exp(X) C_k-1
    assert_close(se3.dexp(X) @ Xd, twist(E @ scene.C, Ed @ scene.C, "spatial"), TOLERANCE)
    assert_close(se3.hat(V_s) @ C, Cd, TOLERANCE)
    assert_close(C @ se3.hat(se3.dexp(-X) @ Xd), Cd, TOLERANCE)


def test_parts_of_a_twist(scene):
    """(118), (119)."""
    V = scene.rng.normal(size=6)
    w, v, zero = hat([*V[:3], 0, 0, 0])[:3, :3], hat([*V[3:], 0, 0, 0])[:3, :3], np.zeros((3, 3))
    assert_close(se3.ad(angular(V)), np.block([[w, zero], [zero, w]]), 0.0)
    assert_close(se3.ad(linear(V)), np.block([[zero, zero], [v, zero]]), 0.0)
    assert_close(angular(V) + linear(V), V, 0.0)
