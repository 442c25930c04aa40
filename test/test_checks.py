# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The checks at the edge: what passes comes out clean, what does not is named."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mbs_dynamics import checks
from mbs_dynamics.errors import ArgumentError, UnknownNameError, quoted

pytestmark = pytest.mark.backend_independent


@pytest.mark.parametrize(
    "given",
    [
        [1, 2, 3],
        (1.0, 2, np.float32(3)),
        range(1, 4),
        np.array([1, 2, 3], dtype="u1"),
        np.array([1, 2, 3], dtype=">f8"),
        np.arange(1.0, 7.0)[::2] * [1, 2 / 3, 3 / 5],
        [Fraction(1), Fraction(4, 2), 3],
    ],
)
def test_numbers_come_out_as_a_new_array_of_floats(given):
    found = checks.numbers("v", given, (3,))
    np.testing.assert_array_equal(found, [1.0, 2.0, 3.0])
    assert type(found) is np.ndarray
    assert found.dtype == np.float64
    assert found.flags.owndata
    assert found.flags.writeable
    assert not np.shares_memory(found, given)


WRONG: list[tuple[Any, str]] = [
    ([1, 2], "v has shape (2,); must be (3,)"),
    ([[1, 2, 3]], "v has shape (1, 3); must be (3,)"),
    (1.0, "v has shape (); must be (3,)"),
    ([1, np.nan, 3], "v must be finite; got [1.0, nan, 3.0]"),
    ([1, 2, -np.inf], "v must be finite; got [1.0, 2.0, -inf]"),
    ([1, [2, 3]], "v is not an array of numbers: "),
    (["a", "b", "c"], "v must be real numbers"),
    ({"x": 1}, "v must be real numbers"),
    (object(), "v must be real numbers"),
    ([1, 2, 3j], "v must be real numbers"),
    (np.array([1, 2, 3j]), "v must be real numbers"),  # not the real part of it
    (["1", "2", "3"], "v must be real numbers"),
    ([True, False, True], "v must be real numbers"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_wrong_numbers_are_named(given, message):
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}"):
        checks.numbers("v", given, (3,))


def test_a_single_number():
    for given in (2, 2.0, np.float32(2), np.array(2.0), Fraction(2)):
        found = checks.number("m", given)
        assert type(found) is float
        assert found == 2.0
    for given, message in (([2.0], r"m has shape \(1,\)"), (None, "m must be"), ("x", "m must be")):
        with pytest.raises(ArgumentError, match=message):
            checks.number("m", given)


def turned(angle: float) -> Any:
    C = np.eye(4)
    C[:2, :2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
    C[:3, 3] = (1.0, 2.0, 3.0)
    return C


def but(index: tuple[int, int], value: float) -> Any:
    C = turned(0.3)
    C[index] = value
    return C


def test_poses_pass_unchanged():
    for angle in (0.0, 0.3, np.pi):
        np.testing.assert_array_equal(checks.pose("C", turned(angle)), turned(angle))
    checks.pose("C", but((2, 2), 1.0 + 4e-7))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (np.eye(3), "C has shape (3, 3); must be (4, 4)"),
        (but((2, 2), -1.0), "C has no rotation in its upper left block: [["),  # a reflection
        (but((2, 2), 1.0 + 2e-6), "C has no rotation in its upper left block: [["),
        (but((0, 2), 1e-4), "C has no rotation in its upper left block: [["),
        (np.diag([0.0, 0, 0, 1]), "C has no rotation in its upper left block: [["),
        (but((3, 3), 2.0), "the last row of C must be (0, 0, 0, 1); got [0.0, 0.0, 0.0, 2.0]"),
        (but((3, 1), 1e-9), "the last row of C must be (0, 0, 0, 1); got [0.0, 1e-09, 0.0, 1.0]"),
        (but((0, 3), np.inf), "C must be finite; got"),
    ],
)
def test_wrong_poses_are_named(given, message):
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}"):
        checks.pose("C", given)


def test_snap_makes_near_zeros_and_ones_exact_and_nothing_else():
    given = np.array([1e-15, -1e-15, 1 - 1e-15, -1 + 1e-15, 1e-13, 1 - 1e-13, 0.5, -2.0, 2e-14])
    found = checks.snap(given)
    np.testing.assert_array_equal(found, [0, 0, 1, -1, 1e-13, 1 - 1e-13, 0.5, -2.0, 2e-14])
    assert not found.flags.writeable
    assert given.flags.writeable
    assert given[0] == 1e-15


@pytest.mark.parametrize("given", ["x" * 10**6, ["x"] * 10**6, b"x" * 10**6, "\0" * 10**6])
def test_long_values_are_quoted_by_their_beginning(given):
    assert quoted(given)[:4] in repr(given)
    assert len(quoted(given)) < 1000
    assert len(str(UnknownNameError(given, ["x"] * 2000))) < 4000
