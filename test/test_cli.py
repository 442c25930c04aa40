# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The mbs-dynamics command, run as users run it."""

import os
import re
import shlex
import subprocess
import sys

import pytest
from robots import robot

import mbs_dynamics as mbs
from mbs_dynamics.cli import command_line, main
from mbs_dynamics.compiler import call_mechanism, default_backend
from mbs_dynamics.resources import robot_path


def info(capsys, *arguments):
    code = main(["info", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_info_shows_tree_and_limits_of_the_shipped_arm(capsys):
    code, out, err = info(capsys, "arm7")
    assert (code, err) == (0, "")
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    for name in (*arm.body_names, *arm.joint_names, "flange", "tool", "base_link"):
        assert re.search(rf"\b{name}\b", out), name
    assert f"{sum(body.inertia.mass for body in arm.bodies):.6g} kg in motion" in out
    assert "merged into link 'link7'" in out
    backend = default_backend()
    assert f"Kernels: back end {backend}, called through {call_mechanism(backend)}\n" in out


@pytest.mark.long
def test_info_lists_warnings_and_mimic_joints(capsys):
    _, out, err = info(capsys, robot("romeo_description/urdf/romeo_laas_small.urdf"))
    assert "Warnings" in out
    assert "link 'body': inertia is not positive semidefinite" in out
    assert err == ""
    _, out, _ = info(capsys, robot("panda_description/urdf/panda.urdf"))
    assert "= 1 panda_finger_joint1" in out


def test_info_of_a_chain_between_two_links(capsys):
    code, out, _ = info(capsys, "arm7", "--root", "link2", "--tip", "link5")
    assert code == 0
    assert out.startswith("arm7: 3 coordinates")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["arm9"], "no robot 'arm9' (did you mean 'arm7'?); the robots are: arm7"),
        (["missing.urdf"], "there is no file 'missing.urdf'"),
        (["arm7", "--tip", "hand"], "no body 'hand'"),
    ],
)
def test_info_says_what_is_wrong_in_one_line(capsys, arguments, said):
    code, out, err = info(capsys, *arguments)
    assert (code, out) == (1, "")
    assert said in err
    assert err.count("\n") == 1


def commands():
    parser = command_line()
    (found,) = (each for each in parser._actions if each.dest == "command")
    return found.choices


def dests(parser):
    return {each.dest for each in parser._actions}


def test_the_bare_command_prints_help(capsys):
    assert main([]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert all(re.search(rf"^    {name}\b", out, re.MULTILINE) for name in commands())


def test_help_of_each_command_ends_with_an_example_that_parses():
    for name, parser in commands().items():
        *_, last = parser.format_help().strip().split("\n\n")
        words = shlex.split(" ".join(last.split()).removeprefix("example: mbs-dynamics "))
        assert words[0] == name
        assert parser.parse_args(words[1:])


XACRO = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro" name="one">
<xacro:arg name="mass" default="1"/>
<link name="base"/><link name="tip"><inertial><mass value="$(arg mass)"/>
<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="j" type="continuous"><parent link="base"/><child link="tip"/><axis xyz="0 1 0"/>
</joint></robot>"""


def test_every_command_with_a_robot_takes_arguments_of_xacro():
    without = {name for name, parser in commands().items() if "robot" not in dests(parser)}
    assert without == {"plot"}
    for name in commands().keys() - without:
        assert "xacro_args" in dests(commands()[name]), name


def test_a_xacro_is_validated_and_identified(tmp_path, capsys):
    pytest.importorskip("xacro")
    pytest.importorskip("scipy")
    path, poses = tmp_path / "one.xacro", tmp_path / "poses.csv"
    path.write_text(XACRO)
    poses.write_text("q_j,tau_j\n0,0\n0.5,0.1\n1,0.2\n-1,-0.1\n")
    given = ["identify-static", str(path), str(poses), "--xacro-args", "mass:=2", "--force"]
    main([*given, "--out", str(tmp_path / "new.urdf")])
    assert mbs.Model.from_urdf(tmp_path / "new.urdf").joint_names == ("j",)
    main([*given[:-2], "mas:=2"])
    assert "no xacro argument 'mas'" in capsys.readouterr().err


MJCF = """<mujoco model="pendulum"><worldbody><geom type="plane" size="1 1 1"/>
<body name="rod" pos="0 0 1"><joint name="swing" axis="0 1 0"/>
<geom type="capsule" fromto="0 0 0 0 0 -0.5" size="0.02" mass="2"/></body></worldbody></mujoco>"""


def test_info_count_simulate_and_view_take_mjcf(tmp_path, capsys):
    pytest.importorskip("mujoco")
    pytest.importorskip("viser")
    path = tmp_path / "pendulum.xml"
    path.write_text(f"<!-- a comment with <robot> -->\n{MJCF}")
    assert info(capsys, path)[1].startswith("pendulum: 1 coordinate")
    assert main(["count", str(path)]) == 0
    motion = str(tmp_path / "m.csv")
    given = ["--q", "swing=1", "--duration", "0.1", "--out", motion]
    assert main(["simulate", str(path), *given]) == 0
    page = str(tmp_path / "p.html")
    assert main(["view", str(path), "--motion", motion, "--write", page]) == 0
    assert capsys.readouterr().err == ""
    assert info(capsys, path, "--tip", "rod")[2].endswith("pendulum.xml is an MJCF\n")
    assert main(["identify-static", str(path), motion]) == 1
    assert "this command needs a URDF" in capsys.readouterr().err


@pytest.mark.process
def test_names_that_a_terminal_cannot_show(tmp_path):
    path = tmp_path / "named.urdf"
    text = robot_path("arm7").read_text().replace('name="arm7"', 'name="机器人"', 1)
    path.write_text(text, encoding="utf-8")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "mbs_dynamics.cli", "info", str(path)]
    said = subprocess.run(command, capture_output=True, text=True, env=environment, check=True)
    assert said.stdout.startswith(r"\u673a\u5668\u4eba: 7 coordinates")


def test_a_description_without_inertials_is_warned_of_once(tmp_path, capsys):
    text = re.sub(r"<inertial>.*?</inertial>", "", robot_path("arm7").read_text(), flags=re.DOTALL)
    path = tmp_path / "bare.urdf"
    path.write_text(text)
    _, out, _ = info(capsys, path)
    said = [line for line in out.splitlines() if "mass" in line and "massless" not in line]
    assert sum("for kinematics only" in line for line in said) == 1
    assert "no mass of its own" not in out
