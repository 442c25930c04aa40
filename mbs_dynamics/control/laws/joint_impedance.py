# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joint impedance: each joint is a spring with a damper about a reference that moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.laws.impedance import (
    JointInertia,
    Modes,
    by_joint,
    checked_ratio,
    leads,
)
from mbs_dynamics.control.laws.law import LawState
from mbs_dynamics.control.references import JointReference
from mbs_dynamics.control.turns import sliding
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.model import Model


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
        self.slowed = False
        """Whether the stiffness was too much for the latest times between states."""
        self.lead: FloatArray | None = None
        """(m,) distances in rad or m by which the reference may lead the arm; None: not known yet.

        They follow from the stiffness and the inertia of the latest state."""
        self._of: tuple[Any, ...] = ()
        self._model: Model | None = None

    def stiffness_of(self, names: Sequence[str]) -> FloatArray:
        """Return the stiffness (m,) of joints; raise UnknownJointError or ArgumentError."""
        return by_joint(self.stiffness, names, "stiffness")

    def _prepare(self, model: Model, state: LawState) -> tuple[FloatArray, FloatArray]:
        """Return M (n, n), and the inverse (m, m) of the inertia of the commanded joints."""
        if tuple(state.joints) != self._of:
            names = [model.joint_names[k] for k in state.joints]
            self._root = np.sqrt(by_joint(self.stiffness, names, "stiffness"))
            self._of, self._model = tuple(state.joints), None
        if model is not self._model:
            self._inertia = JointInertia(model, state.joints)
            self._coriolis = mbs.compile(mbs.coriolis_matrix, model)
            slides = sliding(model)
            self._linear = [slides[k] for k in state.joints]
            self._model = model
        return self._inertia.at(state.q)

    def check(self, model: Model, state: LawState) -> None:
        """Raise ArgumentError if the period of the loop cannot bear the stiffness at a state."""
        inverse = self._prepare(model, state)[1]
        share = Modes.of(np.diag(self._root), inverse).share(self.damping_ratio, state.period)
        if share < 1.0:
            rows = zip(state.joints, self._root, strict=True)
            most = ", ".join(f"{model.joint_names[k]} {share * r * r:.3g}" for k, r in rows)
            raise ArgumentError(
                f"the stiffness is {(self._root**2).round(3).tolist()}, which a period of "
                f"{1e3 * state.period:.3g} ms cannot bear at this posture; valid is at most {most}"
            )

    def __call__(self, model: Model, state: LawState, reference: JointReference) -> FloatArray:
        """Return the torques (m,)."""
        M, inverse = self._prepare(model, state)
        joints, root = list(self._of), self._root
        modes = Modes.of(np.diag(root), inverse)
        self.slowed = modes.share(self.damping_ratio, state.gap) < 1.0
        self.lead = leads(
            root * root * np.diag(inverse), self.damping_ratio, state.gap, self._linear
        )
        e, rate = reference.q - state.q, reference.qd - state.qd
        forces = modes.forces(root * e[joints], root * rate[joints], self.damping_ratio, state.gap)
        ahead = M @ reference.qdd + state.gravity
        if reference.qd.any():
            ahead = ahead + self._coriolis(state.q, state.qd) @ reference.qd
        torques: FloatArray = ahead[joints] + root * forces
        return torques
