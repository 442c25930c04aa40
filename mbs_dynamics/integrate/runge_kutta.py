# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Explicit Runge-Kutta schemes, and the pair 5(4) of Dormand and Prince with dense output.

In a vector space a state moves by addition of an increment. On a Lie group it moves by
multiplication with the exponential of one, and the schemes integrate the increments of each step
from zero, as those of Munthe-Kaas: see :class:`Chart`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import SimulationError

Rate = Callable[[float, FloatArray], FloatArray]
"""A right-hand side: time and state to the rate of the state, or to its velocity on a group."""


class Chart:
    """Increments z of a state y, here in a vector space: they are added."""

    def moved(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """Return the state that is reached from y by the increment z."""
        return y + z

    def lifted(self, y: FloatArray, z: FloatArray, rate: FloatArray) -> FloatArray:
        """Return the rate of the increment z that leads to y, where y has this rate."""
        return rate

    def sizes(self, y: FloatArray, z: FloatArray) -> FloatArray:
        """Return the sizes relative to which errors of the entries of z count."""
        return np.abs(y)


VECTORS = Chart()


class Tableau(NamedTuple):
    """Butcher's tableau of an explicit scheme."""

    A: tuple[tuple[float, ...], ...]
    """Row i contains the weights of the stages before i."""
    b: tuple[float, ...]
    c: tuple[float, ...]


CLASSICAL = Tableau(
    ((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)),
    (1 / 6, 1 / 3, 1 / 3, 1 / 6),
    (0.0, 0.5, 0.5, 1.0),
)
"""The classical scheme of order 4."""


def runge_kutta_step(
    tableau: Tableau, rate: Rate, t: float, y: FloatArray, h: float, chart: Chart = VECTORS
) -> FloatArray:
    """Return the state after one step of h from the state y at time t."""
    k, *_ = _stages(tableau, rate, t, y, h, chart, rate(t, y))
    return chart.moved(y, _weighted(h, tableau.b, k))


def _stages(
    tableau: Tableau,
    rate: Rate,
    t: float,
    y: FloatArray,
    h: float,
    chart: Chart,
    first: FloatArray,
) -> tuple[list[FloatArray], FloatArray, FloatArray, FloatArray]:
    """Return the rates of the increments of all stages, and increment, state and rate of the last.

    ``first`` is the rate at t, y.
    """
    k, z, at, at_rate = [first], first, y, first
    for row, c in zip(tableau.A[1:], tableau.c[1:], strict=True):
        z = _weighted(h, row, k)
        at = chart.moved(y, z)
        at_rate = rate(t + c * h, at)
        k.append(chart.lifted(at, z, at_rate))
    return k, z, at, at_rate


def _weighted(h: float, weights: tuple[float, ...], rates: list[FloatArray]) -> FloatArray:
    """Return h times the weighted sum of rates."""
    terms = [(h * weight) * rate for weight, rate in zip(weights, rates, strict=True) if weight]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


MOST_STEPS = 200_000
"""Steps of the pair between two states that are asked for, some ten seconds of work."""


_PAIR = Tableau(
    (
        (),
        (1 / 5,),
        (3 / 40, 9 / 40),
        (44 / 45, -56 / 15, 32 / 9),
        (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
        (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
        (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
    ),
    (35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84, 0.0),
    (0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0),
)
_ERROR = np.array([-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40])
"""Weights of the difference of the two results."""

_DENSE = np.array(
    [
        [1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
        [0.0, 0.0, 0.0, 0.0],
        [0.0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0.0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
    ]
)
"""Coefficients of s, s^2, s^3, s^4 of each stage between two steps (Shampine, 1986)."""

SMALLEST = 16.0 * np.finfo(float).eps
"""Steps smaller than this relative to the time count as zero."""


class DormandPrince:
    """Integrates y' = rate(t, y) with steps that keep the error of each within the tolerance.

    The error of an entry counts relative to ``atol + rtol |y|``; the largest one decides, also over
    a batch; on a group it is that of the increments. ``t`` and ``y`` are the present time and
    state; :meth:`at` advances as far as needed.
    """

    def __init__(
        self,
        rate: Rate,
        t: float,
        y: FloatArray,
        *,
        rtol: float,
        atol: float,
        chart: Chart = VECTORS,
    ) -> None:
        self.rate, self.rtol, self.atol = rate, rtol, atol
        self.t, self.y, self.chart = t, y, chart
        self.steps = 0
        self._rate = rate(t, y)
        self.h = self._first_step()
        self._before = t, 0.0, y, np.zeros((4, *self._rate.shape))

    def at(self, t: float) -> FloatArray:
        """Return the state at t, not before the start of the last step; advances if needed.

        Within a step it is interpolated with order 4. Raises SimulationError if the tolerance
        requires steps that are too small.
        """
        last = self.steps + MOST_STEPS
        while self.t < t:
            if self.steps == last:
                raise SimulationError(
                    f"dormand_prince has not reached t = {t:.9g} s in {MOST_STEPS} steps, the last "
                    f"one of {self.h:.3g} s at {self.t:.9g} s: the motion is stiff; take rk4, in "
                    "which damping, friction and stops are implicit, or a shorter step",
                    time=self.t,
                )
            self.advance()
        t0, h, y0, Q = self._before
        if t >= self.t or not self.steps:
            return self.y
        powers = ((t - t0) / h) ** np.arange(1, 5)
        return self.chart.moved(y0, h * np.tensordot(powers, Q, 1))

    def advance(self) -> None:
        """Make one step within the tolerance."""
        h = self.h
        while True:
            if not h > SMALLEST * max(abs(self.t), h):
                raise SimulationError(
                    f"the tolerance (rtol {self.rtol:g}, atol {self.atol:g}) cannot be met at "
                    f"t = {self.t:.9g} s: it would take steps of {h:.3g} s",
                    time=self.t,
                )
            stages, z, y, rate = _stages(
                _PAIR, self.rate, self.t, self.y, h, self.chart, self._rate
            )
            k = np.array(stages)
            error = self._size(h * np.tensordot(_ERROR, k, 1), z, y)
            if error <= 1.0:
                break
            h *= max(0.2, 0.9 * error**-0.2) if np.isfinite(error) else 0.1
        self._before = self.t, h, self.y, np.tensordot(_DENSE.T, k, 1)
        self.t, self.y, self._rate = self.t + h, y, rate
        self.h = h * min(5.0, 0.9 * max(error, 1e-10) ** -0.2)
        self.steps += 1

    def _size(self, error: FloatArray, z: FloatArray, y: FloatArray) -> float:
        sizes = np.maximum(self.chart.sizes(self.y, z), self.chart.sizes(y, z))
        size = float(np.max(np.abs(error) / (self.atol + self.rtol * sizes), initial=0.0))
        return size if np.isfinite(y).all() else np.inf

    def _first_step(self) -> float:
        """Return a step in which Euler's scheme changes the state by a hundredth."""
        sizes = self.chart.sizes(self.y, np.zeros(self._rate.shape))
        scale = self.atol + self.rtol * sizes
        size, rate = (float(np.max(np.abs(x) / scale, initial=0.0)) for x in (sizes, self._rate))
        return 0.01 * size / rate if min(size, rate) > 1e-5 else 1e-6
