# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The law of gravity compensation.

    gravity = scale g(q)
    damping = -D qd - s M(q) qd
    assist  = friction compensation - springs near the position limits

Gravity torques hold the arm. Damping only dissipates energy; s fades to zero after enabling. Assist
can add energy. The three are kept apart, since a robot that is released may have damping, but no
assist, and a robot whose state is not known neither. Gravity, loads and gains change along a ramp,
so that no step of theirs becomes a step of torque.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import mul
from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.verification import verify
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.control.environment import payload_parameters
from mbs_dynamics.control.friction import FrictionCompensation
from mbs_dynamics.control.policy import Torques
from mbs_dynamics.control.settings import ArmSettings
from mbs_dynamics.errors import ModelError
from mbs_dynamics.model.coordinates import bounded
from mbs_dynamics.model.model import Model, without_payloads

SETTLING = 0.1
"""Time constant in s of the settling damping."""

PERIODS = 5.0
"""Smallest time constant of the settling damping in periods of the states, for stability."""


class Gains(NamedTuple):
    """Coefficients of the law for n commanded joints."""

    scale: tuple[float, ...]
    """(n,) share of the gravity torques; 1 compensates them fully."""
    damping: tuple[float, ...]
    """(n,) in N m s/rad or N s/m."""
    friction: tuple[float, ...]
    """(n,) Coulomb friction, in N m or N."""
    share: tuple[float, ...]
    """(n,) share of the friction that is compensated."""


class Slew:
    """A vector that moves to each new goal along a straight line, in a given time.

    Its value is a function of time alone: reading it changes nothing.
    """

    def __init__(self, value: FloatArray) -> None:
        self._from = self.goal = np.array(value, dtype=float)
        self._begin = self._duration = 0.0

    def aim(self, goal: FloatArray, now: float, duration: float) -> None:
        """Begin to move to another goal; at once if the duration is 0."""
        self._from = self.at(now)
        self.goal = np.array(goal, dtype=float)
        self._begin, self._duration = now, duration

    def moving(self, now: float) -> bool:
        """Return whether the vector is still on its way at this time."""
        return now - self._begin < self._duration

    def at(self, now: float) -> FloatArray:
        """Return the vector at this time; the same array as long as it rests."""
        if not self.moving(now):
            return self.goal
        share = max(0.0, now - self._begin) / self._duration
        return np.asarray(self._from + share * (self.goal - self._from))


class Springs:
    """Soft springs that begin a little before the position limits of the commanded joints.

    A joint within ``zone`` rad or m of a limit, or beyond it, is pushed back by
    Lambda (w^2 x + 2 w v x / zone), with its depth x, its outward speed v, the inertia Lambda that
    it has with the other joints free, and w the ``frequency`` in rad/s. So they act alike on a
    wrist and on a shoulder, and are stable if w is well below the rate of the joint states.
    """

    def __init__(self, model: Model, joints: Sequence[int], zone: float, frequency: float) -> None:
        self._limits = [
            (place, k, float(model.lower[k]), float(model.upper[k]))
            for place, k in enumerate(joints)
            if bounded(model.lower, model.upper)[k]
        ]
        off = not (zone and frequency)
        self._shape = Slew(np.array([zone, 0.0 if off else frequency]))
        """Zone and frequency; without springs the frequency is 0."""
        self._shape_read: FloatArray | None = None
        self._widened: dict[int, tuple[float, float]] = {}
        """Positions between which springs of joints do not act until these are within their range,
        by coordinate."""
        self._rows: list[tuple[int, int, float, float]] = []

    def aim(self, zone: float, frequency: float, now: float, duration: float) -> None:
        """Move to springs of another zone or frequency, in ``duration`` s."""
        before, stiffness = self._shape.goal.tolist()
        goal = [zone, frequency] if zone and frequency else [before, 0.0]
        if goal == [before, stiffness]:
            return
        if not stiffness and not self._shape.moving(now):  # there were none
            self._shape = Slew(np.array([zone, 0.0]))
        self._shape.aim(np.array(goal), now, duration)

    def begin(self, q: Sequence[float]) -> None:
        """Start the springs of joints near a limit at their present positions.

        As these joints move inwards, so do the positions at which their springs start.
        """
        self._widened = {k: (q[k], q[k]) for _, k, _, _ in self._limits}
        self._shape_read = None

    def steady(self, now: float) -> bool:
        """Return whether all springs start where they do for good."""
        return not (self._widened or self._shape.moving(now))

    def rows(self, q: Sequence[float], now: float) -> list[tuple[int, int, float, float]]:
        """Return place among the commanded joints, coordinate, and where the springs begin.

        ``q`` (n,) are the present positions. The list is the same as long as the springs are.
        """
        shape = self._shape.at(now)
        if shape is self._shape_read and not self._widened:
            return self._rows
        self._shape_read = shape
        zone, frequency = shape.tolist()
        self._rows, widened = [], {}
        for place, k, lower, upper in self._limits if frequency else ():
            width = min(zone, 0.25 * (upper - lower))
            low, high = lower + width, upper - width
            if k in self._widened:
                begin, end = self._widened[k]
                begin, end = max(begin, min(q[k], low)), min(end, max(q[k], high))
                if begin < low or end > high:
                    widened[k] = begin, end
                low, high = min(low, begin), max(high, end)
            self._rows.append((place, k, low, high))
        self._widened = widened
        return self._rows

    def pressed(self, q: Sequence[float], now: float) -> list[tuple[int, float]]:
        """Return place and depth of the springs that act; the depth is negative below a limit."""
        return [
            (place, q[k] - (low if q[k] < low else high))
            for place, k, low, high in self.rows(q, now)
            if not low <= q[k] <= high
        ]

    def torque(self, depth: float, rate: float, inertia: float, now: float) -> float:
        """Return the torque of one spring, with the joint's own inertia in kg m^2 or kg."""
        zone, w = self._shape.at(now).tolist()
        share = min(1.0, abs(depth) / zone)
        return -inertia * float(w * w * depth + 2.0 * w * rate * share)


