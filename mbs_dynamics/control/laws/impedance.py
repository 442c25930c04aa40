# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Impedance of joints and of a link: gains, and their limits in a sampled loop.

The period computes the torques; see ``period/laws.py``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownJointError, quoted

RATIOS = 0.1, 2.0
"""Valid damping ratios."""

GAIN_MARGIN = 2.0
"""Factor on stiffness and damping with which a sampled loop must still be stable."""

AXES = ("root", "target")
"""Axes in which the stiffness of a link is given: those of the root link, or of the target."""


def checked_ratio(value: Any) -> float:
    """Return a damping ratio, or raise ArgumentError."""
    ratio, (low, high) = checks.number("damping_ratio", value), RATIOS
    if not low <= ratio <= high:
        raise ArgumentError(f"damping_ratio is {ratio:g}; must be {low:g} to {high:g}")
    return ratio


@lru_cache
def fastest_mode(ratio: float) -> float:
    """Return the largest natural frequency times period that is stable at a damping ratio.

    The loop holds each torque for one period and has a delay of one period. It must remain stable
    with GAIN_MARGIN times the stiffness and damping. The eigenvalues of the sampled mode decide,
    and the frequency follows by bisection.
    """

    def stable(w: float) -> bool:
        k, d = GAIN_MARGIN * w * w, GAIN_MARGIN * 2.0 * ratio * w
        sampled = np.array([[1.0, 1.0, 0.5], [0.0, 1.0, 1.0], [-k, -d, 0.0]])
        return float(abs(np.linalg.eigvals(sampled)).max()) < 1.0

    low, high = 1e-4, 2.0
    while high - low > 1e-4 * low:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if stable(middle) else (low, middle)
    return low


class JointImpedance:
    """Impedance of the joints, as a law of a guarded arm.

        tau = g + M qdd_d + C qd_d + K (q_d - q) + D (qd_d - qd)

    ``stiffness`` in N m/rad or N/m is one value for all joints, one for each, or a mapping from
    names of joints. D damps every mode of the springs with the ``damping_ratio``, at the present
    inertia, to which rotors contribute as ``model.with_armature`` states.

    Raises ArgumentError for values out of range, and when it is used for other joints.
    """

    def __init__(self, stiffness: Any = 50.0, damping_ratio: float = 1.0) -> None:
        self.stiffness, self.damping_ratio = stiffness, checked_ratio(damping_ratio)
        mapping = isinstance(stiffness, Mapping)
        checks.not_negative("stiffness", list(stiffness.values()) if mapping else stiffness)

    def stiffness_of(self, names: Sequence[str]) -> FloatArray:
        """Return the stiffness (m,) of joints, 0 for those that a mapping does not name.

        Raises UnknownJointError or ArgumentError.
        """
        values = self.stiffness
        if isinstance(values, Mapping):
            UnknownJointError.check(values, names)
            values = [values.get(joint, 0.0) for joint in names]
        array = checks.not_negative("stiffness", values)
        if array.shape not in ((), (len(names),)):
            raise ArgumentError(
                f"stiffness has shape {array.shape}; must be one or ({len(names)},)"
            )
        return np.broadcast_to(array, (len(names),))


class CartesianImpedance:
    """Impedance of a link, as a law of a guarded arm.

        tau = g + J^T (K e + D (V_d - V)) + N^T M (w^2 (q_p - q) + 2 zeta w (qd_p - qd))

    e are the rotation vector and the difference of positions from the pose of the ``link`` to its
    reference; by default that is the tool, the first of ``mbs_dynamics.model.orders.tools``,
    to which the nodes refer as well. ``linear`` in N/m and ``angular`` in N m/rad are the stiffness
    along and about the ``axes`` of the root link or of the target, one value or three. K e is the
    gradient of the energy e^T K e / 2. D damps every mode with the ``damping_ratio``, at the
    present inertia.

    N is the dynamically consistent projector (Khatib 1987) to motions that leave the link where
    it is; with ``posture_frequency`` w in rad/s they return to the posture q_p of the reference.
    Directions without stiffness belong to them, and near a singularity those in which the link
    can hardly move: there the projector is damped, and the posture moves the link a little.

    Raises ArgumentError for values out of range.
    """

    def __init__(
        self,
        link: str = "",
        linear: Any = 500.0,
        angular: Any = 30.0,
        damping_ratio: float = 1.0,
        *,
        axes: str = "root",
        posture_frequency: float = 2.0,
    ) -> None:
        self.link = link
        self.damping_ratio = checked_ratio(damping_ratio)
        self.posture_frequency = float(checks.not_negative("posture_frequency", posture_frequency))
        if axes not in AXES:
            raise ArgumentError(f"axes is {quoted(axes)}; must be one of {', '.join(AXES)}")
        self.axes = axes
        """``"root"`` or ``"target"``: the axes of the stiffness, and of leads of the reference."""
        parts = []
        for name, value in (("angular", angular), ("linear", linear)):
            part = checks.not_negative(f"{name} stiffness", value)
            if part.shape not in ((), (3,)):
                raise ArgumentError(
                    f"{name} stiffness has shape {part.shape}; must be one value, or (3,)"
                )
            parts.append(np.broadcast_to(part, (3,)))
        self.gains: FloatArray = np.concatenate(parts)
        """(6,) stiffness about and along the axes, in N m/rad and N/m."""
