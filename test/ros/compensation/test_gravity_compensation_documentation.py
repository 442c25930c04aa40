# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the pages say of the gravity compensation node, beside what a running node has."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("rclpy")

from documented import declared, found, qualities, quality, says, types
from gravity_node_bench import ARM7, JOINTS, REST, Driver, GravityProcess
from test_gravity_compensation import STOPS

from mbs_dynamics.control.policy import ON_FAULT, State
from mbs_dynamics.ros.compensation.interface import (
    CommandWatchdogSettings,
    GravityCompensationSettings,
)
from mbs_dynamics.ros.parameters import names

pytestmark = pytest.mark.backend_independent

NAME = "gravity_compensation_node"
DOCS = Path(__file__).parents[3] / "docs"
PAGE = (DOCS / "how_to" / "gravity_compensation.md").read_text(encoding="utf-8")
PROSE = " ".join(PAGE.split())


def test_no_parameter_stands_there_that_does_not_exist():
    both = names(GravityCompensationSettings, ["x"]) + names(CommandWatchdogSettings, [])
    known = {name.partition(".")[0] for name in both}
    settings = re.findall(r"`(\w+)(?:\.<joint>)?: [^`]+`", PAGE)
    assert set(settings) <= known | {"use_sim_time"}


def test_states_faults_and_ways_to_stop_stand_there():
    for state in State:
        assert says(NAME, state.value)
        assert re.search(rf"^\| {state.value} \|", PAGE, re.MULTILINE)
    for way in ON_FAULT:
        assert re.search(rf"^\| `{way}`", PAGE, re.MULTILINE)
    events = {
        "stale": "no valid `joint_states` for `stale_timeout`",
        "time_backwards": "a stamp before that of the message before",
        "unstamped": "or no stamp",
        "duplicate_joints": "joints named twice",
        "position_length": "more or fewer values than names",
        "velocity_length": "more or fewer values than names",
        "not_finite": "NaN, infinite or above 1e9",
        "too_large": "NaN, infinite or above 1e9",
        "no_velocity": "no velocities",
        "position_limit": "beyond its position limit by more than `position_margin`",
        "velocity_limit": "faster than the URDF's velocity limit",
        "velocity_reading": "by the mean of its velocities alone",
        "position_jump": "farther from where the message before had it",
        "new_description": "a new `robot_description`",
        "overrun": "a callback that takes longer than `callback_timeout`",
        "internal_error": "an error in the node",
    }
    assert set(events) == set(STOPS)
    assert all(event in PROSE for event in events.values())


def test_every_topic_service_and_diagnostic_stands_there(ros):
    parameters = {"use_imu": "true", "robot_description_file": None}
    with GravityProcess(**parameters) as process, Driver(process) as arm:
        arm.describe(ARM7.read_text(encoding="utf-8"))
        arm.waits(
            lambda: len(arm.health) == 3 and arm._value("input", "rejected: not_finite"),
            lambda: (
                arm.send(JOINTS, np.full(7, np.nan), REST),
                arm.well(),
                arm.feel((0, 0, 9.81)),
            ),
        )
        there = {}
        for kind in ("publishers", "subscribers", "services"):
            there |= found(arm, kind)
        entries = declared(NAME, command_topic="commands")
        lifecycle = {name for name, kind in there.items() if "lifecycle_msgs" in kind}
        assert all(says(NAME, name) for name in lifecycle - {"~/transition_event"})
        assert {name: there[name] for name in set(there) - lifecycle} == types(entries)
        for topic, words in (qualities(arm, "publishers") | qualities(arm, "subscribers")).items():
            assert topic in lifecycle or words == quality(entries[topic]), topic
        keys = [pair.key for status in arm.health.values() for pair in status.values]
        keys = [re.sub(r"^last command: .*", "last command: <joint>", key) for key in keys]
        keys = [re.sub(r"^rejected: .*", "rejected: <kind>", key) for key in keys]
        missing = [key for key in keys if not says(NAME, key) and not key.startswith("latency")]
        assert missing == []
