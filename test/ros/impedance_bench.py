# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The impedance control node as a process, and an operator that sends it references over DDS."""

from __future__ import annotations

from geometry_msgs.msg import PoseStamped
from gravity_node_bench import JOINTS
from ros_bench import NodeProcess, Probe
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool
from trajectory_msgs.msg import JointTrajectory

STIFFNESS = {f"stiffness.{name}": 0.1 if name > "joint4" else 10.0 for name in JOINTS}
"""What the periods of a busy machine can bear: the wrist is light."""


class ImpedanceProcess(NodeProcess):
    """The impedance control node, of a stiffness with which it can be enabled."""

    executable = "impedance_control_node"

    def __init__(self, *arguments, **parameters):
        super().__init__(*arguments, **STIFFNESS | parameters)


class Operator(Probe):
    """Sends references to the node."""

    def __init__(self, process, beside):
        super().__init__(process, beside)
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
