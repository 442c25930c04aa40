# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bodies whose configuration is an element of SO(3) or SE(3): their equations of motion.

With the pose C, the body-fixed twist V, the inertia matrix M in the body frame and the body-fixed
wrench W, Mueller (dynamics), eqs. (41), (88) and, with the spatial momentum Pi, (35), (36):

    Cdot = C V^,    M Vdot = ad_V^T M V + W                   in twists
    Cdot = C V^,    Pidot = Ad_C^-T W,  V = M^-1 Ad_C^T Pi    in momenta

The same holds for a body that turns about a fixed point, with C in SO(3), V its angular velocity
and M its tensor about that point.

Steps in absolute coordinates: Mueller (dynamics), section 7.

**Munthe-Kaas schemes** parameterise the increment of a step by a screw X and integrate X by a
Runge-Kutta scheme, eqs. (88), (89), from X = 0:

    right increments  C = C_0 exp(X),    Xdot = dexp_{-X}^-1 V^b
    left increments   C = exp(X) C_0,    Xdot = dexp_X^-1 V^s

The paper prints V^s = dexp_X Xdot for right increments; it holds for left ones. dexp^-1 is
exact, or its series is cut off after ad^(p - 2), which is enough for order p. The twist, or the
spatial momentum, is integrated by the same scheme.

**In momenta**, where no wrench acts the spatial momentum is constant, eq. (36), and any scheme
keeps it to the last bit. ``momentum_midpoint`` is the implicit midpoint rule on the group: of order
2 and symmetric, so that its energy does not drift in the way that of an explicit scheme does.

**The generalized-alpha scheme** on Lie groups is that of Bruels and Cardona (2010): with rho the
damping of infinite frequencies,

    C_1 = C_0 exp(h V_0 + h^2 ((1/2 - beta) a_0 + beta a_1))
    V_1 = V_0 + h ((1 - gamma) a_0 + gamma a_1)
    (1 - alpha_m) a_1 + alpha_m a_0 = (1 - alpha_f) Vdot_1 + alpha_f Vdot_0

The implicit schemes make a fixed number of Newton's iterations, with the gyroscopic part of the
derivative, and raise SingularError where that is not enough, because the step is too long.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms.mass_matrix import eliminated, solve
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, default_backend, positive, trace
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.integrate.runge_kutta import Chart
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array

TOLERANCE = 1e-11
"""Change in the last iteration, relative to one plus the size, that counts as converged."""

ITERATIONS = 8
"""Iterations of the implicit schemes in one step."""

TOO_LONG = "the step is too long: the iteration of the scheme does not converge"

Wrench = Callable[[Array, Array], Array]
"""Pose and body-fixed twist to the body-fixed wrench; written for symbols, as traced code is."""


