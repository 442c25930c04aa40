# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity compensation without ROS: a robot that reports, and a clock."""

from functools import lru_cache
from unittest import mock

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.control.environment import LinkLoad
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.compensation.gravity_compensator import GravityCompensator
from mbs_dynamics.ros.compensation.interface import GravityCompensationSettings
from mbs_dynamics.ros.robot_description import model_of

ARM7 = robot_path("arm7").read_text(encoding="utf-8")
MODEL = mbs.Model.from_urdf(ARM7)
JOINTS = MODEL.joint_names
Q = np.array([0.3, 0.5, -0.2, 1.1, 0.1, 0.7, 0.1])
REST = np.zeros(7)
G = mbs.gravity_torques(MODEL, Q)
PERIOD = 0.01
COM = (0.0, 0.02, 0.05)
"""Centre of mass of a load, in its link."""


def load(mass, link="tool", com=COM):
    """Return a point mass on a link."""
    return LinkLoad(link, mass, com, ((0.0,) * 3,) * 3)


@lru_cache
def parsed_once(text, loads):
    """Return the model of a description; the same one each time, with the kernels it has."""
    return model_of(text, loads=loads)


def settings(kind=GravityCompensationSettings, **values):
    """Return settings of a node under which the arm can be enabled, except for what is given."""
    times = {"ramp_time": 1.0, "ramp_in_time": 1.0, "stale_timeout": 0.2}
    return kind(**({"joints": JOINTS, "compensates_itself": False} | times | values))


class Bench:
    """A compensator with the arm in force, a clock, and everything it ever commanded."""

    def __init__(self, describe=ARM7, kind=GravityCompensationSettings, **values):
        self.core = GravityCompensator(settings(kind, **values))
        self.now = 100.0
        self.stamp = 0
        self.commands = []
        """(time, command) of all commands."""
        if describe:
            self.core.describe(describe, self.now)
            self.adopt()

    @property
    def state(self):
        return self.core.state

    @property
    def fault(self):
        return self.core.fault.kind if self.core.fault else None

    @property
    def nanoseconds(self):
        return int(1e9 * self.now)

    def adopt(self):
        """Adopt what is pending, without compiling what another test has compiled."""
        parse = "mbs_dynamics.ros.compensation.gravity_compensator.model_of"
        with mock.patch(parse, lambda text, loads: parsed_once(text, tuple(loads))):
            return self.core.adopt(self.now)

    def note(self, command):
        if command is not None:
            self.commands.append((self.now, list(command)))
        return command

    def send(self, q=Q, qd=REST, names=JOINTS, stamp=None, efforts=()):
        """Send one state now; return the answer, None without a robot."""
        if stamp is None:
            self.stamp = stamp = max(self.stamp + 1, int(1e9 * self.now))
        given = list(names), list(map(float, q)), list(map(float, qd)), efforts
        if self.core.arm is None:
            return None
        answer = self.core.arm.receive(*given, stamp=stamp, now=self.now)
        self.note(answer.command)
        return answer

    def tick(self):
        return self.note(self.core.arm.tick(self.now))

    def run(self, seconds, q=Q, qd=REST):
        """Let time pass, with states of the robot."""
        end = self.now + seconds
        while self.now < end - 0.5 * PERIOD:
            self.now += PERIOD
            self.send(q, qd)
            if self.core.arm is not None and self.core.arm.stopping:
                self.tick()

    def silence(self, seconds):
        """Let time pass without news of the robot; ticks come as the node's timers send them."""
        end = self.now + seconds
        while self.now < end - 0.5 * PERIOD:
            self.now += PERIOD
            self.tick()

    def move(self, q0, q1, speed=1.0):
        """Let the robot move from one posture to another, no joint faster than ``speed``."""
        steps = int(np.ceil(np.abs(q1 - q0).max() / (speed * PERIOD)))
        qd = (q1 - q0) / (steps * PERIOD)
        for k in range(1, steps + 1):
            self.run(PERIOD, q0 + k * PERIOD * qd, qd)

    def enabled(self, seconds=1.5, q=Q):
        """Enable, wait until the ramp is over, and return the bench."""
        self.send(q)
        assert self.core.enable(self.now) == ""
        self.run(seconds, q)
        assert self.state == "enabled"
        return self

    @property
    def torques(self):
        return np.array([command for _, command in self.commands])

    @property
    def times(self):
        return np.array([time for time, _ in self.commands])
