# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated robot: its dynamics, its commands, and its pace in real time. No ROS is needed."""

from __future__ import annotations

import copy
import math
from collections import Counter
from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import LinkLoad, replaced, with_load
from mbs_dynamics.control.joint_input import LARGEST, Rejection, wild_numbers
from mbs_dynamics.errors import ArgumentError, MbsError, ModelError, UnknownJointError, listed
from mbs_dynamics.integrate import ContactPlanes, JointForces, Plane, Stepper
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.model import Model, body_wrenches
from mbs_dynamics.model.orders import tools
from mbs_dynamics.representation import AUTO
from mbs_dynamics.ros.performance import cost_of
from mbs_dynamics.ros.simulator.interface import SimulatorSettings, for_each

LARGEST_STATE = 1e6
"""A simulation with a larger position or velocity, in rad, m, rad/s or m/s, halts."""

LARGEST_WRENCH = 1e6
"""Largest force or moment of a disturbance, in N or N m."""

BENT, SHARE = 0.5, 0.25
"""Default distance of a joint from the middle of its range at the start, in rad or m, and its
largest share of the range: a bent posture, in which motors carry weight."""

HOLDING = 1e9
"""Inertia of the rotor of a joint that brakes hold while others move, in kg m^2 or kg."""

CARRIED, SLIGHT = 0.1, 0.05
"""Commands carry the robot if the remaining acceleration is at most this share of that without
commands, or at most this acceleration, in rad/s^2 or m/s^2."""

LONGEST_LAG = 0.1
"""Largest lag in s of simulated time that is caught up."""

SLOW = 0.97
"""Share of the wanted rate below which a simulation is too slow."""


