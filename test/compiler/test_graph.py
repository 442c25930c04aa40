# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Traced symbols: what folds, what is shared, and what is counted."""

import numpy as np
import pytest

from mbs_dynamics.compiler import Graph, Operations, atan2, cos, less, select, sin, sqrt, trace


@pytest.fixture
def xyz():
    return Graph().input("x", (3,))


def is_float(value, expected):
    return type(value) is float and value == expected


def test_zeros_and_ones_vanish(xyz):
    x, _, _ = xyz
    for zero in (0, 0.0, -0.0, np.float64(0.0), np.int64(0), np.float32(0.0)):
        assert is_float(zero * x, 0.0)
        assert is_float(x * zero, 0.0)
        assert x + zero is x
        assert zero + x is x
        assert x - zero is x
        assert is_float(zero / x, 0.0)
    for one in (1, 1.0, np.float64(1.0), np.int64(1)):
        assert one * x is x
        assert x * one is x
        assert x / one is x
    assert is_float(x - x, 0.0)
    assert is_float(x / x, 1.0)
    assert +x is x
    assert x**1 is x
    assert x + x is 2.0 * x


def test_signs_are_pulled_outwards(xyz):
    x, y, _ = xyz
    minus = -x
    assert -minus is x
    assert -1.0 * x is -x
    assert x / -1.0 is -x
    assert 0.0 - x is -x
    assert (-x) * y is -(x * y)
    assert x * (-y) is -(x * y)
    assert (-x) * (-y) is x * y
    assert x + (-y) is x - y
    assert (-x) + y is y - x
    assert (-x) + (-y) is -(x + y)
    assert x - (-y) is x + y
    assert (-x) - y is -(x + y)
    assert (-x) - (-y) is y - x
    assert -3.0 * x is -(3.0 * x)
    assert -3.0 * (-x) is 3.0 * x
    assert 2.0 - (-x) is x + 2.0
    assert (-x) + 2.0 is 2.0 - x
    assert sin(-x) is -sin(x)
    assert cos(-x) is cos(x)


def test_the_same_expression_is_one_node(xyz):
    x, y, z = xyz
    assert x / 4.0 is 0.25 * x
    assert x * y is y * x
    assert x + y is y + x
    assert (x * y + z) * (x * y + z) is (y * x + z) ** 2
    assert x**3 is x * x * x
    assert sin(x) is sin(x)
    assert np.sin(x) is sin(x)
    assert sqrt(x * y) is sqrt(y * x)
    assert x / y is x / y
    assert 2.0 / x is 2.0 / x
    assert atan2(x, y) is atan2(x, y)
    assert (x > y) is (y < x)
    assert (x >= y) is (y <= x)
    assert (x > 1) is (x > 1.0)
    assert less(1, x) is (x > 1.0)
    assert less(np.float64(1.0), x) is (x > 1.0)
    assert less(x, y) is (x < y)
    assert select(x < y, x, 1.0) is select(x < y, x, 1)


def test_operations_are_counted_by_kind():
    def all_kinds(x):
        a, b, c = x
        first = a * b + c - 2.0  # one multiplication, two additions
        second = sin(a) / cos(a)  # two functions of an angle, one division
        third = sqrt(b) - atan2(b, c)  # a root, an angle, an addition
        return [first, second, third, select(a < b, -a, a), -first]

    counts = trace(all_kinds, {"x": (3,)}, name="all_kinds").operations
    assert counts == Operations(
        multiplications=1, additions=3, divisions=1, square_roots=1, trigonometric=3, selections=1
    )
    assert counts.total == 10
    assert str(Operations(additions=2)) == "2 operations (2 additions)"
