# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""impedance_control_node over DDS, with simulator_node as the arm: modes, collisions, refusals."""

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from gravity_bench import MODEL, Bench, G, Q
from gravity_node_bench import ARM7, JOINTS, READY
from ros_bench import NodeProcess, Probe, wrench_of
from sensor_msgs.msg import JointState
from simulator_bench import DAMPED, SimulatorProcess, Watcher
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import mbs_dynamics as mbs
from mbs_dynamics.control import JointTarget
from mbs_dynamics.errors import MbsError
from mbs_dynamics.lie import so3
from mbs_dynamics.ros.compensation.impedance import ImpedanceControlSettings
from mbs_dynamics.ros.messages import stamp_of
from mbs_dynamics.ros.node_base import LATCHED
from mbs_dynamics.yaml_files import yaml_text

STIFFNESS = {f"stiffness.{name}": 0.1 if name > "joint4" else 10.0 for name in JOINTS}
"""What the periods of a busy machine can bear: the wrist is light."""


class ImpedanceProcess(NodeProcess):
    """The impedance control node, of a stiffness with which it can be enabled."""

    def __init__(self, simulator, **parameters):
        given = {"robot_description": ARM7, "command_topic": simulator.topic}
        given |= {"namespace": simulator.namespace} | parameters
        super().__init__("impedance_control_node", **READY | STIFFNESS | given)


class Operator(Probe):
    """Sends references to the node."""

    def __init__(self, process, beside):
        super().__init__(process, beside)
        publish, name = self.node.create_publisher, process.name
        self.ends = {
            JointState: publish(JointState, f"{name}/target_joint", 1),
            PoseStamped: publish(PoseStamped, f"{name}/target_pose", 1),
            JointTrajectory: publish(JointTrajectory, f"{name}/trajectory", 1),
        }

    def aim(self, message, done):
        """Send a reference until something is so."""
        self.until(done, lambda: self.ends[type(message)].publish(message), every=0.5)

    def enable(self):
        ask = SetBool.Request(data=True)
        self.until(lambda: self.call(SetBool, "enable", ask, once=True).success)


def pose_message(C, frame=""):
    message = PoseStamped()
    message.header.frame_id = frame
    p, q = message.pose.position, message.pose.orientation
    p.x, p.y, p.z = map(float, C[:3, 3])
    q.x, q.y, q.z, q.w = so3.to_quaternion(C[:3, :3]).tolist()
    return message


def test_an_arm_follows_targets_poses_and_trajectories_in_modes_that_change_without_a_fault(ros):
    with SimulatorProcess(rate=250.0, **DAMPED) as simulator, Watcher(simulator) as arm:
        given = {"linear_stiffness": [150.0] * 3, "angular_stiffness": [1.0] * 3}
        with ImpedanceProcess(simulator, link="tool", **given) as process:
            arm.node.destroy_publisher(arm.commands)
            with Operator(process, beside=arm) as operator:
                follow(arm, operator, process)
            assert process.stop() == 0


def follow(arm, operator, process):
    def near(name, x):
        return abs(arm.q[JOINTS.index(name)] - x) < 0.02

    def tool():
        return mbs.forward_kinematics(MODEL, arm.q, bodies=["tool"])[0]

    def refused(what):
        return lambda: what in process.log

    arm.until(lambda: arm.states)
    target = JointState(name=["joint2"], position=[float(arm.q[1]) + 0.2])
    operator.aim(target, refused("target_joint refused: the state is 'disabled'"))
    operator.enable()
    operator.aim(target, lambda: near("joint2", target.position[0]))

    postures = (arm.q + offset for offset in (0.05, -0.1))
    points = [JointTrajectoryPoint(positions=q.tolist()) for q in postures]
    points[1].time_from_start.sec = 1
    trajectory = JointTrajectory(joint_names=list(JOINTS), points=points)
    operator.ends[JointTrajectory].publish(trajectory)
    operator.until(lambda: near("joint4", points[1].positions[3]))
    operator.until(refused("the trajectory has ended"))

    assert "too stiff" in operator.set(**{"stiffness.joint7": 9e4})
    softer = {"stiffness.joint2": 9.0, "damping_ratio": 0.7}
    operator.until(lambda: operator.set(**softer) == "")  # once the period can bear it
    operator.until(lambda: operator.set(mode="cartesian") == "")
    C = tool()
    C[2, 3] -= 0.05
    operator.aim(pose_message(C), lambda: abs(tool() - C)[:3, 3].max() < 0.02)
    operator.aim(pose_message(C, "camera"), refused("'camera'"))
    for mode in ("floating", "cartesian"):
        operator.until(lambda mode=mode: operator.set(mode=mode) == "")
        arm.lasts(0.3)
    operator.until(lambda: operator.value_of("command", "law") == "CartesianImpedance")
    assert operator.value_of("command", "state") == "enabled"
    assert operator.value_of("command", "fault") == "none"


# -- a collision -----------------------------------------------------------------------------------

FORCE = 60.0
"""In N, for 0.2 s."""
SLOW = {"rate": 1000.0, "realtime_factor": 0.25, "joint_damping": "[0.0]", "publish_clock": True}
"""So slow that what a busy machine delays is too short to stop detection."""
IMPACT = 8.0
"""Threshold of sudden torques in N m."""


