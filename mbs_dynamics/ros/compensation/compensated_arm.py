# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""One robot of which gravity is compensated: what a description becomes. Knows no ROS."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import default_backend
from mbs_dynamics.errors import ModelError, UnknownJointError
from mbs_dynamics.model.body import Body
from mbs_dynamics.model.model import Model
from mbs_dynamics.ros.compensation.input_checks import Continuity, Envelope, Periods, Speeds
from mbs_dynamics.ros.compensation.interface import RATE_SHARE, GravityCompensationSettings
from mbs_dynamics.ros.compensation.torque_law import Gains, Springs, TorqueLaw
from mbs_dynamics.ros.joint_input import JointInput
from mbs_dynamics.ros.robot_description import Gravity, Load, root_gravity, under_load

EFFORT_FLOOR = 0.02
"""Share of an effort limit that a measured effort may be off at any time: noise and friction."""


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
    """A model, the joints that are commanded, and what is computed and watched for them.

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
        """Take up what takes effect at once: timeouts, margins and limits, and the algorithm."""
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
        """Return the velocities (n,) that damping takes: within the limits, and low-passed.

        A sensor that reports a speed that no joint can have must not become a torque against it.
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

    def gravity_goal(self, gravity: Gravity) -> FloatArray:
        """Return a gravity (3,) in m/s^2 in the axes of the root link.

        Raises UnknownBodyError for an unknown link, ModelError for one that moves, ArgumentError
        for numbers that cannot be.
        """
        return root_gravity(self.model, gravity)

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
        goal[list(carrying.loaded_bodies)] = carrying.payload_parameters
        return goal

    def overload(
        self, q: FloatArray, gravity: FloatArray | None = None, loads: FloatArray | None = None
    ) -> str:
        """Return which joints could not hold the robot at q (n,); empty if all can.

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
        """Return which measured efforts (n,) are not those that hold the robot at q (n,).

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
