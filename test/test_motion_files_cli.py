# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Files that one command writes and others read; names and paths on the command line."""

from __future__ import annotations

import io
import sys

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics import files
from mbs_dynamics.cli import main
from mbs_dynamics.cli.identify import _Progress
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.view import figures

pytestmark = pytest.mark.backend_independent

NAMES = mbs.Model.from_urdf(robot_path("arm7")).joint_names


def simulated(path, *more):
    given = ["simulate", "arm7", "--duration", "2", "--every", "10", "--q", "joint2=1", *more]
    assert main([*given, "--out", str(path)]) == 0
    return path


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_motions_of_simulate_are_read_by_commands_that_take_recordings_and_torques(kind, tmp_path):
    torques = tmp_path / "tau.csv"
    rows = [f"{t:g},{np.sin(3 * t):g}" for t in np.arange(0.0, 2.0, 0.1)]
    torques.write_text("\n".join(["t,tau_joint4", *rows]) + "\n")
    path = simulated(tmp_path / f"m.{kind}", "--torques", str(torques))
    again = simulated(tmp_path / "again.npz", "--torques", str(path))
    first, second = (mbs.integrate.load_motion(x) for x in (path, again))
    np.testing.assert_allclose(second.q, first.q, atol=1e-2)
    assert np.abs(second.tau[:, 3]).max() > 0.5
    recording = TimeSeries.read(path)
    assert recording.joints in (NAMES, ())
    np.testing.assert_allclose(recording.tau, first.tau)
    if kind == "csv":
        head = path.read_text().splitlines()[0].split(",")
        assert head[:2] == ["t", "q_joint1"]
        assert "tau_joint7" in head


@pytest.mark.parametrize("text", ["t,joint2,joint2\n0,5,0\n", "t,joint2,tau_joint2\n0,5,0\n"])
def test_a_torque_that_is_stated_twice_is_refused_by_name(text, tmp_path, capsys):
    (tmp_path / "tau.csv").write_text(text)
    assert main(["simulate", "arm7", "--torques", str(tmp_path / "tau.csv")]) == 1
    assert "joint2" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ["simulate", "arm7", "--q", "joint1=1", "joint1=2"],
        ["validate", "arm7", "RUN", "--columns", "a=q_joint1", "a=q_joint2"],
    ],
)
def test_a_name_given_twice_is_refused(arguments, tmp_path, capsys):
    run = tmp_path / "run.csv"
    run.write_text("t,a\n0,1\n1,2\n")
    assert main([str(run) if word == "RUN" else word for word in arguments]) == 1
    assert "twice" in capsys.readouterr().err


def test_a_home_sign_is_expanded_in_paths_of_inputs_and_outputs(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert main(["simulate", "arm7", "--duration", "0.05", "--out=~/m.npz"]) == 0
    (tmp_path / "arm.urdf").write_text(robot_path("arm7").read_text())
    assert main(["export", "~/arm.urdf", "--functions", "gravity_torques", "--out=~/c"]) == 0
    assert (tmp_path / "m.npz").exists()
    assert (tmp_path / "c" / "arm7.h").exists()
    assert not (tmp_path / "~").exists()


@pytest.mark.parametrize(
    "value",
    [
        {"friction": dict.fromkeys(["1", "yes", "on", "null", "1e3", "~", "0x1F", "a: b"], 0.5)},
        {"x": [1e-9, 1.0, -0.0], "names": ["no", "1.0", "\u00fc", "\U0001f600", "'"]},
        {"point": {"a": {"sec": 1}, "b": [[0.0, 0.0], [0.0, 0.0]]}},
    ],
)
@pytest.mark.parametrize("flow", [None, True, False])
def test_yaml_reads_back_identically(value, flow):
    yaml = pytest.importorskip("yaml")
    text = files.yaml_text(value, flow=flow)
    assert yaml.safe_load(text) == value
    assert files.read_yaml(text) == value


def test_arrays_and_columns_that_are_named_twice_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("t,q_a,q_a\n0,1,2\n")
    with pytest.raises(ArgumentError, match="q_a"):
        files.read_table(path)


@pytest.mark.parametrize("end", [0.2, 2.0, 2.01])
@pytest.mark.parametrize("rate", [10.0, 25.0])
def test_frames_of_an_animation_follow_time_whatever_rows_are_stored(end, rate):
    times = figures.frame_times(end, rate)
    assert abs(len(times) / rate - end) <= 1.5 / rate
    assert 0.0 == times[0] <= times[-1] <= end
    t = np.array([0.0, 0.1 * end, 0.15 * end, end])
    rows = figures.nearest(t, times)
    assert (np.abs(t[rows] - times) <= np.abs(t[:, None] - times).min(axis=0) + 1e-12).all()


@pytest.mark.parametrize("terminal", [True, False])
def test_progress_says_what_is_done_on_terminals_and_in_logs(terminal, monkeypatch):
    class Stream(io.StringIO):
        def isatty(self):
            return terminal

    now = [0.0]
    monkeypatch.setattr(sys, "stderr", Stream())
    monkeypatch.setattr("mbs_dynamics.cli.identify.time.monotonic", lambda: now[0])
    progress = _Progress("planning the motion")
    for k in range(100):
        now[0] += 0.5
        progress((k + 1) / 100)
    said = sys.stderr.getvalue()
    assert "planning the motion: " in said
    assert said.count("planning") == (100 if terminal else 5)
