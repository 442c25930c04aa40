# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The core of the simulator: its commands, its pace and its settings. No ROS here."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mbs_dynamics.ros.simulator.world import LONGEST_LAG, EffortCommands, Pacer

# -- commands --------------------------------------------------------------------------------------


def test_commands_hold_for_ever_as_those_of_a_forward_command_controller():
    commands = EffortCommands(("a", "b"))
    assert commands.efforts.tolist() == [0.0, 0.0]
    assert commands.set([1.0, 2.0]) is None
    assert commands.efforts.tolist() == [1.0, 2.0]


def test_commands_stand_in_the_order_of_joints():
    commands = EffortCommands(("a", "b", "c"), joints=("c", "a"))
    commands.set([1.0, 2.0])
    assert commands.efforts.tolist() == [2.0, 0.0, 1.0]
    assert commands.given
    commands.reset()
    assert commands.efforts.tolist() == [0.0, 0.0, 0.0]
    assert not commands.given


@pytest.mark.parametrize(
    ("efforts", "kind", "said"),
    [
        ([1.0], "length", "1 efforts for 2 joints: a, b"),
        ([1.0, 2.0, 3.0], "length", "3 efforts for 2 joints"),
        ([], "length", "0 efforts for 2 joints"),
        ([1.0, np.nan], "not_finite", "b = nan"),
        ([-np.inf, 0.0], "not_finite", "a = -inf"),
        ([1e10, 0.0], "too_large", "a = 1e+10"),
    ],
)
def test_bad_commands_are_refused_as_a_whole(efforts, kind, said):
    commands = EffortCommands(("a", "b"))
    commands.set([7.0, 8.0])
    rejection = commands.set(efforts)
    assert rejection.kind == kind
    assert said in rejection.reason
    assert commands.efforts.tolist() == [7.0, 8.0]


efforts = st.lists(st.floats(allow_nan=True, allow_infinity=True), min_size=1, max_size=3)


@given(st.lists(efforts, max_size=20))
def test_whatever_comes_the_efforts_in_force_are_finite(messages):
    commands = EffortCommands(("a", "b"))
    for values in messages:
        before = commands.efforts.copy()
        refused = commands.set(values)
        after = commands.efforts
        assert np.isfinite(after).all()
        assert refused is None or (after == before).all()


# -- pace ------------------------------------------------------------------------------------------


@given(st.lists(st.floats(0.0, 0.05), max_size=50), st.sampled_from([0.25, 1.0, 3.0]))
def test_jitter_is_caught_up(pauses, factor):
    pacer, now, done = Pacer(0.002 / factor, 100.0), 100.0, 0
    for pause in pauses:
        now += pause
        due = pacer.due(now)
        pacer.did(due)
        done += due
        assert abs(0.002 * done - factor * (now - 100.0)) <= 0.5 * 0.002 + 1e-9
    assert pacer.skipped == 0


def test_a_long_pause_is_given_up_and_said():
    pacer = Pacer(0.002, 0.0)
    due = pacer.due(1.0)
    assert due == round(LONGEST_LAG / 0.002)
    pacer.did(due)
    assert 0.002 * pacer.skipped == pytest.approx(1.0 - LONGEST_LAG)
    assert pacer.due(1.002) == 1
