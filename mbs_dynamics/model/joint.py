# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joints: a motion subgroup, the coordinates that drive it, limits and resistance."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.subgroup import Subgroup
from mbs_dynamics.model.values import Value, frozen


class Limits(NamedTuple):
    """Limits of a joint as stated by its description; None means not stated.

    Positions in rad or m, velocity in rad/s or m/s, effort in N m or N.
    """

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None
    soft_gain: float | None = None
    """``k_velocity`` of the URDF's ``safety_controller``: efforts may be at most this gain times
    the difference of a speed from its limit, where a soft limiter is in force. 0 allows none."""

    @property
    def range(self) -> tuple[float, float]:
        """The lower and the upper position limit; infinite if not stated."""
        low, high = self.lower, self.upper
        return -inf if low is None else low, inf if high is None else high


@dataclass(frozen=True, eq=False)
class Joint(Value):
    """A joint with k degrees of freedom, which generates a subgroup of motions.

    Its relative motion g has the velocity g^-1 dg/dt = (S s)^, with the joint screws S in the frame
    of the body that it moves; for k = 1, g = exp(X_i q_i): Mueller (kinematics), eqs. (4), (5).
    """

    name: str
    group: Subgroup
    """The motion; :func:`one_screw` returns that of a joint with one degree of freedom."""
    coordinate: int
    """Index of its first velocity."""
    mimics: str | None = None
    """Name of the joint whose coordinate drives this one; None if it owns its coordinate."""
    ratio: float = 1.0
    """The joint's position is ``ratio`` times that of its coordinate, plus ``offset``; for joints
    with one degree of freedom."""
    offset: float = 0.0
    limits: Limits = field(default_factory=Limits)
    damping: float = 0.0
    """Viscous damping, N m s/rad or N s/m."""
    friction: float = 0.0
    """Coulomb friction, N m or N."""
    armature: float | FloatArray = 0.0
    """Inertia of the rotor at the joint, times the squared gear ratio, in kg m^2 or kg: one number,
    or one for each velocity."""

    def __post_init__(self) -> None:
        if self.nv > 1 and (self.mimics is not None or self.ratio != 1.0 or self.offset != 0.0):
            raise ModelError(
                f"joint {self.name!r} is {self.kind} and cannot mimic another one: it has "
                f"{self.nv} degrees of freedom"
            )
        if np.any(self.armature):
            shape = () if np.ndim(self.armature) == 0 else (self.nv,)
            armature = checks.numbers(f"armature of joint {self.name!r}", self.armature, shape)
            if armature.min() < 0.0:
                values = armature.tolist()
                raise ModelError(f"armature of joint {self.name!r} is negative; got {values}")
            object.__setattr__(self, "armature", frozen(armature) if shape else float(armature))

    @property
    def nv(self) -> int:
        """Number k of degrees of freedom."""
        return self.group.nv

    @property
    def nq(self) -> int:
        """Number of coordinates of its configuration."""
        return self.group.nq

    @property
    def screws(self) -> FloatArray:
        """(6, k) S, in the frame of the body."""
        return self.group.screws

    @property
    def screw(self) -> FloatArray:
        """(6,) X_i of a joint with one degree of freedom; ModelError for others."""
        if self.nv != 1:
            raise ModelError(f"joint {self.name!r} is {self.kind} and has {self.nv} screws")
        return self.screws[:, 0]

    @property
    def velocities(self) -> range:
        """Indices of its velocities, or of that of the joint that it mimics."""
        return range(self.coordinate, self.coordinate + self.nv)

    @property
    def kind(self) -> str:
        """One of the kinds of :class:`Subgroup`, such as ``"revolute"`` and ``"free"``."""
        return self.group.kind

    @property
    def turns(self) -> bool:
        """Whether it has one degree of freedom, and its position is an angle in rad."""
        return self.nv == 1 and bool(self.screws[:3].any())

    @property
    def is_periodic(self) -> bool:
        """Whether its position is an angle, and a whole turn changes nothing."""
        return self.turns and self.pitch == 0.0

    @property
    def pitch(self) -> float:
        """Translation per radian h, in m/rad, of a joint with one; infinite if prismatic."""
        return pitch_of(self.screw)

    def motion(self, q: Array) -> Array:
        """Return g (4, 4), the motion from the reference configuration, at positions q (nq,)."""
        return self.group.motion(q, self.name)


def one_screw(owner: str, screw: Any) -> Subgroup:
    """Return the subgroup that one screw (6,) generates: (e, x cross e + h e), or (0, e).

    Raises ModelError, naming the ``owner``, if the axis e is not of unit length.
    """
    X = checks.numbers(f"screw of {owner}", screw, (6,))
    axis = X[:3] if X[:3].any() else X[3:]
    X = checks.snap(X / checks.unit_length(f"the axis of {owner}", axis))
    kind = {0.0: "revolute", inf: "prismatic"}.get(pitch_of(X), "screw")
    return Subgroup(kind, X[:, None])


def pitch_of(X: FloatArray) -> float:
    """Return the pitch of a screw (6,), zero if it is rounding and infinite for a translation."""
    if not X[:3].any():
        return inf
    h = float(X[:3] @ X[3:])
    return h if abs(h) > checks.SNAP_TOLERANCE else 0.0
