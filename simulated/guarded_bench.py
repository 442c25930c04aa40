# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A guarded arm in its loop on a simulated bus, and the events that tests and benchmarks try."""

from collections.abc import Callable, Mapping
from itertools import cycle
from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.control import GuardedArm, Motors, laws
from mbs_dynamics.resources import robot_path
from simulated.bus import SimulatedBus, frozen, nan, once, reports, shifted, silent

MODEL = mbs.Model.from_urdf(robot_path("arm7"))
Q = np.array([0.3, 0.5, -0.2, 1.1, 0.1, 0.7, 0.1])
PERIOD = 0.004
ARMATURE = 0.01
"""Inertia of the rotors of simulated motors at their joints, in kg m^2."""
NOISE = (1e-5, 2e-3, 0.05)
"""Standard deviations of measured positions, velocities and efforts."""


def table(
    kp=400.0, kd=10.0, signs=(1, -1, 1, 1, -1, 1, 1), joints=MODEL.joint_names, limits=(), **top
):
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
        for k, (name, sign) in enumerate(zip(joints, cycle(signs), strict=False))
    }
    for name, limit in zip(joints, limits, strict=False):
        rows[name]["limit"] = limit
    return {"when_silent": "damp", "motors": rows} | top


class Loop:
    """A loop of 250 Hz with an arm, arm7 by default."""

    def __init__(
        self, law=None, true_motors=None, made=None, limits=None, model=MODEL, fixed=(), **options
    ):
        self.model, self.fixed = model, dict(fixed)
        self.motors = Motors(made or table(), model)
        given = {
            "q": Q,
            "noise": NOISE,
            "torque_step": 0.06,
            "friction": 0.2,
            "armature": ARMATURE,
            **options,
        }
        self.bus = SimulatedBus(model, self.motors, true_motors, fixed=self.fixed, **given)
        law = law or laws.Gravity(damping=0.5)
        self.arm = GuardedArm(model, law, self.motors, fixed=self.fixed, **(limits or {}))
        self.events, self.command = [], None

    @property
    def now(self):
        return self.bus.time

    def step(self):
        """Return the commands of the next period."""
        self.command = self.arm.step(self.now, self.bus.read())
        if self.command.event:
            self.events.append(self.command.event)
        return self.command.motors

    def run(self, seconds, period=PERIOD):
        for _ in range(round(seconds / period)):
            self.bus.write(self.step())
            self.bus.advance(period)
        return self

    def enabled(self, seconds=1.0, period=PERIOD):
        """Enable after a first look at the arm, and wait until the drives have let go."""
        self.arm.step(self.now, self.bus.read())
        assert self.arm.enable(self.now) == []
        self.run(seconds, period)
        for _ in range(10):  # where gravity loads the arm little, torques grow slowly
            if self.command.mode != "torque" and self.arm.fault is None:
                self.run(0.1, period)
        assert (self.arm.state, self.command.mode) == ("enabled", "torque")
        self.bus.mark()
        return self

    @property
    def inertias(self):
        """(m,) in kg m^2, with the other joints free."""
        q = np.array([self.fixed.get(name, 0.0) for name in self.model.joint_names])
        order = list(self.motors.coordinates)
        q[order] = self.bus.q
        M = mbs.mass_matrix(self.model, q)[np.ix_(order, order)] + ARMATURE * np.eye(len(order))
        return 1.0 / np.diag(np.linalg.inv(M))

    @property
    def energy(self):
        """Kinetic and potential energy in J, if all joints have motors."""
        q, qd = self.bus.q, self.bus.qd
        moving = mbs.kinetic_energy(self.model, q, qd) + 0.5 * ARMATURE * qd @ qd
        return moving + mbs.potential_energy(self.model, q)

    def guided(self, seconds, rng):
        """Let an operator guide all joints for some time, or until the arm stops; return how fast.

        Torques are random, low-passed with 0.3 s; the hand damps, and leads back to the middle.
        """
        inertias, middle = self.inertias, self.bus.q
        push, fastest = np.zeros((2, len(inertias)))
        strength, share = ACCELERATION * inertias + 0.2, PERIOD / 0.3
        for _ in range(round(seconds / PERIOD)):
            push += -share * push + np.sqrt(2.0 * share) * strength * rng.normal(size=len(push))
            self.bus.push[:] = push + 4.0 * inertias * (middle - self.bus.q - 0.5 * self.bus.qd)
            self.run(PERIOD)
            fastest = np.maximum(fastest, abs(self.bus.qd))
            if self.arm.state != "enabled":
                break
        self.bus.push[:] = 0.0
        return fastest


