# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The dynamics node over DDS with a floating base."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("rclpy")
pytest.importorskip("nav_msgs")

from nav_msgs.msg import Odometry
from rclpy.qos import qos_profile_sensor_data
from ros_bench import NodeProcess, Probe, wrench_of
from sensor_msgs.msg import Imu

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.usefixtures("ros")

MODEL = mbs.Model.from_urdf(robot_path("arm7"), floating_base=True)
JOINTS = MODEL.joint_names[1:]
X = np.array([0.1, -0.7, 0.3, 0.5]) / np.linalg.norm([0.1, -0.7, 0.3, 0.5])
P, V = np.array([1.0, -2.0, 0.5]), np.array([0.3, -0.1, 0.2, 0.5, -0.4, 0.6])
Q = np.array([0.3, -0.5, 0.7, -1.1, 0.2, 0.9, -0.4])
QD = np.array([0.5, -0.2, 0.8, -1.0, 1.5, -0.7, 0.3])


def put(numbers, message):
    for name, x in zip("xyzw", numbers, strict=False):
        setattr(message, name, float(x))


def test_the_base_comes_from_an_inertial_sensor_and_from_odometry():
    with (
        NodeProcess(
            robot_description_file=robot_path("arm7"), floating_base="true", stale_timeout=2.0
        ) as process,
        Probe(process) as probe,
    ):
        probe.hear("bias_torques", "base_wrench")
        imu = Imu()
        put(X, imu.orientation)
        put(V[:3], imu.angular_velocity)
        odometry = Odometry(child_frame_id=MODEL.body_names[0])
        odometry.header.frame_id = "odom"
        put(P, odometry.pose.pose.position)
        put(X, odometry.pose.pose.orientation)
        put(V[:3], odometry.twist.twist.angular)
        put(V[3:], odometry.twist.twist.linear)
        for topic, message, v in (
            ("imu", imu, [*V[:3], 0.0, 0.0, 0.0]),
            ("odom", odometry, V),
        ):
            publisher = probe.node.create_publisher(type(message), topic, qos_profile_sensor_data)
            h = mbs.bias_torques(MODEL, [*P, *X, *Q], [*v, *QD])

            def answered(h=h):
                heard = probe.latest
                return (
                    {"bias_torques", "base_wrench"} <= heard.keys()
                    and np.allclose(heard["bias_torques"].effort, h[6:], rtol=1e-11, atol=1e-11)
                    and np.allclose(
                        wrench_of(heard["base_wrench"]), np.roll(h[:6], 3), rtol=1e-11, atol=1e-11
                    )
                )

            def send(publisher=publisher, message=message):
                publisher.publish(message)
                probe.send(JOINTS, Q, QD)

            probe.until(answered, again=send)
        assert tuple(probe.latest["bias_torques"].name) == JOINTS
        assert probe.latest["base_wrench"].header.frame_id == MODEL.body_names[0]
