# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The torques of an arm, linear in the parameters to be identified.

    tau_j = Y_j(q, qd, qdd) pi + I_j qdd_j + d_j qd_j + c_j tanh(qd_j / v) + o_j

Rigid-body torques with the inertial parameters pi, and for each joint motor inertia, viscous and
Coulomb friction, and an offset. Temperature and load do not change friction.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.regressor import BaseParameters, independent_columns
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.signals import Signals, low_pass
from mbs_dynamics.model.coordinates import check_arm
from mbs_dynamics.model.model import Model

JOINT_TERMS = ("coulomb", "viscous", "inertia", "offset")
"""The parameters of a joint, in order: N m, N m s/rad, kg m^2 and N m, or N, N s/m, kg and N."""

INERTIAL_TERMS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
"""The parameters of a body: mass, first moment, and tensor about the origin of its frame."""


class Equations(NamedTuple):
    """A x = b for one recording, with a row for each sample and joint."""

    A: FloatArray
    """(N, k, p)."""
    b: FloatArray
    """(N, k) measured torques in N m or N."""
    qd: FloatArray
    """(N, k) rates of the joints in rad/s or m/s, as are their rates."""
    qdd: FloatArray
    gravity: FloatArray
    """(N, k) torques of the description against gravity, in N m or N."""
    rate: float
    """Samples per second."""
    name: str = ""
    """Name of the recording."""
    start: float = 0.0
    """Time of the first sample in the recording, in s."""

    def part(self, rows: slice) -> Equations:
        """Return a range of the samples."""
        A, b, qd, qdd, gravity = (x[rows] for x in self[:5])
        start = self.start + (rows.start or 0) / self.rate
        return Equations(A, b, qd, qdd, gravity, self.rate, self.name, start)


@dataclass(frozen=True)
class TorqueModel:
    """The equations of a model for the recorded joints."""

    model: Model
    joints: tuple[str, ...]
    """The recorded joints; the others are at rest where a recording has them, or else at zero or
    the nearest limit."""
    friction_speed: float
    """v in rad/s or m/s, at which Coulomb friction reaches 76 %."""

    def __post_init__(self) -> None:
        check_arm(self.model.joints, "identification")

    @property
    def places(self) -> list[int]:
        """The coordinates of the recorded joints."""
        return [self.model.joint_names.index(name) for name in self.joints]

    @property
    def rigid(self) -> int:
        """Number of inertial parameters; the others belong to joints."""
        return 10 * self.model.nb

    @property
    def names(self) -> list[str]:
        """The names of all parameters."""
        bodies = [f"{body}.{term}" for body in self.model.body_names for term in INERTIAL_TERMS]
        return bodies + [f"{joint}.{term}" for joint in self.joints for term in JOINT_TERMS]

    def equations(self, signals: Signals, cutoff: float) -> Equations:
        """Return the equations of a motion, with the same low-pass filter on both sides.

        Gautier (1997): a filter of both sides of a linear equation changes no parameter.
        """
        rate, v, a = signals.rate, signals.qd, signals.qdd
        A = low_pass(self.regressor(signals.q, v, a, signals.rest), rate, cutoff)
        b = low_pass(signals.tau, rate, cutoff)
        whole = self.whole(signals.q, at_rest=True, rest=signals.rest)
        g = mbs.gravity_torques(self.model, whole)[:, self.places]
        g = low_pass(g, rate, cutoff)
        start = float(signals.t[0])
        return Equations(A, b, v, a, g, rate, name=signals.name, start=start)

    def at_speed(self, speed: float, one: Equations, cutoff: float) -> Equations:
        """Return the equations of a motion with another speed of Coulomb friction."""
        A, each = one.A.copy(), len(JOINT_TERMS)
        signs = low_pass(np.tanh(one.qd / speed), one.rate, cutoff)
        for j in range(len(self.joints)):
            A[:, j, self.rigid + each * j] = signs[:, j]
        return one._replace(A=A)

    def regressor(
        self,
        q: FloatArray,
        qd: FloatArray,
        qdd: FloatArray,
        rest: Sequence[tuple[str, float]] = (),
    ) -> FloatArray:
        """Return the rows A (N, k, p) of motions (N, k) of the recorded joints.

        ``rest`` are the positions of other joints at rest.
        """
        motion = self.whole(q, at_rest=True, rest=rest), self.whole(qd), self.whole(qdd)
        Y = mbs.inverse_dynamics_regressor(self.model, *motion)[:, self.places, : self.rigid]
        terms = np.stack([np.tanh(qd / self.friction_speed), qd, qdd, np.ones_like(q)], axis=-1)
        count, k, each = terms.shape
        own = np.zeros((count, k, k * each))
        for j in range(k):
            own[:, j, each * j : each * (j + 1)] = terms[:, j]
        return np.concatenate([Y, own], axis=-1)

    def at_rest(self, q: FloatArray) -> FloatArray:
        """Return the rows A (N, k, p) of still poses (N, k)."""
        return self.regressor(q, np.zeros_like(q), np.zeros_like(q))

    def independent(self) -> BaseParameters:
        """Return the parameter combinations that motions of the recorded joints determine."""
        rng = np.random.default_rng(0)
        k, p = len(self.joints), self.rigid + len(JOINT_TERMS) * len(self.joints)
        count = 3 * p // k + 10
        q = rng.uniform(-np.pi, np.pi, (count, k))
        qd, qdd = rng.uniform(-3.0, 3.0, (2, count, k))
        return independent_columns(self.regressor(q, qd, qdd).reshape(-1, p))

    def whole(
        self, part: FloatArray, *, at_rest: bool = False, rest: Sequence[tuple[str, float]] = ()
    ) -> FloatArray:
        """Return rows for all joints from those of the recorded ones, and of others at rest."""
        model = self.model
        row = np.clip(np.zeros(model.n), model.lower, model.upper) if at_rest else np.zeros(model.n)
        for name, position in rest:
            row[model.joint_names.index(name)] = position
        whole = np.tile(row, (len(part), 1))
        whole[:, self.places] = part
        return whole

    def described(self) -> FloatArray:
        """Return the parameters (p,) of the description, without friction."""
        own = np.zeros((len(self.joints), len(JOINT_TERMS)))
        own[:, JOINT_TERMS.index("inertia")] = self.model.armature[self.places]
        rigid = mbs.inertial_parameters(self.model)[: self.rigid]
        return np.concatenate([rigid, own.ravel()])


def joint_columns(A: FloatArray) -> FloatArray:
    """Return the columns (N, k, 4) of the terms of each joint in its own row of A (N, k, p)."""
    count, k, _ = A.shape
    each = len(JOINT_TERMS)
    return A[..., -each * k :].reshape(count, k, k, each)[:, range(k), range(k)]


def stacked(equations: Sequence[Equations]) -> tuple[FloatArray, FloatArray]:
    """Return A (N, k, p) and b (N, k) of several recordings, one after the other."""
    return (
        np.concatenate([one.A for one in equations]),
        np.concatenate([one.b for one in equations]),
    )
