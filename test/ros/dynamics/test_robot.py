# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""One robot stays in force whatever comes."""

from __future__ import annotations

import numpy as np
import pytest
from readings import formed

import mbs_dynamics as mbs
from mbs_dynamics.control.environment import LinkGravity, LinkLoad
from mbs_dynamics.errors import (
    BackendError,
    MbsError,
    ModelError,
    UnknownBodyError,
    UnknownJointError,
)
from mbs_dynamics.model.separation import separated
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.robot import ModelManager

ARM7 = robot_path("arm7").read_text(encoding="utf-8")
PENDULUM = """<robot name="pendulum">
  <link name="ceiling"/>
  <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous">
    <parent link="ceiling"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""
NO_INERTIA = ((0.0,) * 3,) * 3


def manager(text=ARM7, **settings):
    made = ModelManager(DynamicsSettings(**settings))
    assert made.describe(text)
    return made


def results(made, q=0.3, qd=-0.2):
    n = made.robot.model.n
    return made.robot.evaluate(np.full(n, q), np.full(n, qd))


def kept_by(made):
    """Return the kernels that a model keeps."""
    model = separated(made.robot.model, made.robot.settings.joint_wrenches)
    return [x for x in model.compiled.kernels.values() if isinstance(x, mbs.Kernel)]


@pytest.mark.parametrize(
    ("settings", "error", "said"),
    [
        ({"joint_wrenches": ("joint9",)}, UnknownJointError, "no joint 'joint9'"),
        ({"desired_joints": ("joint9",)}, UnknownJointError, "no joint 'joint9'"),
        ({"fixed_positions": (("finger", 0.0),)}, UnknownJointError, "no joint"),
    ],
)
def test_refuses_names_that_the_robot_does_not_have(settings, error, said):
    made = manager()
    with pytest.raises(error, match=said):
        made.check(DynamicsSettings(**settings))


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("panda.urdf", "begins with 'panda.urdf'"),
        ("<robot", "robot_description|XML|xml"),
        ("<robot name='r'><link name='l'/></robot>", "no joint that moves"),
    ],
)
def test_a_bad_description_leaves_the_robot_in_force(bad, said):
    made = manager()
    before = made.robot
    with pytest.raises(ModelError, match=said):
        made.describe(bad)
    assert made.robot is before
    assert made.refused
    assert not made.describe(bad)
    assert made.describe(ARM7 + "\n")
    assert not made.refused


def test_code_that_differs_from_the_equations_leaves_the_robot_in_force(monkeypatch):
    made, compiled = manager(), mbs.compile_together
    before, light = made.robot, mbs.Model.from_urdf(PENDULUM)
    heavy = PENDULUM.replace('<mass value="2"/>', '<mass value="2.001"/>')
    monkeypatch.setattr(mbs, "compile_together", lambda f, _, **named: compiled(f, light, **named))
    with pytest.raises(BackendError, match=r"(gravity|bias)_torques"):
        made.describe(heavy)
    assert made.robot is before
    assert made.refused
    assert made.describe(PENDULUM)
    assert made.robot.model.joint_names == ("hinge",)


def test_the_comparison_with_the_equations_takes_no_negative_masses():
    """The center of mass, in the same kernel, cannot be computed with them."""
    light = PENDULUM.replace('<mass value="2"/>', '<mass value="0.001"/>')
    made = manager(light, publish=("center_of_mass",))
    made.set_load(LinkLoad("rod", 1.0, (0.0, 0.0, -0.5), NO_INERTIA))
    assert made.robot.model.total_mass == pytest.approx(1.001)
    found = results(made)["center_of_mass"]
    np.testing.assert_allclose(np.linalg.norm(found), 0.5, rtol=1e-12)


def test_a_description_without_the_bodies_asked_for_waits_for_other_settings():
    made = manager(bodies=("tool",))
    with pytest.raises(UnknownBodyError, match="no body 'tool'"):
        made.describe(PENDULUM)
    assert made.robot.model.name == "arm7"
    made.configure(made.settings.changed({"bodies": ()}))
    assert made.retry()
    assert made.robot.model.name == "pendulum"
    assert not made.retry()


def test_gravity_is_in_the_axes_of_the_description_whatever_the_root():
    """As a parameter, and on the topic without a frame; a frame that is named is its own."""
    mounted = ARM7.replace("base_link", "arm_base").replace(
        "</robot>",
        '<link name="world"/><joint name="mount" type="fixed"><parent link="world"/>'
        '<child link="arm_base"/><origin xyz="0 0 1" rpy="0.3 -0.7 0.4"/></joint></robot>',
    )
    whole, below = (manager(mounted, root=root) for root in ("", "arm_base"))
    below.set_gravity(LinkGravity("world", (0.0, 0.0, -5.0)))
    for made in (whole, below):
        made.set_gravity(LinkGravity("", (1.0, 2.0, -9.0)))
    torques = [mbs.gravity_torques(made.robot.model, np.full(7, 0.3)) for made in (whole, below)]
    np.testing.assert_allclose(*torques, rtol=0, atol=1e-12)
    assert (whole.robot.root, below.robot.root) == ("world", "arm_base")
    below.set_gravity(LinkGravity("arm_base", (0.0, 0.0, -9.81)))
    assert below.robot.model.gravity.tolist() == [0.0, 0.0, -9.81]


def test_all_that_a_message_takes_is_one_kernel():
    extra = ("mass_matrix", "energy", "external_torques", "tool_wrench")
    made = manager(
        publish=(*DynamicsSettings().publish, *extra),
        joint_wrenches=("joint2", "flange_joint", "joint6"),
        bodies=("link6", "link4", "tool"),
    )
    kernels = kept_by(made)
    assert len(kernels) == 1
    made.set_gravity(LinkGravity("", (1.0, 2.0, -9.0)))
    results(made)
    assert kept_by(made) == kernels
    for mass in (1.0, 3.0):  # only the first load at a body compiles
        made.set_load(LinkLoad("tool", mass, (0.1, 0.0, 0.0), NO_INERTIA))
        results(made)
        kernels = kept_by(made) if mass == 1.0 else kernels
    assert kept_by(made) == kernels


def test_gravity_and_load_wait_for_a_robot_and_survive_a_new_one():
    made = ModelManager(DynamicsSettings())
    made.set_gravity(LinkGravity("", (-2.0, 0.0, 0.0)))
    made.set_load(LinkLoad("rod", 3.0, (0.0, 0.0, -1.0), NO_INERTIA))
    for text in (PENDULUM, PENDULUM + "\n"):
        made.describe(text)
        found = results(made, q=0.0, qd=0.0)
        np.testing.assert_allclose(
            formed(found, "gravity_torques"), [-2.0 * (2 * 0.5 + 3 * 1.0)], rtol=1e-12
        )
        assert made.remarks == []


def test_what_a_new_robot_cannot_keep_is_said():
    made = manager(PENDULUM)
    made.set_gravity(LinkGravity("ceiling", (-2.0, 0.0, 0.0)))
    made.set_load(LinkLoad("rod", 3.0, (0.0, 0.0, -1.0), NO_INERTIA))
    made.describe(ARM7)
    assert made.robot.model.gravity.tolist() == [0.0, 0.0, -9.81]
    assert "the gravity in force before is dropped: no body 'ceiling'" in made.remarks[0]
    assert "the payload at 'rod' is dropped: no body 'rod'" in made.remarks[1]
    assert made.loads == []


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (LinkGravity("", (0.0, 0.0, float("nan"))), "must be finite"),
        (LinkGravity("rod", (0.0, 0.0, -9.81)), "which moves; valid: the links that do not"),
        (LinkGravity("roof", (0.0, 0.0, -9.81)), "no body 'roof'"),
        (LinkLoad("", 1.0, (0.0,) * 3, NO_INERTIA), "must name the link"),
        (LinkLoad("ceiling", 1.0, (0.0,) * 3, NO_INERTIA), "does not move"),
        (LinkLoad("rod", -1.0, (0.0,) * 3, NO_INERTIA), "mass must not be negative"),
        (LinkLoad("rod", 1.0, (0.0, -1e7, 0.0), NO_INERTIA), "1e.07 is too large"),
        (LinkLoad("rod", 1.0, (0.0,) * 3, ((1.0, 0, 0), (0, 1.0, 0), (0, 0, 9.0))), "triangle"),
    ],
)
def test_bad_gravity_and_loads_are_refused(given, said):
    made = manager(PENDULUM)
    before = formed(results(made), "gravity_torques")
    with pytest.raises(MbsError, match=said):
        (made.set_load if isinstance(given, LinkLoad) else made.set_gravity)(given)
    np.testing.assert_array_equal(formed(results(made), "gravity_torques"), before)
