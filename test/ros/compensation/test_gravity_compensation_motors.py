# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Drives that report and take other units than SI, by the table in motors_file."""

import numpy as np
import pytest
import yaml
from gravity_bench import ARM7, JOINTS, MODEL, G, Q, settings
from gravity_node_bench import Driver, GravityProcess

from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator

SIGNS = np.array([1, -1, 1, 1, -1, 1, 1])
ZEROS = 7.0 * np.arange(7)


@pytest.fixture
def motors_file(tmp_path):
    def write(joints=JOINTS, **changed):
        rows = {
            name: {
                "motor": k,
                "sign": int(SIGNS[k]),
                "zero": float(ZEROS[k]),
                "position_per_radian": 180.0 / np.pi,
                "command_per_newton_metre": 210.0,
                "feedback_per_newton_metre": 52.5,
                "limit": 100.0,
            }
            | changed
            for k, name in enumerate(joints)
        }
        path = tmp_path / "motors.yaml"
        path.write_text(yaml.safe_dump({"when_silent": "zero", "motors": rows}))
        return str(path)

    return write


def raw(q, tau):
    return (ZEROS + SIGNS * np.degrees(q)).tolist(), (SIGNS * 52.5 * tau).tolist()


def test_states_and_commands_are_in_the_units_of_the_drives(motors_file):
    core = GravityCompensator(settings(motors_file=motors_file(), start_from="effort"))
    core.describe(ARM7, 0.0)
    core.adopt(0.0)
    positions, efforts = raw(Q, G)

    def send(now):
        stamp = int(1e9 * now)
        return core.receive(list(JOINTS), positions, [0.0] * 7, efforts, stamp=stamp, now=now)

    send(1.0)
    assert core.enable(1.0) == ""  # the measured efforts agree with gravity
    answer = send(1.01)
    np.testing.assert_allclose(answer.command, G, atol=1e-9)
    np.testing.assert_allclose(core.command_factors, 210.0 * SIGNS)
    assert core.policy.limits.effort == (100.0,) * 7


class RawDriver(Driver):
    """A driver that reports degrees and counts."""

    def well(self):
        positions, efforts = raw(Q, G)
        self.send(JOINTS, positions, [0.0] * 7, efforts=efforts)


def test_the_node_publishes_what_the_drives_take(ros, motors_file):
    with GravityProcess(motors_file=motors_file()) as process, RawDriver(process) as arm:
        arm.waits(lambda: arm.ask(True).success)
        wanted = SIGNS * 210.0 * G
        arm.waits(lambda: arm.commands and np.allclose(arm.commands[-1][1], wanted, atol=1e-6))
        arm.waits(lambda: arm.named and np.allclose(arm.named[-1].effort, G, atol=1e-9))
    assert MODEL.n == 7
