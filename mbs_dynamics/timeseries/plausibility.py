# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Checks that motion data without declared units is in SI units.

1. The clock: its median period and its duration are plausible.
2. The rates: positions change like the integrals of the rates.
3. The description: positions are within the limits, and speeds not far above them.

Data that fails is rejected, never converted. The message states what was found, the likely unit,
and the option that declares it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries.columns import UNITS
from mbs_dynamics.timeseries.series import TimeSeries

PERIODS = (2e-4, 0.5)
"""Shortest and longest median period in s."""

SHORTEST = 2.0
"""Least length of a recording in s, if its period is shorter than LIKELY."""

LIKELY = (1e-3 / 1.5, 0.2)
"""Usual periods of recordings in s; a suggested unit leads to one of these."""

FAST = 5.0
"""Largest plausible ratio of a speed to the velocity limit, even if limits are inaccurate."""

BEYOND, INSIDE = 1.0, 0.5
"""Share of the range by which positions may exceed their limits, and least share of such rows. It
accepts robots that fall and descriptions with narrow limits."""

USED = 0.1
"""Least share of its range that some joint uses with a suggested unit."""

AGREE = 0.05
"""Largest relative difference between rates and changes of positions, due to noise and filters."""

ALIKE = 0.9
"""Least coefficient of determination between changes of positions and integrals of rates."""

STILL = 1e-3
"""Motion in rad or m below which a joint is at rest."""

GAP = 5.0
"""Gap, in median periods, that ends a stretch of rows."""


def check(series: TimeSeries, model: Model) -> None:
    """Raise TimeSeriesError if data of joints of the model is not plausible in SI units."""
    if len(series) < 3:
        return
    q = unwrapped(series, model)
    ratios = velocity_ratios(series, q)
    _check_limits(series, model)
    _check_clock(series, ratios)
    _check_velocities(series, ratios)
    _check_speeds(series, model, q)


def unwrapped(series: TimeSeries, model: Model) -> FloatArray:
    """Return the positions (N, k) without jumps by full turns of revolute joints."""
    turning = [model.joints[model.joint_names.index(name)].turns for name in series.joints]
    jumps = np.array(turning, dtype=bool) & (np.abs(np.diff(series.q, axis=0)) > np.pi).any(axis=0)
    return np.where(jumps, np.unwrap(series.q, axis=0), series.q) if jumps.any() else series.q


def velocity_ratios(series: TimeSeries, q: FloatArray) -> FloatArray:
    """Return the ratios (k,) of changes of positions to integrals of the rates over time.

    They are NaN for joints without rates or at rest, infinite if rates and positions do not agree,
    and zero if all rates are zero.
    """
    qd = series.qd
    if qd is None:
        return np.full(len(series.joints), np.nan)
    steps, line = np.diff(series.t), np.linspace(-1.0, 1.0, len(q))[:, None]
    mean = 0.5 * (qd[1:] + qd[:-1])  # over a step, from the cubic through four rates
    mean[1:-1] += (qd[1:-2] + qd[2:-1] - qd[:-3] - qd[3:]) / 24.0
    together = (steps < GAP * np.median(steps))[:, None]

    def total(increments: FloatArray) -> FloatArray:
        sums = np.zeros_like(q)
        sums[1:] = np.cumsum(np.where(together, increments, 0.0), axis=0)
        sums -= sums.mean(axis=0)
        return np.asarray(sums - line * (line * sums).sum(axis=0) / np.sum(line * line))

    x, y = total(mean * steps[:, None]), total(np.diff(q, axis=0))
    xx, xy, yy = (x * x).sum(axis=0), (x * y).sum(axis=0), (y * y).sum(axis=0)
    alike = xy**2 > ALIKE * xx * yy
    ratios = np.where(alike, xy / np.where(alike, xx, 1.0), np.inf)
    ratios = np.where(qd.any(axis=0), ratios, 0.0)
    return np.where(np.isnan(qd).any(axis=0) | (np.ptp(q, axis=0) < STILL), np.nan, ratios)


def _check_limits(series: TimeSeries, model: Model) -> None:
    if "q" in series.declared:
        return
    places = [model.joint_names.index(name) for name in series.joints]
    lower, upper = model.lower[places], model.upper[places]
    far = ~_inside(series.q, lower, upper)
    if not far.any():
        return
    j = int(np.argmax(far * np.abs(series.q).max(axis=0)))
    turning = model.joints[places[j]].turns
    units = ("deg", "mrad", "rev") if turning else ("mm", "cm")
    same = [k for k, place in enumerate(places) if model.joints[place].turns == turning]
    likely = []
    for unit in units:
        q = UNITS["q"][unit] * series.q[:, same]
        used = np.ptp(q, axis=0) / (upper - lower)[same]
        if _inside(q, lower[same], upper[same]).all() and used.max() > USED:
            likely.append(f"q=[{unit}]")
    raise series.error(
        f"positions in {series.columns_of('q', far)} are outside the limits of the description: "
        f"{series.joints[j]} is at {series.q[:, j].min():.4g} to {series.q[:, j].max():.4g}, and "
        f"its limits are {lower[j]:.4g} to {upper[j]:.4g} "
        f"{'rad' if turning else 'm'}. {_advice(likely, 'q=[rad]' if turning else 'q=[m]')}. "
        "Per cent of the ranges and counts have no unit: convert them"
    )


