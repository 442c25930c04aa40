# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The impedance control node as a process, and an operator that sends it references over DDS."""

from __future__ import annotations

from geometry_msgs.msg import PoseStamped
from ros_bench import NodeProcess, Probe
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory


class ImpedanceProcess(NodeProcess):
    """The impedance control node, ready to be enabled."""

    executable = "impedance_control_node"


class Operator(Probe):
    """Sends references to the node."""

    def __init__(self, process):
        super().__init__(process)
        self.ends = {
            kind: self.node.create_publisher(kind, f"{process.name}/{topic}", 1)
            for kind, topic in (
                (JointState, "target_joint"),
                (PoseStamped, "target_pose"),
                (JointTrajectory, "trajectory"),
            )
        }

    def aim(self, message, done):
        """Send a reference until something is so."""
        self.until(done, lambda: self.ends[type(message)].publish(message), every=0.5)

    def enable(self):
        ask = SetBool.Request(data=True)
        self.until(lambda: self.call(SetBool, "enable", ask, once=True).success)
