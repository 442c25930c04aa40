# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The torques of an arm, which are linear in the parameters to be identified.

    tau_j = Y_j(q, qd, qdd) pi + I_j qdd_j + d_j qd_j + c_j tanh(qd_j / v) + o_j

The terms are rigid-body torques with the inertial parameters pi, and for each joint motor inertia,
viscous friction, Coulomb friction and an offset. Friction does not depend on temperature or load.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.regressor import BaseParameters, independent_columns
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.signals import low_pass, rate_of
from mbs_dynamics.model.coordinates import check_arm
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries

JOINT_TERMS = ("coulomb", "viscous", "inertia", "offset")
"""The parameters of a joint, in order: N m, N m s/rad, kg m^2 and N m, or N, N s/m, kg and N."""

INERTIAL_TERMS = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
"""The parameters of a body: mass, first moment, and tensor about the origin of its frame."""


class Equations(NamedTuple):
    """Equations A x = b of one recording, a row for each sample and joint."""

    A: FloatArray
    """(N, k, p)."""
    b: FloatArray
    """(N, k) measured torques in N m or N."""
    qd: FloatArray
    """(N, k) rates of the joints in rad/s or m/s."""
    qdd: FloatArray
    """(N, k) accelerations in rad/s^2 or m/s^2."""
    gravity: FloatArray
    """(N, k) gravity torques of the description, in N m or N."""
    rate: float
    """Samples per second."""
    name: str = ""
    """Name of the recording."""

    def part(self, rows: slice) -> Equations:
        """Return a range of the samples."""
        A, b, qd, qdd, gravity = (x[rows] for x in self[:5])
        return Equations(A, b, qd, qdd, gravity, self.rate, self.name)


@dataclass(frozen=True)
class TorqueModel:
    """The torques of the recorded joints of a model as functions of its parameters."""

    model: Model
    joints: tuple[str, ...]
    """The recorded joints. Others are assumed to be at rest: at their recorded position, or else at
    zero or the nearest limit."""
    friction_speed: float
    """v in rad/s or m/s, at which Coulomb friction reaches 76 % of its value."""

    def __post_init__(self) -> None:
        check_arm(self.model.joints, "identification")

    @property
    def places(self) -> list[int]:
        """The indices of the recorded joints among the coordinates of the model."""
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

    def equations(self, series: TimeSeries, cutoff: float) -> Equations:
        """Return the equations of a filtered motion, with the same filter on both sides.

        Filtering both sides of a linear equation leaves the parameters unchanged (Gautier 1997).
        """
        q, qd, qdd = motion = self.motion(series)
        tau = np.asarray(series.of_joints(self.joints).tau)
        rate, places = rate_of(series), self.places
        gravity = mbs.gravity_torques(self.model, q)[:, places]
        A, b, g = (low_pass(x, rate, cutoff) for x in (self._rows(motion), tau, gravity))
        return Equations(A, b, qd[:, places], qdd[:, places], g, rate, series.name)

    def at_speed(self, speed: float, one: Equations, cutoff: float) -> Equations:
        """Return the equations of a motion with another speed of Coulomb friction."""
        A, j = one.A.copy(), np.arange(len(self.joints))
        signs = low_pass(np.tanh(one.qd / speed), one.rate, cutoff)
        A[:, j, self.rigid + len(JOINT_TERMS) * j + JOINT_TERMS.index("coulomb")] = signs
        return one._replace(A=A)

    def motion(self, series: TimeSeries) -> list[FloatArray]:
        """Return positions, rates and accelerations (N, n) of all joints in a motion.

        Joints that were not recorded are at rest at zero or the nearest limit.
        """
        return self._motion(series.joints, series.q, series.qd, series.qdd)

    def _motion(self, joints: Sequence[str], *motion: FloatArray | None) -> list[FloatArray]:
        """Return (q, qd, qdd), each (N, n), from those (N, m) of some joints; None for zero."""
        q, model = np.asarray(motion[0]), self.model
        places = [model.joint_names.index(name) for name in joints]
        rest = [np.clip(0.0, model.lower, model.upper), *np.zeros((2, model.n))]
        every = [np.tile(row, (len(q), 1)) for row in rest]
        for all_joints, recorded in zip(every, motion, strict=True):
            if recorded is not None:
                all_joints[:, places] = recorded
        return every

    def regressor(self, q: FloatArray, qd: FloatArray, qdd: FloatArray) -> FloatArray:
        """Return the rows A (N, k, p) for a motion of the recorded joints, each (N, k)."""
        return self._rows(self._motion(self.joints, q, qd, qdd))

    def _rows(self, motion: Sequence[FloatArray]) -> FloatArray:
        """Return the rows A (N, k, p) for a motion (N, n) of all joints."""
        Y = mbs.inverse_dynamics_regressor(self.model, *motion)[:, self.places, : self.rigid]
        q, qd, qdd = (x[:, self.places] for x in motion)
        terms = np.stack([np.tanh(qd / self.friction_speed), qd, qdd, np.ones_like(q)], axis=-1)
        count, k, each = terms.shape
        by_joint = np.zeros((count, k, k, each))
        by_joint[:, range(k), range(k)] = terms
        return np.concatenate([Y, by_joint.reshape(count, k, k * each)], axis=-1)

    def at_rest(self, q: FloatArray) -> FloatArray:
        """Return the rows A (N, k, p) for still poses (N, k)."""
        return self.regressor(q, np.zeros_like(q), np.zeros_like(q))

    def independent(self, *, at_rest: bool = False) -> BaseParameters:
        """Return the parameter combinations that motions, or still poses, can determine."""
        rng = np.random.default_rng(0)
        k, p = len(self.joints), self.rigid + len(JOINT_TERMS) * len(self.joints)
        count = 3 * p // k + 10
        q = rng.uniform(-np.pi, np.pi, (count, k))
        qd, qdd = rng.uniform(-3.0, 3.0, (2, count, k))
        A = self.at_rest(q) if at_rest else self.regressor(q, qd, qdd)
        return independent_columns(A.reshape(-1, p))

    def described(self) -> FloatArray:
        """Return the parameters (p,) of the description, without friction."""
        terms = np.zeros((len(self.joints), len(JOINT_TERMS)))
        terms[:, JOINT_TERMS.index("inertia")] = self.model.armature[self.places]
        rigid = mbs.inertial_parameters(self.model)[: self.rigid]
        return np.concatenate([rigid, terms.ravel()])


def joint_columns(A: FloatArray) -> FloatArray:
    """Return the columns (N, k, 4) of the terms of each joint in its terms row of A (N, k, p)."""
    count, k, _ = A.shape
    each = len(JOINT_TERMS)
    return A[..., -each * k :].reshape(count, k, k, each)[:, range(k), range(k)]


def stacked(equations: Sequence[Equations]) -> tuple[FloatArray, FloatArray]:
    """Return A (N, k, p) and b (N, k) of several recordings in sequence."""
    return (
        np.concatenate([one.A for one in equations]),
        np.concatenate([one.b for one in equations]),
    )
