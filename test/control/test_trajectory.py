# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Trajectories of joints: interpolation against SciPy, and what is refused."""

import math

import numpy as np
import pytest
from scipy.interpolate import BPoly, CubicHermiteSpline

import mbs_dynamics as mbs
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.resources import robot_path

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
NAMES = MODEL.joint_names
RNG = np.random.default_rng(0)
T = np.cumsum(RNG.uniform(0.1, 1.0, 9))
Q, QD, QDD = RNG.normal(size=(3, 9, 7))
PARABOLAS = [np.polyfit(T[k : k + 3], Q[k : k + 3], 2) for k in range(7)]
BESSEL = [2.0 * a * t + b for t, (a, b, _) in zip(T[1:], PARABOLAS, strict=False)]
BESSEL = [0.0 * Q[0], *BESSEL, 0.0 * Q[0]]


@pytest.mark.parametrize(
    ("given", "reference"),
    [
        ((), CubicHermiteSpline(T, Q, BESSEL)),
        ((QD,), CubicHermiteSpline(T, Q, QD)),
        ((QD, QDD), BPoly.from_derivatives(T, np.stack([Q, QD, QDD], 1))),
    ],
)
def test_segments_interpolate_all_that_is_known_of_the_points(given, reference):
    trajectory = Trajectory(NAMES, T, Q, *given)
    for t in RNG.uniform(T[0], T[-1] - 1e-9, 50):
        for k, value in enumerate(trajectory.at(t)):
            np.testing.assert_allclose(value, reference(t, k), atol=1e-10)
    t = T[3] + 0.01
    found = trajectory.ordered(NAMES[::-1]).at(t).positions
    np.testing.assert_array_equal(found, trajectory.at(t).positions[::-1])


def test_ends_are_held_at_rest():
    trajectory = Trajectory(NAMES, T, Q, QD)
    for t, row in ((T[0] - 1.0, 0), (T[-1], -1), (math.inf, -1)):
        np.testing.assert_array_equal(trajectory.at(t).positions, Q[row])
        assert not trajectory.at(t).velocities.any()


REST = np.zeros((2, 7))
START = np.stack([MODEL.neutral(within_limits=True)] * 2)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"names": (*NAMES[:6], "elbow")}, "elbow"),
        ({"names": NAMES[:6], "positions": START[:, :6]}, NAMES[6]),
        ({"names": (NAMES[0], *NAMES[:6])}, NAMES[0]),
        ({"times": [1.0, 1.0]}, "t must increase; got 1 s in row 1, then 1 s"),
        ({"times": [0.0, math.nan]}, "t must be finite; got nan in row 2"),
        ({"positions": START * [[1.0], [math.nan]]}, "q must be finite; got nan in row 2"),
        ({"positions": START[:1]}, r"q has shape \(1, 7\); must be \(2, 7\)"),
        ({"accelerations": REST}, "need velocities"),
        ({"velocities": np.add(REST, [[0.0], [0.4]])}, "end at rest.*0.4"),
        ({"positions": np.add(START, [[0.0], [9.0]]), "times": [0.0, 90.0]}, "position of"),
        ({"positions": np.add(START, [[0.0], [0.2]]), "times": [0.0, 0.01]}, "velocity of.*after"),
        ({"times": [], "positions": np.zeros((0, 7))}, "0 point"),
    ],
)
def test_trajectories_that_cannot_be_played_are_refused_by_name(change, said):
    given = {"names": NAMES, "times": [0.0, 1.0], "positions": START} | change
    with pytest.raises(ArgumentError, match=said):
        Trajectory(**given).ordered(NAMES).check(MODEL)
