# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""How the states of a scheme move on SO(3) or SE(3), by the exponential of increments."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, default_backend, trace
from mbs_dynamics.integrate.group_steps import Increments
from mbs_dynamics.integrate.groups import Group
from mbs_dynamics.integrate.runge_kutta import Chart
from mbs_dynamics.lie.arrays import Array


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
