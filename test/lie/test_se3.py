# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""SE(3): the axioms of the group, and each function against power series in 60 digits."""

import math

import exact
import numpy as np
import pytest
from backends import BACKENDS, compiled
from test_so3 import BEYOND_PI, PI, UP_TO_PI, axes, by_angle, half_turns, near

from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.se3 import InverseAdjoint

ROUNDING = 4e-15


def screws(angles):
    """Screws with these rotation angles about many axes, and linear parts of every direction."""
    rng = np.random.default_rng(5)
    made = []
    for angle in angles:
        for k, e in enumerate(axes()):
            along, across = e, np.roll(e, 1)
            y = (0.7 * along, across, rng.normal(size=3), np.zeros(3), 1e-9 * across)[k % 5]
            made.append(np.concatenate([angle * e, y]))
    return np.array(made)


def random_screws(count, seed):
    return np.random.default_rng(seed).normal(size=(count, 6))


def random_poses(count, seed):
    return np.array([exact.exponential(se3.hat(X)) for X in random_screws(count, seed)])


def conjugated(C, X):
    """C X^ C^-1 as a screw: the adjoint by its definition."""
    return se3.vee(C @ se3.hat(X) @ np.linalg.inv(C))


def test_hat_and_vee():
    X = np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])
    expected = [[0, -3, 2, 4], [3, 0, -1, 5], [-2, 1, 0, 6], [0, 0, 0, 0]]
    np.testing.assert_array_equal(se3.hat(X), expected)
    np.testing.assert_array_equal(se3.vee(se3.hat(X)), X)


def test_ad_is_the_commutator_of_matrices():
    for X, Y in random_screws(40, 6).reshape(20, 2, 6):
        A, B = se3.hat(X), se3.hat(Y)
        near(se3.hat(se3.ad(X) @ Y), A @ B - B @ A, ROUNDING)


def test_ad_dual_is_the_other_argument_of_the_dual_bracket():
    for X, P in random_screws(40, 23).reshape(20, 2, 6):
        near(se3.ad_dual(P) @ X, -(se3.ad(X).T @ P), ROUNDING)


def test_jacobi_identity():
    for X, Y, Z in random_screws(60, 8).reshape(20, 3, 6):
        a, b, c = se3.ad(X), se3.ad(Y), se3.ad(Z)
        near(a @ (b @ Z) + b @ (c @ X) + c @ (a @ Y), np.zeros(6), 2e-14)
        near(se3.ad(a @ Y), a @ b - b @ a, 2e-14)


def test_pose_puts_its_blocks():
    R, r = so3.exp([0.1, 0.2, 0.3]), np.array([4.0, 5.0, 6.0])
    C = se3.pose(R, r)
    np.testing.assert_array_equal(C[:3, :3], R)
    np.testing.assert_array_equal(C[:3, 3], r)
    np.testing.assert_array_equal(C[3], [0, 0, 0, 1])
    assert se3.pose(np.eye(3), np.zeros((5, 2, 3))).shape == (5, 2, 4, 4)
    assert se3.pose(np.zeros((5, 1, 3, 3)), np.zeros((2, 3))).shape == (5, 2, 4, 4)


def test_inverse():
    for C in random_poses(20, 9):
        near(se3.inverse(C) @ C, np.eye(4), ROUNDING)
        near(C @ se3.inverse(C), np.eye(4), ROUNDING)
        near(se3.inverse(C), np.linalg.inv(C), ROUNDING)


def test_Ad_is_conjugation():
    for C, X in zip(random_poses(20, 10), random_screws(20, 11), strict=True):
        near(se3.Ad(C) @ X, conjugated(C, X), 2e-14)


def test_Ad_is_a_homomorphism():
    for C, D in random_poses(40, 12).reshape(20, 2, 4, 4):
        near(se3.Ad(C @ D), se3.Ad(C) @ se3.Ad(D), 2e-14)
        near(se3.Ad(se3.inverse(C)), np.linalg.inv(se3.Ad(C)), 2e-14)
    np.testing.assert_array_equal(se3.Ad(np.eye(4)), np.eye(6))


def test_Ad_maps_brackets_to_brackets():
    for C, (X, Y) in zip(
        random_poses(20, 13), random_screws(40, 14).reshape(20, 2, 6), strict=True
    ):
        A = se3.Ad(C)
        near(se3.ad(A @ X) @ (A @ Y), A @ (se3.ad(X) @ Y), 1e-13)
        near(C @ se3.exp(X) @ se3.inverse(C), se3.exp(A @ X), 2e-14)


def test_inverse_adjoint_and_its_transpose_are_the_matrices():
    for C, V in zip(random_poses(20, 15), random_screws(20, 16), strict=True):
        inverse = np.linalg.inv(se3.Ad(C))
        operator = InverseAdjoint(C[:3, :3], C[:3, 3])
        near(operator @ V, inverse @ V, 2e-14)
        near(operator.T @ V, inverse.T @ V, 2e-14)


def test_products_with_the_inverse_adjoint_on_both_sides():
    for k, C in enumerate(random_poses(20, 22)):
        M = np.random.default_rng(k).normal(size=(6, 6))
        inverse, operator = np.linalg.inv(se3.Ad(C)), InverseAdjoint(C[:3, :3], C[:3, 3])
        M = M + M.T
        found = operator.congruence(M)
        near(found, inverse.T @ M @ inverse, 1e-13)
        np.testing.assert_array_equal(found, found.T)


def test_exp_is_the_exponential_of_the_matrix():
    for angle, X in by_angle(screws, [*UP_TO_PI, *BEYOND_PI, 2 * PI, 20.0]):
        near(se3.exp(X), exact.exponential(se3.hat(X)), ROUNDING * max(1.0, angle))


