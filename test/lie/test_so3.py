# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""SO(3): the axioms of the group, and each function against power series in 60 digits."""

import math
from decimal import Decimal

import exact
import numpy as np
import pytest
from backends import BACKENDS, compiled

from mbs_dynamics.lie import arrays, series, so3

PI = math.pi
NEAR_ZERO = (0.0, 1e-300, 1e-160, 1e-12, 1e-8, 1e-5)
THRESHOLDS = tuple(
    float(angle)
    for at in (0.5, 1.0)  # where the power series meet the closed forms
    for angle in (at - 1e-9, np.nextafter(at, 0.0), at, np.nextafter(at, 2.0), at + 1e-9)
)
UP_TO_PI = (*NEAR_ZERO, *THRESHOLDS, 0.3, 1.7, 2.9, PI - 1e-3, PI - 1e-9, PI)
BEYOND_PI = (PI + 1e-9, 4.0, 6.0)


def axes():
    """Coordinate axes and their negatives, diagonals on which entries tie, and generic ones.

    Of the generic ones each has another largest component, so that log takes all of its ways.
    """
    special = [*np.eye(3), *-np.eye(3), (1, 1, 1), (-1, 1, 1), (1, 0, -1), (0, 1, 1), (-1, -1, 0)]
    generic = [(0.9, -0.3, 0.5), (0.5, 0.9, 0.3), (-0.3, 0.5, -0.9), (1.0, 1e-9, -1e-5)]
    return [np.asarray(e, float) / np.linalg.norm(e) for e in (*special, *generic)]


def vectors(angles):
    return np.array([angle * e for angle in angles for e in axes()])


def by_angle(make, angles):
    """Yield each angle with each of the vectors, or screws, that are made of it."""
    return ((angle, x) for angle in angles for x in make([angle]))


def near(found, expected, tolerance=1e-15):
    """Compare to rounding: absolutely, entries being of the order of one."""
    np.testing.assert_allclose(found, expected, rtol=0.0, atol=tolerance)


def test_hat_is_the_cross_product_and_vee_its_inverse():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 20, 3))
    np.testing.assert_array_equal(so3.hat(x[0]), [
        [0, -x[0, 2], x[0, 1]], [x[0, 2], 0, -x[0, 0]], [-x[0, 1], x[0, 0], 0]
    ])  # fmt: skip
    near((so3.hat(x) @ y[..., None])[..., 0], np.cross(x, y))
    np.testing.assert_array_equal(so3.vee(so3.hat(x)), x)
    np.testing.assert_array_equal(so3.hat([1, 2, 3]), so3.hat([1.0, 2.0, 3.0]))


def test_congruence_is_the_product_and_exactly_symmetric():
    rng = np.random.default_rng(3)
    A = rng.normal(size=(3, 3))
    A = A + A.T
    R = so3.exp(rng.normal(size=3))
    found = arrays.symmetric(so3.conjugate(R, A))
    near(found, R @ A @ R.T, 1e-14)
    np.testing.assert_array_equal(found, found.T)


def quotients(angle: float) -> dict[str, Decimal]:
    """The functions of lie.series by their closed forms, which 60 digits evaluate for any angle."""
    with exact.arithmetic():
        a = Decimal(angle)
        sin, cos = (exact.power_series(a, first) for first in (1, 0))
        half = a / 2
        cot = exact.power_series(half, 0) / exact.power_series(half, 1)
        return {
            "sinc": sin / a,
            "cosc": (1 - cos) / a**2,
            "sinc3": (a - sin) / a**3,
            "cosc4": (a**2 / 2 + cos - 1) / a**4,
            "sinc5": (2 * a - 3 * sin + a * cos) / (2 * a**5),
            "cotc": (1 - half * cot) / a**2,
        }


@pytest.mark.parametrize("name", ["sinc", "cosc", "sinc3", "cosc4", "sinc5", "cotc"])
def test_functions_of_the_angle_are_accurate_relatively(name):
    for angle in (1e-5, 1e-3, 0.1, *THRESHOLDS, 0.7, 1.3, 2.0, 2.9, PI, 4.0, 6.0):
        x = angle * angle
        with exact.arithmetic():  # of the angle whose square x is
            root = float(Decimal(x).sqrt())
        expected = float(quotients(root)[name])
        assert getattr(series, name)(x) == pytest.approx(expected, rel=4e-14, abs=0.0), angle


