# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bongardt and Kirchner's equations, in frames that are fixed, in space, in the body, or tumble."""

import numpy as np
import pytest
import rigid_body_equations as rigid_body
from moving_bodies import Ad, Motion, frames, local, twist_in
from moving_reference import swapped
from reference import assert_close

from mbs_dynamics.lie import se3, so3

TOLERANCE = 1e-13


@pytest.mark.parametrize("name", ["fixed", "inertial", "body", "tumbling"])
def test_general_form(scene, name):
    """BK (3.1), (3.2), (3.5), for a fixed, a body-fixed and a tumbling frame."""
    frame = frames(scene)[name]
    A, _ = Ad(frame.C, frame.Cd)
    expected = A.T @ scene.wrench("spatial")
    M, Md, V, Vd = local(scene, frame)
    assert_close(rigid_body.general_wrench(M, Md, V, Vd, frame.V_b), expected, TOLERANCE)
    assert_close(rigid_body.wrench_in_frame(M, V, Vd, frame.V_b), expected, TOLERANCE)
    if name == "body":
        assert_close(Md, np.zeros((6, 6)), TOLERANCE)


def test_general_form_in_ray_order(scene):
    """BK (3.2) as printed: (f, t) is transformed as a twist is, and Ad^-T = Delta Ad Delta."""
    frame = frames(scene)["tumbling"]
    to_frame, _ = Ad(np.linalg.inv(frame.C), np.zeros((4, 4)))
    f_first = to_frame @ swapped(scene.wrench("spatial"))
    W = rigid_body.general_wrench(*local(scene, frame), frame.V_b)
    assert_close(swapped(W), f_first, TOLERANCE)


def test_moment_field_of_a_wrench(scene):
    """BK (2.1), (2.2), (2.3): the moments about p and q differ by the direction x (p - q)."""
    x, p, q = scene.rng.normal(size=6), *scene.rng.normal(size=(2, 3))
    about = []
    for point in (p, q):
        C = np.eye(4)
        C[:3, 3] = point
        about.append(se3.Ad(np.linalg.inv(C)) @ x)
    assert_close(about[0][3:] - about[1][3:], np.cross(x[:3], p - q), TOLERANCE)


def test_general_form_in_space_and_in_the_body(scene):
    """BK (3.3), (3.4)."""
    W = rigid_body.own_wrench(scene.M_s, *scene.twist("spatial"))
    assert_close(W, scene.wrench("spatial"), TOLERANCE)
    W = rigid_body.own_wrench(scene.M_b, *scene.twist("body_fixed"))
    assert_close(W, scene.wrench("body_fixed"), TOLERANCE)
    M, (V, Vd) = scene.M_s, scene.twist("spatial")
    printed = M @ Vd - swapped(se3.ad(V).T @ swapped(M @ V))
    assert np.abs(printed - scene.wrench("spatial")).max() > 1e-2


def test_general_form_at_the_centre_of_mass(centred):
    """BK below (3.3), with the acceleration of the spatial twist, and below (3.4)."""
    M = centred.M_b
    W = rigid_body.own_wrench_at_com(M[5, 5], M[:3, :3], *centred.twist("body_fixed"))
    assert_close(W, centred.wrench("body_fixed"), TOLERANCE)
    here = Motion(centred.rng, moves=False)  # a fixed frame where the centre of mass is now
    here.C = np.eye(4)
    here.C[:3, 3], here.Cd = centred.C[:3, 3], np.zeros((4, 4))
    V, Vd = twist_in(centred, here)
    M = centred.M_h
    W = rigid_body.own_wrench_at_com(M[5, 5], M[:3, :3], V, Vd)
    assert_close(W, centred.wrench("hybrid"), TOLERANCE)
    assert np.abs(Vd[3:] - centred.Cdd[:3, 3]).max() > 1e-2  # not that of the centre of mass


def test_rates_of_attitudes_and_adjoints(scene):
    """BK (A 1), (A 2)."""
    C, Cd, V = scene.C, scene.Cd, scene.twist("spatial")[0]
    w, ad = so3.hat(V[:3]), se3.ad(V)
    assert_close(w @ C[:3, :3], Cd[:3, :3], TOLERANCE)
    assert_close(-(C[:3, :3].T @ w), Cd[:3, :3].T, TOLERANCE)
    A, A_rate = Ad(C, Cd)
    inverse = np.linalg.inv(C)
    B, B_rate = Ad(inverse, -inverse @ Cd @ inverse)
    assert_close(ad @ A, A_rate, TOLERANCE)
    assert_close(-B @ ad, B_rate, TOLERANCE)
    assert_close(np.linalg.inv(A) @ A_rate, se3.ad(scene.V_b), TOLERANCE)
