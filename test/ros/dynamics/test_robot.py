# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""One robot stays in force whatever comes."""

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control.environment import LinkGravity, LinkLoad
from mbs_dynamics.errors import ArgumentError, MbsError, ModelError, UnknownJointError
from mbs_dynamics.lie import so3
from mbs_dynamics.model.separation import separated
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.dynamics.base import BaseInput, BaseState
from mbs_dynamics.ros.dynamics.interface import DynamicsSettings
from mbs_dynamics.ros.dynamics.outputs import OUTPUTS
from mbs_dynamics.ros.dynamics.robot import ModelManager
from mbs_dynamics.ros.robot_description import model_of

ARM7 = robot_path("arm7").read_text(encoding="utf-8")
PENDULUM = """<robot name="pendulum">
  <link name="ceiling"/>
  <link name="rod"><inertial><origin xyz="0 0 -0.5"/><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous">
    <parent link="ceiling"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>"""
NO_INERTIA = ((0.0,) * 3,) * 3


def formed(results, name):
    """Return what a message of an output of dynamics_node is filled with."""
    return {one.name: one for one in OUTPUTS}[name].value(results, 0)


def manager(text=ARM7, **settings):
    made = ModelManager(DynamicsSettings(**settings))
    made.describe(text)
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
    assert made.describe(ARM7) is None
    assert made.describe(ARM7 + "\n") == []


def test_code_that_differs_from_the_equations_leaves_the_robot_in_force(monkeypatch):
    made, compiled = manager(), mbs.compile_together
    before, light = made.robot, mbs.Model.from_urdf(PENDULUM)
    heavy = PENDULUM.replace('<mass value="2"/>', '<mass value="2.001"/>')
    monkeypatch.setattr(mbs, "compile_together", lambda f, _, **named: compiled(f, light, **named))
    with pytest.raises(mbs.BackendError, match=r"(gravity|bias)_torques"):
        made.describe(heavy)
    assert made.robot is before
    made.describe(PENDULUM)
    assert made.robot.model.joint_names == ("hinge",)


def test_the_comparison_with_the_equations_takes_no_negative_masses():
    """The center of mass, in the same kernel, cannot be computed with them."""
    light = PENDULUM.replace('<mass value="2"/>', '<mass value="0.001"/>')
    made = manager(light, publish=("center_of_mass",))
    made.set_load(LinkLoad("rod", 1.0, (0.0, 0.0, -0.5), NO_INERTIA))
    assert made.robot.model.total_mass == pytest.approx(1.001)
    found = results(made)["center_of_mass"]
    np.testing.assert_allclose(np.linalg.norm(found), 0.5, rtol=1e-12)


def test_a_description_without_the_bodies_is_accepted_after_other_settings():
    made = manager(bodies=("tool",))
    with pytest.raises(mbs.UnknownBodyError, match="no body 'tool'"):
        made.describe(PENDULUM)
    assert made.robot.model.name == "arm7"
    made.configure(made.settings.changed({"bodies": ()}))
    made.describe(PENDULUM)
    assert made.robot.model.name == "pendulum"


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
        assert made.describe(text) == []
        found = results(made, q=0.0, qd=0.0)
        expected = [-2.0 * (2 * 0.5 + 3 * 1.0)]
        np.testing.assert_allclose(formed(found, "gravity_torques"), expected, rtol=1e-12)


def test_what_a_new_robot_cannot_keep_is_said():
    made = manager(PENDULUM)
    made.set_gravity(LinkGravity("ceiling", (-2.0, 0.0, 0.0)))
    made.set_load(LinkLoad("rod", 3.0, (0.0, 0.0, -1.0), NO_INERTIA))
    remarks = made.describe(ARM7)
    assert made.robot.model.gravity.tolist() == [0.0, 0.0, -9.81]
    assert "the gravity in force before is dropped: no body 'ceiling'" in remarks[0]
    assert "the payload at 'rod' is dropped: no body 'rod'" in remarks[1]
    assert made.environment.loads == ()


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (LinkGravity("", (0.0, 0.0, float("nan"))), "must be finite"),
        (LinkGravity("", (0.0, 0.0, -9810.0)), "must be at most 100"),
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


# -- a floating base -------------------------------------------------------------------------------

MODEL = model_of(ARM7, floating_base=True)
TILTED = np.array([0.1, -0.7, 0.3, 0.5]) / np.linalg.norm([0.1, -0.7, 0.3, 0.5])
BASE = np.array([1.0, -2.0, 0.5, *TILTED])
V = np.array([0.3, -0.1, 0.2, 0.5, -0.4, 0.6])
Q, QD = np.random.default_rng(5).uniform(-1.0, 1.0, (2, 7))