def test_exp_is_the_exponential_of_the_matrix():
    for angle, x in by_angle(vectors, [*UP_TO_PI, *BEYOND_PI, 2 * PI, 20.0]):
        near(so3.exp(x), exact.exponential(so3.hat(x)), 1e-15 * max(1.0, angle))


def test_log_of_exp():
    for angle, x in by_angle(vectors, [a for a in UP_TO_PI if a < PI]):
        R = exact.exponential(so3.hat(x))
        near(so3.log(R), x, 2e-15 * angle)  # relative: tiny rotations keep their digits


def test_log_of_exp_at_pi_is_the_vector_up_to_its_sign():
    for _, x in by_angle(vectors, [PI, np.nextafter(PI, 0.0), np.nextafter(PI, 4.0)]):
        found = so3.log(so3.exp(x))
        near(found * np.sign(found @ x), x, 2e-15)


def half_turns():
    """Rotations by exactly pi, without rounding wherever their entries allow."""
    signs = [np.diag(d) for d in ((1.0, -1, -1), (-1, 1, -1), (-1, -1, 1))]
    swaps = [
        np.array([[0.0, 1, 0], [1, 0, 0], [0, 0, -1]]),
        np.array([[0.0, -1, 0], [-1, 0, 0], [0, 0, -1]]),
        np.array([[-1.0, 0, 0], [0, 0, 1], [0, 1, 0]]),
        np.array([[-1.0, 0, 0], [0, 0, -1], [0, -1, 0]]),
        np.array([[0.0, 0, 1], [0, -1, 0], [1, 0, 0]]),
        np.array([[0.0, 0, -1], [0, -1, 0], [-1, 0, 0]]),
    ]
    return [*signs, *swaps, *(2.0 * np.outer(e, e) - np.eye(3) for e in axes())]


def test_log_of_half_turns():
    for R in half_turns():
        x = so3.log(R)
        assert np.linalg.norm(x) == pytest.approx(PI, rel=1e-15)
        near(R @ x, x, 4e-15)  # the axis
        near(exact.exponential(so3.hat(x)), R, 2e-15)


def test_log_of_a_quaternion_of_any_length_and_of_its_negative():
    for angle, x in by_angle(vectors, [a for a in UP_TO_PI if 1e-100 < a < PI]):
        q = np.array([*math.sin(angle / 2) / angle * x, math.cos(angle / 2)])
        for scale in (1.0, -1.0, 3.0, -0.2):
            near(so3.quaternion_log(scale * q), x, 2e-15 * max(angle, 1.0))


def test_dexp_is_its_power_series():
    for _, x in by_angle(vectors, [*UP_TO_PI, *BEYOND_PI]):
        near(so3.dexp(x), exact.dexp(so3.hat(x)))
        near(so3.dexp(-x), so3.dexp(x).T)


def test_dexp_inv_is_the_inverse():
    for _, x in by_angle(vectors, UP_TO_PI):
        near(so3.dexp_inv(x) @ exact.dexp(so3.hat(x)), np.eye(3), 2e-15)


def test_dexp_inv_beyond_pi_up_to_its_singularity():
    for x in vectors([4.0, 5.0, 6.0, 2 * PI - 1e-3]):
        inverse = so3.dexp_inv(x)
        size = np.abs(inverse).max()
        near(inverse @ exact.dexp(so3.hat(x)), np.eye(3), 4e-15 * size)


FUNCTIONS = ("hat", "exp", "log", "dexp", "dexp_inv")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_traced(name, backend):
    function = getattr(so3, name)
    given = vectors([a for a in (*UP_TO_PI, 4.0) if name != "log" or a != PI])
    given = so3.exp(given) if name == "log" else given
    kernel = compiled(lambda x: function(x), backend, {"x": given.shape[1:]})
    near(kernel(given), function(given), 2e-15)
