# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The type of motion data, and its files .csv and .npz."""

import numpy as np
import pytest

from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

T = 0.01 * np.arange(50)
Q = np.column_stack([np.sin(T), np.cos(T)])
NAMES = ("elbow", "wrist.1")


def series(**changes):
    given = {"t": T, "joints": NAMES, "q": Q, "qd": 2.0 * Q, "tau": 3.0 * Q, "qdd": 0.1 * Q}
    return TimeSeries(**(given | changes))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"t": T[:-1]}, r"q has shape \(50, 2\); must be \(49, 2\)"),
        ({"t": T[::-1]}, "t must increase; got 0.49 s in row 1"),
        ({"t": np.where(T > 0.3, np.inf, T)}, "t must be finite; got inf in row 32"),
        ({"q": np.where(Q[4, 1] == Q, np.nan, Q)}, "q must be finite; got nan in row 5"),
        ({"tau": np.where(Q[4, 1] == Q, np.nan, Q)}, "tau must be finite; got nan in row 5"),
        ({"joints": ("a", "a")}, "joints must be different names; got 'a'"),
        ({"q": [["a", "b"]]}, "q must be real numbers"),
        ({"columns": {"energy": T[1:]}}, r"energy has shape \(49,\)"),
        ({"name": "run.csv", "t": T[::-1]}, "run.csv: t must increase"),
    ],
)
def test_rejects_wrong_arrays_by_name(changes, said):
    with pytest.raises(TimeSeriesError, match=said):
        series(**changes)


def test_arrays_cannot_be_changed():
    given = Q.copy()
    one = series(q=given)
    given[:] = 0.0
    np.testing.assert_array_equal(one.q, Q)
    with pytest.raises(ValueError, match="read-only"):
        one.q[0] = 1.0
    with pytest.raises(AttributeError):
        one.q = Q


def same(first, second):
    assert first.joints == second.joints
    assert first.positions == second.positions
    assert first.columns.keys() == second.columns.keys()
    for name, column in first.columns.items():
        np.testing.assert_array_equal(column, second.columns[name])
    for kind in ("t", "q", "qd", "qdd", "tau"):
        a, b = getattr(first, kind), getattr(second, kind)
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("kind", ["csv", "npz"])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"qd": None, "qdd": None, "tau": None},
        {"tau": Q * [1.0, np.nan], "columns": {"kinetic": T**2, "raw_position_elbow": T}},
        {"positions": ("x", "y", "z"), "q": np.column_stack([Q, T])},
    ],
)
def test_files_hold_the_same_numbers(changes, kind, tmp_path):
    one, path = series(**changes), tmp_path / f"run.{kind}"
    one.write(path)
    same(TimeSeries.read(path), one)


def test_rows_and_joints_are_selected():
    one = series()
    np.testing.assert_array_equal(one.rows(slice(3, 9)).tau, 3.0 * Q[3:9])
    other = one.of_joints(["wrist.1"])
    assert other.joints == other.positions == ("wrist.1",)
    np.testing.assert_array_equal(other.qd, 2.0 * Q[:, 1:])


def test_other_endings_are_rejected(tmp_path):
    with pytest.raises(TimeSeriesError, match=r"\.csv or \.npz"):
        series().write(tmp_path / "run.txt")
