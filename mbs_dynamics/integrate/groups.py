# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bodies whose configuration is an element of SO(3) or SE(3): their equations of motion.

With the pose C, the body-fixed twist V, the inertia matrix M in the body frame and the body-fixed
wrench W, Mueller (dynamics), eqs. (41), (88) and, with the spatial momentum Pi, (35), (36):

    Cdot = C V^,    M Vdot = ad_V^T M V + W                   in twists
    Cdot = C V^,    Pidot = Ad_C^-T W,  V = M^-1 Ad_C^T Pi    in momenta

The same holds for a body that turns about a fixed point, with C in SO(3), V its angular velocity
and M its tensor about that point.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array

Wrench = Callable[[Array, Array], Array]
"""Pose and body-fixed twist to the body-fixed wrench; written for symbols, as traced code is."""


class Group(NamedTuple):
    """What the integrators need of a matrix Lie group."""

    name: str
    dim: int
    """Dimension of the algebra."""
    size: int
    """Rows of its matrices."""
    exp: Callable[[Array], Array]
    log: Callable[[Array], Array]
    dexp: Callable[[Array], Array]
    dexp_inv: Callable[[Array], Array]
    ad: Callable[[Array], Array]
    Ad: Callable[[Array], Array]
    inverse: Callable[[Array], Array]

    def truncated_dexp_inv(self, X: Array, terms: int) -> Array:
        """Return the first terms of dexp_X^-1 = I - ad_X / 2 + ad_X^2 / 12 - ..., up to three."""
        series = np.eye(self.dim)
        if terms > 1:
            ad = self.ad(X)
            series = series - 0.5 * ad
            if terms > 2:
                series = series + (ad @ ad) * (1.0 / 12.0)
        return series

    def product(self, C: Array, D: Array) -> Array:
        """Return C D, its rotation made orthogonal again by one step of Newton's method.

        Products of many rotations lose orthogonality by rounding; one step mends that to rounding.
        """
        E = C @ D
        R = E[..., :3, :3]
        R = R @ (1.5 * np.eye(3) - 0.5 * (np.swapaxes(R, -1, -2) @ R))
        return R if self.size == 3 else se3.pose(R, E[..., :3, 3])


SO3 = Group(
    "SO(3)",
    3,
    3,
    so3.exp,
    so3.log,
    so3.dexp,
    so3.dexp_inv,
    so3.hat,
    lambda R: R,
    lambda R: np.swapaxes(R, -1, -2),
)
SE3 = Group("SE(3)", 6, 4, se3.exp, se3.log, se3.dexp, se3.dexp_inv, se3.ad, se3.Ad, se3.inverse)


@dataclass(frozen=True, eq=False)
class GroupBody:
    """A rigid body on SO(3) or SE(3); made by :func:`free_body`, :func:`pivoted_body`."""

    group: Group
    inertia: FloatArray
    """(dim, dim) M in the body frame, symmetric and positive definite."""
    wrench: Wrench | None = None
    """Applied wrench; none if None."""
    potential: Callable[[Array], Array] | None = None
    """Potential energy of a pose (..., size, size), if the wrench has one."""

    def __post_init__(self) -> None:
        d = self.group.dim
        M = checks.numbers("inertia", self.inertia, (d, d))
        if np.abs(M - M.T).max() > 1e-9 * np.abs(M).max() or np.linalg.eigvalsh(M)[0] <= 0.0:
            raise ModelError(f"inertia must be symmetric and positive definite; got {M.tolist()}")
        M = 0.5 * (M + M.T)
        object.__setattr__(self, "inertia", M)
        object.__setattr__(self, "inverse", np.linalg.inv(M))

    inverse: FloatArray = None  # type: ignore[assignment]
    """(dim, dim) inverse of the inertia."""
    kernels: dict[Any, Kernel] = field(init=False, repr=False, default_factory=dict)
    """Its compiled steps, by what they are."""

    def under(self, W: Array | None) -> GroupBody:
        """Return the body with a further body-fixed wrench (dim,) on it; None for none."""
        if W is None:
            return self

        def acting(C: Array, V: Array) -> Array:
            return W if self.wrench is None else np.asarray(self.wrench(C, V)) + W

        return replace(self, wrench=acting)

    # -- equations, on numbers and on symbols ----------------------------------------------------

    def acceleration(self, C: Array, V: Array) -> Array:
        """Return Vdot (dim,)."""
        f = self.group.ad(V).T @ (self.inertia @ V)
        if self.wrench is not None:
            f = f + np.asarray(self.wrench(C, V))
        return self.inverse @ f

    def twist_of(self, C: Array, momentum: Array) -> Array:
        """Return the body-fixed twist (dim,) of a spatial momentum: eq. (35)."""
        return self.inverse @ (self.group.Ad(C).T @ momentum)

    def momentum_rate(self, C: Array, V: Array) -> Array:
        """Return the rate (dim,) of the spatial momentum: eq. (36)."""
        if self.wrench is None:
            return np.zeros(self.group.dim)
        return self.group.Ad(self.group.inverse(C)).T @ np.asarray(self.wrench(C, V))

    # -- of many poses and twists at once --------------------------------------------------------

    def momentum(self, C: FloatArray, V: FloatArray) -> FloatArray:
        """Return the spatial momenta (..., dim) for poses and body-fixed twists."""
        carried = np.swapaxes(self.group.Ad(self.group.inverse(C)), -1, -2)
        found: FloatArray = (carried @ (V @ self.inertia)[..., None])[..., 0]
        return found

    def kinetic_energy(self, V: FloatArray) -> FloatArray:
        """Return the kinetic energies (...)."""
        energy: FloatArray = 0.5 * np.einsum("...i,ij,...j->...", V, self.inertia, V)
        return energy

    def potential_energy(self, C: FloatArray) -> FloatArray:
        """Return the potential energies (...), zero where no potential is known."""
        if self.potential is None:
            return np.zeros(C.shape[:-2])
        return np.asarray(self.potential(C), dtype=float)


