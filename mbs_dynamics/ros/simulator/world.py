# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated robot: its dynamics, its commands, and its pace in real time. No ROS is needed."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import LinkLoad, with_load
from mbs_dynamics.control.joint_states import LARGEST, Rejection, wild_numbers
from mbs_dynamics.errors import ArgumentError, MbsError, ModelError, UnknownJointError, listed
from mbs_dynamics.integrate import ContactPlanes, JointForces, Plane, Stepper
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.model import Model, body_wrenches
from mbs_dynamics.model.orders import tools
from mbs_dynamics.representation import AUTO
from mbs_dynamics.ros.simulator.interface import SimulatorSettings, for_each

STEP = 0.001
"""Largest step of the integrator in s; a period is divided into equal steps."""

INTEGRATOR = "semi_implicit_euler"
"""Stable with friction and stops at this step, and the cheapest."""

DRIVE_DAMPING = 0.2
"""Share of its effort limit that a joint's damping exerts at its velocity limit, as in a geared
drive, where the description states less damping."""

CONTACT_STIFFNESS, CONTACT_DAMPING = 1e4, 100.0
"""Stiffness in N/m and damping in N s/m of planes: stable at STEP for tools of 0.1 kg."""

DISTURBANCE_DURATION = 0.2
"""Simulated time in s for which a wrench on ~/disturbance acts."""

LARGEST_STATE = 1e6
"""A simulation with a larger position or velocity, in rad, m, rad/s or m/s, halts."""

LARGEST_WRENCH = 1e6
"""Largest force or moment of a disturbance, in N or N m."""

BENT, SHARE = 0.5, 0.25
"""Distance in rad or m from the middle of its range at which a joint starts, and its largest share
of the range: a bent posture, in which motors carry weight."""

HOLDING = 1e9
"""Inertia of the rotor of a joint without commands, in kg m^2 or kg: nothing moves it."""

CARRIED, SLIGHT = 0.1, 0.05
"""Commands carry the robot if its acceleration is at most this share of that without commands, or
at most this value in rad/s^2 or m/s^2."""

LONGEST_LAG = 1.0
"""Largest lag in s of simulated time that is caught up, under the commands in force. A longer lag
is not simulated."""

LATE = 0.1
"""Age in s from which on a joint state is simulated, but not published."""


