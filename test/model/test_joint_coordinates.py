# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Canonical coordinates of the first kind: poses, Jacobians and their rates, in 60 digits."""

from __future__ import annotations

from math import pi

import exact
import numpy as np
import pytest
from backends import BACKENDS, compiled
from reference import assert_close, hat
from test_macro_joints import DOF, SUBGROUPS, made, product

import mbs_dynamics as mbs
from mbs_dynamics.compiler import derivative_of, series_of
from mbs_dynamics.lie import se3
from mbs_dynamics.model.macro_joints import (
    joint_jacobian,
    joint_jacobian_rate,
    joint_pose,
    macro_joint,
)

pytestmark = pytest.mark.backend_independent  # the back ends are named where kernels are evaluated

ANGLES = {"zero": 0.0, "tiny": 1e-7, "below one": 0.9, "above one": 1.1, "near pi": pi - 1e-7}

every_subgroup = pytest.mark.parametrize("kind", SUBGROUPS)


def states(joint, angle, seed):
    """Coordinates at which the joint turns by an angle, as far as it turns at all, and rates."""
    rng = np.random.default_rng(seed)
    q, rates = rng.normal(size=len(joint.screws)), rng.normal(size=(3, len(joint.screws)))
    turning = joint.screws[:, :3].any(axis=1)
    if turning.any():
        x = q @ joint.screws[:, :3]
        q[turning] *= angle / np.linalg.norm(x)
    return q, rates


def exact_jacobian(Z, motion, order):
    """The derivative of dexp_{-X} Z of an order, by central differences in 60 digits.

    motion holds q and its derivatives; dexp is the power series in ad_X.
    """
    step = exact.Decimal("1e-12")

    def at(t):
        q = exact.decimals(np.zeros(len(Z)))
        for k, x in reversed(list(enumerate(motion))):
            q = exact.decimals(x) + q * t / (k + 1)
        ad = sum(exact.decimals(se3.ad(Z_k)) * -x for Z_k, x in zip(Z, q, strict=True))
        return exact.series(ad, 1) @ exact.decimals(Z.T)

    with exact.arithmetic():
        if order == 0:
            return exact.floats(at(exact.Decimal(0)))
        weights = {
            1: {-1: -0.5, 1: 0.5},
            2: {-1: 1, 0: -2, 1: 1},
            3: {-2: -0.5, -1: 1, 1: -1, 2: 0.5},
        }[order]
        total = sum(at(step * k) * exact.Decimal(w) for k, w in weights.items())
        return exact.floats(total / step**order)


@pytest.mark.parametrize("angle", ANGLES)
@every_subgroup
def test_pose_jacobian_and_rate(kind, angle):
    joint = made(kind, 7)
    q, (qd, _, _) = states(joint, ANGLES[angle], 8)
    assert_close(joint_pose(joint, q), exact.exponential(hat(q @ joint.screws)), 1e-14)
    assert_close(joint_jacobian(joint, q), exact_jacobian(joint.screws, [q], 0), 1e-14)
    expected = exact_jacobian(joint.screws, [q, qd], 1)
    assert_close(joint_jacobian_rate(joint, q, qd), expected, 1e-13)


@pytest.mark.parametrize("angle", [*ANGLES.values(), 5.0])
@every_subgroup
def test_jacobian_gives_the_body_fixed_twist_of_the_pose(kind, angle):
    """C^-1 dC/dt, for C^-1 d exp(A + t B)/dt is minus the rate of exp(-A - t B) times exp(A)."""
    joint = made(kind, 9)
    q, (qd, _, _) = states(joint, angle, 10)
    A, B = hat(q @ joint.screws), hat(qd @ joint.screws)
    twist = -se3.vee(exact.logarithmic_rate(-A, -B))
    assert_close(joint_jacobian(joint, q) @ qd, twist, 1e-13)


@every_subgroup
def test_jacobian_is_the_screws_at_zero_and_stays_in_their_span(kind):
    joint = made(kind, 11)
    zero = np.zeros(len(joint.screws))
    np.testing.assert_array_equal(joint_pose(joint, zero), np.eye(4))
    np.testing.assert_array_equal(joint_jacobian(joint, zero), joint.screws.T)
    q, _ = states(joint, 2.0, 12)
    J = joint_jacobian(joint, q)
    along = np.linalg.lstsq(joint.screws.T, J, rcond=None)[0]
    assert_close(joint.screws.T @ along, J, 1e-13)


@every_subgroup
def test_both_kinds_of_coordinates_reach_the_same_motions(kind):
    joint = made(kind, 13)
    C = product(joint, np.random.default_rng(14).uniform(-0.7, 0.7, DOF[kind]))
    q, rest, *_ = np.linalg.lstsq(joint.screws.T, se3.log(C), rcond=None)
    assert rest.size == 0 or rest.max() < 1e-25
    assert_close(joint_pose(joint, q), C, 1e-14)


