# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""impedance_control_node over DDS, with simulator_node as the arm: modes, references, refusals."""

import numpy as np
import pytest
from geometry_msgs.msg import PoseStamped
from gravity_bench import Bench, G, Q
from gravity_node_bench import ARM7, JOINTS, READY
from impedance_bench import ImpedanceProcess, Operator
from sensor_msgs.msg import JointState
from simulator_bench import DAMPED, SimulatorProcess, Watcher
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import mbs_dynamics as mbs
from mbs_dynamics.control import JointTarget
from mbs_dynamics.errors import MbsError
from mbs_dynamics.lie import so3
from mbs_dynamics.ros.compensation.impedance import ImpedanceControlSettings

MODEL = mbs.Model.from_urdf(ARM7)


def pose_message(C, frame=""):
    message = PoseStamped()
    message.header.frame_id = frame
    p, q = message.pose.position, message.pose.orientation
    p.x, p.y, p.z = map(float, C[:3, 3])
    q.x, q.y, q.z, q.w = so3.to_quaternion(C[:3, :3]).tolist()
    return message


def test_an_arm_follows_targets_poses_and_trajectories_in_modes_that_change_without_a_fault(ros):
    with (
        SimulatorProcess(rate=250.0, **DAMPED) as simulator,
        Watcher(simulator) as arm,
    ):
        given = READY | {
            "robot_description": ARM7,
            "command_topic": simulator.topic,
            "link": "tool",
            "linear_stiffness": "[150.0, 150.0, 150.0]",
            "angular_stiffness": "[1.0, 1.0, 1.0]",
        }
        with ImpedanceProcess(namespace=simulator.namespace, **given) as process:
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

    points = [
        JointTrajectoryPoint(positions=list(map(float, arm.q + offset))) for offset in (0.05, -0.1)
    ]
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
    operator.until(lambda: operator._value("command", "law") == "CartesianImpedance")
    assert operator._value("command", "state") == "enabled"
    assert operator._value("command", "fault") == "none"


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
    bench.core.aim(JointTarget(["joint2"], [Q[1] + 0.1]), bench.now)
    bench.run(2.0)
    assert bench.commands[-1][1][1] - G[1] == pytest.approx(0.5, abs=1e-6)
    old, target = int(1e9 * (bench.now - 5.0)), JointTarget(["joint2"], [0.0])
    with pytest.raises(MbsError, match="older"):
        bench.core.aim(target, bench.now, stamp=old, clock=bench.nanoseconds)
    floating = bench.core.settings.changed({"mode": "floating"})
    bench.core.check(floating, bench.now)
    bench.core.change(floating, bench.now)
    bench.run(1.0)
    np.testing.assert_allclose(bench.commands[-1][1], G, atol=1e-9)
    assert bench.state == "enabled"
