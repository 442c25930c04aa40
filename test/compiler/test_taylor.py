# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Truncated Taylor series: their algebra to every order, and against derivatives known by hand."""

import math

import numpy as np
import pytest

from mbs_dynamics.compiler import Series, cos, derivative_of, series_of, sin, sqrt

ORDER = 7


def random_series(seed, value=None):
    c = np.random.default_rng(seed).uniform(-1.0, 1.0, ORDER + 1)
    return Series([float(c[0]) if value is None else value, *map(float, c[1:])])


@pytest.mark.parametrize("present", [0.0, 1e-9, 0.7, math.pi, -2.0])
def test_sine_and_cosine_of_time_itself(present):
    t = Series([present, 1.0, *[0.0] * (ORDER - 1)])
    for k in range(ORDER + 1):
        quarter = k * math.pi / 2.0
        assert derivative_of(sin(t), k) == pytest.approx(math.sin(present + quarter), abs=1e-13)
        assert derivative_of(cos(t), k) == pytest.approx(math.cos(present + quarter), abs=1e-13)


def test_square_root_of_time_itself():
    t = Series([4.0, 1.0, *[0.0] * (ORDER - 1)])
    factor, exponent = 1.0, 0.5
    for k in range(ORDER + 1):
        assert derivative_of(sqrt(t), k) == pytest.approx(factor * 4.0**exponent, rel=1e-13)
        factor, exponent = factor * exponent, exponent - 1.0


def test_products_are_products_of_polynomials():
    x, y = random_series(1), random_series(2)
    full = np.polynomial.polynomial.polymul(x.c, y.c)
    assert np.allclose((x * y).c, full[: ORDER + 1], atol=1e-15)


def test_series_of_derivatives_and_back():
    derivatives = [np.random.default_rng(k).normal(size=(2, 3)) for k in range(4)]
    series = series_of(derivatives)
    for k, derivative in enumerate(derivatives):
        assert np.allclose(derivative_of(series, k).astype(float), derivative, rtol=1e-15)
    assert derivative_of(np.array([5.0]), 0)[0] == 5.0
    assert derivative_of(np.array([5.0]), 1)[0] == 0.0
