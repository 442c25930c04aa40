# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A collision over DDS: an arm in simulator_node is pushed as it moves, and its node reacts."""

import numpy as np
import pytest
from diagnostic_msgs.msg import DiagnosticStatus
from gravity_node_bench import ARM7, JOINTS, MODEL, READY
from impedance_bench import ImpedanceProcess, Operator
from ros_bench import wrench_of
from simulator_bench import LATCHED, SimulatorProcess, Watcher
from std_msgs.msg import Bool, Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

import mbs_dynamics as mbs
from mbs_dynamics.control.collision import Threshold, thresholds_yaml
from mbs_dynamics.ros.messages import stamp_of

FORCE = 60.0
"""In N, for 0.2 s."""
RATE, FACTOR = 1000.0, 0.25
"""States per second of the simulation, and its share of real time: what a busy machine delays is
then too short to stop detection."""
IMPACT, SUSTAINED = 8.0, 80.0
"""Thresholds in N m."""


@pytest.mark.slow  # detection, messages and reaction have quick tests of their own
def test_a_contact_during_motion_is_published_with_joint_time_and_wrench_and_stops(ros, tmp_path):
    thresholds = tmp_path / "thresholds.yaml"
    row = Threshold(IMPACT, 0.0, SUSTAINED, 0.0, 1.0)
    thresholds.write_text(thresholds_yaml(dict.fromkeys(JOINTS, row), "no recording"))
    slow = {
        "rate": RATE,
        "realtime_factor": FACTOR,
        "joint_damping": "[0.0]",
        "publish_clock": True,
    }
    with SimulatorProcess(**slow) as simulator, Watcher(simulator) as arm:
        given = READY | {
            "robot_description": ARM7,
            "command_topic": simulator.topic,
            "collision_file": thresholds,
            "on_collision": "stop",
            "use_sim_time": True,
        }
        with (
            ImpedanceProcess(namespace=simulator.namespace, **given) as process,
            Operator(process, beside=arm) as operator,
        ):
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

    goal = arm.q
    goal[0] -= 2.0
    point = JointTrajectoryPoint(positions=goal.tolist())
    point.time_from_start.sec = round(12 / FACTOR)
    trajectory = JointTrajectory(joint_names=list(JOINTS), points=[point])
    operator.ends[JointTrajectory].publish(trajectory)
    arm.until(lambda: arm.q[0] < goal[0] + 1.9, every=0.01)
    arm.until(lambda: abs(arm.qd[0]) > 0.05, every=0.01)
    assert not operator.latest

    # a force whose line meets the axes of joints 5 and 6: it does not throw the light wrist
    J = mbs.jacobian(MODEL, arm.q, "tool", representation="body_fixed")[3:]
    line = np.cross(J[:, 4], J[:, 5])
    force = FORCE * line / np.linalg.norm(line)
    pushed = [arm.now]

    def push():  # again where no states came meanwhile
        if arm.now - pushed[-1] > 1.0:
            pushed.append(arm.now)
            arm.push("tool", force)

    arm.until(lambda: not enabled[-1].data, again=push)
    operator.until(lambda: {"collision", "contact_wrench"} <= operator.latest.keys())
    torques, wrench = operator.latest["collision"], operator.latest["contact_wrench"]

    # time: that of a measurement in which the contact, and nothing else, moves joint 2
    stamp, period = stamp_of(torques.header.stamp), round(1e9 / RATE)
    assert (stamp - stamp_of(arm.states[0].header.stamp)) % period == 0
    arm.until(lambda: arm.now > 1e-9 * stamp)
    state = min(arm.states, key=lambda one: abs(stamp_of(one.header.stamp) - stamp))
    assert abs(state.velocity[1]) > 0.03

    # torques: in the ratio of those of the force, the largest first
    J = mbs.jacobian(MODEL, np.array(state.position), "tool", representation="body_fixed")
    truth = J[3:].T @ force
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
