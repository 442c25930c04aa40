# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The guarded period of an arm of one joint: all histories of coarse inputs up to a depth."""

import math

import numpy as np
import pytest
from invariants import LEGAL, references_rotate
from random_periods import unpacked
from test_period import INVARIANTS

import mbs_dynamics as mbs
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.function import Period, initial
from mbs_dynamics.control.period.settings import period_settings
from mbs_dynamics.control.settings import MotionSettings

MODEL = mbs.Model.from_urdf("""
<robot name="one"><link name="base"/>
<link name="arm"><inertial><origin xyz="0.3 0 0"/><mass value="2"/>
<inertia ixx="0.01" iyy="0.02" izz="0.02" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="only" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
<limit lower="-2" upper="2" effort="20" velocity="3"/></joint></robot>
""")
DT = 0.03
"""Period in s: ramps and timeouts take one to three of them."""

Q, STEP = 0.4, 0.02
REPORTS = {
    "as before": {},
    "moved": {"q": Q + STEP, "qd": STEP / DT},
    "silent": {"reported": 0.0},
    "NaN": {"q": math.nan},
    "jumped": {"q": Q + 1.0},
    "without effort": {"effort": math.nan},
    "opposite effort": {"effort": 5.0},
    "drive error": {"error": 3.0},
}
"""Fields of samples that differ from those of an arm at rest, which its motor holds."""

ACTIONS = (
    transitions.ENABLE, transitions.DISABLE, transitions.CLEAR, transitions.HOLD, transitions.TRIP,
)  # fmt: skip
INPUTS = [
    *((report, transitions.NONE) for report in REPORTS),
    *(("as before", action) for action in ACTIONS),
]
"""Inputs of a period: another report, or a request."""


@pytest.fixture(scope="module")
def layouts():
    return Period(MODEL)


def settings_of(layouts, can_hold, on_fault):
    times = {"ramp_in_time": DT, "ramp_time": 2.0 * DT}
    times |= {"stale_timeout": 2.5 * DT, "frozen_timeout": 2.5 * DT}
    given = MotionSettings.of(["only"], on_fault=on_fault, **times)
    drives = {
        "stiffness": np.array([200.0]), "drive_damping": np.array([5.0]), "slip": np.array([0.1]),
        "can_hold": 1.0,
    }  # fmt: skip
    loads = np.zeros((1, 10))
    p = period_settings(
        layouts.model, [0], given, MODEL.gravity, loads, longest_pause=2.5 * DT, hand_over=DT,
        settle_time=DT, **(drives if can_hold else {}),
    )  # fmt: skip
    return layouts.settings.packed(p).astype(float)


def inputs_at(layouts, k, report, action):
    """Return sample and request of period k."""
    now = 1.0 + k * DT
    gravity = mbs.gravity_torques(MODEL, np.array([Q]))[0]
    given = {"stamp": now, "received": now, "reported": 1.0, "q": Q, "qd": 0.0, "effort": gravity}
    sample = np.zeros(layouts.sample.size)
    places = layouts.sample.places
    sample[places["now"]], sample[places["floats"]] = now, 1.0
    for name, value in (given | REPORTS[report]).items():
        sample[places[name]] = value
    request = np.zeros(layouts.request.size)
    request[layouts.request.places["action"]] = action
    request[layouts.request.places["sends"]] = 1.0
    return sample, request


def stepped(layouts, states, settings, k, report, action):
    """Return the states after period k of many arms, and check all invariants."""
    inputs = (*inputs_at(layouts, k, report, action), settings)
    rows = tuple(np.tile(x, (len(states), 1)) for x in inputs)
    result = layouts(states, *rows)
    step = unpacked(layouts, states, rows, result)
    for invariant in set(INVARIANTS) - {references_rotate}:  # no law moves a link
        holds = invariant(step)
        assert holds.all(), f"{invariant.__name__} after {report}, action {action:g}, period {k}"
    changed = step.before.mode != step.after.mode
    pairs = set(zip(step.before.mode[changed], step.after.mode[changed], strict=True))
    return result.state, pairs


def distinct(states):
    """Return the rows of an array (N, size) that differ in any bit."""
    rows = np.ascontiguousarray(states).view(f"V{states.shape[1] * states.itemsize}").ravel()
    return states[np.unique(rows, return_index=True)[1]]


def explored(layouts, holder, before, depth):
    """Return how many states all histories of inputs lead to, and the transitions taken.

    They follow after some inputs ``before``. ``holder`` tells whether drives can hold the arm, and
    the reaction to a fault if they cannot.
    """
    settings = settings_of(layouts, *holder)
    p = layouts.settings.unpacked(settings)
    states = layouts.state.packed(initial(p)).astype(float)[None]
    with np.errstate(all="ignore"):
        for k, given in enumerate(before):
            states, _ = stepped(layouts, states, settings, k, *given)
        count, taken = 0, set()
        for k in range(len(before), len(before) + depth):
            after = []
            for given in INPUTS:
                found, pairs = stepped(layouts, states, settings, k, *given)
                count, taken = count + len(found), taken | pairs
                after.append(found)
            if k + 1 < len(before) + depth:
                states = distinct(np.concatenate(after))
    return count, taken


QUIET = ("as before", transitions.NONE)
ENABLED = [QUIET, QUIET, ("as before", transitions.ENABLE), *[QUIET] * 4]
FAULT = [*ENABLED, ("as before", transitions.TRIP), *[QUIET] * 3]


HOLDERS = (True, "ramp_down"), (False, "ramp_down"), (False, "hold")


@pytest.mark.parametrize("depth", [2, pytest.param(7, marks=pytest.mark.slow)])
def test_invariants_hold_in_all_histories_of_an_arm_of_one_joint(layouts, depth):
    total, taken = 0, set()
    for holder in HOLDERS:
        for before in ([QUIET], ENABLED, FAULT):
            count, pairs = explored(layouts, holder, before, depth)
            total, taken = total + count, taken | pairs
    assert total > (1000 if depth == 2 else 5_000_000)
    if depth > 2:
        assert not LEGAL - taken
