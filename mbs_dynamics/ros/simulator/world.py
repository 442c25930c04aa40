# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A robot under forward dynamics: its state, its loads and what pushes it. Knows no ROS."""

from __future__ import annotations

import copy
import math

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, MbsError, ModelError
from mbs_dynamics.integrate import JointForces, Stepper
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation import AUTO
from mbs_dynamics.ros.evaluation_cost import Cost
from mbs_dynamics.ros.robot_description import Load, replaced, under_load
from mbs_dynamics.ros.simulator.settings import SimulatorSettings, for_each

LARGEST_STATE = 1e6
"""A position or velocity above this, in rad, m, rad/s or m/s, is a simulation gone wrong."""

LARGEST_WRENCH = 1e6
"""A force or moment above this, in N or N m, is taken for a mistake."""

BENT, SHARE = 0.5, 0.25
"""A robot starts so far, in rad or m, from the middle of each joint's range, and at most so much of
the range, unless it is told where: bent, with its weight on the motors."""

CARRIED, SLIGHT = 0.1, 0.05
"""Commands carry the robot when they leave it no more than this share of the acceleration that it
has without them, or no more than this acceleration, in rad/s^2 or m/s^2."""


class World:
    """One simulated robot, advanced by whole periods between joint states.

    Simulated time goes on at a reset: robots that are watched do not like it to go back.
    Raises ArgumentError for settings that do not fit the model, ModelError if nothing moves.
    """

    def __init__(self, model: Model, settings: SimulatorSettings) -> None:
        if model.n == 0:
            raise ModelError(f"robot {model.name!r} has no joint that moves")
        for leaf in model.leaves:  # room for a load there, so that hanging one compiles nothing
            model = model.with_payload(leaf, 0.0)
        n = model.n
        self.settings = settings
        self.period = 1.0 / settings.rate
        self.steps = max(1, math.ceil(self.period / settings.step - 1e-9))
        """Steps of the integrator per period."""
        self._step = np.array(self.period / self.steps)
        self.periods = 0
        """Periods that were simulated."""
        self.halted = ""
        """Why the simulation stands still until a reset; empty while it does not."""
        self.loads: list[Load] = []
        self.forces = joint_forces(model, settings)
        unlimited = np.full(n, np.inf)
        self.effort_limits = model.effort_limits if settings.limit_efforts else unlimited
        """(n,) in N m or N; infinite where the description states none, or zero."""
        self.initial = initial_state(model, settings)
        self.state = self.initial.copy()
        """(2, n) positions and velocities."""
        self.braked = settings.brakes and not self.initial[1].any()
        """Whether brakes hold the robot where it is."""
        self.efforts = np.zeros(n)
        """(n,) what the motors exerted in the latest period, N m or N."""
        self._pushes: dict[str, tuple[FloatArray, float]] = {}
        self._wrenches = np.zeros((model.nb, 6))
        self._stepper = self._stepper_of(model)

    @property
    def model(self) -> Model:
        """The robot, with what hangs on it."""
        return self._stepper.model

    @property
    def time(self) -> float:
        """Simulated time in s."""
        return self.periods * self.period

    def advance(self, commands: FloatArray) -> bool:
        """Simulate one period under commanded efforts (n,); False if it stands still."""
        if self.halted:
            return False
        self._expire_pushes()
        efforts = np.minimum(np.maximum(commands, -self.effort_limits), self.effort_limits)
        if self.braked:
            self.efforts = efforts
            self.periods += 1
            return True
        state = self.state
        try:
            for _ in range(self.steps):
                state = self._stepper.step(state, efforts, self._step, self._wrenches)
        except MbsError as error:
            self.halted = f"at {self.time:.3f} s: {error}"
            return False
        # neither is true for NaN; the length is the quicker to find, and the largest is no longer
        if not (np.vdot(state, state) < LARGEST_STATE**2 or np.abs(state).max() < LARGEST_STATE):
            self.halted = f"at {self.time:.3f} s: {self._wild(state)}"
            return False
        self.state, self.efforts = state, efforts
        self.periods += 1
        return True

    def reset(self) -> None:
        """Go back to the initial state, brakes included, without pushes; loads stay."""
        self.state = self.initial.copy()
        self.efforts = np.zeros(self.model.n)
        self._pushes.clear()
        self._wrenches[:] = 0.0
        self.halted = ""
        self.brake(self.settings.brakes and not self.initial[1].any())

    def brake(self, hold: bool) -> None:
        """Let brakes hold the robot where it is, at once, or let it go."""
        self.braked = hold
        if hold:
            self.state = np.array([self.state[0], np.zeros(self.model.n)])

    def carried(self, commands: FloatArray) -> bool:
        """Return whether commanded efforts (n,) would hold the robot, or nearly, without brakes."""
        limited = np.minimum(np.maximum(commands, -self.effort_limits), self.effort_limits)
        moved, falling = (self._accelerations(tau) for tau in (limited, np.zeros(self.model.n)))
        return moved <= max(CARRIED * falling, SLIGHT)

    def _accelerations(self, efforts: FloatArray) -> float:
        """Return the largest acceleration from rest under efforts (n,), in rad/s^2 or m/s^2."""
        still = np.array([self.state[0], np.zeros(self.model.n)])
        after = self._stepper.step(still, efforts, self._step, self._wrenches)
        return float(np.abs(after[1]).max() / self._step)

    def change(self, settings: SimulatorSettings) -> None:
        """Go on under other settings: algorithm, damping, friction, durations; the others stay.

        Another algorithm compiles, and so does friction or damping where there was none. Raises
        ArgumentError, and changes nothing, for settings that do not fit the model.
        """
        forces = joint_forces(self.model, settings)
        same = settings.algorithm == self.settings.algorithm
        self.settings = settings
        if same and forces.features == self.forces.features:
            self._stepper.forces = forces
            self.forces = forces
        else:
            self.forces = forces
            self._stepper = self._stepper_of(self.model)

    def push(self, link: str, W: FloatArray) -> None:
        """Let a wrench (6,), moment first, act on a link, in its origin and axes, for a while.

        It replaces the one that acts on the same link; zero ends that. Raises UnknownBodyError,
        ModelError for a link that does not move, ArgumentError for numbers that cannot be.
        """
        if not link:
            raise ModelError("a disturbance must name the link that it acts on in header.frame_id")
        if not np.abs(W).max() <= LARGEST_WRENCH:
            raise ArgumentError(
                f"disturbance must be finite and at most {LARGEST_WRENCH:g}; got {W.tolist()}"
            )
        self.model.wrenches({link: W})  # or it is refused
        self._pushes[link] = W, self.time + self.settings.disturbance_duration
        self._sum_pushes()

    def loaded(self, load: Load) -> Stepper:
        """Return what advances the robot with a load, in place of the one that its link carries.

        The first load at a body that carries others compiles, which takes longer than a period:
        another thread may do it, as nothing changes here before :meth:`hang`. At the last bodies of
        branches nothing compiles. A mass of zero takes a load off. Raises as
        :func:`~mbs_dynamics.ros.robot.under_load`.
        """
        model = under_load(self.model, load)
        if model.loaded_bodies == self.model.loaded_bodies:
            stepper = copy.copy(self._stepper)
            stepper.model = model
            return stepper
        return self._stepper_of(model)

    def hang(self, load: Load, stepper: Stepper) -> None:
        """Fix a load to the robot, with what :meth:`loaded` has returned for it."""
        same = stepper.algorithm == self._stepper.algorithm
        if same and stepper.forces is self.forces:
            self._stepper = stepper
        else:  # they were changed meanwhile
            self._stepper = self._stepper_of(stepper.model)
        self.loads = replaced(self.loads, load)

    def cost(self) -> Cost:
        """Return what one step of the integrator costs."""
        constants = self._stepper.parameters
        inputs = self.state, self.efforts, self._step, self._wrenches, *constants
        return Cost.of(self._stepper.kernel, *inputs)

    def saturated(self) -> list[str]:
        """Return the joints whose motors exert all that they can."""
        full = np.abs(self.efforts) >= self.effort_limits
        return [name for name, is_full in zip(self.model.joint_names, full, strict=True) if is_full]

    def _stepper_of(self, model: Model) -> Stepper:
        algorithm = self.settings.algorithm
        stepper = Stepper(
            model,
            method=self.settings.integrator,
            forces=self.forces,
            wrenches=True,
            algorithm=None if algorithm == AUTO else algorithm,
        )
        stepper.step(self.state, np.zeros(model.n), np.array(1e-6), self._wrenches)  # compiles
        return stepper

    def _expire_pushes(self) -> None:
        over = [link for link, (_, until) in self._pushes.items() if until <= self.time + 1e-9]
        if over:
            for link in over:
                del self._pushes[link]
            self._sum_pushes()

    def _sum_pushes(self) -> None:
        self._wrenches[:] = self.model.wrenches({link: W for link, (W, _) in self._pushes.items()})

    def _wild(self, state: FloatArray) -> str:
        joint = int(np.argmax(~(np.abs(state) < LARGEST_STATE).all(axis=0)))
        name, (q, qd) = self.model.joint_names[joint], state[:, joint]
        return f"the state left all bounds: {name} at {q:g} with a speed of {qd:g}; a smaller step?"