def test_torques_and_the_wrench_on_the_base_are_those_of_the_model():
    publish = (*DynamicsSettings().publish, "mass_matrix")
    given = {"algorithm": "spatial", "bodies": ("link4",), "publish": publish}
    robot = manager(floating_base=True, **given).robot
    assert (robot.joint_names, robot.root) == (MODEL.joint_names[1:], "odom")
    state = BaseState(BASE, V)
    found = robot.evaluate(Q, QD, state)
    q, qd = np.concatenate([BASE, Q]), np.concatenate([V, QD])
    close = {"rtol": 1e-11, "atol": 1e-11}
    h, g = mbs.bias_torques(MODEL, q, qd), mbs.gravity_torques(MODEL, q)
    np.testing.assert_allclose(formed(found, "bias_torques"), h[6:], **close)
    np.testing.assert_allclose(formed(found, "gravity_torques"), g[6:], **close)
    np.testing.assert_allclose(formed(found, "base_wrench"), h[:6], **close)
    np.testing.assert_allclose(found["mass_matrix"], mbs.mass_matrix(MODEL, q), **close)
    assert found["twists"].shape == (1, 6)
    at_rest = robot.evaluate(Q, None, state)
    np.testing.assert_allclose(formed(at_rest, "base_wrench"), g[:6], **close)
    assert formed(at_rest, "bias_torques") is None
    weight = MODEL.total_mass * 9.81
    assert np.linalg.norm(formed(at_rest, "base_wrench")[3:]) == pytest.approx(weight, rel=1e-3)


def test_what_needs_a_fixed_base_or_joints_of_one_degree_of_freedom_is_refused():
    for name in ("external_torques", "tool_wrench", "desired_torques"):
        with pytest.raises(MbsError, match=f"floating_base.*{name}"):
            DynamicsSettings(floating_base=True, publish=(name,))
    text = ARM7.replace('type="revolute"', 'type="spherical"', 1)
    with pytest.raises(ModelError, match=r"'joint1'.*spherical.*3"):
        ModelManager(DynamicsSettings()).describe(text)


def odometry(taken, frame="odom", child=MODEL.body_names[0], quaternion=TILTED, at=1.0):
    taken.odometry(frame, child, [*BASE[:3], *quaternion], V, at)


def test_odometry_states_the_base():
    taken = BaseInput(MODEL, "odom")
    assert taken.state(1.0, 0.5) is None
    odometry(taken)
    for got, expected in zip(taken.state(1.2, 0.5), (BASE, V), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-15)
    assert taken.state(1.6, 0.5) is None
    for given, said in (
        ({"child": "elsewhere"}, "must be that of the root link"),
        ({"frame": "map"}, "'map'"),
        ({"quaternion": 2.0 * TILTED}, "must be a unit quaternion"),
        ({"quaternion": np.nan * TILTED}, "not finite"),
    ):
        with pytest.raises(ArgumentError, match=said):
            odometry(taken, **given)
    np.testing.assert_allclose(taken.state(1.2, 0.5).q, BASE, rtol=1e-15)


def test_an_inertial_sensor_states_orientation_and_rate_until_odometry_comes():
    root = MODEL.body_names[0]
    taken = BaseInput(MODEL, "robot/odom", "robot/")
    omega = np.array([0.3, 0.2, -0.1])
    taken.imu(f"robot/{root}", TILTED, omega, 1.0, 0.5)
    q, qd = taken.state(1.0, 0.5)
    R = so3.from_quaternion(TILTED)
    np.testing.assert_allclose(so3.from_quaternion(q[3:]), R, atol=1e-14)
    np.testing.assert_array_equal(q[:3], np.zeros(3))
    np.testing.assert_allclose(qd, [*omega, 0.0, 0.0, 0.0])
    with pytest.raises(ArgumentError, match="those fixed to the base"):
        taken.imu("robot/tool", TILTED, omega, 1.0, 0.5)
    with pytest.raises(ArgumentError, match="unit quaternion"):
        taken.imu("", np.zeros(4), omega, 1.0, 0.5)
    odometry(taken, "robot/odom", f"robot/{root}", at=1.1)
    taken.imu("", TILTED, omega, 1.2, 0.5)
    np.testing.assert_allclose(taken.state(1.2, 0.5).qd, V)
    taken.imu("", TILTED, omega, 1.7, 0.5)
    np.testing.assert_array_equal(taken.state(1.7, 0.5).qd[3:], np.zeros(3))


def test_a_turned_sensor_is_turned_to_the_base():
    text = ARM7.replace(
        "</robot>",
        f"""<link name="sensor"/><joint name="mount" type="fixed"><parent
        link="{MODEL.body_names[0]}"/><child link="sensor"/><origin rpy="0.3 -0.2 1.1"/></joint>
        </robot>""",
    )
    model = model_of(text, floating_base=True)
    taken = BaseInput(model, "odom")
    mounted = model.frames["sensor"].placement[:3, :3]
    R = so3.from_quaternion(TILTED)
    omega = np.array([0.3, 0.2, -0.1])
    x = so3.to_quaternion(R @ mounted)
    taken.imu("sensor", x, mounted.T @ omega, 1.0, 0.5)
    q, qd = taken.state(1.0, 0.5)
    np.testing.assert_allclose(so3.from_quaternion(q[3:]), R, atol=1e-14)
    np.testing.assert_allclose(qd[:3], omega, atol=1e-14)
