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
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.algorithms.mass_matrix import eliminated, solve
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, default_backend, positive, trace
from mbs_dynamics.integrate.groups import Group, GroupBody
from mbs_dynamics.integrate.runge_kutta import Chart
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
        # nearly an inertia, but not symmetric
        U, D, L = eliminated(body.inertia - slope(x), lambda _, pivot: pivot, symmetric=False)
        change = solve(U, D, body.inertia @ (improved(x) - x), L)
        x = x + change
    positive(TOLERANCE**2 * (1.0 + x @ x) - change @ change, TOO_LONG)
    return x


# -- how the states of a Runge-Kutta scheme move on a group ----------------------------------------


@dataclass(frozen=True)
class ExponentialChart(Chart):
    """Increments (X, z) of a state (C, y) with C in a group, flat, and y in a vector space.

    C moves to C exp(X), or exp(X) C with left increments, and y to y + z; the rate of X is
    dexp_{-X}^-1 V^b, or dexp_X^-1 V^s: Mueller (dynamics), eqs. (88), (89). On symbols or numbers.
    """

    group: Group
    kind: Increments
    order: int
    """Of the scheme: the series of a truncated dexp^-1 is cut off accordingly."""

    def moved(self, y: Array, z: Array) -> Array:
        """Return the state that the increment z leads to from y."""
        return self._with(self._factors(y, z, np.matmul), y, z)

    def finished(self, y: Array, z: Array) -> Array:
        """Return the same, its rotation made orthogonal again."""
        return self._with(self._factors(y, z, self.group.product), y, z)

    def begun(self, y: Array, rate: Array) -> Array:
        """Return the rate of an increment that begins at y; ``rate`` is (V^b, ydot) there."""
        dim, C = self.group.dim, pose_of(self.group, y)
        V = self.group.Ad(C) @ rate[:dim] if self.kind.left else rate[:dim]
        return np.concatenate([V, rate[dim:]])

    def lifted(self, y: Array, z: Array, rate: Array) -> Array:
        """Return the rate of the increment z that has led to y."""
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
    """An :class:`ExponentialChart` as kernels, for many states at once."""

    def __init__(
        self, group: Group, others: int, kind: Increments, order: int, backend: str | None
    ) -> None:
        self.group, self.others = group, others
        chart = ExponentialChart(group, kind, order)
        self._moved, self._finished, self._begun, self._lifted = _kernels(
            chart, others, backend or default_backend()
        )

    def moved(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """Return the states (..., k) that the increments z (..., m) lead to from y."""
        found: FloatArray = self._moved.call(y, z)
        return found

    def finished(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """Return the same, their rotations made orthogonal again."""
        found: FloatArray = self._finished.call(y, z)
        return found

    def begun(self, y: FloatArray, rate: FloatArray) -> FloatArray:
        """Return the rates of increments that begin at y."""
        found: FloatArray = self._begun.call(y, rate)
        return found

    def lifted(self, y: FloatArray, z: FloatArray, rate: FloatArray) -> FloatArray:
        """Return the rates of the increments z that have led to y; ``rate`` is (V^b, ydot)."""
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


Shapes = dict[str, tuple[int, ...]]


@lru_cache
def _kernels(chart: ExponentialChart, others: int, backend: str) -> tuple[Kernel, ...]:
    state: Shapes = {"y": (chart.group.size**2 + others,)}
    step: Shapes = {"z": (chart.group.dim + others,)}
    rate: Shapes = {"rate": (chart.group.dim + others,)}
    parts: dict[str, tuple[Callable[..., Array], Shapes]] = {
        "moved": (chart.moved, state | step),
        "finished": (chart.finished, state | step),
        "begun": (chart.begun, state | rate),
        "lifted": (chart.lifted, state | step | rate),
    }
    programs = (trace(part, inputs, name=name) for name, (part, inputs) in parts.items())
    return tuple(Kernel(program, backend=backend) for program in programs)