class Group(NamedTuple):
    """Functions of a matrix Lie group that the integrators need."""

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
        """Return C D, with its rotation made orthogonal by one step of Newton's method.

        Products of many rotations lose orthogonality by rounding; one step restores it to rounding.
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
    """Applied wrench; None means zero."""
    potential: Callable[[Array], Array] | None = None
    """Potential energy of a pose (..., size, size) of a conservative wrench."""

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
    """Compiled steps by name and options."""

    def under(self, W: Array | None) -> GroupBody:
        """Return the body with an additional body-fixed wrench (dim,); None means zero."""
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
        """Return the potential energies (...), zero if the body has no potential."""
        if self.potential is None:
            return np.zeros(C.shape[:-2])
        return np.asarray(self.potential(C), dtype=float)


def free_body(
    M_body: ArrayLike, gravity: ArrayLike = (0.0, 0.0, 0.0), wrench: Wrench | None = None
) -> GroupBody:
    """Return a free rigid body on SE(3).

    :param M_body: (6, 6) inertia in its frame; see :func:`mbs_dynamics.spatial_inertia`.
    :param gravity: (3,) free-fall acceleration in the inertial frame, m/s^2.
    :param wrench: additional wrench: ``wrench(C, V)`` returns a body-fixed wrench, moment first. It
        is written with NumPy and the functions of ``mbs_dynamics.compiler``, as it is traced once
        for this body: numbers that it refers to must not change.
    :raises ModelError: if the inertia is not symmetric and positive definite.
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
    """Return a body that rotates about a fixed point, on SO(3): a heavy top, a spinning body.

    :param inertia: (3, 3) tensor about the point, in the body frame, kg m^2.
    :param moment: (3,) first moment, mass times centre of mass relative to the point, kg m.
    :param gravity: (3,) free-fall acceleration in the inertial frame, m/s^2.
    :param wrench: an additional moment, as for :func:`free_body`.
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


# -- implicit steps, on numbers and on symbols -----------------------------------------------------


class Increments(NamedTuple):
    """Form of the increment of a step in Munthe-Kaas schemes."""

    left: bool = False
    truncated: bool = False


def momentum_midpoint(body: GroupBody, C: Array, Pi: Array, h: Any) -> tuple[Array, ...]:
    """Return pose and spatial momentum after a step, and pose and twist in the middle of it.

    By the implicit midpoint rule:

    C_1 = C_0 exp(h V) with V the twist at C_0 exp(h V / 2) and half the change of momentum.
    """
    half, Ad = 0.5 * h, body.group.Ad
    mu = Ad(C).T @ Pi  # once: far from the origin its rounding must not disturb the iteration

    def improved(V: Array) -> Array:
        E = body.group.exp(half * V)
        middle = Ad(E).T @ mu
        if body.wrench is not None:
            middle = middle + half * np.asarray(body.wrench(C @ E, V))
        return body.inverse @ middle

    def slope(V: Array) -> Array:  # of M improved(V), with dexp_{-h V / 2} to first order
        turned = np.eye(body.group.dim) - (0.25 * h) * body.group.ad(V)
        return (-half) * (_dual(body, body.inertia @ V) @ turned)

    V = _solution(body, improved, slope, body.twist_of(C, Pi))
    C_middle = C @ body.group.exp(half * V)
    Pi_new = Pi + h * body.momentum_rate(C_middle, V)
    return body.group.product(C, body.group.exp(h * V)), Pi_new, C_middle, V


class Alpha(NamedTuple):
    """The parameters of the generalized-alpha scheme."""

    m: float
    f: float
    beta: float
    gamma: float

    @classmethod
    def of(cls, rho: float) -> Alpha:
        """Return those of second order with the damping rho of infinite frequencies, 0 to 1."""
        m, f = (2.0 * rho - 1.0) / (rho + 1.0), rho / (rho + 1.0)
        gamma = 0.5 + f - m
        return cls(m, f, 0.25 * (gamma + 0.5) ** 2, gamma)


def generalized_alpha(
    body: GroupBody, C: Array, V: Array, Vd: Array, a: Array, h: Any, alpha: Alpha
) -> tuple[Array, Array, Array, Array]:
    """Return pose, twist, its rate, and the algorithmic acceleration after a step."""
    known = (alpha.f * Vd - alpha.m * a) * (1.0 / (1.0 - alpha.m))
    share = (1.0 - alpha.f) / (1.0 - alpha.m)

    def ends(Vd_new: Array) -> tuple[Array, Array, Array]:
        a_new = share * Vd_new + known
        X = h * V + (h * h) * ((0.5 - alpha.beta) * a + alpha.beta * a_new)
        V_new = V + h * ((1.0 - alpha.gamma) * a + alpha.gamma * a_new)
        return X, V_new, a_new

    def improved(Vd_new: Array) -> Array:
        X, V_new, _ = ends(Vd_new)
        C_new = C if body.wrench is None else C @ body.group.exp(X)
        return body.acceleration(C_new, V_new)

    def slope(Vd_new: Array) -> Array:  # of M improved(Vd_new)
        _, V_new, _ = ends(Vd_new)
        gyroscopic = body.group.ad(V_new).T @ body.inertia - _dual(body, body.inertia @ V_new)
        return (h * (alpha.gamma * share)) * gyroscopic

    Vd_new = _solution(body, improved, slope, Vd)
    X, V_new, a_new = ends(Vd_new)
    return body.group.product(C, body.group.exp(X)), V_new, Vd_new, a_new


def _dual(body: GroupBody, P: Array) -> Array:
    """Return the matrix that maps X to -ad_X^T P."""
    return se3.ad_dual(P) if body.group.dim == 6 else -so3.hat(P)


def _solution(
    body: GroupBody, improved: Callable[[Array], Array], slope: Callable[[Array], Array], x: Array
) -> Array:
    """Return x = improved(x), guarded; M^-1 slope(x) approximates the derivative of improved."""
    change = np.zeros(body.group.dim)
    for _ in range(ITERATIONS):
        # nearly an inertia, but not symmetric
        U, D, L = eliminated(body.inertia - slope(x), lambda _, pivot: pivot, symmetric=False)
        change = solve(U, D, body.inertia @ (improved(x) - x), L)
        x = x + change
    positive(TOLERANCE**2 * (1.0 + x @ x) - change @ change, TOO_LONG)
    return x


# -- charts of Runge-Kutta schemes on a group ------------------------------------------------------


@dataclass(frozen=True)
class ExponentialChart(Chart):
    """Increments (X, z) of a state (C, y) with C in a group, flat, and y in a vector space.

    C moves to C exp(X), or exp(X) C with left increments, and y to y + z; the rate of X is
    dexp_{-X}^-1 V^b, or dexp_X^-1 V^s: Mueller (dynamics), eqs. (88), (89). On symbols or numbers.
    """

    group: Group
    kind: Increments
    order: int
    """Order of the scheme, at which the series of a truncated dexp^-1 is cut off."""

    def moved(self, y: Array, z: Array) -> Array:
        """Return the state that is reached from y by the increment z."""
        return self._with(self._factors(y, z, np.matmul), y, z)

    def finished(self, y: Array, z: Array) -> Array:
        """Return the same, its rotation made orthogonal again."""
        return self._with(self._factors(y, z, self.group.product), y, z)

    def begun(self, y: Array, rate: Array) -> Array:
        """Return the rate of an increment that starts at y; ``rate`` is (V^b, ydot)."""
        dim, C = self.group.dim, pose_of(self.group, y)
        V = self.group.Ad(C) @ rate[:dim] if self.kind.left else rate[:dim]
        return np.concatenate([V, rate[dim:]])

    def lifted(self, y: Array, z: Array, rate: Array) -> Array:
        """Return the rate of the increment z that leads to y."""
        dim, rate = self.group.dim, self.begun(y, rate)
        X = z[:dim] if self.kind.left else -1.0 * z[:dim]
        if self.kind.truncated:
            dexp_inv = self.group.truncated_dexp_inv(X, self.order - 1)
        else:
            dexp_inv = self.group.dexp_inv(X)
        return np.concatenate([dexp_inv @ rate[:dim], rate[dim:]])

    def _factors(self, y: Array, z: Array, product: Any) -> Array:
        C, E = pose_of(self.group, y), self.group.exp(z[: self.group.dim])
        return np.asarray(product(E, C) if self.kind.left else product(C, E))

    def _with(self, C: Array, y: Array, z: Array) -> Array:
        return np.concatenate([np.ravel(C), y[self.group.size**2 :] + z[self.group.dim :]])


class GroupChart(Chart):
    """An :class:`ExponentialChart` as kernels, for arrays of states (..., k)."""

    def __init__(
        self, group: Group, others: int, kind: Increments, order: int, backend: str | None
    ) -> None:
        self.group, self.others = group, others
        kernels = _kernels(
            ExponentialChart(group, kind, order), others, backend or default_backend()
        )
        for name, kernel in kernels.items():
            setattr(self, name, kernel)

    def sizes(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """Return the sizes of the increment on the group, and of y."""
        both = np.concatenate([z[..., : self.group.dim], y[..., -self.others :]], axis=-1)
        return np.asarray(np.abs(both))


def pose_of(group: Group, x: Array) -> Array:
    """Return the element of a group at the beginning of a flat state, its last row known."""
    C = np.array(x[: group.size**2].reshape(group.size, group.size))
    if group.size == 4:
        C[3] = [0.0, 0.0, 0.0, 1.0]
    return C


@lru_cache
def _kernels(chart: ExponentialChart, others: int, backend: str) -> dict[str, Kernel]:
    """Return the kernels of the methods of a chart."""
    shapes = {name: (chart.group.dim + others,) for name in ("z", "rate")}
    shapes["y"] = (chart.group.size**2 + others,)
    parts = {"moved": "y z", "finished": "y z", "begun": "y rate", "lifted": "y z rate"}
    found = {}
    for name, names in parts.items():
        inputs = {key: shapes[key] for key in names.split()}
        found[name] = Kernel(trace(getattr(chart, name), inputs, name=name), backend=backend)
    return found