def free_body(
    M_body: ArrayLike, gravity: ArrayLike = (0.0, 0.0, 0.0), wrench: Wrench | None = None
) -> GroupBody:
    """Return a free rigid body on SE(3).

    :param M_body: (6, 6) inertia in its frame; see :func:`mbs_dynamics.spatial_inertia`.
    :param gravity: (3,) free-fall acceleration in the inertial frame, m/s^2.
    :param wrench: what acts beside gravity: ``wrench(C, V)`` returns a body-fixed wrench, moment
        first. Written with NumPy and the functions of ``mbs_dynamics.compiler``, as it is traced,
        once for this body: numbers that it refers to must not change.
    :raises ModelError: if the inertia is not that of a body that can move by itself.
    """
    M = checks.numbers("M_body", M_body, (6, 6))
    g = checks.numbers("gravity", gravity, (3,))
    _check_wrench(wrench)
    if not g.any():
        return GroupBody(SE3, M, wrench)
    mass, moment = M[3, 3], so3.vee(M[:3, 3:])

    def acting(C: Array, V: Array) -> Array:
        W = M @ np.concatenate([np.zeros(3), C[:3, :3].T @ g])
        return W if wrench is None else W + np.asarray(wrench(C, V))

    def potential(C: Array) -> Array:
        return -((C[..., :3, :3] @ moment + mass * C[..., :3, 3]) @ g)

    return GroupBody(SE3, M, acting, potential)


def pivoted_body(
    inertia: ArrayLike,
    moment: ArrayLike = (0.0, 0.0, 0.0),
    gravity: ArrayLike = (0.0, 0.0, 0.0),
    wrench: Wrench | None = None,
) -> GroupBody:
    """Return a body that turns about a fixed point, on SO(3): a heavy top, a spinning body.

    :param inertia: (3, 3) tensor about the point, in the body frame, kg m^2.
    :param moment: (3,) first moment, mass times centre of mass seen from the point, kg m.
    :param gravity: (3,) free-fall acceleration in the inertial frame, m/s^2.
    :param wrench: a moment that acts beside gravity, as for :func:`free_body`.
    :raises ModelError: if the tensor is not symmetric and positive definite.
    """
    tensor = checks.numbers("inertia", inertia, (3, 3))
    lever, g = checks.numbers("moment", moment, (3,)), checks.numbers("gravity", gravity, (3,))
    _check_wrench(wrench)
    if not (lever.any() and g.any()):
        return GroupBody(SO3, tensor, wrench)

    def acting(R: Array, omega: Array) -> Array:
        torque = so3.hat(lever) @ (R.T @ g)
        return torque if wrench is None else torque + np.asarray(wrench(R, omega))

    def potential(R: Array) -> Array:
        return -((R @ lever) @ g)

    return GroupBody(SO3, tensor, acting, potential)


def _check_wrench(wrench: Any) -> None:
    if wrench is not None and not callable(wrench):
        raise ArgumentError(f"wrench must be a function of pose and twist; got {wrench!r}")
