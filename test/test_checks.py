# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The checks at the edge: what passes comes out clean, what does not is named."""

import re
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from mbs_dynamics import checks
from mbs_dynamics.errors import ArgumentError, UnknownNameError, quoted


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


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([1, 2], r"\(2,\).*\(3,\)"),
        ([[1, 2, 3]], r"\(1, 3\).*\(3,\)"),
        (1.0, r"\(\).*\(3,\)"),
        ([1, 2, -np.inf], r"\[1.0, 2.0, -inf\]"),
        ([1, [2, 3]], "not an array of numbers"),
        *((x, "real numbers") for x in (object(), [1, 2, 3j], ["1", "2", "3"], [True] * 3)),
    ],
)
def test_wrong_numbers_are_named(given, said):
    with pytest.raises(ArgumentError, match=f"^v .*{said}"):
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
    ("given", "said"),
    [
        (np.eye(3), r"\(3, 3\).*\(4, 4\)"),
        (but((2, 2), -1.0), "no rotation"),  # a reflection
        (but((2, 2), 1.0 + 2e-6), "no rotation"),
        (but((3, 3), 2.0), r"last row.*\[0.0, 0.0, 0.0, 2.0\]"),
        (but((3, 1), 1e-9), r"last row.*\[0.0, 1e-09, 0.0, 1.0\]"),
        (but((0, 3), np.inf), "finite"),
    ],
)
def test_wrong_poses_are_named(given, said):
    with pytest.raises(ArgumentError, match=r"\bC\b") as raised:
        checks.pose("C", given)
    assert re.search(said, str(raised.value))


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
