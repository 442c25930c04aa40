# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Derivatives with respect to moving frames, against the product rule on coordinates."""

from __future__ import annotations

import moving_reference as moving
import numpy as np
import pytest
from mechanisms import MECHANISMS
from reference import Reference, assert_close, twist

from mbs_dynamics.lie import se3

pytestmark = pytest.mark.backend_independent

TOLERANCE = 1e-13


def inverse(C, Cd):
    """C^-1 and its derivative."""
    I = np.linalg.inv(C)
    return I, -I @ Cd @ I


def Ad(C, Cd):
    """Ad_C and its derivative, from C X^ C^-1 column by column."""
    I, Id = inverse(C, Cd)
    units = [se3.hat(e) for e in np.eye(6)]
    A = np.stack([se3.vee(C @ E @ I) for E in units], axis=1)
    Ad_rate = np.stack([se3.vee(Cd @ E @ I + C @ E @ Id) for E in units], axis=1)
    return A, Ad_rate


class Scene:
    """A moving frame P and a body X, both of a random mechanism that moves."""

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        mechanism = MECHANISMS["tree"]
        self.rng = rng
        self.M_body = mechanism.inertias[4]
        q, qd = rng.uniform(-3.0, 3.0, (2, mechanism.n))
        reference = Reference(mechanism, q)
        self.P, self.X = reference.C[5], reference.C[4]
        self.Pd, self.Xd = (np.einsum("klm,k->lm", reference.dC[i], qd) for i in (5, 4))
        self.V_P = twist(self.P, self.Pd, "body_fixed")
        self.to_P, self.to_P_rate = inverse(self.P, self.Pd)
        # twists are taken to P by Ad of P^-1, wrenches and inertias with that of P
        self.A_inverse, self.A_inverse_rate = Ad(self.to_P, self.to_P_rate)
        self.A, self.A_rate = Ad(self.P, self.Pd)


@pytest.fixture(params=range(2))
def scene(request):
    return Scene(request.param)


def check(rate, local, local_rate, V_P, global_rate):
    """A function takes the local derivative to the global one, and back with -V_P."""
    assert_close(rate(local, local_rate, V_P), global_rate, TOLERANCE)
    assert_close(rate(local, global_rate, -V_P), local_rate, TOLERANCE)
    assert np.abs(global_rate - local_rate).max() > 0.1  # the observer's motion matters


def test_point(scene):
    """(2.11): a point that moves on a body, its coordinates in P and in the inertial frame."""
    b, bd = scene.rng.normal(size=(2, 3))
    b, bd = np.append(b, 1.0), np.append(bd, 0.0)
    x, xd = scene.X @ b, scene.Xd @ b + scene.X @ bd
    local = scene.to_P @ x
    local_rate = scene.to_P_rate @ x + scene.to_P @ xd
    check(moving.point_rate, local[:3], local_rate[:3], scene.V_P, (scene.to_P @ xd)[:3])


def test_vector(scene):
    a, ad = scene.rng.normal(size=(2, 3))
    x, xd = scene.X[:3, :3] @ a, scene.Xd[:3, :3] @ a + scene.X[:3, :3] @ ad
    R, Rd = scene.to_P[:3, :3], scene.to_P_rate[:3, :3]
    check(moving.vector_rate, R @ x, Rd @ x + R @ xd, scene.V_P, R @ xd)


def test_pose(scene):
    local = scene.to_P @ scene.X
    local_rate = scene.to_P_rate @ scene.X + scene.to_P @ scene.Xd
    check(moving.pose_rate, local, local_rate, scene.V_P, scene.to_P @ scene.Xd)


def test_pose_rates_are_the_twists_of_a_body_and_of_it_relative_to_the_frame(scene):
    local = scene.to_P @ scene.X
    local_rate = scene.to_P_rate @ scene.X + scene.to_P @ scene.Xd
    absolute = moving.pose_rate(local, local_rate, scene.V_P) @ np.linalg.inv(local)
    V_X = scene.A_inverse @ twist(scene.X, scene.Xd, "spatial")
    assert_close(se3.vee(absolute), V_X, TOLERANCE)
    relative = se3.vee(local_rate @ np.linalg.inv(local))
    assert_close(relative, V_X - scene.V_P, TOLERANCE)


