# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A guarded arm in its loop on a simulated bus."""

import numpy as np
from bus import SimulatedBus

import mbs_dynamics as mbs
from mbs_dynamics.control import GuardedArm, Motors, laws
from mbs_dynamics.resources import robot_path

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
JOINTS = MODEL.joint_names
Q = np.array([0.3, 0.5, -0.2, 1.1, 0.1, 0.7, 0.1])
PERIOD = 0.004
NOISE = (1e-5, 2e-3, 0.05)
"""Standard deviations of measured positions, velocities and efforts."""


def table(kp=400.0, kd=10.0, signs=(1, -1, 1, 1, -1, 1, 1), **top):
    """Return a table of motors that count in degrees and in tenths of N m, some of them backwards.

    ``kp`` and ``kd`` are what the gains are at the joint, in N m/rad and N m s/rad.
    """
    units = {
        "position_per_radian": np.degrees(1.0),
        "command_per_newton_metre": 10.0,
        "feedback_per_newton_metre": 10.0,
        "kp": kp * 10.0 / np.degrees(1.0),
        "kd": kd * 10.0 / np.degrees(1.0),
    }
    rows = {
        name: {"motor": 0x10 + k, "sign": sign, "zero": 7.0 * k, **units}
        for k, (name, sign) in enumerate(zip(JOINTS, signs, strict=True))
    }
    return {"when_silent": "damp", "motors": rows} | top


class Loop:
    """A loop of 250 Hz with an arm of seven joints."""

    def __init__(self, law=None, true_motors=None, made=None, limits=None, **options):
        self.motors = Motors(made or table(), MODEL)
        given = {"q": Q, "noise": NOISE, "torque_step": 0.06, "friction": 0.2, **options}
        self.bus = SimulatedBus(MODEL, self.motors, true_motors, **given)
        law = law or laws.Gravity(damping=0.5)
        self.arm = GuardedArm(MODEL, law, self.motors, **(limits or {}))
        self.events, self.command = [], None

    @property
    def now(self):
        return self.bus.time

    def run(self, seconds, period=PERIOD):
        for _ in range(round(seconds / period)):
            self.command = self.arm.step(self.now, self.bus.read())
            if self.command.event:
                self.events.append(self.command.event)
            self.bus.write(self.command.motors)
            self.bus.advance(period)
        return self

    def enabled(self, seconds=1.0):
        """Enable after a first look at the arm, and wait until the drives have let go."""
        self.arm.step(self.now, self.bus.read())
        assert self.arm.enable(self.now) == []
        self.run(seconds)
        assert (self.arm.state, self.command.mode) == ("enabled", "torque")
        self.bus.mark()
        return self
