# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The operators in which the four representations differ.

An algorithm is written once over these operators, and each representation implements them by its
own equations. ``K`` means Mueller (kinematics), ``D`` means Mueller (dynamics).
"""

# ruff: noqa: D102 (operators are described once, in the base class)

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

import numpy as np

from mbs_dynamics.compiler import Series
from mbs_dynamics.errors import UnknownRepresentationError
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.lie.se3 import InverseAdjoint
from mbs_dynamics.model.body import GROUND, Frame
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation.tree import PositionSeries, Tree

AUTO = "auto"
"""The default representation: body-fixed."""


Operator = Any
"""A linear map of twists, ``A @ V``, and of wrenches by its transpose, ``A.T @ W``."""


class Identity:
    """The identity map of twists and wrenches."""

    def __matmul__(self, V: Array) -> Array:
        return V

    @property
    def T(self) -> Identity:
        """Itself."""
        return self

    def back(self, x: Array) -> Array:
        """The same vector (3,)."""
        return x

    rotated = undone = back


IDENTITY = Identity()


def after(last: Operator, first: Operator) -> Operator:
    """Return the map that applies ``first`` and then ``last``."""
    if isinstance(first, Identity):
        return last
    if isinstance(last, Identity):
        return first
    return last.after(first) if isinstance(last, InverseAdjoint) else last @ first


Method = TypeVar("Method", bound=Callable[..., Any])


def _cached(method: Method) -> Method:
    """Return a method that computes the operator of each body once."""

    @functools.wraps(method)
    def cached(self: Any, i: int) -> Any:
        key = (method.__name__, i)
        if key not in self._cache:
            self._cache[key] = method(self, i)
        return self._cache[key]

    return cached  # type: ignore[return-value]


class Representation(ABC):
    """The operators of one representation, for a model at a configuration q (n,).

    Works on floats and on traced symbols. Bodies are indices; GROUND (-1) is the inertial frame.
    """

    name: ClassVar[str]
    of_origin: ClassVar[bool] = False
    """Whether the linear part of an acceleration is that of the origin of the body."""
    in_body: ClassVar[bool] = False
    """Whether the angular part of a twist is resolved in the body."""
    no_inertia: ClassVar[Any] = Inertia.zero()
    """Zero, in the form of :meth:`inertia`."""

    def __init__(self, model: Model | Tree, q: Array) -> None:
        self.model = model = Tree(model) if isinstance(model, Model) else model
        self._position = model.joint_positions(q)
        self._cache: dict[tuple[str, int], Any] = {}
        self._poses = model.per_body(np.eye(4))

    @_cached
    def C_rel(self, i: int) -> Array:
        """Pose of body i relative to its parent, B_i g_i, B_i exp(X_i q_i) for one screw: K (4)."""
        body, q = self.model.bodies[i], self._position[i]
        if isinstance(q, PositionSeries):  # expand about the present pose
            return body.home_rel @ body.joint.motion(q.now) @ flow(body.joint.screws, q.velocities)
        if len(q) == 1 and isinstance(q[0], Series):  # exp(X q) exp(X (q(t) - q))
            C_now = body.home_rel @ body.joint.motion(np.array([q[0].c[0]]))
            return C_now @ body.joint.motion(np.array([Series((0.0, *q[0].c[1:]))]))
        return body.home_rel @ body.joint.motion(q)

    def C(self, i: int) -> Array:
        """Pose of body i, C_i = C_p B_i exp(X_i q_i): K (8), D (66a)."""
        if i == GROUND:
            return np.eye(4)
        for k in self.model.path(i):  # a loop, so that long chains do not recurse deeply
            if self._poses[k] is None:
                p = self.model.bodies[k].parent
                C_rel = self.C_rel(k)
                self._poses[k] = C_rel if p == GROUND else self._poses[p] @ C_rel
        return self._poses[i]

    def R(self, i: int) -> Array:
        """Rotation matrix of body i."""
        return self.C(i)[:3, :3]

    def r(self, i: int) -> Array:
        """Position of the origin of body i, resolved in the inertial frame."""
        return self.C(i)[:3, 3]

    def from_zero(self, i: int) -> Array:
        """Ad (6, 6): take a screw from the frame of body i at joint position zero to the frame."""
        joint, q = self.model.bodies[i].joint, self._position[i]
        if joint.nv == 1:
            return se3.Ad(joint.motion(-q))
        return se3.Ad(se3.inverse(joint.motion(q)))

    @_cached
    def screw(self, i: int) -> Array:
        """S_i (6, k): instantaneous screws of joint i, one for each degree of freedom."""
        return self.of_body(i, self.model.bodies[i].joint.screws)

    @abstractmethod
    def of_body(self, i: int, X: Array) -> Array:
        """Take screws (6, k) in the frame of body i to this representation: K (38), Table 3."""

    def of_parameter(self, i: int, U: Array) -> Array:
        """Take a screw in the frame of body i with its joint at zero, fixed before that joint."""
        return self.of_body(i, self.from_zero(i) @ U)

    @abstractmethod
    def transform(self, i: int) -> Operator:
        """Take a twist of the parent to body i; the transpose takes a wrench of body i back."""

    @abstractmethod
    def velocity_product(self, i: int, V: list[Array], rate: Any) -> Array:
        """The velocity-dependent part of Vdot_i (6,), without the acceleration of the parent."""

    @abstractmethod
    def inertia(self, i: int) -> Operator:
        """M_i: takes an acceleration to a wrench, and a twist to a momentum."""

    def bias(self, i: int, V: Array) -> Array:
        """The velocity-dependent wrench (6,) of body i at twist V, in addition to M_i Vdot_i."""
        return -(se3.ad(V).T @ (self.inertia(i) @ V))  # D (38), (41)

    @abstractmethod
    def at(self, frame: Frame) -> Operator:
        """Take the twist of a body to a frame fixed to it; the transpose takes a wrench back."""

    def wrench_at(self, frame: Frame, W: Array) -> Array:
        """Take a wrench (6,) on a body to a frame fixed to it."""
        moved: Array = self.at(frame).T.undone(W)
        return moved

    def twist(self, i: int, V: list[Array], rate: Any) -> Array:
        """V_i (6,) from that of the parent: K (14), (30), (42), (52); D (66b), (70c), (75c)."""
        return self.transform(i) @ V[self.model.bodies[i].parent] + self.screw(i) @ rate

    def screw_rate(self, i: int, V: Array) -> Array:
        """ad_V S_i (6, k): the rate of S_i seen at rest, where body i has the twist V."""
        return se3.ad(V) @ self.screw(i)

    def acceleration(
        self, i: int, V: list[Array], A: list[Array], rate: Any, joint_acceleration: Any
    ) -> Array:
        """Vdot_i (6,) from that of the parent: D (66c), (70d), (75d)."""
        of_parent = self.transform(i) @ A[self.model.bodies[i].parent]
        return of_parent + self.screw(i) @ joint_acceleration + self.velocity_product(i, V, rate)

    def wrench(self, i: int, V: Array, A: Array) -> Array:
        """The wrench (6,) that body i needs for its motion: D (41), (38), (53)."""
        return self.inertia(i) @ A + self.bias(i, V)


class BodyFixed(Representation):
    """Measured at the body and resolved in it: constant screws and inertias."""

    name = "body_fixed"
    in_body = True

    def of_body(self, i: int, X: Array) -> Array:
        return X

    @_cached
    def transform(self, i: int) -> Operator:
        C_rel, body, q = self.C_rel(i), self.model.bodies[i], self._position[i]
        factors: tuple[Array, ...] = ()
        if not isinstance(q, PositionSeries) and not any(isinstance(x, Series) for x in q):
            motion = body.joint.motion(q)
            factors = so3.sparse_factors(body.home_rel[:3, :3], motion[:3, :3])
        return InverseAdjoint(C_rel[:3, :3], C_rel[:3, 3], factors)  # Ad_{C_i,p}, D (66b)

    def velocity_product(self, i: int, V: list[Array], rate: Any) -> Array:
        return (se3.ad(V[i]) @ self.screw(i)) @ rate  # D (66c)

    def inertia(self, i: int) -> Operator:
        return self.model.bodies[i].inertia  # D (40)

    def at(self, frame: Frame) -> Operator:
        if _is_body(frame):
            return IDENTITY
        return InverseAdjoint(frame.placement[:3, :3], frame.placement[:3, 3])  # K (20)


class Spatial(Representation):
    """Measured at the origin of the inertial frame and resolved in it: no transformations."""

    name = "spatial"

    def of_body(self, i: int, X: Array) -> Array:
        return se3.Ad(self.C(i)) @ X  # J_i^s, D (70b)

    def of_parameter(self, i: int, U: Array) -> Array:
        p, C = self.model.bodies[i].parent, self.model.bodies[i].home_rel
        return se3.Ad(C if p == GROUND else self.C(p) @ C) @ U  # with the joint at zero

    def transform(self, i: int) -> Operator:
        return IDENTITY  # D (70c)

    def velocity_product(self, i: int, V: list[Array], rate: Any) -> Array:
        p = self.model.bodies[i].parent  # D (70d), its ad with the index i - 1 restored
        return (se3.ad(V[p]) @ self.screw(i)) @ rate

    @_cached
    def inertia(self, i: int) -> Operator:
        return self.model.bodies[i].inertia.transformed(self.C(i))  # D (71a)

    def at(self, frame: Frame) -> Operator:
        return IDENTITY


class Hybrid(Representation):
    """Measured at the body and resolved in the inertial frame: transformed by translations."""

    name = "hybrid"
    of_origin = True

    def of_body(self, i: int, X: Array) -> Array:
        R = self.R(i)
        return np.concatenate([R @ X[:3], R @ X[3:]])  # Ad_R X, D (75b)

    @_cached
    def transform(self, i: int) -> Operator:
        p = self.model.bodies[i].parent
        return InverseAdjoint(np.eye(3), self.r(i) - self.r(p))  # Ad_{r_i,p}, D (75c)

    def velocity_product(self, i: int, V: list[Array], rate: Any) -> Array:
        p = self.model.bodies[i].parent
        omega = so3.hat(V[i][:3])
        S = self.screw(i)
        transport = so3.hat(V[p][3:] - V[i][3:]) @ V[p][:3]  # ad_{rdot_i,p} V_p
        turn = np.concatenate([omega @ S[:3], omega @ S[3:]])  # ad_omega S
        return np.concatenate([np.zeros(3), transport]) + turn @ rate  # D (75d)

    @_cached
    def inertia(self, i: int) -> Operator:
        return self.model.bodies[i].inertia.rotated(self.R(i))  # D (76a)

    def bias(self, i: int, V: Array) -> Array:
        return _turning(V[:3], self.inertia(i))  # D (53)

    def at(self, frame: Frame) -> Operator:
        if _is_body(frame):
            return IDENTITY
        return InverseAdjoint(np.eye(3), self.R(frame.body) @ frame.placement[:3, 3])


class Mixed(Representation):
    """Angular part body-fixed, linear part hybrid: V^m = diag(R^T, I) V^h."""

    name = "mixed"
    of_origin = in_body = True
    no_inertia = np.zeros((6, 6))

    def of_body(self, i: int, X: Array) -> Array:
        return np.concatenate([X[:3], self.R(i) @ X[3:]])  # K (50) for j = i

    @_cached
    def transform(self, i: int) -> Operator:
        p = self.model.bodies[i].parent
        shift = so3.hat(self.r(p) - self.r(i)) @ self.R(p)  # K (52), with R_{i-1} for R_i
        turn = self.C_rel(i)[:3, :3].T
        return np.block([[turn, np.zeros((3, 3))], [shift, np.eye(3)]])

    def velocity_product(self, i: int, V: list[Array], rate: Any) -> Array:
        p = self.model.bodies[i].parent
        X, R, omega = self.model.bodies[i].joint.screws, self.R(i), so3.hat(V[i][:3])
        transport = so3.hat(V[p][3:] - V[i][3:]) @ (self.R(p) @ V[p][:3])
        turn = np.concatenate([omega @ X[:3], R @ (omega @ X[3:])])
        return np.concatenate([np.zeros(3), transport]) + turn @ rate  # diag(R^T, I) of D (75d)

    @_cached
    def inertia(self, i: int) -> Operator:
        inertia, R = self.model.bodies[i].inertia, self.R(i)
        c = so3.hat(inertia.moment) @ R.T
        mass = inertia.mass * np.eye(3)
        return np.block([[inertia.tensor, c], [c.T, mass]])  # D (56), (57)

    def screw_rate(self, i: int, V: Array) -> Array:
        X, R, omega = self.model.bodies[i].joint.screws, self.R(i), so3.hat(V[:3])
        linear = so3.hat(V[3:]) @ (R @ X[:3]) + R @ (omega @ X[3:])
        return np.concatenate([omega @ X[:3], linear])  # diag(I, R) ad_V S, body-fixed

    def bias(self, i: int, V: Array) -> Array:
        W = _turning(V[:3], self.model.bodies[i].inertia)
        return np.concatenate([W[:3], self.R(i) @ W[3:]])  # D (56), (57)

    def at(self, frame: Frame) -> Operator:
        if _is_body(frame):
            return IDENTITY
        turn, p = frame.placement[:3, :3].T, frame.placement[:3, 3]
        shift = -(self.R(frame.body) @ so3.hat(p))
        return np.block([[turn, np.zeros((3, 3))], [shift, np.eye(3)]])

    def wrench_at(self, frame: Frame, W: Array) -> Array:
        turn, p = frame.placement[:3, :3].T, frame.placement[:3, 3]
        moment = turn @ (W[:3] - so3.hat(p) @ (self.R(frame.body).T @ W[3:]))
        return np.concatenate([moment, W[3:]])


def flow(S: Array, velocities: Array) -> Array:
    """Return the motion H (4, 4) as a series, with H^-1 dH/dt = (S s)^ and H = I at time zero.

    ``velocities`` s (k,) are series. Each coefficient of H follows from those before it.
    """
    orders = range(len(velocities[0].c))
    twists = [se3.hat(S @ np.array([s.c[k] for s in velocities])) for k in orders]
    H: list[Array] = [np.eye(4)]
    for n in orders:
        H.append(sum(H[m] @ twists[n - m] for m in range(n + 1)) * (1.0 / (n + 1)))
    return np.frompyfunc(lambda *c: Series(c), len(H), 1)(*H)


def _turning(omega: Array, inertia: Any) -> Array:
    """ad_omega M (omega, 0): the wrench of a body that turns about its origin, D (53)."""
    P = inertia @ np.concatenate([omega, np.zeros(3)])
    return np.concatenate([so3.hat(omega) @ P[:3], so3.hat(omega) @ P[3:]])


def _is_body(frame: Frame) -> bool:
    symbolic = frame.placement.dtype == object  # an input, such as a point on the body
    return not symbolic and np.array_equal(frame.placement, np.eye(4))


REPRESENTATIONS: dict[str, type[Representation]] = {
    kind.name: kind for kind in (BodyFixed, Spatial, Hybrid, Mixed)
}


def operators(representation: str, model: Model | Tree, q: Array) -> Representation:
    """Return the operators of a representation at q; UnknownRepresentationError for its name."""
    return REPRESENTATIONS[checked(representation)](model, q)


def checked(representation: str, *, auto: bool = False) -> str:
    """Return the name of a representation, or raise UnknownRepresentationError."""
    valid = [*REPRESENTATIONS, AUTO] if auto else list(REPRESENTATIONS)
    if not isinstance(representation, str) or representation not in valid:
        raise UnknownRepresentationError(representation, valid)
    return representation