def _inside(q: FloatArray, lower: FloatArray, upper: FloatArray) -> NDArray[np.bool_]:
    """Return which joints (k,) are mostly within their limits, if these are finite."""
    margin = BEYOND * (upper - lower)
    margin = np.where(np.isfinite(margin), margin, np.inf)
    inside = ((q >= lower - margin) & (q <= upper + margin)).mean(axis=0)
    return np.asarray(inside >= INSIDE)


def _check_clock(series: TimeSeries, ratios: FloatArray) -> None:
    if "t" in series.declared:
        return
    t = series.t
    period, length = float(np.median(np.diff(t))), float(t[-1] - t[0])
    short = period < LIKELY[0] and length < SHORTEST
    if PERIODS[0] <= period <= PERIODS[1] and not short:
        return
    known = _common(ratios)
    likely = [
        f"t=[{unit}]"
        for unit, factor in UNITS["t"].items()
        if LIKELY[0] <= factor * period <= LIKELY[1]
        and (known is None or abs(known / factor - 1.0) < AGREE)
    ]
    if np.ptp(np.diff(t)) < 1e-6 * period and period == 1.0:
        rate = "RATE" if known is None else f"{1.0 / known:.4g}"
        likely.append(f"t=rows/{rate}")
    if not likely and known is not None and LIKELY[0] <= known * period <= LIKELY[1]:
        likely = [f"t=[{known:.4g} s]"]
    raise series.error(
        f"{series.column('t')!r} has a period of {period:.4g} s and a length of {length:.4g} s; "
        f"valid: periods of {PERIODS[0]:g} to {PERIODS[1]:g} s"
        + (f" and lengths from {SHORTEST:g} s" if short else "")
        + f". {_advice(likely, 't=[s]')}"
    )


def _check_velocities(series: TimeSeries, ratios: FloatArray) -> None:
    if "qd" in series.declared:
        return
    wrong = ~(np.isnan(ratios) | (np.abs(ratios - 1.0) <= AGREE))
    if not wrong.any():
        return
    common, rates = _common(ratios), series.columns_of("qd", wrong)
    likely: list[str] = []
    zero = bool((ratios[wrong] == 0.0).all())
    if zero:
        found = f"rates in {rates} are zero, although these joints move"
    elif np.isinf(ratios[wrong]).all():
        found = f"rates in {rates} do not agree with the positions"
    else:
        first = int(np.flatnonzero(wrong & np.isfinite(ratios))[0])
        rho = ratios[first]
        found = f"rates in {rates} are {1.0 / rho:.4g} times the derivatives of the positions"
        if common is not None and wrong[np.isfinite(ratios)].all():
            likely = _matching("qd", common) + _matching("q", 1.0 / common)
            likely += _matching("t", common)
    everything = "qd=none" if wrong[~np.isnan(ratios)].all() else ""
    names = np.array(series.joints)[wrong]
    others = everything or " ".join(f"qd_{name}=none" for name in names)
    raise series.error(f"{found}. {_advice(likely, others, unused=True)}")


def _matching(kind: str, factor: float) -> list[str]:
    """Return declarations of units of a quantity with this factor to SI."""
    return [
        f"{kind}=[{unit}]"
        for unit, one in UNITS[kind].items()
        if one != 1.0 and abs(factor / one - 1.0) < AGREE
    ]


def _check_speeds(series: TimeSeries, model: Model, q: FloatArray) -> None:
    if "t" in series.declared:
        return
    steps = np.diff(series.t)
    speeds = np.quantile(np.abs(np.diff(q, axis=0) / steps[:, None]), 0.99, axis=0)
    limits = model.velocity_limits[[model.joint_names.index(name) for name in series.joints]]
    ratios = speeds / np.where(limits > 0.0, limits, np.inf)
    j = int(np.argmax(ratios))
    if ratios[j] <= FAST:
        return
    likely = [
        f"t=[{unit}]"
        for unit, factor in UNITS["t"].items()
        if factor > 1.0 and factor * np.median(steps) <= LIKELY[1]
    ]
    likely += ["q=[deg]"] if "q" not in series.declared and ratios[j] < 60.0 * FAST else []
    raise series.error(
        f"by {series.column(f'q_{series.joints[j]}')!r} over {series.column('t')!r} "
        f"{series.joints[j]} moves at {speeds[j]:.4g} rad/s or m/s, {ratios[j]:.3g} times its "
        f"velocity limit. {_advice(likely, 't=[s] q=[rad]')}"
    )


def _common(ratios: FloatArray) -> float | None:
    """Return the ratio of more than half of the moving joints; None if there is none."""
    known = ratios[np.isfinite(ratios) & (ratios > 0.0)]
    if not len(known):
        return None
    middle = float(np.median(known))
    same = np.abs(known / middle - 1.0) < AGREE
    return middle if 2 * same.sum() > np.isfinite(ratios).sum() else None


def _advice(likely: Iterable[str], otherwise: str, *, unused: bool = False) -> str:
    """Return advice on declaring a unit; ``otherwise`` declares the data right, or ``unused``."""
    likely = list(likely)
    last = f"--columns {otherwise} {'to ignore them' if unused else 'if it is right as it is'}"
    if not likely:
        return f"Declare its unit by --columns, or {last}"
    return f"Likely is --columns {' or '.join(likely)}; otherwise declare its unit, or {last}"
