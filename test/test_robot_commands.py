# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The commands view, info and count take every public robot, and free bodies with few joints."""

import numpy as np
import pytest
from cases import mostly_slow
from robots import NAMELESS, all_files, robot
from urdf_reference import joint, link, load, urdf

from mbs_dynamics.cli import main
from mbs_dynamics.view.posing import slider_ends

pytest.importorskip("viser")

ROBOTS = [name for name in all_files() if name not in NAMELESS]

CHOSEN = (
    "/hyq_no_sensors.urdf",  # has a joint called floating_base, as A1 has
    "/iris_simple.urdf", "/quadrotor_base.urdf",  # one body without joints
    "/kinova.urdf",  # zero is outside of limits with many digits
    "/borinot_flying_arm_2.urdf", "/double_pendulum_continuous.urdf", "/finger_edu.urdf",
)  # fmt: skip
QUICK = [name for name in ROBOTS if name.endswith(CHOSEN)]
"""Arms, legs, quadrotors and pendulums, some of which could not be shown once."""

OPENED = [(name, base) for base in ((), ("--floating-base",)) for name in ROBOTS]
OPENED_QUICKLY = [
    (name, base)
    for name, base in OPENED
    if name in QUICK and (not base or name.endswith(CHOSEN[:2]))
]

needs_robots = pytest.mark.skipif(not ROBOTS, reason="example-robot-data is not installed")


@pytest.mark.long
@needs_robots
@pytest.mark.parametrize(("name", "base"), mostly_slow(OPENED, OPENED_QUICKLY))
def test_every_robot_is_described_and_opens_in_the_viewer(name, base, tmp_path, capsys):
    page, path = tmp_path / "page.html", str(all_files()[name])
    assert main(["info", path]) == 0
    assert "Kernels: back end" in capsys.readouterr().out
    assert main(["view", path, "--write", str(page), *base]) == 0
    assert page.stat().st_size > 100_000
    assert "wrote" in capsys.readouterr().out


@needs_robots
@pytest.mark.parametrize("name", ["a1.urdf", "hyq_no_sensors.urdf"])
def test_the_joint_of_the_base_has_a_name_of_its_own(name):
    plain, model = load(robot(name)), load(robot(name), floating_base=True)
    assert model.joint_names[0] == "floating_base_"
    assert model.joint_names[1:] == plain.joint_names
    assert "floating_base" in model.fixed_joints
    assert any("'floating_base_'" in str(each) for each in model.diagnostics)


INERTIAL = """<inertial><mass value="2"/>
<inertia ixx=".02" iyy=".03" izz=".04" ixy="0" ixz="0" iyz="0"/></inertial>"""

TREES = {
    "fixed": ("fixed",),
    "free": ("floating",),
    "planar": ("planar",),
    "spherical": ("spherical",),
    "free with one joint": ("floating", "revolute"),
    "free with two joints": ("floating", "revolute", "prismatic"),
    "two free": ("floating", "floating"),
    "quadrotor": ("floating", *["continuous"] * 4),
    "gantry": ("prismatic",) * 3,
    "ball on a cart": ("prismatic", "spherical"),
    "base that rolls": ("planar", "continuous", "continuous", "revolute"),
}


def tree(joints):
    """Return a URDF of bodies on the first one, with limits of many digits that exclude zero."""
    elements = [link("world", "")]
    limit = '<limit lower="0.3490658503988659" upper="1.5707963267948966" effort="1" velocity="1"/>'
    for k, kind in enumerate(joints):
        more = f'<origin xyz="{0.2 * k} 0 0"/><axis xyz="{" ".join(map(str, np.eye(3)[k % 3]))}"/>'
        more += limit if kind in ("revolute", "prismatic") else ""
        on = "world" if k == 0 else "b0"
        elements += [link(f"b{k}", INERTIAL), joint(f"j{k}", on, f"b{k}", kind, more)]
    return urdf(*elements)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "command"),
    [(name, "view --write page.html --layers all") for name in TREES]
    + [(name, "info") for name in ("free", "two free", "base that rolls")]
    + [(name, "count") for name in ("fixed", "ball on a cart")],
)
def test_commands_take_free_bodies_with_few_joints(name, command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "robot.urdf").write_text(tree(TREES[name]))
    command, *options = command.split()
    assert main([command, "robot.urdf", *options]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("unit", [1.0, float(np.degrees(1.0))])
@pytest.mark.parametrize("x", [0.3490658503988659, 0.820304748437, 5.46288055874, 0.7, 0.0, 1e-9])
def test_ends_of_sliders_contain_the_limits(x, unit):
    for lower, upper in ((x, x), (-x, x), (-x, -x), (-x, 2.0 * x)):
        low, high = slider_ends(unit * lower, unit * upper)
        assert unit * lower - 1e-3 <= low <= unit * lower
        assert unit * upper <= high <= unit * upper + 1e-3
        assert [low, high] == [round(low, 3), round(high, 3)]


def test_commands_for_arms_refuse_a_robot_without_joints(tmp_path, capsys):
    robot, run = tmp_path / "block.urdf", tmp_path / "run.csv"
    robot.write_text(f'<robot name="block"><link name="block">{INERTIAL}</link></robot>')
    run.write_text("t,q_a,tau_a\n0,0,1\n0.1,0.1,2\n")
    for words in (["excite", robot, "--out", tmp_path / "plan.csv"], ["validate", robot, run]):
        assert main([str(word) for word in words]) == 1
        assert "has no joint that moves" in capsys.readouterr().err
