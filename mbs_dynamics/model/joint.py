# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""One joint with one degree of freedom: a lower pair, or one factor of a macro joint."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.values import Value


class Limits(NamedTuple):
    """Limits of a joint as stated by its description; None means not stated.

    Positions in rad or m, velocity in rad/s or m/s, effort in N m or N.
    """

    lower: float | None = None
    upper: float | None = None
    velocity: float | None = None
    effort: float | None = None


@dataclass(frozen=True, eq=False)
class Joint(Value):
    """A revolute, prismatic or screw joint.

    Its relative motion is exp(X_i q_i), with the joint screw X_i in the frame of the body that it
    moves: Mueller (kinematics), eqs. (4), (5).
    """

    name: str
    screw: FloatArray
    """(6,) X_i = (e, x cross e + h e), or (0, e) if prismatic; e of unit length."""
    coordinate: int
    """Index into q of the coordinate that drives this joint."""
    mimics: str | None = None
    """Name of the joint whose coordinate drives this one; None if it has its own."""
    ratio: float = 1.0
    """The joint's position is ``ratio * q[coordinate] + offset``."""
    offset: float = 0.0
    limits: Limits = field(default_factory=Limits)
    damping: float = 0.0
    """Viscous damping, N m s/rad or N s/m."""
    friction: float = 0.0
    """Coulomb friction, N m or N."""

    def __post_init__(self) -> None:
        X = checks.numbers(f"screw of joint {self.name!r}", self.screw, (6,))
        axis = X[:3] if X[:3].any() else X[3:]
        length = checks.unit_length(f"the axis of joint {self.name!r}", axis)
        object.__setattr__(self, "screw", checks.snap(X / length))

    @property
    def kind(self) -> str:
        """``"revolute"``, ``"prismatic"`` or ``"screw"``."""
        if not self.screw[:3].any():
            return "prismatic"
        return "revolute" if self.pitch == 0.0 else "screw"

    @property
    def pitch(self) -> float:
        """Translation per radian h, in m/rad; infinite for a prismatic joint."""
        if not self.screw[:3].any():
            return float("inf")
        h = float(self.screw[:3] @ self.screw[3:])
        return h if abs(h) > checks.SNAP_TOLERANCE else 0.0