class World:
    """One simulated robot, advanced by whole periods between joint states.

    Joints that ``joints`` does not name are held. Raises ArgumentError for settings that do not fit
    the model, ModelError if nothing moves.
    """

    def __init__(self, model: Model, settings: SimulatorSettings) -> None:
        if model.n == 0:
            raise ModelError(f"robot {model.name!r} has no joint that moves")
        UnknownJointError.check(settings.joints, model.joint_names)
        self.joints = settings.joints or model.joint_names
        """Names of the joints with a motor, in the order of commands."""
        self._motors = [model.joint_names.index(name) for name in self.joints]
        for tool in tools(model):  # an input for a load there, so that a new load compiles nothing
            model = model.with_payload(tool, 0.0)
        others = [name for name in model.joint_names if name not in self.joints]
        if others:
            model = model.with_armature(dict.fromkeys(others, HOLDING))
        self.settings = settings
        self.period = 1.0 / settings.rate
        self.steps = max(1, math.ceil(self.period / STEP - 1e-9))  # of the integrator, per period
        self._step = np.array(self.period / self.steps)
        self.periods = 0
        """Number of simulated periods. A reset keeps it, since stamps must not go back."""
        self.forces = joint_forces(model, settings)
        self.initial = initial_state(model, settings)
        self.contact = contact_of(model, settings, float(self._step))
        if self.contact is not None:
            self.contact.check_step(self.initial[0])
        self._stepper = self._stepper_of(model)
        self.reset()

    @property
    def model(self) -> Model:
        """The robot with its loads."""
        return self._stepper.model

    @property
    def time(self) -> float:
        """Simulated time in s."""
        return self.periods * self.period

    def reset(self) -> None:
        """Return to the initial state, brakes included, without disturbances; loads stay."""
        self.state: FloatArray = self.initial.copy()
        """(2, n) positions and velocities."""
        self.efforts: FloatArray = np.zeros(self.model.n)
        """(n,) efforts of the motors in the latest period, N m or N."""
        self.commands: FloatArray | None = None
        """(n,) the commanded efforts in N m or N; None before the first command."""
        self.halted = ""
        """Why the simulation is halted until a reset; empty while it runs."""
        self.braked = self.settings.brakes
        self._pushes: dict[str, tuple[FloatArray, float]] = {}
        self._wrenches = np.zeros((self.model.nb, 6))

    def command(self, efforts: Sequence[float]) -> Rejection | None:
        """Command efforts in the order of ``joints``, or return why they are refused."""
        if len(efforts) != len(self.joints):
            message = f"{len(efforts)} efforts for {len(self.joints)} joints: {listed(self.joints)}"
            return Rejection("length", message)
        if not math.hypot(*efforts) < LARGEST:  # nor is it for NaN
            return wild_numbers("effort", self.joints, efforts)
        self.commands = np.zeros(self.model.n)
        self.commands[self._motors] = efforts
        return None

    def advance(self) -> bool:
        """Simulate one period under the commands; False if halted."""
        if self.halted:
            return False
        if self._pushes:
            lasting = {x: push for x, push in self._pushes.items() if push[1] > self.time + 1e-9}
            self._pushes = lasting
            self._wrenches = body_wrenches(self.model, {x: W for x, (W, _) in lasting.items()})
        efforts = self._limited_commands()
        if not self.braked:
            state = self.state
            try:
                for _ in range(self.steps):
                    state = self._stepper.step(state, efforts, self._step, self._applied(state))
            except MbsError as error:
                self.halted = f"at {self.time:.3f} s: {error}"
                return False
            if not np.abs(state).max() < LARGEST_STATE:  # nor is NaN
                self.halted = f"at {self.time:.3f} s: {self._wild(state)}"
                return False
            self.state = state
        self.efforts = efforts
        self.periods += 1
        return True

    def _limited_commands(self) -> FloatArray:
        """Return the commands (n,) within the limits of the motors; zeros before the first one."""
        commands, limits = self.commands, self.model.effort_limits
        return np.zeros(self.model.n) if commands is None else np.clip(commands, -limits, limits)

    def brake(self, hold: bool) -> None:
        """Let brakes hold the robot where it is, or release them."""
        self.braked = hold
        if hold:
            self.state = np.array([self.state[0], np.zeros(self.model.n)])

    @property
    def carried(self) -> bool:
        """Whether the commands would hold the robot, or nearly, without brakes."""
        falling = self._acceleration(np.zeros(self.model.n))
        return self._acceleration(self._limited_commands()) <= max(CARRIED * falling, SLIGHT)

    def _acceleration(self, efforts: FloatArray) -> float:
        """Return the largest acceleration from rest under efforts (n,), in rad/s^2 or m/s^2."""
        still = np.array([self.state[0], np.zeros(self.model.n)])
        after = self._stepper.step(still, efforts, self._step, self._applied(still))
        return float(np.abs(after[1]).max() / self._step)

    def _applied(self, state: FloatArray) -> FloatArray:
        """Return the wrenches (nb, 6) of disturbances and planes in a state (2, n)."""
        if self.contact is None:
            return self._wrenches
        return self._wrenches + self.contact(self.time, *state)

    def change(self, settings: SimulatorSettings) -> None:
        """Continue under other settings. Raises ArgumentError if they do not fit the model."""
        self.forces = joint_forces(self.model, settings)
        self.settings = settings
        self._stepper = self._stepper_of(self.model.with_gravity(settings.gravity))

    def push(self, link: str, W: FloatArray) -> None:
        """Apply a wrench (6,), moment first, to a link, in its origin and axes, for a while.

        Raises UnknownBodyError, ModelError for a link that does not move, ArgumentError for invalid
        numbers.
        """
        if not link:
            raise ModelError("a disturbance must name the link that it acts on in header.frame_id")
        if not np.abs(W).max() <= LARGEST_WRENCH:
            raise ArgumentError(
                f"disturbance must be finite and at most {LARGEST_WRENCH:g}; got {W.tolist()}"
            )
        body_wrenches(self.model, {link: W})  # raises for an invalid link
        self._pushes[link] = W, self.time + DISTURBANCE_DURATION

    def hang(self, load: LinkLoad) -> None:
        """Fix a load to the robot, in place of the one that its link carries; 0 kg removes it.

        Raises as :func:`~mbs_dynamics.control.environment.with_load`.
        """
        self._stepper = self._stepper_of(with_load(self.model, load))

    def _stepper_of(self, model: Model) -> Stepper:
        algorithm = self.settings.algorithm
        stepper = Stepper(
            model,
            method=INTEGRATOR,
            forces=self.forces,
            wrenches=True,
            algorithm="body_fixed" if algorithm == AUTO else algorithm,
        )
        nothing = np.zeros((model.nb, 6))
        stepper.step(self.initial, np.zeros(model.n), np.array(1e-6), nothing)  # compiles
        return stepper

    def _wild(self, state: FloatArray) -> str:
        joint = int(np.argmax(~(np.abs(state) < LARGEST_STATE).all(axis=0)))
        name, (q, qd) = self.model.joint_names[joint], state[:, joint]
        return f"the state diverged: {name} at {q:g} with a speed of {qd:g}"