@pytest.mark.parametrize(
    "kind", ["revolute", "prismatic", "screw", "cylindrical", "planar_translation", "translation"]
)
def test_both_kinds_of_coordinates_agree_on_commutative_subgroups(kind):
    joint = made(kind, 15)
    q, (qd, _, _) = states(joint, 2.5, 16)
    assert_close(joint_pose(joint, q), product(joint, q), 1e-14)
    assert_close(joint_jacobian_rate(joint, q, qd), np.zeros((6, len(q))), 1e-14)


def test_spherical_coordinates_are_axis_times_angle():
    C = joint_pose(macro_joint("spherical"), [0.0, pi / 2, 0.0])
    assert_close(C[:3, :3], [[0, 0, 1], [0, 1, 0], [-1, 0, 0]], 1e-15)
    # there the angles of the second kind are singular, these are not
    assert np.linalg.matrix_rank(joint_jacobian(macro_joint("spherical"), [0.0, pi / 2, 0.0])) == 3


@pytest.mark.parametrize("angle", ANGLES.values())
@pytest.mark.parametrize("kind", ["spherical", "planar_screw", "free"])
def test_derivatives_of_any_order_by_series(kind, angle):
    """Of floats; both sides of the threshold between power series and closed form."""
    joint = made(kind, 17)
    q, rates = states(joint, angle, 18)
    motion = [q, *rates]
    J = joint_jacobian(joint, series_of(motion))
    for order in range(4):
        expected = exact_jacobian(joint.screws, motion[: order + 1], order)
        assert_close(derivative_of(J, order).astype(float), expected, 1e-12, order)


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["spherical", "planar", "cylindrical", "translation", "free"])
def test_functions_can_be_traced_and_differentiated(kind, backend):
    """One kernel for all angles: select takes series of symbols."""
    joint = made(kind, 19)

    def functions(q, qd, qdd):
        J = joint_jacobian(joint, series_of([q, qd, qdd]))
        return {
            "C": joint_pose(joint, q),
            "J": joint_jacobian(joint, q),
            "Jd": joint_jacobian_rate(joint, q, qd),
            "Jdd": derivative_of(J, 2),
        }

    n = len(joint.screws)
    kernel = compiled(functions, backend, {"q": (n,), "qd": (n,), "qdd": (n,)})
    for angle in ANGLES.values():
        q, (qd, qdd, _) = states(joint, angle, 20)
        C, J, Jd, Jdd = kernel(q, qd, qdd)
        assert_close(C, joint_pose(joint, q), 1e-14)
        assert_close(J, joint_jacobian(joint, q), 1e-14)
        assert_close(Jd, joint_jacobian_rate(joint, q, qd), 1e-13)
        assert_close(Jdd, exact_jacobian(joint.screws, [q, qd, qdd], 2), 1e-12)


@every_subgroup
def test_batch_axes_broadcast(kind):
    joint = made(kind, 21)
    rng = np.random.default_rng(22)
    n = len(joint.screws)
    q, qd = rng.normal(size=(4, 1, n)), rng.normal(size=(3, n))
    assert joint_pose(joint, q).shape == (4, 1, 4, 4)
    assert joint_jacobian(joint, q).shape == (4, 1, 6, n)
    rates = joint_jacobian_rate(joint, q, qd)
    assert rates.shape == (4, 3, 6, n)
    assert rates.dtype == np.float64
    assert_close(rates[2, 1], joint_jacobian_rate(joint, q[2, 0], qd[1]), 1e-15)
    assert_close(joint_pose(joint, q)[3, 0], joint_pose(joint.screws, q[3, 0].tolist()), 1e-15)


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("function", [joint_pose, joint_jacobian])
@pytest.mark.parametrize(
    ("joint", "q", "error", "said"),
    [
        (made("universal"), [0, 0], mbs.ModelError, "do not generate a subgroup of motions"),
        (np.eye(6)[[0, 3, 4]], [0, 0, 0], mbs.ModelError, "the bracket of .* is not a combination"),
        (np.eye(6)[[0, 0]], [0, 0], mbs.ModelError, "must be independent"),
        (np.zeros((1, 6)), [0], mbs.ModelError, "must be independent"),
        (np.eye(5), np.zeros(5), mbs.ArgumentError, r"joint has shape \(5, 5\); valid is \(5, 6\)"),
        ("free", np.zeros(6), mbs.ArgumentError, "joint must be real numbers"),
        (made("free"), np.zeros(5), mbs.ArgumentError, r"q has shape \(5,\); valid is \(..., 6\)"),
        (made("free"), 0.0, mbs.ArgumentError, r"q has shape \(\)"),
    ],
)
def test_bad_input_of_the_first_kind_is_refused(function, joint, q, error, said):
    with pytest.raises(error, match=said):
        function(joint, q)


def test_bad_rates_are_refused():
    with pytest.raises(mbs.ArgumentError, match=r"qd has shape \(2,\); valid is \(..., 3\)"):
        joint_jacobian_rate(macro_joint("planar"), np.zeros(3), np.zeros(2))
