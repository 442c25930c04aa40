# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Subgroups of the rigid-body motions, which joints generate: Mueller (kinematics), Table 1.

The motion g of a joint is an element of a subgroup G of SE(3), and its velocity s (k,) is taken in
the Lie algebra of G, in the frame of the body that moves:

    g^-1 dg/dt = (S s)^,    S (6, k) constant.

``motion`` and ``displaced`` are canonical coordinates of the first kind, g exp(S v): Remark 4. All
methods work on floats and on traced symbols, one state at a time.

==================  ===  ==========  ===========================  ==================================
kind                k    Table 1     position                     velocity
==================  ===  ==========  ===========================  ==================================
fixed               0    {I}         none                         none
revolute            1    SO(2)       angle                        rate
prismatic           1    R           displacement                 rate
screw               1    H_p         angle                        rate
planar_translation  2    R^2         x, y                         rates
cylindrical         2    SO(2) x R   displacement, angle          rates
translation         3    R^3         x, y, z                      rates, in axes of the joint frame
spherical           3    SO(3)       quaternion x, y, z, w        angular velocity
planar              3    SE(2)       x, y, angle                  angular rate, linear x and y
planar_screw        3    H_p x R^2   x, y, angle                  angular rate, linear x and y
schoenflies         4    SE(2) x R   x, y, z, angle               angular rate, linear x, y and z
free                6    SE(3)       x, y, z, then a quaternion   twist, angular part first
==================  ===  ==========  ===========================  ==================================
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import atan2, cos, positive, sin, sqrt
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.values import Value


