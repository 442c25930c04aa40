# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The node of wrist sensors as a process of its own, over DDS: from still poses to contact."""

import signal
import time

import numpy as np
import pytest

pytest.importorskip("rclpy")

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import WrenchStamped
from rclpy.qos import qos_profile_sensor_data
from ros_bench import NodeProcess, Probe, wrench_of
from std_srvs.srv import Trigger

import mbs_dynamics as mbs
from mbs_dynamics.control.force_calibration import Calibration
from mbs_dynamics.control.force_sensor import STILL
from mbs_dynamics.lie import se3
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.messages import time_of

pytestmark = pytest.mark.usefixtures("ros")

NODE, ARM = "wrench_compensation_node", mbs.Model.from_urdf(robot_path("arm7"))
BIAS = np.array([0.1, -0.2, 0.3, 4.0, -5.0, 6.0])
MASS, COM, PUSH = 1.2, [0.02, -0.03, 0.08], np.array([0.3, -0.2, 0.5, 10.0, -6.0, 4.0])
HELD = ARM.with_payload("flange", MASS, COM)
TO_FLANGE = np.linalg.inv(
    se3.Ad(se3.inverse(ARM.frames["flange"].placement) @ ARM.frames["tool"].placement).T
)
"""Transforms wrenches from the frame of the tool."""


def reading(q, model=HELD, push=None):
    """Return the bias and the wrench of the tool, (6,) moment first, in the frame of the flange."""
    zero, wrenches = np.zeros(7), None if push is None else {"tool": push}
    W = mbs.joint_wrenches(ARM, q, zero, zero)[-1]
    W = W - mbs.joint_wrenches(model, q, zero, zero, wrenches)[-1]
    return BIAS + se3.Ad(ARM.frames["flange"].placement).T @ W


class SensorProcess(NodeProcess):
    """The node for a sensor at the flange of the shipped arm."""

    def __init__(self, **parameters):
        given = {"robot_description": robot_path("arm7"), "sensor_frame": "flange"}
        super().__init__("wrench_compensation_node", **given | parameters)


class Sensor(Probe):
    """A probe that publishes readings, and keeps what is left of them."""

    def __init__(self, process):
        super().__init__(process)
        make = self.node.create_publisher
        self._wrench = make(WrenchStamped, "wrench", qos_profile_sensor_data)
        self.hear("wrench")

    def read(self, q, W, frame="flange", joints=True):
        """Publish a state and a reading (6,) with one stamp."""
        if joints:
            self.send(ARM.joint_names, q)
        message = WrenchStamped()
        message.header.frame_id = frame
        message.header.stamp = time_of(self.latest_stamp + (not joints))
        torque, force = message.wrench.torque, message.wrench.force
        torque.x, torque.y, torque.z, force.x, force.y, force.z = map(float, W)
        self._wrench.publish(message)

    def left(self, q, W, **how):
        """Return what is left of a reading (6,), moment first."""
        (answer,) = self.answered(["wrench"], lambda: self.read(q, W, **how))
        assert answer.header.frame_id == "flange"
        return np.roll(wrench_of(answer), 3)

    def ask(self, service):
        """Call a service once."""
        return self.call(Trigger, service, Trigger.Request(), once=True)

    def ask_still(self, service, q, W):
        """Call a service while the arm stands still, again while readings are too few."""
        self.processed()
        end = time.monotonic() + STILL  # then readings before do not count

        def read():
            self.read(q, W)
            self.spin(0.01)

        self.until(lambda: time.monotonic() > end, again=read, every=0.0)
        while True:
            answer = self.ask(service)
            if "cover" not in answer.message:
                return answer
            for _ in range(10):
                read()


def test_from_still_poses_to_contact_and_zero(tmp_path):
    path, rng = tmp_path / "sensor.yaml", np.random.default_rng(0)
    with SensorProcess(calibration_file=path) as process, Sensor(process) as probe:
        assert not probe.ask_still("zero", np.zeros(7), reading(np.zeros(7))).success
        said = probe.ask("fit")
        assert not said.success
        assert said.message.startswith("at least 4 poses")
        assert not probe.latest  # nothing is published without bias and tool
        probe.until(lambda: probe.level("sensor") == DiagnosticStatus.WARN)
        for k, q in enumerate(rng.uniform(-1.5, 1.5, (4, 7))):
            W = reading(q)
            said = probe.ask_still("take_pose", q, W)
            assert said.success
            assert said.message.startswith(f"{k + 1} pose(s) taken")
        assert probe.ask("fit").success
        kept = Calibration.read(path, "flange")
        np.testing.assert_allclose(kept.bias, BIAS, atol=1e-9)
        np.testing.assert_allclose([kept.mass, *kept.com], [MASS, *COM], atol=1e-9)

        q = rng.uniform(-1.5, 1.5, 7)
        left = probe.left(q, reading(q, push=PUSH))
        np.testing.assert_allclose(left, TO_FLANGE @ PUSH, atol=1e-8)
        drifted = reading(q) + PUSH
        assert probe.ask_still("zero", q, drifted).success
        probe.until(lambda: np.abs(probe.left(q, drifted)).max() < 1e-8, every=0.01)
        assert probe.ask("restart").success
        assert process.stop(signal.SIGINT) == 0


def test_bad_input_is_named_and_gives_no_output(tmp_path):
    """Of a sensor with the opposite sign, whose calibration is in a file."""
    path, q = tmp_path / "sensor.yaml", np.linspace(-1.0, 1.0, 7)
    Calibration(BIAS, MASS, np.array(COM)).write(path, "flange")
    with SensorProcess(reversed=True, calibration_file=path) as process, Sensor(process) as probe:
        W = -reading(q, push=PUSH)
        bad = {
            "no_pose": lambda: probe.read(q, W, joints=False),
            "not_finite": lambda: probe.read(q, [0.0, 0.0, 0.0, 0.0, np.nan, 0.0]),
            "frame": lambda: probe.read(q, W, frame="link3"),
        }
        for kind, send in bad.items():
            before = probe.latest_stamp
            probe.until(lambda kind=kind: probe.rejected(kind), again=send)
            probe.known()
            assert probe.answered_since(before) == set(), kind
            np.testing.assert_allclose(probe.left(q, W), TO_FLANGE @ PUSH, atol=1e-8)
        assert "header.frame_id is 'link3'" in process.log
        probe.until(lambda: probe.level("input") == DiagnosticStatus.ERROR)  # stale
        probe.left(q, W)
