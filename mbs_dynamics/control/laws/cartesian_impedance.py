# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Cartesian impedance: a link is held by springs and dampers at a pose that moves."""

from __future__ import annotations

from typing import Any

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.laws.impedance import checked_ratio
from mbs_dynamics.errors import ArgumentError, quoted

AXES = ("root", "target")
"""Axes in which the stiffness of a link is given: those of the root link, or of the target."""


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