def initial_state(model: Model, settings: SimulatorSettings) -> FloatArray:
    """Return positions and velocities (2, n) at the start.

    Raises ArgumentError for settings that do not fit the model.
    """
    n = model.n
    q = for_each("initial_positions", settings.initial_positions, n)
    qd = for_each("initial_velocities", settings.initial_velocities, n)
    if q is None:
        within = bounded(model.lower, model.upper)
        lower, upper = (np.where(within, x, 0.0) for x in (model.lower, model.upper))
        bent = np.where(within, np.minimum(BENT, SHARE * (upper - lower)), BENT)
        q = np.clip(0.5 * (lower + upper) + bent, model.lower, model.upper)
    return np.array([q, np.zeros(n) if qd is None else qd])


def damping_of_drives(model: Model, settings: SimulatorSettings) -> dict[str, float]:
    """Return the damping of geared drives, by joint, where the description states less.

    At the velocity limit it exerts ``drive_damping`` times the effort limit. Joints without one of
    these limits are not among them. N m s/rad or N s/m.
    """
    if settings.joint_damping:
        return {}
    found = settings.drive_damping * model.effort_limits / model.velocity_limits
    return {
        joint.name: float(damping)
        for joint, damping in zip(model.joints, found, strict=True)
        if joint.damping < damping < math.inf
    }


def joint_forces(model: Model, settings: SimulatorSettings) -> JointForces:
    """Return damping, friction and stops as the settings or the description state them.

    Raises ArgumentError for settings that do not fit the model.
    """
    damping = for_each("joint_damping", settings.joint_damping, model.n)
    if damping is None:
        drives = damping_of_drives(model, settings)
        damping = np.array([drives.get(one.name, one.damping) for one in model.joints])
    return JointForces.of(
        model,
        damping=damping,
        friction=for_each("joint_friction", settings.joint_friction, model.n),
        friction_speed=settings.friction_speed,
        stops=settings.joint_stops,
        stop_time=settings.stop_time,
    )