def test_screw(scene):
    """(A 4): a screw that changes on a body, in the inertial frame Ad_X of it."""
    b, bd = scene.rng.normal(size=(2, 6))
    A, A_rate = Ad(scene.X, scene.Xd)
    S, Sd = A @ b, A_rate @ b + A @ bd
    local_rate = scene.A_inverse_rate @ S + scene.A_inverse @ Sd
    check(moving.screw_rate, scene.A_inverse @ S, local_rate, scene.V_P, scene.A_inverse @ Sd)


def test_wrench(scene):
    """(3.2): a wrench that changes in the inertial frame, in P Ad_P^T of it."""
    W, Wd = scene.rng.normal(size=(2, 6))
    local_rate = scene.A_rate.T @ W + scene.A.T @ Wd
    check(moving.wrench_rate, scene.A.T @ W, local_rate, scene.V_P, scene.A.T @ Wd)


def test_wrench_in_the_order_of_the_paper(scene):
    """(3.2) as printed: ad acts on (f, tau) itself, and (f, tau) moves with Ad like a twist."""
    W, Wd = scene.rng.normal(size=(2, 6))
    printed = Wd + se3.ad(scene.V_P) @ W
    rate = moving.wrench_rate(moving.swapped(W), moving.swapped(Wd), scene.V_P)
    assert_close(moving.swapped(rate), printed, TOLERANCE)
    assert_close(moving.swapped(scene.A.T @ moving.swapped(W)), scene.A_inverse @ W, TOLERANCE)


def test_power_is_the_same_to_every_observer(scene):
    """W^T V: the terms of the observer's motion cancel between a wrench and a twist."""
    V, Vd, W, Wd = scene.rng.normal(size=(4, 6))
    local = Wd @ V + W @ Vd
    V_rate = moving.screw_rate(V, Vd, scene.V_P)
    W_rate = moving.wrench_rate(W, Wd, scene.V_P)
    assert_close(W_rate @ V + W @ V_rate, local, TOLERANCE)


def spatial_inertia(scene):
    """The inertia of the body X in the inertial frame, with its derivative."""
    B, Bd = Ad(*inverse(scene.X, scene.Xd))
    return B.T @ scene.M_body @ B, Bd.T @ scene.M_body @ B + B.T @ scene.M_body @ Bd


def test_inertia(scene):
    """(A 5): the inertia of a body that moves, in a frame that moves otherwise."""
    M, Md = spatial_inertia(scene)
    A, A_rate = scene.A, scene.A_rate
    local_rate = A_rate.T @ M @ A + A.T @ Md @ A + A.T @ M @ A_rate
    check(moving.inertia_rate, A.T @ M @ A, local_rate, scene.V_P, A.T @ Md @ A)


def test_inertia_seen_from_its_own_body_and_from_the_ground(scene):
    """(A 3) and (A 5) are one equation."""
    M, Md = spatial_inertia(scene)
    A, _ = Ad(scene.X, scene.Xd)
    V_body, V_spatial = (twist(scene.X, scene.Xd, name) for name in ("body_fixed", "spatial"))
    in_body = moving.inertia_rate(scene.M_body, np.zeros((6, 6)), V_body)
    assert_close(in_body, A.T @ Md @ A, TOLERANCE)
    in_space = moving.inertia_rate(M, np.zeros((6, 6)), V_spatial)
    assert_close(in_space, Md, TOLERANCE)


def test_newton_euler_equations_in_a_frame_that_moves_otherwise(scene):
    """(3.1), (3.2), (3.5): the wrench is the global rate of the momentum, here that of spatial
    coordinates, whatever the frame in which the local rate is taken."""
    M, Md = spatial_inertia(scene)
    V, Vd = twist(scene.X, scene.Xd, "spatial"), scene.rng.normal(size=6)
    W = Md @ V + M @ Vd  # about the origin of the inertial frame
    A, A_rate = scene.A, scene.A_rate
    local_rate = A_rate.T @ M @ V + A.T @ W
    assert_close(moving.wrench_rate(A.T @ M @ V, local_rate, scene.V_P), A.T @ W, TOLERANCE)
    # expanded below (3.5): local rates of inertia and twist, from their global ones
    M_P, V_in_P = A.T @ M @ A, scene.A_inverse @ V
    M_rate = moving.inertia_rate(M_P, A.T @ Md @ A, -scene.V_P)
    V_rate = moving.screw_rate(V_in_P, scene.A_inverse @ Vd, -scene.V_P)
    assert_close(M_rate @ V_in_P + M_P @ V_rate, local_rate, TOLERANCE)
