# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The mbs-dynamics command, run as users run it."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
from robots import robot

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.compiler import call_mechanism, default_backend
from mbs_dynamics.resources import robot_path


def info(capsys, *arguments):
    code = main(["info", *map(str, arguments)])
    return code, *capsys.readouterr()


def test_info_shows_tree_limits_and_counts_of_the_shipped_arm(capsys):
    code, out, err = info(capsys, "arm7")
    assert (code, err) == (0, "")
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    for name in (*arm.body_names, *arm.joint_names, "flange", "tool", "base_link"):
        assert re.search(rf"\b{name}\b", out), name
    assert f"{sum(body.inertia.mass for body in arm.bodies):.6g} kg in motion" in out
    assert "merged into link 'link7'" in out
    backend = default_backend()
    assert f"Kernels: back end {backend}, called through {call_mechanism(backend)}\n" in out
    counts = re.search(r"^ *inverse_dynamics +(\d+) \* +(\d+) +(\d+) +(\d+)$", out, re.MULTILINE)
    assert counts is not None
    for name, count in zip(mbs.REPRESENTATIONS, counts.groups(), strict=True):
        kernel = mbs.compile(mbs.inverse_dynamics, arm, representation=name, backend="python")
        assert kernel.operations.total == int(count)


def test_info_lists_warnings_and_mimic_joints(capsys):
    _, out, err = info(capsys, robot("romeo_description/urdf/romeo_laas_small.urdf"))
    assert "Warnings" in out
    assert "link 'body': inertia is not positive semidefinite" in out
    assert err == ""
    _, out, _ = info(capsys, robot("panda_description/urdf/panda.urdf"))
    assert "1 x panda_finger_joint1" in out


@pytest.mark.parametrize(
    ("collision", "visual", "warns"),
    [
        ("1 1 1", "0.2 0.2 0.2", False),
        ("0.2 0.2 0.2", "1 1 1", False),
        ("0.2 0.2 0.2",) * 2 + (True,),
    ],
)
def test_info_compares_inertias_with_the_sizes_of_links(capsys, tmp_path, collision, visual, warns):
    pytest.importorskip("trimesh")
    shapes = "".join(
        f'<{tag}><geometry><box size="{size}"/></geometry></{tag}>'
        for tag, size in (("collision", collision), ("visual", visual))
    )
    path = tmp_path / "arm.urdf"
    path.write_text(
        '<robot name="arm"><link name="base"/><joint name="j" type="revolute"><axis xyz="0 0 1"/>'
        '<origin xyz="0 0 2"/><parent link="base"/><child link="upper"/><limit lower="-1" '
        f'upper="1" effort="9" velocity="1"/></joint><link name="upper">{shapes}<inertial>'
        '<mass value="1"/>'
        '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link></robot>'
    )
    assert ("link 'upper': its inertia needs a length" in info(capsys, path)[1]) == warns


def test_info_of_a_chain_between_two_links(capsys):
    code, out, _ = info(capsys, "arm7", "--root", "link2", "--tip", "link5")
    assert code == 0
    assert out.startswith("arm7: 3 coordinates")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["arm9"], "no robot 'arm9' (did you mean 'arm7'?); the robots are: arm7"),
        (["missing.urdf"], "cannot read the URDF 'missing.urdf'"),
        (["arm7", "--tip", "hand"], "no body 'hand'"),
    ],
)
def test_info_says_what_is_wrong_in_one_line(capsys, arguments, said):
    code, out, err = info(capsys, *arguments)
    assert (code, out) == (1, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.process
def test_the_command_runs_as_a_process():
    command = [sys.executable, "-m", "mbs_dynamics.cli", "--version"]
    assert subprocess.run(command, capture_output=True, text=True).stdout.strip() == mbs.__version__


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
