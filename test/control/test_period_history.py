# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Histories of guarded arms: a file that reproduces every command and verdict."""

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control import GuardedArm, Motors, laws
from mbs_dynamics.control.period import history
from mbs_dynamics.errors import ArgumentError
from simulated.bus import nan
from simulated.guarded_bench import MODEL, MOTOR, PERIOD, Loop, table


@pytest.fixture
def loop(monkeypatch):
    monkeypatch.setattr(history, "KEPT", 400)  # of two blocks
    return Loop(laws.JointImpedance(30.0))


def test_a_history_reproduces_commands_and_verdicts_exactly(loop, tmp_path):
    torques, states = [], []
    loop.enabled()
    for k in range(600):
        if k == 100:
            loop.arm.load("tool", 0.5)
        if k == 400:
            loop.bus.faults.append(nan(MOTOR))
        if k == 550:
            loop.arm.clear(loop.now)
        loop.run(PERIOD)
        torques.append(loop.command.torques)
        states.append(loop.arm.state_record)
    loop.arm.write_history(tmp_path / "history.npz")
    other = GuardedArm(MODEL, laws.Gravity(), loop.motors)
    replay = other.replay(tmp_path / "history.npz")
    sent = replay.requests[:, 1] > 0.5
    assert 400 <= len(replay.samples) <= 1000
    found = replay.outputs[sent][-400:, : MODEL.n]
    np.testing.assert_array_equal(found, torques[-400:])
    modes = [float(each.mode) for each in states[-400:]]
    np.testing.assert_array_equal(replay.states[sent][-400:, 2], modes)
    assert len({*modes}) > 2
    assert other.state == "disabled"


def test_a_history_of_another_robot_is_refused_by_name(loop, tmp_path):
    loop.run(0.1)
    loop.arm.write_history(tmp_path / "history.npz")
    urdf = """<robot name="one"><link name="base"/><link name="arm"><inertial><mass value="1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
    <joint name="only" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="10" velocity="1"/></joint></robot>"""
    model = mbs.Model.from_urdf(urdf)
    arm = GuardedArm(model, laws.Gravity(), Motors(table(joints=("only",)), model))
    with pytest.raises(ArgumentError, match=r"another robot.*joint7.*only"):
        arm.replay(tmp_path / "history.npz")


def test_a_file_that_is_no_history_is_refused_by_name(loop, tmp_path):
    (tmp_path / "text.npz").write_text("t,q\n")
    np.savez(tmp_path / "other.npz", t=np.zeros(3))
    for name in ("text.npz", "other.npz"):
        with pytest.raises(ArgumentError, match=f"{name}.*no history"):
            loop.arm.replay(tmp_path / name)