@dataclass(frozen=True, eq=False)
class Subgroup(Value):
    """A subgroup of SE(3): translations along some axes, and rotations about none, one or all."""

    kind: str
    basis: FloatArray
    """(6, k) screws Z_1, ..., Z_k in the joint frame: (e, h e) or (0, d)."""
    frame: FloatArray = field(default_factory=lambda: np.eye(4))
    """(4, 4) pose of the joint frame in the frame of the body."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "basis", checks.snap(np.asarray(self.basis, dtype=float)))
        object.__setattr__(self, "frame", checks.snap(np.asarray(self.frame, dtype=float)))

    @property
    def nv(self) -> int:
        """Number k of degrees of freedom."""
        return int(self.basis.shape[1])

    @property
    def nq(self) -> int:
        """Number of coordinates of a configuration: one more for a quaternion."""
        return self.nv + self.has_quaternion

    @cached_property
    def screws(self) -> FloatArray:
        """(6, k) S, the screws in the frame of the body."""
        return self.basis if self._at_body else checks.snap(se3.Ad(self.frame) @ self.basis)

    @cached_property
    def structure(self) -> FloatArray:
        """(k, k, k) structure constants: [S_a, S_c] = sum_b S_b structure[b, a, c]."""
        brackets = np.stack([se3.ad(Z) @ self.basis for Z in self.basis.T], axis=1)
        constants: FloatArray = checks.snap(np.tensordot(self._dual, brackets, 1))
        return constants

    @cached_property
    def actuators(self) -> FloatArray:
        """(6, k) wrenches A of unit actuators, with S^T A = I: couples and forces along axes."""
        A = np.zeros(self.basis.shape)
        A[:3, self._turning] = self.basis[:3, self._turning]
        A[3:, self._sliding] = self._along.T
        return A if self._at_body else np.asarray(se3.Ad(se3.inverse(self.frame)).T @ A)

    def seen_from(self, C: FloatArray) -> Subgroup:
        """Return the same motion of a body with another frame, which has the pose C (4, 4)."""
        if self.nv == 1:
            return Subgroup(self.kind, se3.Ad(se3.inverse(C)) @ self.screws)
        return Subgroup(self.kind, self.basis, se3.inverse(C) @ self.frame)

    @property
    def has_quaternion(self) -> bool:
        """Whether the last four coordinates are a quaternion."""
        return len(self._turning) == 3

    @property
    def is_commutative(self) -> bool:
        """Whether the coordinates are those of the algebra, so that displacements are added."""
        return not self.structure.any()

    def neutral(self) -> FloatArray:
        """Return the configuration (nq,) without displacement."""
        q = np.zeros(self.nq)
        q[-1] = float(self.has_quaternion)
        return q

    def motion(self, q: Array, joint: str) -> Array:
        """Return g (4, 4) at a configuration q (nq,); ``joint`` is the name of the joint.

        Raises SingularError for a quaternion of length zero.
        """
        if self.nv == 1:
            return se3.exp_screw(self.basis[:, 0], q[0])
        D = se3.pose(self._rotation(q, joint), self._translation(q))
        return D if self._at_body else self.frame @ D @ se3.inverse(self.frame)

    def displaced(self, q: Array, v: Array, joint: str) -> Array:
        """Return the configuration (nq,) of g exp(S v), with a quaternion of unit length."""
        if self.is_commutative:
            return q + v
        x, turn = q[: self._m], q[self._m :]
        omega, linear = self.basis[:3] @ v, self.basis[3:] @ v
        if self._m:
            moved = self._rotation(q, joint) @ (so3.dexp(omega) @ linear)
            x = x + self._along @ moved
        if not self.has_quaternion:
            return np.concatenate([x, turn + v[self._turning]])
        turned = so3.quaternion_product(turn, so3.quaternion_exp(omega))
        return np.concatenate([x, turned / sqrt(_length2(turned, joint))])

    def difference(self, q: Array, other: Array, joint: str) -> Array:
        """Return v (k,) with g exp(S v) the other configuration: the inverse of ``displaced``.

        Whole turns that change nothing are not counted.
        """
        if self.is_commutative:
            return other - q
        if self.has_quaternion:
            back = np.concatenate([-q[self._m : -1], q[-1:]])
            turned = so3.quaternion_log(so3.quaternion_product(back, other[self._m :]))
        else:
            angle = other[self._m] - q[self._m]
            e, m = self.basis[:3, self._turning[0]], self.basis[3:, self._turning[0]]
            turned = e * (angle if m.any() else atan2(sin(angle), cos(angle)))
        v = np.full(self.nv, 0.0, dtype=object)
        v[self._turning] = self.basis[:3, self._turning].T @ turned
        if self._m:
            moved = self._translation(other) - self._translation(q)
            back = so3.dexp_inv(turned) @ (self._rotation(q, joint).T @ moved)
            v[self._sliding] = self._along @ back
        return v

    def increment_rates(self, u: Array, v: Array, joint: str) -> Array:
        """Return the rate (k,) of u with the velocity v of exp(S u): dexp(-u)^-1 v, D (89)."""
        if self.is_commutative:
            return v
        return self._dual @ (se3.dexp_inv(-(self.basis @ u)) @ (self.basis @ v))

    def increment_velocities(self, u: Array, rate: Array, joint: str) -> Array:
        """Return the velocity v (k,) of exp(S u) where u has this rate: dexp(-u) of it, D (89)."""
        if self.is_commutative:
            return rate
        return self._dual @ (se3.dexp(-(self.basis @ u)) @ (self.basis @ rate))

    def transported(self, u: Array, p: Array, joint: str) -> Array:
        """Return the momentum p (k,) in the frame after a displacement u: Ad_exp(S u)^T p."""
        if self.is_commutative:
            return p
        Ad = self._dual @ (se3.Ad(se3.exp(self.basis @ u)) @ self.basis)
        return Ad.T @ p

    def momentum_rates(self, v: Array, p: Array, joint: str) -> Array:
        """Return ad_v^T p (k,), the rate of the transported momentum at the velocity v."""
        if self.is_commutative:
            return np.zeros(self.nv)
        return np.einsum("bac,a,b->c", self.structure.astype(object), v, p)

    def rates(self, q: Array, v: Array, joint: str) -> Array:
        """Return the rates (nq,) of the coordinates at a velocity v (k,)."""
        if self.is_commutative:
            return v
        x = self._along @ (self._rotation(q, joint) @ (self.basis[3:] @ v))
        if not self.has_quaternion:
            return np.concatenate([x, v[self._turning]])
        omega = np.concatenate([self.basis[:3] @ v, np.zeros(1)])
        return np.concatenate([x, 0.5 * so3.quaternion_product(q[self._m :], omega)])

    @cached_property
    def _turning(self) -> list[int]:
        return [k for k, Z in enumerate(self.basis.T) if Z[:3].any()]

    @cached_property
    def _sliding(self) -> list[int]:
        return [k for k, Z in enumerate(self.basis.T) if not Z[:3].any()]

    @property
    def _m(self) -> int:
        """Number of translations, whose coordinates come first."""
        return len(self._sliding)

    @cached_property
    def _dual(self) -> FloatArray:
        """(k, 6) dual basis of the screws."""
        return checks.snap(np.asarray(np.linalg.pinv(self.basis), dtype=float))

    @cached_property
    def _along(self) -> FloatArray:
        """(m, 3) dual basis of the directions of the translations."""
        return checks.snap(np.asarray(np.linalg.pinv(self.basis[3:, self._sliding]), dtype=float))

    @cached_property
    def _at_body(self) -> bool:
        return np.array_equal(self.frame, np.eye(4))

    def _translation(self, q: Array) -> Array:
        r = self.basis[3:, self._sliding] @ q[: self._m] if self._m else np.zeros(3)
        if len(self._turning) == 1 and (m := self.basis[3:, self._turning[0]]).any():
            r = r + m * q[self._m]
        return r

    def _rotation(self, q: Array, joint: str) -> Array:
        if self.has_quaternion:
            turn = q[self._m :]
            return so3.from_quaternion(turn, _length2(turn, joint))
        if not self._turning:
            return np.eye(3)
        e = self.basis[:3, self._turning[0]]
        return se3.exp_screw(np.concatenate([e, np.zeros(3)]), q[self._m])[:3, :3]


def _length2(quaternion: Array, joint: str) -> Any:
    return positive(quaternion @ quaternion, f"the quaternion of joint {joint!r} has no length")