def contact_of(model: Model, settings: SimulatorSettings, step: float) -> ContactPlanes | None:
    """Return the planes of the settings; raise ArgumentError or ModelError if they do not fit."""
    numbers = settings.contact_planes
    if not numbers:
        return None
    if len(numbers) % 4:
        raise ArgumentError(
            f"contact_planes has {len(numbers)} numbers; valid: four for each plane, its normal "
            "and its offset"
        )
    rows, each = np.reshape(numbers, (-1, 4)).tolist(), (CONTACT_STIFFNESS, CONTACT_DAMPING)
    planes = [Plane((x, y, z), offset, *each) for x, y, z, offset in rows]
    return ContactPlanes(model, planes, step=step)


def initial_state(model: Model, settings: SimulatorSettings) -> FloatArray:
    """Return positions and velocities (2, n) at the start.

    Raises ArgumentError for settings that do not fit the model.
    """
    q = for_each("initial_positions", settings.initial_positions, model.n)
    if q is None:
        within = bounded(model.lower, model.upper)
        lower, upper = (np.where(within, x, 0.0) for x in (model.lower, model.upper))
        bent = np.where(within, np.minimum(BENT, SHARE * (upper - lower)), BENT)
        q = np.clip(0.5 * (lower + upper) + bent, model.lower, model.upper)
    return np.array([q, np.zeros(model.n)])


def joint_forces(model: Model, settings: SimulatorSettings) -> JointForces:
    """Return damping, friction and stops; raise ArgumentError if the settings do not fit."""
    damping = for_each("joint_damping", settings.joint_damping, model.n)
    if damping is None:
        geared = DRIVE_DAMPING * model.effort_limits / model.velocity_limits
        damping = np.where(geared < math.inf, np.maximum(model.damping, geared), model.damping)
    return JointForces.of(model, damping=damping, stops=True)


class Pacer:
    """Counts the periods that are due, by a steady clock in s, and catches up to LONGEST_LAG."""

    def __init__(self, interval: float, now: float) -> None:
        self.interval = interval
        self.skipped = 0
        """Number of periods that were due and are never simulated."""
        self.restart(now)

    def restart(self, now: float) -> None:
        """Count from now on."""
        self._start, self._done = now, 0

    def due(self, now: float) -> int:
        """Return how many periods are due now, the one that is nearest included."""
        due = math.floor((now - self._start) / self.interval + 0.5) - self._done
        beyond = max(0, due - max(1, math.ceil(LONGEST_LAG / self.interval)))
        self.skipped += beyond
        self._done += beyond
        return max(0, due - beyond)

    def did(self, periods: int) -> None:
        """Record simulated periods."""
        self._done += periods