def test_Ad_of_exp_is_exp_of_ad():
    for _, X in by_angle(screws, UP_TO_PI):
        near(se3.Ad(se3.exp(X)), exact.exponential(se3.ad(X)), ROUNDING)


def test_log_of_exp():
    for angle, X in by_angle(screws, [a for a in UP_TO_PI if a < PI]):
        found = se3.log(exact.exponential(se3.hat(X)))
        near(found[:3], X[:3], 2e-15 * angle)
        near(found[3:], X[3:], ROUNDING)


def test_exp_of_log_of_half_turns():
    for k, R in enumerate(half_turns()):
        for r in (np.zeros(3), random_screws(k + 1, 17)[k, :3]):
            found = se3.log(se3.pose(R, r))
            assert np.linalg.norm(found[:3]) == pytest.approx(PI, rel=1e-15)
            near(exact.exponential(se3.hat(found)), se3.pose(R, r), ROUNDING)


def joint_screws():
    """Unit screws of joints with any axis: revolute, prismatic and with a pitch of any size."""
    rng = np.random.default_rng(18)
    for e in axes():
        for p in (np.zeros(3), rng.normal(size=3)):
            for pitch in (0.0, 0.3, -0.05, 1e-9):
                yield np.concatenate([e, np.cross(p, e) + pitch * e])
        yield np.concatenate([np.zeros(3), e])


@pytest.mark.long
def test_exp_screw_is_exp_for_any_joint():
    for X in joint_screws():
        for q in (0.0, 1e-12, 0.3, -1.7, PI, -PI, 20.0):
            expected = exact.exponential(se3.hat(X * q))
            near(se3.exp_screw(X, q), expected, ROUNDING * max(1.0, abs(q)))


def test_dexp_is_its_power_series():
    for _, X in by_angle(screws, [*UP_TO_PI, *BEYOND_PI]):
        near(se3.dexp(X), exact.dexp(se3.ad(X)), ROUNDING)


def test_dexp_gives_the_spatial_twist():
    rate = np.array([0.3, -0.8, 0.6, -1.1, 0.2, 0.5])
    for _, X in [*by_angle(screws, [*UP_TO_PI, *BEYOND_PI])][::3]:
        twist = se3.vee(exact.logarithmic_rate(se3.hat(X), se3.hat(rate)))
        near(se3.dexp(X) @ rate, twist, ROUNDING)


def test_dexp_inv_is_the_inverse():
    for _, X in by_angle(screws, UP_TO_PI):
        near(se3.dexp_inv(X) @ exact.dexp(se3.ad(X)), np.eye(6), ROUNDING)


def test_screw_parameters():
    """A screw (e, p x e + h e) times its magnitude gives e, h, and the axis through p."""
    e, p = np.random.default_rng(21).normal(size=(2, 5, 4, 3))
    e /= np.linalg.norm(e, axis=-1, keepdims=True)
    h, size = p[..., 0], np.geomspace(1e-12, 3.0, 20).reshape(5, 4)
    unit = np.concatenate([e, np.cross(p, e) + h[..., None] * e], axis=-1)
    nearest = p - (e * p).sum(axis=-1, keepdims=True) * e
    *found, magnitude = se3.screw_parameters(size[..., None] * unit)
    for value, expected in zip([*found, magnitude / size], (nearest, e, h, 1.0), strict=True):
        near(value, expected, 4.0 * ROUNDING)
    nan = math.nan
    for X, expected in (
        ([0, 0, 0, 0, -2, 0], [0, 0, 0, 0, -1, 0, math.inf, 2]),
        ([0, 1e-10, 0, 3, 0, 0], [0, 0, 0, 1, 0, 0, math.inf, 3]),  # rounding of a translation
        ([0] * 6, [0] * 8),
        ([nan] * 6, [nan] * 8),
    ):
        np.testing.assert_array_equal(np.hstack(se3.screw_parameters(X)), expected)
    with pytest.raises(ArgumentError, match=r"X .*\(5,\)"):
        se3.screw_parameters(np.zeros(5))


def test_reciprocal_product():
    """The power of a wrench, the same in all frames; of two lines it is zero if they intersect."""
    X, W, C = random_screws(20, 22), random_screws(20, 23), random_poses(20, 24)
    Y = np.roll(W, 3, axis=-1)
    near(se3.reciprocal_product(X, Y), (W * X).sum(axis=-1), ROUNDING)
    moved = ((se3.Ad(C) @ Z[..., None])[..., 0] for Z in (X, Y))
    near(se3.reciprocal_product(*moved), (W * X).sum(axis=-1), 2e-13)
    e, f, p, q = np.random.default_rng(25).normal(size=(4, 3))
    for point, expected in ((p, 0.0), (q, (p - q) @ np.cross(e, f))):
        lines = [*e, *np.cross(p, e)], [*f, *np.cross(point, f)]
        near(se3.reciprocal_product(*lines), expected, ROUNDING)


OF_SCREWS = ("hat", "ad", "exp", "dexp", "dexp_inv")
OF_POSES = ("inverse", "Ad", "log")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", [*OF_SCREWS, *OF_POSES])
def test_traced(name, backend):
    function = getattr(se3, name)
    # the sign of the axis is open at pi
    given = screws([a for a in (*UP_TO_PI, 4.0) if name != "log" or a != PI])
    given = se3.exp(given) if name in OF_POSES else given
    kernel = compiled(lambda X: function(X), backend, {"X": given.shape[1:]})
    near(kernel(given), function(given), ROUNDING)
