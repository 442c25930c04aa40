# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity compensation for servos that take positions only.

A position servo is a spring: it sags by its torque over its stiffness. A goal that leads by this
sag brings it to the wanted position:

    goal = q + (tau(q, qd, qdd) + d qd + c qd / sqrt(qd^2 + v0^2)) / k + offset

The torques are those of the wanted motion, not of the measured one: without feedback, goals cannot
drift.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import mbs_dynamics as mbs
from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.period.torques import FRICTION_SPEED
from mbs_dynamics.errors import ArgumentError, UnknownJointError, listed
from mbs_dynamics.model.coordinates import bounded, check_arm
from mbs_dynamics.model.model import Model
from mbs_dynamics.yaml_files import read_yaml_file

FRICTION_SHARE = 0.7
"""Share of friction that is compensated: less than all, so that joints do not run ahead."""

FARTHEST = 0.3
"""Largest distance in rad or m between goals and wanted positions."""


class PositionArm:
    """Goals for an arm of position servos, so that it reaches the wanted positions.

    ``stiffness`` is that of the servos of all joints in N m/rad or N/m, by name, as
    ``identify_servos`` finds it. So are ``damping`` in N m s/rad, ``friction`` in N m, and
    ``offset``, the distance to the goal without torque, in rad; 0 for joints that they do not name.
    Friction is compensated in part while a joint is to move. Goals lead wanted positions by at
    most 0.3 rad or m and at most the sag at the effort limit, and are within the position limits.

    Raises ArgumentError for invalid values, UnknownJointError for unknown joints.
    """

    def __init__(
        self,
        model: Model,
        stiffness: Mapping[str, float],
        *,
        damping: Mapping[str, float] = {},
        friction: Mapping[str, float] = {},
        offset: Mapping[str, float] = {},
    ) -> None:
        check_arm(model.joints, "position servos")
        without = [name for name in model.joint_names if name not in stiffness]
        if without:
            raise ArgumentError(f"stiffness must name all joints; {listed(without)} are missing")
        self.model = model
        self._k = self._values("stiffness", stiffness)
        if (self._k == 0.0).any():
            raise ArgumentError(f"stiffness must be positive; got {checks.shown(self._k)}")
        self._d = self._values("damping", damping)
        self._c = FRICTION_SHARE * self._values("friction", friction)
        self._offset = self._values("offset", offset, signed=True)
        self.most: FloatArray = np.minimum(FARTHEST, model.effort_limits / self._k)
        """(n,) largest distances in rad or m between goals and wanted positions."""
        limited = bounded(model.lower, model.upper)
        self._low = np.where(limited, model.lower, -np.inf)
        self._high = np.where(limited, model.upper, np.inf)

    @classmethod
    def read(cls, path: str | Path, model: Model) -> PositionArm:
        """Return the arm with the servos in a file that ``mbs-dynamics identify`` writes.

        Raises ArgumentError for another file, and what the class raises.
        """
        content: Any = read_yaml_file(Path(path))
        terms = ("stiffness", "damping", "friction", "offset")
        try:
            servos = content["servos"].items()
            springs: dict[str, Any] = {
                term: {name: servo[term] for name, servo in servos} for term in terms
            }
        except (AttributeError, KeyError, TypeError):
            raise ArgumentError(
                f"{path} must have the servos of joints, each with {', '.join(terms)}, as "
                "mbs-dynamics identify writes them"
            ) from None
        return cls(model, **springs)

    def _values(self, what: str, given: Mapping[str, float], *, signed: bool = False) -> FloatArray:
        """Return the values (n,) of all joints, 0 for those that are not named."""
        checks.mapping(what, given, "joint")
        names = list(self.model.joint_names)
        UnknownJointError.check(list(given), names)
        values = [given.get(name, 0.0) for name in names]
        if signed:
            return checks.numbers(what, values, (len(names),))
        return checks.not_negative(what, values, (len(names),))

    def goals(
        self,
        q: ArrayLike,
        qd: ArrayLike | None = None,
        qdd: ArrayLike | None = None,
        *,
        torques: ArrayLike | None = None,
        share: float = 1.0,
    ) -> FloatArray:
        """Return the goals (..., n) in rad or m for wanted positions (..., n).

        ``qd`` and ``qdd`` (..., n) are the wanted rates and accelerations; zero by default.
        ``torques`` (..., n) in N m or N are those of this motion without friction, by default those
        of the model. ``share``, from 0 to 1, scales the distance between goals and wanted
        positions: increase it slowly where servos stand at uncompensated goals. Raises
        ArgumentError for wrong shapes, values that are not finite and another share.
        """
        x = checks.numbers("q", q, (self.model.n,), batch=True)
        v = np.zeros_like(x) if qd is None else checks.numbers("qd", qd, x.shape)
        if not 0.0 <= checks.number("share", share) <= 1.0:
            raise ArgumentError(f"share must be from 0 to 1; got {share:g}")
        if torques is None:
            a = np.zeros_like(x) if qdd is None else checks.numbers("qdd", qdd, x.shape)
            tau = mbs.inverse_dynamics(self.model, x, v, a)
        else:
            tau = checks.numbers("torques", torques, x.shape)
        tau = tau + self._d * v + self._c * v / np.sqrt(v * v + FRICTION_SPEED**2)
        ahead = np.clip(tau / self._k + self._offset, -self.most, self.most)
        return np.asarray(np.clip(x + share * ahead, self._low, self._high))
