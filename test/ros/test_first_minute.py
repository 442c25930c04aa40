# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The first minute with the nodes, as the README has it: enable, push, load; the arm stays up."""

from __future__ import annotations

import time
import warnings
from contextlib import ExitStack

import numpy as np
import pytest

pytest.importorskip("rclpy")

from geometry_msgs.msg import InertiaStamped
from gravity_node_bench import GravityProcess
from robots import robot
from ros_bench import PATIENCE
from simulator_bench import SimulatorProcess, Watcher
from std_srvs.srv import SetBool

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.usefixtures("ros")

STILL, SEEN = 0.01, 0.02
"""What moves less than the first, in rad, stays where it is; more than the second is seen."""

ARMS = {
    "arm7": (robot_path("arm7"), "tool"),
    "ur5": (robot("ur5_robot.urdf"), "tool0"),
    "panda": (robot("panda.urdf"), "panda_hand"),
}


class Beside(GravityProcess):
    """Gravity compensation in the namespace of a simulator."""

    def __init__(self, simulator, **parameters):
        self.shared = simulator.namespace
        given = {"robot_description_file": None, "effort_rate_limit": None, "max_age": 0.0}
        super().__init__(**given, command_topic=simulator.topic, **parameters)
        self.name = f"{self.shared}/gravity_compensation_node"

    def command(self, *arguments):
        self.namespace = self.shared
        return super().command(*arguments)


class Minute(Watcher):
    """What a user types, and what is seen of the arm."""

    def __init__(self, simulator, compensation):
        super().__init__(simulator)
        self.node.destroy_publisher(self.commands)  # nobody commands beside the compensation
        self.compensation = compensation
        self.enabling = self.node.create_client(SetBool, f"{compensation.name}/enable")
        self.told = self.node.create_publisher(InertiaStamped, f"{compensation.name}/payload", 10)

    def enable(self):
        """Call the service until it is granted, as soon as the node has heard enough."""
        self.until(self.enabling.service_is_ready)
        granted = []

        def ask():
            future = self.enabling.call_async(SetBool.Request(data=True))
            future.add_done_callback(lambda done: granted.append(done.result().success))

        self.until(lambda: any(granted), again=ask, every=0.5)

    def moved(self, q):
        return np.abs(self.q - q).max()

    def comes_to_rest(self):
        """Wait until the arm stands still, and return where."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            before = self.q
            self.spin(0.5)
            if self.moved(before) < 0.1 * STILL:
                return self.q
        raise AssertionError(f"it does not come to rest\n{self.target.log}{self.compensation.log}")


@pytest.mark.parametrize(
    "name", ["arm7", *(pytest.param(name, marks=pytest.mark.slow) for name in ("ur5", "panda"))]
)
def test_an_arm_holds_and_moves_and_stays(name):
    path, tool = ARMS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        model = mbs.Model.from_urdf(path)
    with ExitStack() as stack:
        simulator = stack.enter_context(SimulatorProcess(robot_description_file=path))
        compensation = stack.enter_context(
            Beside(simulator, joints=f"[{','.join(model.joint_names)}]")
        )
        probe = stack.enter_context(Minute(simulator, compensation))
        probe.until(lambda: probe.states)
        start = probe.q
        probe.until(lambda: "ready, and disabled; to enable: ros2 service call" in compensation.log)
        np.testing.assert_array_equal(probe.q, start)  # it has not fallen while nodes started
        probe.enable()
        probe.until(lambda: "the commands carry the robot: brakes are released" in simulator.log)
        assert np.abs(probe.comes_to_rest() - start).max() < STILL
        # a push moves it, and it stays where it is left
        before = probe.q
        probe.until(
            lambda: probe.moved(before) > SEEN,
            again=lambda: probe.push(tool, (20.0, 0.0, 0.0)),
            every=0.3,
        )
        rest = probe.comes_to_rest()
        # a load pulls it down until it is told of
        probe.until(
            lambda: "payload in force: 1 kg" in simulator.log and probe.moved(rest) > SEEN,
            again=lambda: probe.hang(tool, 1.0),
            every=0.3,
        )
        message = InertiaStamped()
        message.header.frame_id, message.inertia.m = tool, 1.0
        probe.until(
            lambda: "payload in force: 1 kg" in compensation.log,
            again=lambda: probe.told.publish(message),
            every=0.3,
        )
        held = probe.comes_to_rest()
        probe.spin(1.0)
        assert probe.moved(held) < STILL
        assert "stopped by a fault" not in compensation.log
