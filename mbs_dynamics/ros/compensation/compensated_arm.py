# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A robot under gravity compensation: the law of its torques, its limits and checks. No ROS here.

    gravity = scale g(q)
    damping = -D qd - s M(q) qd
    assist  = F tanh(qd / v0) - springs near the position limits

Gravity torques hold the arm. Damping only dissipates energy; s fades to zero after enabling. Assist
can add energy. The three are kept apart, since a robot that is released may have damping, but no
assist, and a robot whose state is not known neither. Gravity, loads and gains change along a ramp,
so that no step of theirs becomes a step of torque.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.verification import verify
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, default_backend
from mbs_dynamics.errors import ModelError, UnknownJointError
from mbs_dynamics.model.body import Body
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.description import STANDARD_GRAVITY
from mbs_dynamics.model.model import Model
from mbs_dynamics.ros.compensation.command_policy import Torques
from mbs_dynamics.ros.compensation.input_checks import Continuity, Envelope, Periods, Speeds
from mbs_dynamics.ros.compensation.interface import RATE_SHARE, GravityCompensationSettings
from mbs_dynamics.ros.joint_input import JointInput
from mbs_dynamics.ros.performance import Cost
from mbs_dynamics.ros.robot_description import Load, under_load

SETTLING = 0.1
"""Time constant in s of the settling damping."""

PERIODS = 5.0
"""Smallest time constant of the settling damping in periods of the joint states, for stability."""

EFFORT_FLOOR = 0.02
"""Largest accepted error of a measured effort, as a share of its limit: noise and friction."""


class Gains(NamedTuple):
    """Coefficients of the law for n commanded joints."""

    scale: tuple[float, ...]
    """(n,) share of the gravity torques; 1 compensates them fully."""
    damping: tuple[float, ...]
    """(n,) in N m s/rad or N s/m."""
    friction: tuple[float, ...]
    """(n,) Coulomb friction to be compensated, in N m or N."""


class Slew:
    """A vector that moves to each new goal along a straight line, in a given time."""

    def __init__(self, value: FloatArray) -> None:
        self._from = self.goal = self._value = np.array(value, dtype=float)
        self._begin = self._duration = 0.0
        self.moving = False

    def aim(self, goal: FloatArray, now: float, duration: float) -> None:
        """Begin to move to another goal; at once if the duration is 0."""
        self._from = self.at(now)
        self.goal = np.array(goal, dtype=float)
        self._begin, self._duration = now, duration
        self.moving = True

    def at(self, now: float) -> FloatArray:
        """Return the vector at this time."""
        if self.moving:
            elapsed = now - self._begin
            if elapsed >= self._duration:
                self._value, self.moving = self.goal, False
            else:
                share = max(0.0, elapsed) / self._duration
                self._value = self._from + share * (self.goal - self._from)
        return self._value


class Springs:
    """Soft springs that begin a little before the position limits of the commanded joints.

    A joint within ``zone`` rad or m of a limit, or beyond it, is pushed back by
    Lambda (w^2 x + 2 w v x / zone), with its depth x, its outward speed v, the inertia Lambda that
    it has with the other joints free, and w the ``frequency`` in rad/s. So they act alike on a
    wrist and on a shoulder, and are stable if w is well below the rate of the joint states.
    """

    def __init__(self, model: Model, joints: Sequence[int], zone: float, frequency: float) -> None:
        self._frequency = frequency
        self._rows: list[tuple[int, int, float, float]] = []
        """Place among the commanded joints, coordinate, and where its springs begin."""
        self._zone = zone
        for place, k in enumerate(joints if frequency and zone else ()):
            lower, upper = float(model.lower[k]), float(model.upper[k])
            if bounded(model.lower, model.upper)[k]:
                width = min(zone, 0.25 * (upper - lower))
                self._rows.append((place, k, lower + width, upper - width))

    def begin(self, q: Sequence[float]) -> None:
        """Start the springs of joints near a limit at their present positions."""
        self._rows = [
            (place, k, min(low, q[k]), max(high, q[k])) for place, k, low, high in self._rows
        ]

    def pressed(self, q: Sequence[float]) -> list[tuple[int, int, float]]:
        """Return place, coordinate and depth of the springs that act; negative below a limit."""
        return [
            (place, k, q[k] - (low if q[k] < low else high))
            for place, k, low, high in self._rows
            if not low <= q[k] <= high
        ]

    def torque(self, depth: float, rate: float, inertia: float) -> float:
        """Return the torque of one spring, with the joint's own inertia in kg m^2 or kg."""
        w = self._frequency
        share = min(1.0, abs(depth) / self._zone)
        return -inertia * (w * w * depth + 2.0 * w * rate * share)


