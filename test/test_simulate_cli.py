# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands simulate and plot: files in and out, figures, and what they refuse."""

import numpy as np
import pytest
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.integrate import simulate
from mbs_dynamics.lie import so3
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.view.figures import write_figure


@pytest.fixture(scope="module")
def arm():
    return mbs.Model.from_urdf(robot_path("arm7"))


def run(capsys, *arguments):
    code = main([str(x) for x in arguments])
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.long
def test_a_swing_from_a_posture(arm, tmp_path, capsys):
    out = tmp_path / "swing.npz"
    code, text, _ = run(
        capsys, "simulate", "arm7", "--q", "joint2=0.5", "joint4=1", "--qd", "joint1=-0.2",
        "--duration", 0.2, "--every", 4, "--gravity", 0, 0, -3.71, "--out", out,
    )  # fmt: skip
    assert code == 0
    assert "arm7: 0.2 s in 200 steps by rk4" in text
    assert f"wrote {out}" in text
    q, qd = np.zeros(7), np.zeros(7)
    q[[1, 3]], qd[0] = [0.5, 1.0], -0.2
    expected = simulate(arm.with_gravity((0, 0, -3.71)), q, qd, duration=0.2)
    assert_close(TimeSeries.read(out).q, expected.q[::4])


@pytest.mark.long
def test_torques_from_a_file(arm, tmp_path, capsys):
    """Interpolated between the rows, and held after the last one."""
    profile, out = tmp_path / "torques.csv", tmp_path / "motion.csv"
    profile.write_text("t, joint4, joint2\n0, 0, 1\n0.01, -4, 3\n")
    values = [repr(x) for x in np.linspace(0.1, 0.7, 7).tolist()]
    code, _, _ = run(
        capsys, "simulate", "arm7", "--q", *values, "--duration", 0.02, "--method",
        "semi_implicit_euler", "--torques", profile, "--friction", "--stops", "--out", out,
    )  # fmt: skip
    assert code == 0
    motion = TimeSeries.read(out)
    assert_close(motion.q[0], np.linspace(0.1, 0.7, 7))
    assert_close(motion.tau[5], [0.0, 2.0, 0.0, -2.0, 0.0, 0.0, 0.0])
    assert_close(motion.tau[15], [0.0, 3.0, 0.0, -4.0, 0.0, 0.0, 0.0])


FLOATING = """<robot name="raft"><link name="world"/>
<link name="hull"><inertial><mass value="3"/>
  <inertia ixx="0.1" iyy="0.2" izz="0.3" ixy="0" ixz="0" iyz="0"/></inertial></link>
<link name="arm"><inertial><origin xyz="0 0 0.2"/><mass value="0.5"/>
  <inertia ixx="0.01" iyy="0.01" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="free" type="floating"><parent link="world"/><child link="hull"/></joint>
<joint name="mast" type="revolute"><parent link="hull"/><child link="arm"/><axis xyz="0 1 0"/>
  <limit lower="-1" upper="1" effort="5" velocity="5"/></joint></robot>"""


@pytest.mark.long
def test_a_floating_base(tmp_path, capsys):
    """It turns over, which three angles would not survive."""
    urdf, out, profile = (tmp_path / name for name in ("raft.urdf", "raft.csv", "torques.csv"))
    urdf.write_text(FLOATING)
    profile.write_text("t, mast\n0, 0.1\n1, 0.2\n")
    code, text, _ = run(
        capsys, "simulate", urdf, "--q", "free[2]=1", "mast=0.99", "--qd", "free[1]=30", "mast=2",
        "--duration", 0.16, "--method", "semi_implicit_euler", "--torques", profile, "--damping",
        0.01, "--stops", "--out", out,
    )  # fmt: skip
    assert code == 0
    assert "mast at its upper limit" in text
    motion = TimeSeries.read(out)
    assert_close(motion.tau[100], [*np.zeros(6), 0.11])
    assert_close(motion.q[0, :3], [0.0, 0.0, 1.0])
    assert so3.from_quaternion(motion.q[:, 3:7])[:, 2, 2].min() < -0.9
    assert motion.joints[-1] == "mast"


def test_a_failure_is_said_and_what_there_is_is_written(tmp_path, capsys):
    out = tmp_path / "lost.npz"
    given = ("--qd", "joint6=1e200", "--duration", 1, "--out", out)
    code, _, err = run(capsys, "simulate", "arm7", *given)
    assert code == 1
    assert "at t = " in err
    assert len(TimeSeries.read(out)) >= 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--q", "elbow=1"], "no joint 'elbow'"),
        (["--q", "1", "2"], "--q takes JOINT=VALUE of any joints, or 7 values, those of joint1,"),
        (["--method", "rk5"], "did you mean 'rk4'"),
        (["--step", "-1"], "step must be positive"),
        (["--every", "0"], "every must be an integer of at least 1"),
        (["--out", "motion.bag"], "--out must end in .csv, .npz"),
    ],
)
def test_bad_arguments(arguments, message, capsys):
    code, _, err = run(capsys, "simulate", "arm7", "--duration", 0.01, *arguments)
    assert code == 1
    assert message in err


def test_settings_that_are_no_numbers(capsys):
    with pytest.raises(SystemExit):
        main(["simulate", "arm7", "--q", "joint1=far"])
    assert "'joint1=far'" in capsys.readouterr().err


@pytest.mark.long
def test_figures(arm, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    out, figure = tmp_path / "m.npz", tmp_path / "m.svg"
    assert run(capsys, "simulate", "arm7", "--duration", 0.1, "--out", out)[0] == 0
    assert run(capsys, "plot", out, "--figure", figure)[0] == 0
    assert "<svg" in figure.read_text()
    assert run(capsys, "plot", out)[0] == 0
    assert (tmp_path / "m.png").read_bytes().startswith(b"\x89PNG")
    batch = simulate(arm, np.zeros((2, 7)), duration=0.01)
    with pytest.raises(ArgumentError, match="batch"):
        batch.series.write(out)
    with pytest.raises(ArgumentError, match="must end in"):
        write_figure(TimeSeries.read(out), tmp_path / "m.txt")


def test_files_in_missing_folders_are_refused_before_the_work(tmp_path, capsys):
    for path in (tmp_path / "none" / "a.npz", tmp_path / "a.npz"):
        if path.parent == tmp_path:
            path.mkdir()  # a folder of that name
        code, out, err = run(capsys, "simulate", "arm7", "--out", path)
        assert (code, out) == (1, "")
        assert err.startswith(f"mbs-dynamics: --out is {str(path)!r}")
        assert err.count("\n") == 1


def test_a_file_that_cannot_be_written_is_one_line(capsys):
    code, _, err = run(capsys, "simulate", "arm7", "--duration", 0.01, "--out", "/proc/run.npz")
    assert code == 1
    assert err.startswith("mbs-dynamics: ")
    assert err.count("\n") == 1