class World:
    """One simulated robot, advanced by whole periods between joint states.

    Simulated time continues at a reset, since nodes reject stamps that go back.
    Raises ArgumentError for settings that do not fit the model, ModelError if nothing moves.
    """

    def __init__(self, model: Model, settings: SimulatorSettings) -> None:
        if model.n == 0:
            raise ModelError(f"robot {model.name!r} has no joint that moves")
        for tool in tools(model):  # an input for a load there, so that a new load compiles nothing
            model = model.with_payload(tool, 0.0)
        n = model.n
        armature = for_each("joint_armature", settings.joint_armature, n)
        if armature is not None:
            model = model.with_armature(dict(zip(model.joint_names, armature, strict=True)))
        self.settings = settings
        self.period = 1.0 / settings.rate
        self.steps = max(1, math.ceil(self.period / settings.step - 1e-9))
        """Steps of the integrator per period."""
        self._step = np.array(self.period / self.steps)
        self.periods = 0
        """Periods that were simulated."""
        self.halted = ""
        """Why the simulation is halted until a reset; empty while it runs."""
        self.loads: list[LinkLoad] = []
        self.forces = joint_forces(model, settings)
        unlimited = np.full(n, np.inf)
        self.effort_limits = model.effort_limits if settings.limit_efforts else unlimited
        """(n,) in N m or N; infinite where the description states none, or zero."""
        self.initial = initial_state(model, settings)
        self.state = self.initial.copy()
        """(2, n) positions and velocities."""
        self.braked = settings.brakes and not self.initial[1].any()
        """Whether brakes hold the whole robot where it is."""
        self.held: tuple[str, ...] = ()
        """Joints that brakes hold while others move."""
        self._armature = dict(zip(model.joint_names, model.armature.tolist(), strict=True))
        self.efforts = np.zeros(n)
        """(n,) efforts of the motors in the latest period, N m or N."""
        self.contact = contact_of(model, settings, float(self._step))
        """The planes that the robot may touch; None if there are none."""
        if self.contact is not None:
            self.contact.check_step(self.initial[0])
        self._pushes: dict[str, tuple[FloatArray, float]] = {}
        self._wrenches = np.zeros((model.nb, 6))
        self._stepper = self._stepper_of(model)
        self._holding: tuple[tuple[str, ...], Stepper, Stepper] | None = None
        """Joints that brakes would hold, the present stepper, and the one that takes its place."""
        if self.braked and settings.joints:
            self._stepper_holding(self._others(settings.joints))

    @property
    def model(self) -> Model:
        """The robot with its loads."""
        return self._stepper.model

    @property
    def time(self) -> float:
        """Simulated time in s."""
        return self.periods * self.period

    def advance(self, commands: FloatArray) -> bool:
        """Simulate one period under commanded efforts (n,); False if halted."""
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
                state = self._stepper.step(state, efforts, self._step, self._applied(state))
        except MbsError as error:
            self.halted = f"at {self.time:.3f} s: {error}"
            return False
        # neither is true for NaN; the length is faster to compute, and bounds the largest
        if not (np.vdot(state, state) < LARGEST_STATE**2 or np.abs(state).max() < LARGEST_STATE):
            self.halted = f"at {self.time:.3f} s: {self._wild(state)}"
            return False
        self.state, self.efforts = state, efforts
        self.periods += 1
        return True

    def reset(self) -> None:
        """Return to the initial state, brakes included, without disturbances; loads stay."""
        self.state = self.initial.copy()
        self.efforts = np.zeros(self.model.n)
        self._pushes.clear()
        self._wrenches[:] = 0.0
        self.halted = ""
        self.brake(self.settings.brakes and not self.initial[1].any())

    def brake(self, hold: bool) -> None:
        """Let brakes hold the whole robot where it is, or release them all."""
        if hold:
            self.braked = True
            self.state = np.array([self.state[0], np.zeros(self.model.n)])
        else:
            self.release(self.model.joint_names)

    def can_release(self, commanded: Collection[str]) -> bool:
        """Return whether brakes hold any of the commanded joints."""
        return self.braked or any(name in commanded for name in self.held)

    def carried(self, commands: FloatArray, commanded: Collection[str] | None = None) -> bool:
        """Return whether efforts (n,) would hold commanded joints, or nearly, without brakes.

        ``commanded`` are their names, by default those of all joints. The brakes of the others
        hold.
        """
        stepper = self._stepper_holding(self._others(commanded))
        limited = np.minimum(np.maximum(commands, -self.effort_limits), self.effort_limits)
        moved, falling = (
            self._accelerations(stepper, tau) for tau in (limited, np.zeros(self.model.n))
        )
        return moved <= max(CARRIED * falling, SLIGHT)

    def release(self, commanded: Collection[str]) -> None:
        """Release the brakes of commanded joints; those of the others hold."""
        held = self._others(commanded)
        self._stepper, self.held, self.braked = self._stepper_holding(held), held, False

    def _others(self, commanded: Collection[str] | None) -> tuple[str, ...]:
        if commanded is None:
            return ()
        return tuple(name for name in self._armature if name not in commanded)

    def _stepper_holding(self, held: tuple[str, ...]) -> Stepper:
        """Return the stepper of the robot with brakes that hold some joints.

        Such a joint has so large a rotor that nothing accelerates it noticeably.
        """
        if held == self.held:
            return self._stepper
        known = self._holding
        if known is not None and known[0] == held and known[1] is self._stepper:
            known[2].model = self._holding_model(held)  # under the present gravity
            return known[2]
        stepper = self._stepper_of(self._holding_model(held))
        self._holding = held, self._stepper, stepper
        return stepper

    def _holding_model(self, held: tuple[str, ...]) -> Model:
        rotors = {name: HOLDING if name in held else x for name, x in self._armature.items()}
        return self.model.with_armature(rotors)

    def _accelerations(self, stepper: Stepper, efforts: FloatArray) -> float:
        """Return the largest acceleration from rest under efforts (n,), in rad/s^2 or m/s^2."""
        still = np.array([self.state[0], np.zeros(self.model.n)])
        after = stepper.step(still, efforts, self._step, self._applied(still))
        return float(np.abs(after[1]).max() / self._step)

    def _applied(self, state: FloatArray) -> FloatArray:
        """Return the wrenches (nb, 6) of disturbances and planes in a state (2, n)."""
        if self.contact is None:
            return self._wrenches
        return self._wrenches + self.contact(self.time, *state)

    def touched(self) -> dict[str, FloatArray]:
        """Return the wrenches (6,) of planes on links that touch them, moment first, as by_link."""
        wrenches = {} if self.contact is None else self.contact.by_link(*self.state)
        return {link: W for link, W in wrenches.items() if W.any()}

    def change(self, settings: SimulatorSettings) -> None:
        """Continue under other settings: gravity, algorithm, damping, friction, durations.

        Another algorithm compiles, and so does friction or damping where there was none. Raises
        ArgumentError, and changes nothing, for settings that do not fit the model.
        """
        forces = joint_forces(self.model, settings)
        if settings.gravity != self.settings.gravity:
            self._stepper.model = self.model.with_gravity(settings.gravity)
        same = settings.algorithm == self.settings.algorithm
        self.settings, self._holding = settings, None
        if same and forces.features == self.forces.features:
            self._stepper.forces = forces
            self.forces = forces
        else:
            self.forces = forces
            self._stepper = self._stepper_of(self.model)

    def push(self, link: str, W: FloatArray) -> None:
        """Apply a wrench (6,), moment first, to a link, in its origin and axes, for a while.

        It replaces the one that acts on the same link; zero ends that. Raises UnknownBodyError,
        ModelError for a link that does not move, ArgumentError for invalid numbers.
        """
        if not link:
            raise ModelError("a disturbance must name the link that it acts on in header.frame_id")
        if not np.abs(W).max() <= LARGEST_WRENCH:
            raise ArgumentError(
                f"disturbance must be finite and at most {LARGEST_WRENCH:g}; got {W.tolist()}"
            )
        body_wrenches(self.model, {link: W})  # raises for an invalid link
        self._pushes[link] = W, self.time + self.settings.disturbance_duration
        self._sum_pushes()

    def loaded(self, load: LinkLoad) -> Stepper:
        """Return the stepper of the robot with a load, in place of the one that its link carries.

        The first load at a body that carries others compiles, which takes longer than a period:
        another thread may call it, as nothing changes before :meth:`hang`. At the tools or hands of
        branches nothing compiles. A mass of zero removes a load. Raises as
        :func:`~mbs_dynamics.control.environment.with_load`.
        """
        model = with_load(self.model, load)
        if model.payloads.bodies == self.model.payloads.bodies:
            stepper = copy.copy(self._stepper)
            stepper.model = model
            return stepper
        return self._stepper_of(model)

    def hang(self, load: LinkLoad, stepper: Stepper) -> None:
        """Fix a load to the robot; ``stepper`` is that of :meth:`loaded`."""
        stepper.model = stepper.model.with_gravity(self.model.gravity)
        same = stepper.algorithm == self._stepper.algorithm
        if same and stepper.forces is self.forces:
            self._stepper = stepper
        else:  # they were changed meanwhile
            self._stepper = self._stepper_of(stepper.model)
        self.loads = replaced(self.loads, load)

    def cost(self) -> dict[str, object]:
        """Return the cost of one step of the integrator."""
        constants = self._stepper.parameters
        inputs = self.state, self.efforts, self._step, self._wrenches, *constants
        return cost_of(self._stepper.kernel, *inputs)

    def saturated(self) -> list[str]:
        """Return the joints whose motors are at their effort limit."""
        full = np.abs(self.efforts) >= self.effort_limits
        return [name for name, is_full in zip(self.model.joint_names, full, strict=True) if is_full]

    def _stepper_of(self, model: Model) -> Stepper:
        algorithm = self.settings.algorithm
        stepper = Stepper(
            model,
            method=self.settings.integrator,
            forces=self.forces,
            wrenches=True,
            algorithm="body_fixed" if algorithm == AUTO else algorithm,
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
        self._wrenches[:] = body_wrenches(
            self.model, {link: W for link, (W, _) in self._pushes.items()}
        )

    def _wild(self, state: FloatArray) -> str:
        joint = int(np.argmax(~(np.abs(state) < LARGEST_STATE).all(axis=0)))
        name, (q, qd) = self.model.joint_names[joint], state[:, joint]
        return f"the state diverged: {name} at {q:g} with a speed of {qd:g}; a smaller step?"


def contact_of(model: Model, settings: SimulatorSettings, step: float) -> ContactPlanes | None:
    """Return the planes of the settings for steps of so many s, or None without any.

    Raises ArgumentError, UnknownBodyError and ModelError for settings that do not fit the model.
    """
    numbers, each = settings.contact_planes, (settings.contact_stiffness, settings.contact_damping)
    if not numbers:
        return None
    if len(numbers) % 4:
        raise ArgumentError(
            f"contact_planes has {len(numbers)} numbers; valid are four for each plane, its normal "
            "and its offset"
        )
    rows = [numbers[k : k + 4] for k in range(0, len(numbers), 4)]
    planes = [Plane((x, y, z), offset, *each) for x, y, z, offset in rows]
    return ContactPlanes(model, planes, settings.contact_links, step=step)


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
    dampings = settings.drive_damping * model.effort_limits / model.velocity_limits
    return {
        joint.name: float(damping)
        for joint, damping in zip(model.joints, dampings, strict=True)
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
        stribeck=for_each("stribeck", settings.stribeck, model.n),
        stribeck_speed=settings.stribeck_speed,
        load_friction=for_each("load_friction", settings.load_friction, model.n),
        stops=settings.joint_stops,
        stop_time=settings.stop_time,
    )


class EffortCommands:
    """The commands in force, by joint; zero until the first one comes.

    ``joints`` (empty: all) gives the order of commands without names. ``timeout`` in s of simulated
    time: after that time without a valid command efforts are zero; 0: the last one holds.

    Raises UnknownJointError if ``joints`` has a name that is not among ``joint_names``.
    """

    def __init__(
        self, joint_names: Sequence[str], joints: Sequence[str] = (), timeout: float = 0.0
    ) -> None:
        self.joint_names = tuple(joint_names)
        self.joints = tuple(joints) or self.joint_names
        self.timeout = timeout
        self.accepted = 0
        self.rejected = 0
        self.latest: float | None = None
        """Simulated time in s of the latest valid command; None if there was none."""
        self.commanded: set[str] = set()
        """The joints that valid commands have named since the start or a reset."""
        self._places = {name: k for k, name in enumerate(self.joint_names)}
        UnknownJointError.check(self.joints, self.joint_names)
        self._efforts = np.zeros(len(self.joint_names))

    def reset(self) -> None:
        """Forget all commands."""
        self._efforts = np.zeros(len(self.joint_names))
        self.latest = None
        self.commanded.clear()

    def set(
        self, efforts: Sequence[float], now: float, names: Sequence[str] | None = None
    ) -> Rejection | None:
        """Store efforts of these joints, by default ``joints``, or return why they are refused.

        Other joints keep theirs.
        """
        names = self.joints if names is None else names
        if len(efforts) != len(names) or not names:
            message = f"{len(efforts)} efforts for {len(names)} joints: {listed(names)}"
            return self._refuse("length", message)
        unknown = [name for name in names if name not in self._places]
        if unknown:
            return self._refuse(
                "unknown_joints",
                f"no joints {listed(unknown)}; the joints are: {listed(self.joint_names)}",
            )
        twice = sorted(name for name, times in Counter(names).items() if times > 1)
        if twice:
            return self._refuse("duplicate_joints", f"named more than once: {listed(twice)}")
        if not math.hypot(*efforts) < LARGEST:  # nor is it for NaN
            return self._refuse(*wild_numbers("effort", names, efforts))
        if self.expired(now):
            self._efforts = np.zeros(len(self.joint_names))
        for name, effort in zip(names, efforts, strict=True):
            self._efforts[self._places[name]] = effort
        self.commanded.update(names)
        self.accepted += 1
        self.latest = now
        return None

    def at(self, now: float) -> FloatArray:
        """Return the efforts (n,) in force at a simulated time in s."""
        if self.expired(now):
            return np.zeros(len(self.joint_names))
        return self._efforts

    def expired(self, now: float) -> bool:
        """Return whether the latest command is older than the timeout."""
        return self.latest is not None and 0.0 < self.timeout < now - self.latest

    def _refuse(self, kind: str, reason: str) -> Rejection:
        self.rejected += 1
        return Rejection(kind, reason)


class Pace(NamedTuple):
    """Pace of a simulation since the report before."""

    rate: float
    """Periods per second of real time."""
    wanted: float
    """The wanted number."""
    load: float
    """Share of the time for computing and publishing."""
    lost: float
    """Lag in s that was not caught up."""

    @property
    def too_slow(self) -> bool:
        """Whether simulated time fell behind."""
        return self.lost > 0.0 or self.rate < SLOW * self.wanted


class Pacer:
    """Counts the periods of simulated time that are due. Times are those of one steady clock, in s.

    ``period`` is simulated; ``factor`` is simulated seconds per second. Late periods are caught up,
    up to LONGEST_LAG, so that jitter has no effect.
    """

    def __init__(self, period: float, factor: float, now: float) -> None:
        self.period = period
        self.change(factor, now)

    @property
    def interval(self) -> float:
        """Seconds between two periods."""
        return self.period / self._factor

    def change(self, factor: float, now: float) -> None:
        """Change the pace and restart the counts."""
        self._factor = factor
        self._start, self._done = now, 0
        self._since, self._periods, self._busy, self._lost = now, 0, 0.0, 0.0

    def due(self, now: float) -> int:
        """Return how many periods are due now, the one that is nearest included."""
        due = math.floor((now - self._start) / self.interval + 0.5) - self._done
        most = max(1, math.ceil(LONGEST_LAG / self.interval))
        if due > most:
            self._lost += (due - most) * self.interval
            self._done += due - most
            due = most
        return max(due, 0)

    def did(self, periods: int, seconds: float) -> None:
        """Record simulated periods, and the time in s that they took."""
        self._done += periods
        self._periods += periods
        self._busy += seconds

    def report(self, now: float) -> Pace:
        """Return the pace, and begin the next report."""
        elapsed = max(now - self._since, 1e-9)
        pace = Pace(
            rate=self._periods / elapsed,
            wanted=1.0 / self.interval,
            load=self._busy / elapsed,
            lost=self._lost,
        )
        self._since, self._periods, self._busy, self._lost = now, 0, 0.0, 0.0
        return pace