class TorqueLaw:
    """The law of the torques of one robot for its commanded joints.

    Parameters: ``joints`` are the coordinates of the commanded joints, in their order; ``speed`` is
    v0 in rad/s or m/s, at which friction has reached 76 %. The kernel has inputs for loads at every
    body, so that a new load compiles nothing. Gravity is standard gravity and there are no loads
    until they are aimed at. ``algorithm`` is the representation of the recursions. Raises
    ModelError for a robot without joints.
    """

    def __init__(
        self,
        model: Model,
        joints: Sequence[int],
        gains: Gains,
        speed: float,
        springs: Springs,
        algorithm: str = "auto",
    ) -> None:
        if model.n == 0:
            raise ModelError(f"robot {model.name!r} has no joint that moves")
        self.speed = speed
        self.springs = springs
        self.gravity = Slew(np.array(STANDARD_GRAVITY, dtype=float))
        self.loads = Slew(np.zeros((model.nb, 10)))
        self._joints = tuple(joints)
        self._commanded = np.ix_(self._joints, self._joints)
        self._gains = Slew(np.array(gains))
        self._current = gains
        self._settling = Slew(np.zeros(()))
        self._model = model
        self.algorithm = ""
        self.compute_by(algorithm)

    def compiled(self, algorithm: str) -> tuple[Kernel, Kernel]:
        """Return the gravity torques and the mass matrix, compiled in a representation.

        Raises BackendError if what was compiled differs from the equations.
        """
        unloaded = carrying = self._model.without_payloads()
        for body in carrying.body_names:
            carrying = carrying.with_payload(body, 0.0)
        torques = mbs.compile(mbs.gravity_torques, carrying, representation=algorithm)
        verify(torques, mbs.gravity_torques, carrying)
        mass_matrix = mbs.compile(mbs.mass_matrix, unloaded, representation=algorithm)
        verify(mass_matrix, mbs.mass_matrix, unloaded)
        return torques, mass_matrix

    def compute_by(self, algorithm: str) -> None:
        """Evaluate the recursions in this representation; see :meth:`compiled`."""
        if algorithm == self.algorithm:
            return
        self._kernel, self._mass_matrix = self.compiled(algorithm)
        self.algorithm = algorithm
        sources = {"gravity": self.gravity, "payload": self.loads}
        names = [port.name for port in self._kernel.inputs if port.name in sources]
        self._takes = {name: sources[name] for name in names}
        zero = np.zeros(self._model.n)
        # the first calls load libraries, which must not happen while torques are on
        self.goal_torques(zero)
        self._mobility(zero)

    def cost(self, q: FloatArray) -> Cost:
        """Return the cost of the gravity torques, measured at q (n,)."""
        return Cost.of(self._kernel, q, *[source.goal for source in self._takes.values()])

    def aim(self, gains: Gains, now: float, duration: float) -> None:
        """Move to other gains."""
        self._gains.aim(np.array(gains), now, duration)

    def settle(self, now: float, duration: float, period: float) -> None:
        """Damp the momentum of the arm for ``duration`` seconds, with a coefficient that fades.

        -s M qd slows all joints alike in any posture. ``period`` in s is that of the joint
        states.
        """
        self._settling = Slew(np.array(1.0 / max(SETTLING, PERIODS * period) if duration else 0.0))
        self._settling.aim(np.zeros(()), now, duration)

    def goal_torques(
        self, q: FloatArray, gravity: FloatArray | None = None, loads: FloatArray | None = None
    ) -> list[float]:
        """Return the gravity torques of the commanded joints at q (n,) once all ramps are over.

        ``gravity`` (3,) and ``loads`` (nb, 10) are those that are aimed at where none are given.
        """
        given = {"gravity": gravity, "payload": loads}
        arguments = []
        for name, source in self._takes.items():
            value = given[name]
            arguments.append(source.goal if value is None else value)
        g = self._kernel(q, *arguments).tolist()
        scale = self._gains.goal[0].tolist()
        return [s * g[k] for s, k in zip(scale, self._joints, strict=True)]

    def torques(
        self, q: FloatArray, positions: Sequence[float], rates: Sequence[float], now: float
    ) -> Torques:
        """Return the torques of the commanded joints.

        ``q`` and ``positions`` are the same positions, ``rates`` the velocities, each (n,) for all
        coordinates of the model.
        """
        if self._gains.moving:
            self._current = Gains(*map(tuple, self._gains.at(now).tolist()))
        g = self._kernel(q, *[source.at(now) for source in self._takes.values()]).tolist()
        scales, dampings, frictions = self._current
        joints = self._joints
        gravity = [scale * g[k] for scale, k in zip(scales, joints, strict=True)]
        damping: list[float] = []
        if any(dampings):
            damping = [-d * rates[k] for d, k in zip(dampings, joints, strict=True)]
        if self._settling.moving:
            momentum = self._mass_matrix(q)[self._commanded] @ [rates[k] for k in joints]
            settled = (float(self._settling.at(now)) * momentum).tolist()
            before = damping or [0.0] * len(joints)
            damping = [x - y for x, y in zip(before, settled, strict=True)]
        assist: list[float] = []
        if any(frictions):
            speed = self.speed
            pairs = zip(frictions, joints, strict=True)
            assist = [friction * math.tanh(rates[k] / speed) for friction, k in pairs]
        pressed = self.springs.pressed(positions)
        if pressed:
            assist = assist or [0.0] * len(joints)
            mobility = self._mobility(q)
            for place, k, depth in pressed:
                if mobility[place] > 0.0:
                    inertia = 1.0 / mobility[place]
                    assist[place] += self.springs.torque(depth, rates[k], inertia)
        return Torques(gravity, damping, assist)

    def _mobility(self, q: FloatArray) -> list[float]:
        """Return the inverse inertia of each commanded joint with the others free, at q (n,)."""
        M = self._mass_matrix(q)[self._commanded]
        mobility: list[float] = np.diag(np.linalg.pinv(M, hermitian=True)).tolist()
        return mobility


