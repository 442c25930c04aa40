# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Derivatives with respect to moving frames, against the product rule on coordinates."""

import moving_reference as moving
import numpy as np
import pytest
from moving_bodies import Ad, Motion, frames, local
from moving_bodies import Scene as Body
from reference import assert_close

from mbs_dynamics.lie import se3

TOLERANCE = 1e-13


def inverse(C, Cd):
    """C^-1 and its derivative."""
    I = np.linalg.inv(C)
    return I, -I @ Cd @ I


class Scene:
    """A body X and a frame P, which move."""

    def __init__(self, seed):
        self.body = Body(seed)
        self.rng = self.body.rng
        frame = Motion(self.rng)
        self.X, self.Xd, self.V_P = self.body.C, self.body.Cd, frame.V_b
        self.to_P, self.to_P_rate = inverse(frame.C, frame.Cd)
        # twists are taken to P by Ad of P^-1, wrenches and inertias with that of P
        self.A_inverse, self.A_inverse_rate = Ad(self.to_P, self.to_P_rate)
        self.A, self.A_rate = Ad(frame.C, frame.Cd)

    def inertia(self):
        """The inertia of the body in the inertial frame, with its derivative."""
        return local(self.body, frames(self.body)["inertial"])[:2]


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


def test_inertia(scene):
    """(A 5): the inertia of a body that moves, in a frame that moves otherwise."""
    M, Md = scene.inertia()
    A, A_rate = scene.A, scene.A_rate
    local_rate = A_rate.T @ M @ A + A.T @ Md @ A + A.T @ M @ A_rate
    check(moving.inertia_rate, A.T @ M @ A, local_rate, scene.V_P, A.T @ Md @ A)
