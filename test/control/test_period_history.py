# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Histories of guarded arms: a file that reproduces every command and verdict."""

import numpy as np
import pytest
from urdf_reference import STATED, chain

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.control import GuardedArm, Motors, laws
from mbs_dynamics.control.period import history
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.timeseries import TimeSeries
from simulated.bus import nan
from simulated.guarded_bench import MODEL, MOTOR, PERIOD, Loop, table


@pytest.fixture
def loop(monkeypatch):
    monkeypatch.setattr(history, "KEPT", 250)  # of two blocks, used in turn
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
    sent, places = replay.sent, replay.layouts.state.places
    assert replay.difference == 0.0
    assert 250 <= len(replay.samples) <= 700
    found = replay.outputs[sent][-250:, : MODEL.n]
    np.testing.assert_array_equal(found, torques[-250:])
    modes = [float(each.mode) for each in states[-250:]]
    np.testing.assert_array_equal(replay.states[sent][-250:, places["mode"].start], modes)
    assert len({*modes}) > 2
    assert other.state == "disabled"


def test_other_files_and_histories_of_another_robot_are_refused_by_name(loop, tmp_path):
    loop.run(0.1)
    loop.arm.write_history(tmp_path / "history.npz")
    model = mbs.Model.from_urdf(chain(("only", "revolute", STATED)))
    arm = GuardedArm(model, laws.Gravity(), Motors(table(joints=("only",)), model))
    with pytest.raises(ArgumentError, match=r"another robot.*joint7.*only"):
        arm.replay(tmp_path / "history.npz")
    (tmp_path / "text.npz").write_text("t,q\n")
    np.savez(tmp_path / "other.npz", t=np.zeros(3))
    for name in ("text.npz", "other.npz"):
        with pytest.raises(ArgumentError, match=f"{name}.*not a history.*write_history$"):
            loop.arm.replay(tmp_path / name)


@pytest.mark.long
def test_the_command_replays_a_history_and_writes_motion_data(loop, tmp_path, capsys):
    history, out = tmp_path / "history.npz", tmp_path / "motion.csv"
    loop.enabled()
    loop.bus.faults.append(nan(MOTOR))
    loop.run(0.3)
    loop.arm.write_history(history)
    assert main(["replay", "arm7", str(history), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "exactly" in said
    lines = [line for line in said.splitlines() if " s  " in line]
    modes = [line.split(" s ")[1].split(":")[0].strip() for line in lines]
    assert modes == ["disabled", "ramping in", "enabled", "fault", "fault"]
    assert "stale: no valid state of joint2" in said
    written = TimeSeries.read(out)
    np.testing.assert_allclose(written.tau[-1], loop.command.torques, atol=1e-6)


@pytest.mark.long
def test_a_history_of_another_description_is_said_to_differ(loop, tmp_path, capsys):
    history = tmp_path / "history.npz"
    loop.enabled()
    loop.arm.write_history(history)
    with np.load(history) as file:
        stored = {name: file[name] for name in file.files}
    stored["last"][-1] += 1e-3
    np.savez(history, **stored)
    assert main(["replay", "arm7", str(history)]) == 1
    assert "differs by 0.001" in capsys.readouterr().out