def same_robot(one: Model, other: Model) -> bool:
    """Return whether two models have the same bodies, joints, limits and frames, by name."""
    frames = [
        {name: (frame.body, frame.placement.tobytes()) for name, frame in model.frames.items()}
        for model in (one, other)
    ]
    return frames[0] == frames[1] and [*map(_identity, one.bodies)] == [
        *map(_identity, other.bodies)
    ]


def _identity(body: Body) -> tuple[object, ...]:
    joint = body.joint
    return (
        (body.name, body.parent, body.home_rel.tobytes(), body.inertia.parameters.tobytes()),
        (joint.name, joint.screw.tobytes(), joint.coordinate, joint.mimics, joint.ratio),
        (joint.offset, joint.limits, joint.damping, joint.friction),
    )


class CompensatedArm:
    """A model with its commanded joints, their torques, limits and checks.

    Raises UnknownJointError if a joint to be commanded or a fixed one is not in the model,
    ModelError if a joint to be commanded mimics another one or if no joint moves.
    """

    def __init__(self, model: Model, settings: GravityCompensationSettings) -> None:
        self.model = model
        self.joints = [_coordinate(model, name) for name in settings.joints]
        gains, springs = self.gains(settings), self._springs(settings)
        self.law = TorqueLaw(
            model, self.joints, gains, settings.friction_speed, springs, settings.algorithm
        )
        self.input = JointInput.of_model(
            model,
            stale_timeout=settings.stale_timeout,
            velocity_from_position=settings.velocity_from_position,
            answering=self.joints or None,
            others_timeout=settings.other_joints_timeout,
            fixed=settings.fixed,
        )
        self.continuity = Continuity(model)
        self.speeds = Speeds(model, self.joints)
        self.periods = Periods(len(self.joints))
        self.backend = default_backend()
        self._fastest = model.velocity_limits.tolist()
        self._least = min(self._fastest)
        self._smooth: Sequence[float] = ()
        self._smoothed_at = 0
        self.adapt(settings)

    def adapt(self, settings: GravityCompensationSettings) -> None:
        """Apply the settings that take effect at once: timeouts, margins, limits, the algorithm."""
        self.law.compute_by(settings.algorithm)
        self.input.stale_timeout = settings.stale_timeout
        self.input.others_timeout = settings.other_joints_timeout
        self.input.velocity_from_position = settings.velocity_from_position
        self.law.speed = settings.friction_speed
        self.law.springs = self._springs(settings)
        self.envelope = Envelope(self.model, self.joints, settings.position_margin)
        stated = self.model.effort_limits.tolist()
        self.efforts = tuple(
            settings.effort_scale * (own or (stated[k] if math.isfinite(stated[k]) else 0.0))
            for own, k in zip(settings.effort_limits, self.joints, strict=True)
        )
        self.rates = tuple(settings.effort_rate_limit or RATE_SHARE * x for x in self.efforts)
        self.heaviest = settings.max_payload or self.model.total_mass

    def largest_values(self, settings: GravityCompensationSettings) -> dict[str, float]:
        """Return the largest useful values of parameters: what the limits of the arm allow.

        Damping exerts the effort limit at the velocity limit; infinite where no limit is stated.
        """
        found, efforts = {"max_payload": self.model.total_mass or math.inf}, []
        for own, k in zip(settings.effort_limits, self.joints, strict=True):
            name, effort = self.model.joint_names[k], float(self.model.effort_limits[k])
            efforts.append(own or effort)
            found[f"effort_limits.{name}"] = effort
            found[f"friction.{name}"] = efforts[-1]
            fastest = self._fastest[k]
            found[f"damping.{name}"] = efforts[-1] / fastest if fastest < math.inf else math.inf
        found["effort_rate_limit"] = RATE_SHARE * max(efforts, default=math.inf)
        return found

    def _springs(self, settings: GravityCompensationSettings) -> Springs:
        return Springs(self.model, self.joints, settings.limit_zone, settings.limit_frequency)

    def gains(self, settings: GravityCompensationSettings) -> Gains:
        """Return the gains that the settings ask for; friction that is not set is the URDF's."""
        friction = tuple(
            settings.friction_scale * (self.model.joints[k].friction if own < 0.0 else own)
            for own, k in zip(settings.friction, self.joints, strict=True)
        )
        return Gains(settings.gravity_scale, settings.damping, friction)

    def damped_rates(self, rates: Sequence[float], stamp: int, constant: float) -> Sequence[float]:
        """Return the velocities (n,) for damping: within the limits, and low-pass filtered.

        An impossible velocity of a sensor must not cause a large torque.
        ``stamp`` in ns is that of the measurement, ``constant`` the time constant in s.
        """
        within = rates
        if max(rates) > self._least or -min(rates) > self._least:
            pairs = zip(rates, self._fastest, strict=True)
            within = [min(fastest, max(-fastest, rate)) for rate, fastest in pairs]
        elapsed = 1e-9 * (stamp - self._smoothed_at)
        self._smoothed_at = stamp
        if constant > 0.0 and self._smooth and 0.0 < elapsed < 20.0 * constant:
            share = 1.0 - math.exp(-elapsed / constant)
            within = [x + share * (y - x) for x, y in zip(self._smooth, within, strict=True)]
        self._smooth = within
        return within

    def loads_goal(self, loads: Sequence[Load]) -> FloatArray:
        """Return the inertial parameters (nb, 10) of loads, one a link, added up for each body.

        Raises what :func:`under_load` raises, and ModelError if they are too heavy together.
        """
        mass = sum(load.mass for load in loads)
        if mass > self.heaviest:
            links = " and ".join(repr(load.link) for load in loads)
            raise ModelError(
                f"the payload at {links} has a mass of {mass:g} kg; valid is at most "
                f"{self.heaviest:.4g}, see max_payload. Are these grams?"
            )
        carrying = self.model.without_payloads()
        for load in loads:
            carrying = under_load(carrying, load)
        goal = np.zeros((self.model.nb, 10))
        goal[list(carrying.payloads.bodies)] = carrying.payloads.parameters
        return goal

    def overload(
        self, q: FloatArray, gravity: FloatArray | None = None, loads: FloatArray | None = None
    ) -> str:
        """Return the joints that could not hold the robot at q (n,); empty if all can.

        ``gravity`` (3,) and ``loads`` (nb, 10) are those that are aimed at where none are given.
        """
        torques = self.law.goal_torques(q, gravity, loads)
        rows = zip(self.joints, torques, self.efforts, strict=True)
        return "; ".join(
            f"{self.model.joints[k].name} needs {x:.4g} against gravity, and its effort limit is "
            f"{most:.4g}"
            for k, x, most in rows
            if not abs(x) <= most
        )

    def effort_mismatch(self, q: FloatArray, efforts: Sequence[float], tolerance: float) -> str:
        """Return the measured effort (n,) that contradicts the gravity torques at q (n,) most.

        Empty if all agree. Both are compared as shares of the effort limits, within ``tolerance``
        times the largest share of a gravity torque, and EFFORT_FLOOR.
        """
        needed = self.law.goal_torques(q)
        largest = max(abs(x) / most for x, most in zip(needed, self.efforts, strict=True))
        bound = EFFORT_FLOOR + tolerance * largest
        worst, said = bound, ""
        for k, x, most in zip(self.joints, needed, self.efforts, strict=True):
            share = abs(efforts[k] - x) / most
            if not share <= worst:
                worst = share
                said = (
                    f"{self.model.joints[k].name} measures {efforts[k]:.4g}, and {x:.4g} would "
                    f"hold it against gravity; valid is within {bound * most:.4g}"
                )
        return said

    def bears_nothing(self, efforts: Sequence[float]) -> bool:
        """Return whether measured efforts (n,) are next to nothing."""
        rows = zip(self.joints, self.efforts, strict=True)
        return all(abs(efforts[k]) <= EFFORT_FLOOR * most for k, most in rows)


def _coordinate(model: Model, name: str) -> int:
    if name in model.joint_names:
        return model.joint_names.index(name)
    try:
        joint = model.joint(name)
    except UnknownJointError:
        raise UnknownJointError(name, model.joint_names) from None
    raise ModelError(
        f"joint {name!r} follows joint {joint.mimics!r} and cannot be commanded; valid are "
        f"{', '.join(model.joint_names)}"
    )
