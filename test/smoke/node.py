# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A node as a process of its own, over DDS."""

import contextlib
import importlib.util
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

from bench import FOLDER, arm, close, state

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

TIMEOUT = 120.0  # s; nothing is measured by it
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"  # no robot of the network takes part


@contextlib.contextmanager
def process_of(module: str, **parameters: Any) -> Iterator[subprocess.Popen[bytes]]:
    """Run a node; SIGINT ends it in the end, and it must end well."""
    command = [sys.executable, "-m", f"mbs_dynamics.ros.{module}", "--ros-args"]
    for name, value in parameters.items():
        command += ["-p", f"{name}:={value}"]
    with open(FOLDER / f"{module}.log", "wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)
        try:
            yield process
            process.send_signal(signal.SIGINT)
            assert process.wait(TIMEOUT) == 0, f"{module} ended with {process.returncode}"
        finally:
            process.kill()
            process.wait()


def node(expected: set[str]) -> str:
    """A node answers joint states with the torques that the library computes."""
    if importlib.util.find_spec("rclpy") is None:
        assert "ros" not in expected, "there is no rclpy"
        return "there is no rclpy"
    from mbs_dynamics.ros.domain import unused_domain

    os.environ["ROS_DOMAIN_ID"] = str(unused_domain())
    import rclpy
    from rclpy.qos import DurabilityPolicy, QoSProfile, qos_profile_sensor_data
    from sensor_msgs.msg import JointState
    from std_msgs.msg import String

    q, answers = state()[0], []
    rclpy.init()
    probe = rclpy.create_node("smoke")
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    description = probe.create_publisher(String, "robot_description", latched)
    description.publish(String(data=robot_path("arm7").read_text(encoding="utf-8")))
    positions = probe.create_publisher(JointState, "joint_states", qos_profile_sensor_data)
    probe.create_subscription(
        JointState, "dynamics_node/gravity_torques", answers.append, qos_profile_sensor_data
    )
    message = JointState(name=list(arm().joint_names), position=q.tolist())
    with process_of("dynamics_node") as process:
        deadline = time.monotonic() + TIMEOUT
        while not answers:
            log = (FOLDER / "dynamics_node.log").read_text(errors="replace")
            assert process.poll() is None, f"it has ended\n{log}"
            assert time.monotonic() < deadline, f"no torques came\n{log}"
            message.header.stamp = probe.get_clock().now().to_msg()
            positions.publish(message)
            rclpy.spin_once(probe, timeout_sec=0.05)
    probe.destroy_node()
    rclpy.try_shutdown()
    close(answers[0].effort, mbs.gravity_torques(arm(), q))
    return f"rclpy {rclpy.__file__}"