@pytest.mark.slow  # detection, messages and reaction have quick tests of their own
def test_a_contact_is_published_with_joint_time_and_wrench_and_stops(ros, tmp_path):
    thresholds = tmp_path / "thresholds.yaml"
    row = {"impact": IMPACT, "sustained": 80.0}
    thresholds.write_text(yaml_text({"joints": dict.fromkeys(JOINTS, row)}))
    with SimulatorProcess(**SLOW) as simulator, Watcher(simulator) as arm:
        given = {"collision_file": thresholds, "on_collision": "stop", "use_sim_time": True}
        with ImpedanceProcess(simulator, **given) as process, Operator(process, arm) as operator:
            arm.node.destroy_publisher(arm.commands)
            collide(arm, operator)


def collide(arm, operator):
    commands, enabled = [], []
    subscribe = arm.node.create_subscription
    subscribe(Float64MultiArray, arm.target.topic, commands.append, 1000)
    subscribe(Bool, f"{operator.target.name}/enabled", enabled.append, LATCHED)
    operator.hear("collision", "contact_wrench")
    operator.enable()
    arm.until(lambda: enabled and enabled[-1].data and arm.states)
    arm.lasts(1.0)
    assert not operator.latest

    # a force whose line meets the axes of joints 5 and 6: it does not throw the light wrist
    J = mbs.jacobian(MODEL, arm.q, "tool", representation="body_fixed")[3:]
    line = np.cross(J[:, 4], J[:, 5])
    force = FORCE * line / np.linalg.norm(line)
    pushed = [-1.0]

    def push():  # again where no states came meanwhile
        if arm.now - pushed[-1] > 1.0:
            pushed.append(arm.now)
            arm.push("tool", force)

    arm.until(lambda: not enabled[-1].data, again=push)
    operator.until(lambda: {"collision", "contact_wrench"} <= operator.latest.keys())
    torques, wrench = operator.latest["collision"], operator.latest["contact_wrench"]

    # torques: in the ratio of those of the force at that time, the largest first
    stamp = stamp_of(torques.header.stamp)
    arm.until(lambda: arm.now > 1e-9 * stamp)
    state = min(arm.states, key=lambda one: abs(stamp_of(one.header.stamp) - stamp))
    assert abs(state.velocity[1]) > 0.03  # which nothing but the contact moves
    truth = J.T @ force
    measured = np.array([torques.effort[torques.name.index(name)] for name in JOINTS])
    assert torques.name[0] == JOINTS[np.abs(truth).argmax()] == "joint2"
    assert abs(torques.effort[0]) > IMPACT
    assert cosine(measured, truth) > 0.99

    # wrench: on the tool, along the force, as far as it shows that early
    assert (wrench.header.frame_id, wrench.header.stamp) == ("tool", torques.header.stamp)
    assert cosine(wrench_of(wrench)[:3], force) > 0.8

    # reaction: a fault, with torques that ramp out, and no command after that
    operator.until(lambda: operator.level("command") == DiagnosticStatus.ERROR)
    assert "the external torque of joint2 is" in operator.said("command")
    arm.until(lambda: not any(commands[-1].data))
    count = len(commands)
    arm.spin(0.5)
    assert len(commands) == count


def cosine(a, b):
    return a @ b / (np.linalg.norm(a) * np.linalg.norm(b))


# -- laws of users, without DDS --------------------------------------------------------------------


class Soft:
    """A law of a user."""

    def __call__(self, model, state, reference):
        return state.gravity[state.joints] + 5.0 * (reference.q - state.q)[state.joints]


def needs_one(model):
    raise AssertionError


def fails(model, state, reference):
    raise RuntimeError("no camera")


def compensated(law):
    return Bench(kind=ImpedanceControlSettings, mode="law", law=law)


@pytest.mark.parametrize(
    ("law", "said"),
    [
        ("no_such_package.laws:Law", "ModuleNotFoundError"),
        (f"{__name__}:Sof", "Sof"),
        (f"{__name__}:JOINTS", "tuple"),
        (f"{__name__}:needs_one", "TypeError"),
        (f"{__name__}:fails", "no camera"),
        ("Soft", "module:name"),
    ],
)
def test_a_law_that_cannot_be_used_refuses_the_robot_and_is_named(law, said):
    with pytest.raises(MbsError, match=said):
        compensated(law)


@pytest.mark.long
def test_a_law_of_a_user_follows_targets_in_the_node_and_survives_a_change_of_mode():
    bench = compensated(f"{__name__}:Soft")
    bench.run(0.1)
    assert bench.core.enable(bench.now) == ""
    bench.run(1.5)
    np.testing.assert_allclose(bench.commands[-1][1], G, atol=1e-9)
    bench.core.arm.follow(JointTarget(["joint2"], [Q[1] + 0.1]), bench.now)
    bench.run(2.0)
    assert bench.commands[-1][1][1] - G[1] == pytest.approx(0.5, abs=1e-6)
    old, target = int(1e9 * (bench.now - 5.0)), JointTarget(["joint2"], [0.0])
    with pytest.raises(MbsError, match="older"):
        bench.core.arm.follow(target, bench.now, stamp=old, clock=bench.nanoseconds)
    floating = bench.core.settings.changed({"mode": "floating"})
    bench.core.check(floating, bench.now)
    bench.core.change(floating, bench.now)
    bench.run(1.0)
    np.testing.assert_allclose(bench.commands[-1][1], G, atol=1e-9)
    assert bench.state == "enabled"
