# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Cartesian impedance: a link is held by springs and dampers at a pose that moves."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics import checks
from mbs_dynamics.algorithms.verification import verified
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, less, select, sqrt
from mbs_dynamics.control.laws.impedance import (
    JointInertia,
    Modes,
    checked_ratio,
    fastest_mode,
    leads,
)
from mbs_dynamics.control.laws.law import LawState
from mbs_dynamics.control.references import PoseReference
from mbs_dynamics.errors import ArgumentError, quoted
from mbs_dynamics.lie import so3
from mbs_dynamics.lie.arrays import blocks
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools

AXES = ("root", "target")
"""Axes in which the stiffness of a link is given: those of the root link, or of the target."""

LINEAR = np.arange(6) >= 3
"""(6,) which errors of a pose are lengths."""

HYSTERESIS = 0.5
"""Angle in rad beyond half a turn up to which an orientation error keeps its direction."""

SINGULAR = 1e-3
"""Share of the largest eigenvalue of W below which the projector counts a mode as singular."""


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
        """``"root"`` or ``"target"``: the axes of the stiffness, and of ``lead``."""
        self._in_target = np.array([float(axes == "target")])  # an array: numbers take longer
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
        self._root = np.sqrt(self.gains)
        self._turned = np.zeros(3)
        """(3,) latest rotation vector of the error: near half a turn, it decides the direction."""
        self.slowed = False
        """As for joints."""
        self.lead: FloatArray | None = None
        """(6,) distances in rad and m by which the reference may lead the link, along the ``axes``;
        None: not known yet."""
        self._of: tuple[Any, ...] = ()
        self._model: Model | None = None

    def _prepare(self, model: Model, state: LawState) -> tuple[FloatArray, ...]:
        """Return the pose of the link, its Jacobian (6, m), M (n, n) and the inverse (m, m)."""
        if model is not self._model or tuple(state.joints) != self._of:
            self._of, self._model, link = tuple(state.joints), model, self.link or tools(model)[0]
            self._inertia = JointInertia(model, state.joints)
            self._jacobian = mbs.compile(mbs.jacobian, model, body=link, representation="hybrid")
            self._pose = mbs.compile(mbs.forward_kinematics, model, bodies=[link])
            self._stretch = _stretched()
        J = self._jacobian(state.q)[:, list(self._of)]
        return self._pose(state.q)[0], J, *self._inertia.at(state.q)

    def check(self, model: Model, state: LawState) -> None:
        """Raise ArgumentError if the period of the loop cannot bear the stiffness at a state."""
        C, J, _, inverse = self._prepare(model, state)
        J = self._stretch(C, C, self._root, self._in_target, np.zeros(3))[:, 7:13] @ J
        share, period = Modes.of(J, inverse).share(self.damping_ratio, state.period), state.period
        message = (
            f"which a period of {1e3 * period:.3g} ms cannot bear at this posture; valid is at"
        )
        if share < 1.0:
            K = self._root**2
            most = [(share * part).round(2).tolist() for part in (K[3:], K[:3])]
            raise ArgumentError(
                f"the linear stiffness is {K[3:].round(2).tolist()} and the angular one "
                f"{K[:3].round(2).tolist()}, {message} most {most[0]} and {most[1]}"
            )
        fastest = fastest_mode(self.damping_ratio)
        if self.posture_frequency * period > fastest:
            raise ArgumentError(
                f"posture_frequency is {self.posture_frequency:g} rad/s, {message} most "
                f"{fastest / period:.3g}"
            )

    def __call__(self, model: Model, state: LawState, reference: PoseReference) -> FloatArray:
        """Return the torques (m,)."""
        C, J, M, inverse = self._prepare(model, state)
        joints, ratio = list(self._of), self.damping_ratio
        qd = state.qd[joints]
        stretched = self._stretch(C, reference.pose, self._root, self._in_target, self._turned)
        self._turned = stretched[:3, 13].copy()
        J = stretched[:, 7:13] @ J
        modes = Modes.of(J, inverse)
        w2 = ((modes.U * modes.w2) * modes.U).sum(axis=1)
        self.lead = leads(w2, ratio, state.gap, LINEAR)
        self.slowed = modes.share(ratio, state.gap) < 1.0
        rate = stretched[:, 1:7] @ reference.twist - J @ qd
        forces = modes.forces(stretched[:, 0], rate, ratio, state.gap)
        torques: FloatArray = state.gravity[joints]
        w = self.posture_frequency
        if w:
            rate = reference.posture_rate[joints] - qd
            v = w * (w * (reference.posture - state.q)[joints] + 2.0 * ratio * rate)
            w2, U = modes.w2, modes.U
            least = (SINGULAR * w2[-1]) ** 2 + 1e-30
            forces = forces - U @ (w2 / (w2 * w2 + least) * ((J @ v) @ U))
            torques = torques + (M[np.ix_(joints, joints)] if len(joints) < len(M) else M) @ v
        torques = torques + J.T @ forces
        return torques


@lru_cache
def _stretched() -> Kernel:
    """Return a kernel: the error x (6,) of stiffness one, and matrices of its rate (6, 6) each.

    x = sqrt(K) B^T (log(R_d R^T), p_d - p), xdot = E_d V_d - E V, with the axes B of the stiffness,
    d/dt log(R_d R^T) = dexp^-1 w_d - dexp^-T w. Columns: x, E_d, E, and the logarithm with zeros.
    The rate of B is left out. Of the two rotations about one axis, by at most half a turn and the
    other way round, the first is the logarithm, unless it is opposite to the one ``before`` and
    the other exceeds half a turn by at most HYSTERESIS: else noise would turn the torque around.
    """

    def stretched(C: Any, target: Any, root: Any, in_target: Any, before: Any) -> Any:
        R, R_d = C[:3, :3], target[:3, :3]
        angle = so3.log(R_d @ R.T)
        size = sqrt(angle @ angle)
        opposite = select(less(angle @ before, 0.0), 1.0, 0.0)
        other = select(less(math.pi - HYSTERESIS, size), opposite, 0.0)
        angle = angle * (1.0 - other * 2.0 * math.pi / select(less(size, 1.0), 1.0, size))
        e = np.concatenate([angle, target[:3, 3] - C[:3, 3]])
        D, zero, one = so3.dexp_inv(angle), np.zeros((3, 3)), np.eye(3)
        B = (one + in_target[0] * (R_d - one)).T
        stretch = root[:, None] * blocks([[B, zero], [zero, B]])
        E_d, E = blocks([[D, zero], [zero, one]]), blocks([[D.T, zero], [zero, one]])
        chosen = np.concatenate([angle, np.zeros(3)])[:, None]
        return np.concatenate([(stretch @ e)[:, None], stretch @ E_d, stretch @ E, chosen], axis=1)

    shapes: dict[str, tuple[int, ...]] = {"C": (4, 4), "target": (4, 4), "root": (6,)}
    shapes |= {"in_target": (1,), "before": (3,)}
    return verified(stretched, shapes, "stretched_error")
