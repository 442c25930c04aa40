# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Cartesian impedance: a link is held by springs and dampers at a pose that moves."""

from __future__ import annotations

from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.laws.impedance import checked_ratio, fastest_mode, stable_share
from mbs_dynamics.control.laws.law import LawState
from mbs_dynamics.errors import ArgumentError, quoted
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools

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
            raise ArgumentError(f"axes is {quoted(axes)}; valid is one of {', '.join(AXES)}")
        self.axes = axes
        """``"root"`` or ``"target"``: the axes of the stiffness, and of leads of the reference."""
        parts = []
        for name, value in (("angular", angular), ("linear", linear)):
            part = checks.not_negative(f"{name} stiffness", value)
            if part.shape not in ((), (3,)):
                raise ArgumentError(
                    f"{name} stiffness has shape {part.shape}; valid is one value, or (3,)"
                )
            parts.append(np.broadcast_to(part, (3,)))
        self.gains: FloatArray = np.concatenate(parts)
        """(6,) stiffness about and along the axes, in N m/rad and N/m."""

    def check(self, model: Model, state: LawState) -> None:
        """Raise ArgumentError if the period of the loop cannot bear the stiffness at a state."""
        K, ratio, period, link = self.gains, self.damping_ratio, state.period, self.link
        link = link or tools(model)[0]
        J = mbs.jacobian(model, state.q, link, representation="hybrid")[:, list(state.joints)]
        if self.axes == "target":
            R = mbs.forward_kinematics(model, state.q, bodies=[link])[0][:3, :3]
            J = np.kron(np.eye(2), R.T) @ J
        J = np.sqrt(K)[:, None] * J
        share = stable_share(J, model, state.q, state.joints, ratio, period)
        message = (
            f"which a period of {1e3 * period:.3g} ms cannot bear at this posture; valid is at"
        )
        if share < 1.0:
            most = [(share * part).round(2).tolist() for part in (K[3:], K[:3])]
            raise ArgumentError(
                f"the linear stiffness is {K[3:].round(2).tolist()} and the angular one "
                f"{K[:3].round(2).tolist()}, {message} most {most[0]} and {most[1]}"
            )
        fastest = fastest_mode(ratio)
        if self.posture_frequency * period > fastest:
            raise ArgumentError(
                f"posture_frequency is {self.posture_frequency:g} rad/s, {message} most "
                f"{fastest / period:.3g}"
            )
