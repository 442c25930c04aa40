# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Compensation of friction: its bound, breakaway, smoothness, and that it adds no energy."""

from __future__ import annotations

import math

import numpy as np
import pytest
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.control.friction import FrictionCompensation
from mbs_dynamics.control.settings import ArmSettings
from mbs_dynamics.integrate import JointForces, Stepper
from mbs_dynamics.model.friction import friction_bound
from mbs_dynamics.resources import robot_path

NAN = math.nan
NAMES = ("a", "b", "c")
COULOMB = [2.0, 0.0, 1.0]
TERMS = {
    "stribeck": {"a": 0.5}, "stribeck_speed": 0.02, "load_friction": {"a": 0.1}, "breakaway": 1.0,
}  # fmt: skip


def compensation(**options):
    """Return the law of three joints, with their Coulomb friction."""
    law = FrictionCompensation(ArmSettings.of(NAMES, **TERMS | options))
    torques = law.torques
    law.torques = lambda *given: torques(*given, COULOMB)
    return law


def test_moving_joints_are_helped_by_nine_tenths_of_what_friction_takes():
    """Beyond the speed in the direction of motion, by Stribeck's law and the load."""
    law, rates, gravity = compensation(), [0.5, 0.5, -5.0], [-30.0, 0.0, 0.0]
    found = law.torques(rates, [NAN] * 3, gravity, 0.0, [1.0, 1.0, 0.5])  # at most 0.9
    expected = 0.9 * (2.0 + 0.1 * 30.0) * (1.0 + 0.5 / (1.0 + 25.0**2))
    assert_close(found, [expected, 0.0, -0.5], 1e-6)


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_a_joint_at_rest_is_helped_to_break_away_in_the_direction_of_the_effort(side):
    """Full static friction beyond twice the dead band, nothing within it or without effort."""
    most = 0.9 * (2.0 + 0.1 * 20.0) * 1.5
    for effort, share in ((0.9, 0.0), (1.5, 0.5), (9.0, 1.0), (NAN, 0.0)):
        law, found = compensation(), [0.0] * 3
        for k in range(400):
            measured = [20.0 + side * effort + found[0], 0.0, 0.0]
            given = [0.0] * 3, measured, [20.0, 0.0, 0.0], 1e-3 * k, [1.0] * 3
            found = law.torques(*given)
        assert_close(found, [side * share * most, 0.0, 0.0], 1e-6)


def test_it_does_not_follow_itself():
    """Drives report what they are commanded: without a push nothing remains of an earlier one."""
    law, found = compensation(breakaway=0.1), [0.0] * 3
    for k in range(1000):
        extra = 3.0 if k < 300 else 0.0
        measured = [extra + found[0], found[1], found[2]]
        found = law.torques([0.0] * 3, measured, [0.0] * 3, 1e-3 * k, [1.0] * 3)
        assert found[0] > 2.0 or k != 299
    assert abs(found[0]) < 1e-12


def test_dither_is_on_request_and_stays_within_the_bound():
    law = compensation(dither=0.5, dither_frequency=25.0)
    times = np.arange(0.0, 0.2, 1e-3)
    found = [law.torques([0.0] * 3, [NAN] * 3, [0.0] * 3, t, [1.0] * 3)[0] for t in times]
    assert_close(found, 0.45 * 3.0 * np.sin(50.0 * np.pi * times), 1e-9)
    pushed = [law.torques([0.0] * 3, [9.0] * 3, [0.0] * 3, 0.2 + t, [1.0] * 3)[0] for t in times]
    assert max(pushed) <= 0.9 * 3.0 + 1e-12


def test_assist_is_smooth_in_time():
    """A push that steps moves it by at most its range times dt / rise in a period."""
    law, before = compensation(), 0.0
    for k in range(200):
        effort = 9.0 if (k // 50) % 2 else -9.0
        found = law.torques([0.0] * 3, [effort, 0, 0], [0.0] * 3, 1e-3 * k, [1.0] * 3)[0]
        assert k == 0 or abs(found - before) <= 2.0 * 0.9 * 3.0 * 1e-3 / 0.021 + 1e-9
        before = found


def test_nothing_is_computed_and_remembered_without_shares():
    law = compensation()
    law.torques([0.0] * 3, [9.0] * 3, [0.0] * 3, 0.0, [1.0] * 3)
    law.torques([0.0] * 3, [9.0] * 3, [0.0] * 3, 0.1, [1.0] * 3)
    assert law.torques([1.0] * 3, [9.0] * 3, [0.0] * 3, 0.2, [0.0] * 3) == [0.0] * 3
    assert law.torques([0.0] * 3, [NAN] * 3, [0.0] * 3, 0.3, [1.0] * 3) == [0.0] * 3


ARM = mbs.Model.from_urdf(robot_path("arm7"))


@pytest.mark.parametrize("members", [200, pytest.param(1000, marks=pytest.mark.slow)])
def test_it_never_puts_in_more_energy_than_friction_takes(members):
    """Motions of an arm at random, by pushes, with wrong efforts and dither.

    In no window of time does the assist deliver more than friction dissipates, but for what a held
    torque does while the friction falls along Stribeck's curve within a period.
    """
    rng, n, h, steps = np.random.default_rng(1), ARM.n, 1e-3, 150
    x, y, w = rng.uniform(0, 1, (3, n))
    law = 3.0 * x, y, 0.1, 0.1 * w
    given = dict(zip(("friction", "stribeck", "stribeck_speed", "load_friction"), law, strict=True))
    stepper = Stepper(ARM, forces=JointForces.of(ARM, damping=0.5, **given))
    terms = {"stribeck": tuple(y), "stribeck_speed": 0.1, "load_friction": tuple(0.1 * w)}
    terms |= {"breakaway": 0.2, "friction_speed": 0.02}
    shares, coulomb, laws = [1.0] * n, (3.0 * x).tolist(), []
    for dither in rng.uniform(0, 1, members):
        settings = ArmSettings.of(ARM.joint_names, dither=dither, **terms)
        laws.append(FrictionCompensation(settings))
    state = rng.uniform(-1.0, 1.0, (members, 2, n))
    state[: members // 2, 1] = 0.0
    delivered, dissipated = (np.zeros((steps + 1, members)) for _ in range(2))
    push = rng.uniform(-1, 1, (members, n)) * 8.0
    for k in range(steps):
        q, qd = state[:, 0], state[:, 1]
        g = mbs.gravity_torques(ARM, q)
        if k % 50 == 49:
            push = rng.uniform(-1, 1, (members, n)) * 8.0
        efforts = g + push + rng.normal(0.0, 1.0, (members, n))
        rows = zip(laws, qd.tolist(), efforts.tolist(), g.tolist(), strict=True)
        assist = np.array([one.torques(v, e, w, k * h, shares, coulomb) for one, v, e, w in rows])
        state = stepper.step(state, g + push + assist, h)
        moved = state[:, 1] * h  # semi-implicit: the positions move with the new rates
        bound = friction_bound(*law, qd, np.abs(g))
        delivered[k + 1] = delivered[k] + (assist * moved).sum(axis=1)
        dissipated[k + 1] = dissipated[k] + (bound * np.abs(moved)).sum(axis=1)
    assert delivered[-1].max() > 0.1
    excess = delivered - dissipated
    assert (excess - np.minimum.accumulate(excess, axis=0)).max() <= 1e-12
