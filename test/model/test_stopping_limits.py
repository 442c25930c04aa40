# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Limits of a URDF that allow a joint no speed or no effort are named, and forbid enabling."""

import re

import pytest

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.control import GuardedArm, Motors, laws
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings

ARM7 = robot_path("arm7").read_text(encoding="utf-8")


def described(element="", **changed):
    """Return the URDF of arm7 with other limits of joint4."""

    def edit(match):
        words = match[0]
        for key, value in changed.items():
            words = re.sub(rf' {key}="[^"]*"', f' {key}="{value}"', words)
        return words.replace("</joint>", f"{element}</joint>")

    return re.sub(r'<joint name="joint4".*?</joint>', edit, ARM7, flags=re.S)


def soft(gain):
    return f'<safety_controller k_position="20" k_velocity="{gain}"/>'


STOPPING = {
    "velocity 0": described(velocity="0"),
    "effort 0": described(effort="0"),
    "soft gain 0": described(soft("0")),
}


def problems_of(text):
    """Return why the node does not enable torques."""
    joints = mbs.Model.from_urdf(text).joint_names
    core = GravityCompensator(GravityCompensationSettings(joints=joints, compensates_itself=False))
    core.describe(text, 0.0)
    core.adopt(0.0)
    return core.problems(0.0)


@pytest.mark.long
@pytest.mark.parametrize("what", STOPPING)
def test_limits_that_stop_a_joint_are_named_and_forbid_enabling(what, tmp_path, capsys):
    path = tmp_path / "arm.urdf"
    path.write_text(STOPPING[what], encoding="utf-8")
    main(["info", str(path)])
    assert re.search(r"joint4.*(limit|k_velocity)", capsys.readouterr().out)
    model = mbs.Model.from_urdf(STOPPING[what])
    assert (model.velocity_limits > 0.0).all()
    assert (model.effort_limits > 0.0).all()
    assert any("joint4 has" in reason for reason in problems_of(STOPPING[what]))


@pytest.mark.long
@pytest.mark.parametrize("text", [described(soft("5")), described("<safety_controller/>")])
def test_other_limits_forbid_nothing(text):
    assert not any("joint4" in reason for reason in problems_of(text))


@pytest.mark.long
def test_soft_limits_do_not_act_on_a_bus_of_motors():
    model = mbs.Model.from_urdf(STOPPING["soft gain 0"])
    units = ("position_per_radian", "command_per_newton_metre", "feedback_per_newton_metre")
    row = {"sign": 1, **dict.fromkeys(units, 1.0)}
    rows = {name: {"motor": k, **row} for k, name in enumerate(model.joint_names)}
    motors = Motors({"when_silent": "damp", "motors": rows}, model)
    assert not any(
        "joint4" in one for one in GuardedArm(model, laws.Gravity(), motors).problems(0.0)
    )