ACCELERATION = 1.5
"""Standard deviation of what an operator causes, in rad/s^2, beside 0.2 N m against friction."""

# -- events ----------------------------------------------------------------------------------------

MOTOR = 0x11
"""That of joint2, which carries most."""

ODD = {"max_temperature": 80.0}
"""Limits without which some events are none."""


class Event(NamedTuple):
    """An event at an arm whose torques are enabled."""

    apply: Callable[[Loop, int], Any]
    """Of a loop and one of its motors."""
    kind: str | None = None
    """That of the fault that follows; None: no fault."""
    most: float = 0.05
    """Largest motion of a joint from then on, in rad or m."""
    mode: str = "hold"
    """Of the commands in the end."""
    table: Mapping[str, Any] = {}
    """Keys of the table of motors that differ."""
    options: Mapping[str, Any] = {}
    """Of the bus that differ."""


def reported(fault):
    """Return an event from a function that makes a fault of one motor."""
    return lambda loop, motor: loop.bus.faults.append(fault(motor))


def of_drive(name, value):
    def apply(loop, motor):
        getattr(loop.bus, name)[motor] = value

    return apply


def in_motion(fault):
    """Return an event from such a function, while the joint is pushed and moves."""

    def apply(loop, motor):
        joint = motor - 0x10
        loop.bus.push[joint] = 0.7 + 2.0 * loop.inertias[joint]  # friction and damping
        while abs(loop.bus.qd[joint]) < 0.3:
            loop.bus.push[joint] *= 1.02 if loop.now > 1.5 else 1.0  # against springs of a law
            loop.run(PERIOD)
            assert loop.now < 3.0
        loop.bus.mark()
        loop.bus.faults.append(fault(motor))
        loop.run(0.5)
        loop.bus.push[joint] = 0.0

    return apply


def loaded(loop, motor):
    link = loop.model.body_names[-1]
    loop.bus.load(link, 2.0)
    loop.arm.load(link, 2.0, time=0.05)


def dies(loop, motor):
    loop.bus.advance(0.2)


EVENTS = {
    "one NaN": Event(reported(lambda motor: once(nan(motor))), mode="torque"),
    "NaN for good": Event(reported(nan), "stale"),
    "silence of one motor": Event(reported(silent), "stale"),
    "silence of the bus": Event(reported(lambda _: silent()), "stale"),
    "pause of the loop, 80 ms": Event(lambda loop, _: loop.bus.advance(0.08), "pause"),
    "one jump": Event(reported(lambda motor: once(shifted(motor, position=60.0))), mode="torque"),
    "jumping encoder": Event(of_drive("encoder_jump", 1.0), "encoder_jump"),
    "jump of the reports": Event(reported(lambda m: shifted(m, position=60.0)), "encoder_jump"),
    "backward stamps": Event(reported(lambda _: shifted(stamp=-1.0)), "stale"),
    "silence of one motor, in motion": Event(in_motion(silent), "stale"),
    "frozen values, in motion": Event(in_motion(frozen), "frozen", 0.15),
    "sign of a command": Event(of_drive("command_factor", -1.0), "tracking", 0.25),
    "command fourfold": Event(of_drive("command_factor", 4.0), "tracking", 0.25),
    "sign of a feedback": Event(of_drive("feedback_factor", -1.0), "tracking"),
    "feedback fourfold": Event(of_drive("feedback_factor", 4.0), "tracking"),
    "drive error": Event(reported(lambda motor: reports(motor, error=3)), "drive_error"),
    "over-temperature": Event(reported(lambda m: reports(m, temperature=95.0)), "temperature"),
    "disable": Event(lambda loop, _: loop.arm.disable(loop.now)),
    "disable, drives switch in 20 ms": Event(
        lambda loop, _: loop.arm.disable(loop.now), options={"switching": 0.02}
    ),
    "enabled twice": Event(lambda loop, _: loop.arm.enable(loop.now), mode="torque"),
    "load of 2 kg, announced": Event(loaded, None, 0.05, "torque"),
    "loop dies for 0.2 s, drives hold": Event(dies, "pause", 0.2, table={"when_silent": "hold"}),
    "loop dies for 0.2 s, drives damp": Event(dies, "pause", 0.3),
}


def happen(event, motor=MOTOR, seconds=2.0, kind=Loop, rows={}, **options):  # noqa: B006
    """Return a loop in which an event has happened, ``seconds`` later.

    ``rows`` are arguments of its table.
    """
    loop = kind(limits=ODD, made=table(**rows, **event.table), **options, **event.options).enabled()
    event.apply(loop, motor)
    return loop.run(seconds)
