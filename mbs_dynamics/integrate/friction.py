# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Dry friction of a step: joints that it holds stand still, others slide.

Friction is set-valued: at the end of a step, or of an instant, its torques r obey

    v_i > 0: r_i = -F_i,    v_i < 0: r_i = F_i,    v_i = 0: |r_i| <= F_i

in all joints at once, with the bounds F of :func:`mbs_dynamics.model.friction.friction_bound` at
the begin of the step. Each joint is assigned the direction in which it slides, or zero if it
stands. A joint that is to stand gets an armature that is large enough to hold it, and the torque
that this takes is r. Directions are revised until all joints obey the law: those of all joints that
do not, and after some attempts only that of the first one, which ends for any mass matrix (Judice
and Pires, *Basic-set algorithm for a generalized linear complementarity problem*, 1992).

Arrays of such steps have two more parts (n,) after q and qd: the directions, and the number of
revisions so far. They are revised instead of moved while the second is not zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, less, select
from mbs_dynamics.errors import SingularError
from mbs_dynamics.integrate.charts import Arrangement
from mbs_dynamics.lie.arrays import Array

HOLD = 1e10
"""Armature that holds a joint, over the inertia that it moves at q = 0."""

SLACK = 1e-9
"""Share of its bound by which a torque may exceed it: rounding."""

BLOCK = 12
"""Revisions of all directions at once; later ones are of one joint each."""

LIMIT = 200
"""Revisions after which joints that would slide against their direction stand: rounding decides
between directions, or a long step of rk4 is no linear function of them."""


class Sliding(NamedTuple):
    """Dry friction in a step of h: (n,) each."""

    v: Array
    """Rates at its begin."""
    signs: Array
    """Directions in which joints slide, zero for those that stand."""
    bound: Array
    """Largest torques of friction at its begin."""
    hold: Array
    """Armature of the joints that stand, zero for others."""
    h: Any


def revised(
    signs: Array, ahead: Array, reaction: Array, limit: Array, single: Any
) -> tuple[Array, Any]:
    """Return the directions (n,) to try next, and how many of them changed.

    ``ahead`` (n,) are the rates at the end, ``reaction`` (n,) the torques that hold joints, and
    ``limit`` (n,) the bounds of friction. If ``single``, a condition, only the first is changed.
    """
    wanted: list[Any] = []
    changed: Any = 0.0
    for s, v, r, most in zip(signs, ahead, reaction, limit, strict=True):
        slides = select(less(0.0, most), select(less(s * v, 0.0), 0.0, s), s)
        off = select(less(most, r), -1.0, select(less(r, -1.0 * most), 1.0, 0.0))
        new = select(less(0.0, s * s), slides, off)
        new = select(single, select(less(0.5, changed), s, new), new)
        wanted.append(new)
        changed = changed + (new - s) * (new - s)
    return np.array(wanted, dtype=object), changed


def outcome(begun: Sequence[Array], moved: Sequence[Array], slide: Sliding) -> list[Array]:
    """Return the four parts after an attempt to step from ``begun`` to q, qd ``moved``."""
    (q, v, signs, count), (q_new, v_new), (*_, bound, hold, h) = begun, moved, slide
    reaction = (-1.0 / h) * (hold * v_new)
    rounding = (1e-15 / h) * hold * select(less(v, 0.0), -1.0 * v, v)
    limit = (1.0 + SLACK) * bound + rounding
    wanted, changed = revised(signs, v_new, reaction, limit, less(BLOCK - 0.5, count[0]))
    stands = less(0.0, hold)
    against = select(less(0.0, bound), select(less(signs * v_new, 0.0), 1.0, 0.0), 0.0)
    v_new = select(stands, 0.0, select(less(0.5, against), 0.0, v_new))
    again = less(0.5, select(less(count[0], LIMIT), changed, 0.0))
    return [
        select(again, q, q_new),
        select(again, v, v_new),
        select(again, wanted, select(less(0.0, v_new), 1.0, select(less(v_new, 0.0), -1.0, 0.0))),
        select(again, count + 1.0, np.full(len(count), 0.0, dtype=object)),
    ]


def packed(states: Arrangement, state: FloatArray) -> FloatArray:
    """Return the array of a state at the begin of a step."""
    batch, nq, n = state.shape[: state.ndim - states.axes], states.nq, states.n
    flat, x = state.reshape(*batch, nq + n), np.zeros((*batch, nq + 3 * n))
    x[..., : nq + n] = flat
    np.sign(flat[..., nq:], out=x[..., nq + n : nq + 2 * n])
    return x.reshape(*batch, *states.shape(4))


def settled(
    step: Callable[..., FloatArray], x: FloatArray, states: Arrangement, *inputs: Any
) -> FloatArray:
    """Return the array after a step, with attempts until the friction of all members is settled."""
    x = step(x, *inputs)
    if x.ndim == states.axes:  # the last entry is a number of revisions
        while x.item(-1) > 0.0:
            x = step(x, *inputs)
    else:
        while (again := x[states.last()][..., 0] > 0.0).any():
            x = np.where(again.reshape(again.shape + (1,) * states.axes), step(x, *inputs), x)
    return x


def iterated(
    kernel: Kernel, x: FloatArray, inputs: Sequence[Any], steps: int, states: Arrangement
) -> FloatArray:
    """Return the arrays (steps + 1, ...) of settled steps, in machine code while nothing changes.

    Arguments and errors are those of :meth:`Kernel.iterate`.
    """
    series = [
        array if array.ndim > len(port.shape) else array[None]
        for array, port in zip(map(np.asarray, inputs), kernel.inputs[1:], strict=True)
    ]
    alone = x.ndim == states.axes and all(len(array) == 1 for array in series)
    pieces, k, length = [np.asarray(x, dtype=float)[None]], 0, 1
    while k < steps:
        length = steps - k if alone else min(length, steps - k)
        rows = [array[k : k + length] if len(array) > 1 else array for array in series]
        try:
            ahead = kernel.iterate(x, *rows, steps=length)[1:]
            late = (ahead[states.last()][..., 0] > 0.0).reshape(length, -1).any(axis=1)
            good = int(np.argmax(late)) if late.any() else length
            if alone:  # revisions are left out
                pieces.append(ahead[~late])
                x, k = ahead[-1], k + len(pieces[-1])
                continue
            pieces.append(ahead[:good])
            x, k, length = ahead[good - 1] if good else x, k + good, 2 * length
            if late.any():
                values = [array[k if len(array) > 1 else 0] for array in series]
                x, k, length = settled(kernel, x, states, *values), k + 1, 1
                pieces.append(x[None])
        except SingularError as error:
            error.trajectory = np.concatenate(pieces)
            raise
    return np.concatenate(pieces)