class Gravity:
    """Gravity compensation, as a law of a guarded arm.

    ``options`` are settings of the arm, as one value, one for each joint, or by name of the joint:
    ``gravity_scale``, ``damping`` in N m s/rad, ``friction`` in N m, ``friction_scale``,
    ``friction_speed``, ``stribeck``, ``stribeck_speed``, ``load_friction``, ``breakaway``,
    ``dither``, ``dither_frequency``, ``velocity_filter``, ``limit_zone``, ``limit_frequency``,
    ``settle_time``.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options


class GravityLaw:
    """The law of the torques of one robot for its commanded joints.

    Parameters: ``joints`` are the coordinates of the joints of ``settings``. The kernel has inputs
    for loads at every body, so that a new load compiles nothing. Gravity and loads are those of the
    model until others are aimed at. Raises ModelError for a robot without joints.
    """

    def __init__(self, model: Model, joints: Sequence[int], settings: ArmSettings) -> None:
        if model.n == 0:
            raise ModelError(f"robot {model.name!r} has no joint that moves")
        self.gravity = Slew(np.asarray(model.gravity))
        self.loads = Slew(payload_parameters(model))
        self._model, self._joints = model, tuple(joints)
        self._all_joints = self._joints == tuple(range(model.n))
        self._commanded = np.ix_(self._joints, self._joints)
        self._gains = Slew(np.array(self._gains_of(settings)))
        self._gains_read: tuple[FloatArray, Gains] | None = None
        """The vector of gains that was read last, and the same as tuples."""
        self._settling = Slew(np.zeros(()))
        self.friction = FrictionCompensation(settings)
        zone, frequency = settings.limit_zone, settings.limit_frequency
        self.springs = Springs(model, joints, zone, frequency)
        self.algorithm = ""
        self.apply(settings)

    def apply(self, settings: ArmSettings) -> None:
        """Use the settings that take effect at once, which are all but gains and springs."""
        self.compute_by(settings.algorithm)
        self.friction.apply(settings)

    def _gains_of(self, settings: ArmSettings) -> Gains:
        """Return the gains that settings ask for; friction that is not set is the URDF's."""
        friction = tuple(
            self._model.joints[k].friction if own < 0.0 else own
            for own, k in zip(settings.friction, self._joints, strict=True)
        )
        shares = (settings.friction_scale,) * len(friction)
        return Gains(settings.gravity_scale, settings.damping, friction, shares)

    def compiled(self, algorithm: str) -> tuple[Kernel, Kernel]:
        """Return the gravity torques and the mass matrix, compiled in a representation.

        Raises BackendError if what was compiled differs from the equations.
        """
        unloaded = carrying = without_payloads(self._model)
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
        self.kernel, self._mass_matrix = self.compiled(algorithm)
        self.algorithm = algorithm
        sources = {"gravity": self.gravity, "payload": self.loads}
        names = [port.name for port in self.kernel.inputs if port.name in sources]
        self._takes = {name: sources[name] for name in names}
        zero = np.zeros(self._model.n)
        # the first calls load libraries, which must not happen while torques are on
        self.goal_torques(zero)
        self._mobility(zero)

    def aim(self, settings: ArmSettings, now: float, duration: float) -> None:
        """Move to the gains and the springs that other settings ask for."""
        self._gains.aim(np.array(self._gains_of(settings)), now, duration)
        self.springs.aim(settings.limit_zone, settings.limit_frequency, now, duration)

    def settle(self, now: float, duration: float, period: float) -> None:
        """Damp the momentum of the arm for ``duration`` seconds, with a coefficient that fades.

        -s M qd slows all joints alike in any posture. ``period`` in s is that of the joint
        states.
        """
        self._settling = Slew(np.array(1.0 / max(SETTLING, PERIODS * period) if duration else 0.0))
        self._settling.aim(np.zeros(()), now, duration)

    def gains(self, now: float) -> Gains:
        """Return the gains in force; the same object as long as they rest."""
        vector = self._gains.at(now)
        if self._gains_read is None or self._gains_read[0] is not vector:
            self._gains_read = vector, Gains(*map(tuple, vector.tolist()))
        return self._gains_read[1]

    def steady(self, now: float) -> bool:
        """Return whether torques follow from gains and springs that rest, without settling."""
        moving = self._gains.moving(now) or self._settling.moving(now)
        return not moving and self.springs.steady(now)

    def goal_inputs(self) -> list[FloatArray]:
        """Return the inputs of the kernel beside q once all ramps are over."""
        return [source.goal for source in self._takes.values()]

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
        g = self.kernel(q, *arguments).tolist()
        scale = self._gains.goal[0].tolist()
        return [s * g[k] for s, k in zip(scale, self._joints, strict=True)]

    def gravity_torques(self, q: FloatArray, now: float) -> FloatArray:
        """Return the gravity torques (n,) of all joints at q (n,), not scaled."""
        g: FloatArray = self.kernel(q, *[source.at(now) for source in self._takes.values()])
        return g

    def holding_torques(self, q: FloatArray, now: float) -> list[float]:
        """Return the scaled gravity torques of the commanded joints at q (n,)."""
        g = self.gravity_torques(q, now).tolist()
        return [s * g[k] for s, k in zip(self.gains(now).scale, self._joints, strict=True)]

    def torques(
        self,
        q: FloatArray,
        positions: Sequence[float],
        rates: Sequence[float],
        now: float,
        efforts: Sequence[float] = (),
    ) -> Torques:
        """Return the torques of the commanded joints.

        ``q`` and ``positions`` are the same positions, ``rates`` the velocities and ``efforts`` the
        measured ones, NaN where unknown, each (n,) for all coordinates of the model.
        """
        g = self.gravity_torques(q, now).tolist()
        scales, dampings, frictions, shares = self.gains(now)
        joints = self._joints
        if not self._all_joints:
            g, rates = [g[k] for k in joints], [rates[k] for k in joints]
        gravity = list(map(mul, scales, g))
        damping: list[float] = []
        if any(dampings):
            damping = [-d * rate for d, rate in zip(dampings, rates, strict=True)]
        if self._settling.moving(now):
            momentum = self._mass_matrix(q)[self._commanded] @ rates
            settled = (float(self._settling.at(now)) * momentum).tolist()
            before = damping or [0.0] * len(joints)
            damping = [x - y for x, y in zip(before, settled, strict=True)]
        assist: list[float] = []
        if any(shares) and (self.friction.loaded or any(frictions)):
            measured = [efforts[k] for k in joints] if efforts else [math.nan] * len(joints)
            assist = self.friction.torques(rates, measured, g, now, shares, frictions)
        pressed = self.springs.pressed(positions, now)
        if pressed:
            assist = assist or [0.0] * len(joints)
            mobility = self._mobility(q)
            for place, depth in pressed:
                if mobility[place] > 0.0:
                    inertia = 1.0 / mobility[place]
                    assist[place] += self.springs.torque(depth, rates[place], inertia, now)
        return Torques(gravity, damping, assist)

    def _mobility(self, q: FloatArray) -> list[float]:
        """Return the inverse inertia of each commanded joint with the others free, at q (n,)."""
        M = self._mass_matrix(q)[self._commanded]
        mobility: list[float] = np.diag(np.linalg.pinv(M, hermitian=True)).tolist()
        return mobility
