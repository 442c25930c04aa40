# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The gravity compensation node as a process, and a driver that feeds it, for tests over DDS."""

import re
import time

import numpy as np
from gravity_bench import JOINTS, REST, G, Q
from ros_bench import NodeProcess, Probe
from std_msgs.msg import Bool, Float64MultiArray
from std_srvs.srv import SetBool, Trigger

from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.node_base import LATCHED

ARM7 = robot_path("arm7")

READY = {
    "joints": f"[{','.join(JOINTS)}]",
    "compensates_itself": "false",
    "command_topic": "commands",
    "ramp_time": 0.3,
    # the machine that tests may be busy: only what is not there at all is silent, late or slow
    "stale_timeout": 10.0,
}


class GravityProcess(NodeProcess):
    """The gravity compensation node, run as a user runs it; ready to be enabled by default."""

    def __init__(self, **parameters):
        given = {"robot_description": ARM7} | READY | parameters
        super().__init__("gravity_compensation_node", **given)


class Driver(Probe):
    """Plays the robot's driver and its controller: sends states, and keeps the commands."""

    def __init__(self, process):
        super().__init__(process)
        self.commands = []
        """(time of arrival, torques) of all commands."""
        self.enabled = []
        """All values of ~/enabled."""

        def hear(message):
            self.commands.append((time.monotonic(), np.array(message.data)))

        listen = self.node.create_subscription
        listen(Float64MultiArray, f"{process.namespace}/commands", hear, 1000)
        listen(Bool, f"{process.name}/enabled", lambda m: self.enabled.append(m.data), LATCHED)

    def well(self):
        """Send a good state."""
        self.send(JOINTS, Q, REST)

    def waits(self, condition, again=None):
        """Wait for a condition while the robot is well, at some 100 Hz."""
        self.until(condition, again=again or self.well, every=0.01)

    def ask(self, on):
        """Call ~/enable once, while the robot is well; return the answer."""
        request = SetBool.Request(data=on)
        return self.call(SetBool, "enable", request, once=True, again=self.well)

    def value(self, key):
        return self.value_of("command", key)

    def enable(self):
        """Enable, once the node has heard the robot, and wait until the ramp is over."""
        self.waits(lambda: self.node.count_publishers(f"{self.target.namespace}/commands") > 0)
        faults = [-1]

        def again():
            self.well()
            if len(self.faults()) != faults[0]:  # at first, and after a pause of this machine
                self.waits(self._enabled_anew)
                faults[0] = len(self.faults())
                self.commands.clear()

        def settled():
            return self.commands and np.allclose(self.commands[-1][1], G, atol=1e-9)

        self.commands.clear()
        self.waits(lambda: faults[0] >= 0 and settled(), again)
        self.waits(lambda: self.enabled[-1:] == [True])

    def _enabled_anew(self):
        """Clear a fault, if there is one whose stop is over, and ask for torques."""
        if self.faults():
            self.call(Trigger, "clear", Trigger.Request(), once=True)
        return self.ask(True).success

    def silent(self, seconds=0.25):
        """Whether no command comes while the robot is well, once those under way have arrived."""
        self.known()
        self.commands.clear()
        end = time.monotonic() + seconds
        self.waits(lambda: time.monotonic() > end)
        self.known()
        return not self.commands

    def faults(self):
        """Return the reasons of all faults so far, from the node's log."""
        return re.findall(r"stopped by a fault \(\w+\): (.*)", self.target.log)

    def zero(self):
        """Wait for a command of zero, without news of the robot."""
        self.until(lambda: self.commands and not self.commands[-1][1].any(), every=0.01)
