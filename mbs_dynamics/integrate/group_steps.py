# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""One step on SO(3) or SE(3), in absolute coordinates: Mueller (dynamics), section 7.

**Munthe-Kaas schemes** parameterise the increment of a step by a screw X and integrate X by a
Runge-Kutta scheme, eqs. (88), (89), from X = 0:

    right increments  C = C_0 exp(X),    Xdot = dexp_{-X}^-1 V^b
    left increments   C = exp(X) C_0,    Xdot = dexp_X^-1 V^s

The paper prints V^s = dexp_X Xdot beside right increments; it holds for left ones. dexp^-1 is
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
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, default_backend, positive, trace
from mbs_dynamics.integrate.groups import Group, GroupBody
from mbs_dynamics.integrate.runge_kutta import TABLEAUS, Chart
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.lie.arrays import Array

TOLERANCE = 1e-11
"""Change in the last iteration, relative to one plus the size, that counts as converged."""

ITERATIONS = 8
"""Iterations of the implicit schemes in one step."""

TOO_LONG = "the step is too long: the iteration of the scheme does not converge"


class Increments(NamedTuple):
    """How a Munthe-Kaas scheme writes the increment of a step."""

    left: bool = False
    truncated: bool = False


def munthe_kaas(
    body: GroupBody, C: Array, y: Array, h: Any, order: int, momenta: bool, kind: Increments
) -> tuple[Array, Array]:
    """Return pose and twist (or spatial momentum) after a step of h."""
    group, tableau = body.group, TABLEAUS[order]
    X_rates: list[Array] = []
    y_rates: list[Array] = []
    for row in tableau.A:
        X = _sum(h, row, X_rates)
        y_stage = y if X is None else y + _sum(h, row, y_rates)
        C_stage = C if X is None else _moved(group.exp(X), C, kind)
        V = body.twist_of(C_stage, y_stage) if momenta else y_stage
        y_rate = body.momentum_rate(C_stage, V) if momenta else body.acceleration(C_stage, V)
        X_rate = group.Ad(C_stage) @ V if kind.left else V
        if X is not None:
            argument = X if kind.left else -1.0 * X
            if kind.truncated:
                X_rate = group.truncated_dexp_inv(argument, order - 1) @ X_rate
            else:
                X_rate = group.dexp_inv(argument) @ X_rate
        X_rates.append(X_rate)
        y_rates.append(y_rate)
    X = _sum(h, tableau.b, X_rates)
    E = group.exp(X)
    C_new = group.product(E, C) if kind.left else group.product(C, E)
    return C_new, y + _sum(h, tableau.b, y_rates)


def _moved(E: Array, C: Array, kind: Increments) -> Array:
    return E @ C if kind.left else C @ E


def _sum(h: Any, weights: tuple[float, ...], rates: list[Array]) -> Any:
    """Return h times the weighted sum of rates, None if there is none."""
    total: Any = None
    for weight, rate in zip(weights, rates, strict=True):
        if weight:
            term = (h * weight) * rate
            total = term if total is None else total + term
    return total


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
    """Return the matrix that takes X to -ad_X^T P."""
    return se3.ad_dual(P) if body.group.dim == 6 else -so3.hat(P)


def _solution(
    body: GroupBody, improved: Callable[[Array], Array], slope: Callable[[Array], Array], x: Array
) -> Array:
    """Return x = improved(x), guarded; M^-1 slope(x) is about the derivative of improved."""
    change = np.zeros(body.group.dim)
    for _ in range(ITERATIONS):
        change = eliminated(body.inertia - slope(x), body.inertia @ (improved(x) - x))
        x = x + change
    positive(TOLERANCE**2 * (1.0 + x @ x) - change @ change, TOO_LONG)
    return x


def eliminated(A: Array, b: Array) -> Array:
    """Return A^-1 b by elimination without pivoting: A is nearly an inertia matrix."""
    n = len(b)
    A, x = np.array(A, dtype=object), list(b)
    for k in range(n):
        inverse = 1.0 / A[k, k]
        for i in range(k + 1, n):
            factor = A[i, k] * inverse
            for j in range(k + 1, n):
                A[i, j] = A[i, j] - factor * A[k, j]
            x[i] = x[i] - factor * x[k]
    for k in reversed(range(n)):
        for j in range(k + 1, n):
            x[k] = x[k] - A[k, j] * x[j]
        x[k] = x[k] / A[k, k]
    return np.array(x)


# -- how the states of a Runge-Kutta scheme move on a group ----------------------------------------


class GroupChart(Chart):
    """Increments (X, z) of states (C, y) with C in a group, flat, and y in a vector space.

    C moves to C exp(X), or exp(X) C with left increments, and y to y + z. Mueller (dynamics), eqs.
    (88), (89), as in :func:`mbs_dynamics.integrate.group_steps.munthe_kaas`.
    """

    def __init__(
        self, group: Group, others: int, kind: Increments, order: int, backend: str | None
    ) -> None:
        self.group, self.others = group, others
        self._moved, self._lifted = _kernels(
            group, others, kind, order, backend or default_backend()
        )

    def moved(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """Return the state that the increment z leads to from y."""
        found: FloatArray = self._moved.call(y, z)
        return found

    def lifted(self, y: FloatArray, z: FloatArray, rate: FloatArray) -> FloatArray:
        """Return the rate of the increment z that has led to y; ``rate`` is (V^b, ydot) there."""
        found: FloatArray = self._lifted.call(y, z, rate)
        return found

    def sizes(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """Return the sizes of the increment on the group, and of y."""
        both = np.concatenate([z[..., : self.group.dim], y[..., -self.others :]], axis=-1)
        found: FloatArray = np.abs(both)
        return found


def pose_of(group: Group, x: Array) -> Array:
    """Return the element of a group at the beginning of a flat state, its last row known."""
    C = np.array(x[: group.size**2].reshape(group.size, group.size))
    if group.size == 4:
        C[3] = [0.0, 0.0, 0.0, 1.0]
    return C


@lru_cache
def _kernels(
    group: Group, others: int, kind: Increments, order: int, backend: str
) -> tuple[Kernel, Kernel]:
    dim, entries = group.dim, group.size**2

    def moved(x: Array, z: Array) -> Array:
        C, E = pose_of(group, x), group.exp(z[:dim])
        C = group.product(E, C) if kind.left else group.product(C, E)
        return np.concatenate([np.ravel(C), x[entries:] + z[dim:]])

    def lifted(x: Array, z: Array, rate: Array) -> Array:
        V = group.Ad(pose_of(group, x)) @ rate[:dim] if kind.left else rate[:dim]
        X = z[:dim] if kind.left else -1.0 * z[:dim]
        dexp_inv = group.truncated_dexp_inv(X, order - 1) if kind.truncated else group.dexp_inv(X)
        return np.concatenate([dexp_inv @ V, rate[dim:]])

    state, step = {"x": (entries + others,)}, {"z": (dim + others,)}
    programs = (
        trace(moved, {**state, **step}, name="moved"),
        trace(lifted, {**state, **step, "rate": (dim + others,)}, name="lifted"),
    )
    first, second = (Kernel(program, backend=backend) for program in programs)
    return first, second
