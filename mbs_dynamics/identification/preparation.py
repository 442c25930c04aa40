# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Preparation of recordings: stretches without gaps, with uniform clocks, for the filters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.coordinates import check_arm
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.timeseries.plausibility import GAP, STILL, unwrapped

SHORTEST = 50
"""Smallest number of samples of a stretch."""

JUMP, AROUND, LEAST_JUMP = 4.0, 4, 0.02
"""Samples were lost where a step of a position exceeds LEAST_JUMP, in rad or m, and JUMP times the
largest of the AROUND steps before and the AROUND steps after it."""

SHOWN = 20
"""Largest number of instants that a note lists."""


def recorded(series: TimeSeries, model: Model) -> tuple[TimeSeries, FloatArray, list[str]]:
    """Return a recording with the joints of the model only, the torques (N, k), and notes.

    Raises TimeSeriesError for a recording without torques, or with implausible units.
    """
    check_arm(model.joints, "recordings of joints")
    notes, every, series = list(series.notes), series, series.of(model)
    absent = [name for name in model.joint_names if name not in series.joints]
    if absent:
        text = f"assumed to be at rest, since they were not recorded: {', '.join(absent)}"
        used = series.sources.values()
        others = [name for name in every.joints if every.column(f"q_{name}") not in used]
        if others:
            text += f"; the joints {', '.join(others)} of the recording are not in the model"
        notes.append(text)
    if series.tau is None or np.isnan(series.tau).all():
        raise series.error(
            "holds no efforts; columns are tau_<joint>, or are declared, as in --columns "
            f"NAME=tau_{series.joints[0]}"
        )
    return series, series.tau, notes


def prepared(series: TimeSeries, model: Model) -> tuple[list[TimeSeries], list[str]]:
    """Return the usable stretches of a recording, and notes on what was left out.

    A stretch has no gaps, and a uniform clock that begins at zero. Torques of joints at rest
    without torques, such as those of grippers, are NaN, and their positions constant. Samples
    before the drives report torques are left out. Angles are unwrapped. Stretches end at gaps in
    time and at jumps of the positions. Raises TimeSeriesError for a recording that cannot be used.
    """
    series, tau, notes = recorded(series, model)
    silent = ~np.nan_to_num(tau).any(axis=0) & (np.ptp(series.q, axis=0) < STILL)
    if silent.any() and not silent.all():
        notes.append(f"left out, since they neither move nor have torques: {series.named(silent)}")
        q = np.where(silent, np.median(series.q, axis=0), series.q)
        tau = np.where(silent, np.nan, tau)
        series = replace(series, q=q, tau=tau)
    constant = (np.ptp(tau, axis=0) == 0.0) & (np.ptp(series.q, axis=0) > STILL)
    constant |= np.isnan(tau).all(axis=0) & ~silent
    if constant.any():
        raise series.error(
            f"holds no efforts of {series.named(constant)}: they are missing, or do not change "
            "although these joints move"
        )
    idle = ~np.nan_to_num(tau).any(axis=1)
    if 0.0 < idle.mean() < 0.5:
        notes.append(f"{int(idle.sum())} samples without any torque were left out")
        series = series.rows(~idle)
    stretches, remarks = stretches_of(series, model)
    return stretches, notes + remarks


def stretches_of(series: TimeSeries, model: Model) -> tuple[list[TimeSeries], list[str]]:
    """Return the stretches of a recording without gaps in time and jumps, and notes.

    Raises TimeSeriesError for a recording that is too short, or in which no joint moves.
    """
    notes: list[str] = []
    if len(series) < SHORTEST:
        raise series.error(
            f"has {len(series)} samples; at least {SHORTEST} are needed, and some ten seconds"
        )
    if not np.ptp(series.q, axis=0).any():
        every = np.ones(len(series.joints), dtype=bool)
        raise series.error(
            f"no joint moves: positions in {series.columns_of('q', every)} are constant"
        )
    series = replace(series, q=unwrapped(series, model))
    period = float(np.median(np.diff(series.t)))
    gaps = np.flatnonzero(np.diff(series.t) > GAP * period) + 1
    jumps = np.setdiff1d(jumps_of(series.q), gaps)
    if len(gaps):
        notes.append(f"{len(gaps)} gap(s) in time divide the recording into {len(gaps) + 1} parts")
    if len(jumps):
        times = ", ".join(f"{series.t[k]:.6g}" for k in jumps[:SHOWN])
        more = ", ..." if len(jumps) > SHOWN else ""
        notes.append(
            f"positions jump {len(jumps)} time(s), as if samples were lost, at t = {times}{more} s:"
            " the recording is divided there"
        )
    rows = np.split(np.arange(len(series)), np.union1d(gaps, jumps))
    parts = [_uniform(series.rows(each), period) for each in rows if len(each) >= SHORTEST]
    if not parts:
        raise series.error(
            f"no stretch without gaps and jumps has {SHORTEST} samples; {'; '.join(notes)}"
        )
    return parts, notes


def joints_with_torques(series: TimeSeries) -> tuple[str, ...]:
    """Return the names of the joints whose torques were measured."""
    assert series.tau is not None
    known = np.flatnonzero(~np.isnan(series.tau).all(axis=0))
    return tuple(series.joints[k] for k in known)


def jumps_of(q: FloatArray) -> NDArray[np.intp]:
    """Return the indices of the rows of q (N, k) that follow a jump of the positions.

    The step of a jump is many times the steps around it: no arm starts and stops so suddenly.
    """
    steps = np.abs(np.diff(q, axis=0))
    if len(steps) <= 2 * AROUND:
        return np.zeros(0, dtype=np.intp)
    padded = np.pad(steps, ((AROUND, AROUND), (0, 0)))
    shifts = [k for k in range(2 * AROUND + 1) if k != AROUND]
    around = np.max([padded[k : k + len(steps)] for k in shifts], axis=0)
    jump = (steps > np.maximum(JUMP * around, LEAST_JUMP)).any(axis=1)
    return np.flatnonzero(jump) + 1


def _uniform(series: TimeSeries, period: float) -> TimeSeries:
    """Return a series sampled at equal periods, from t = 0 on."""
    t = series.t
    times = t[0] + period * np.arange(round((t[-1] - t[0]) / period) + 1)
    if len(times) == len(t) and np.abs(np.diff(t) - period).max() < 0.01 * period:
        return replace(series, t=times - t[0], qdd=None, columns={})

    arrays: dict[str, Any] = {
        kind: np.column_stack([np.interp(times, t, y) for y in x.T])
        for kind in ("q", "qd", "tau", "goal")
        if (x := getattr(series, kind)) is not None
    }
    return replace(series, t=times - t[0], qdd=None, columns={}, **arrays)
