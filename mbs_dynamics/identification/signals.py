# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Motions below a cutoff frequency from sampled positions and torques, without phase shift."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.interpolate import make_interp_spline
from scipy.signal import butter, sosfiltfilt

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.timeseries import TimeSeries

ORDER = 4
"""Order of the Butterworth filter. It runs forwards and backwards: no phase shift, twice the order.
"""

PASSED = 0.45
"""Cutoff frequency, relative to the sampling rate, from which on nothing is filtered."""

LOWEST, MULTIPLE, SHARE = 3.0, 5.0, 0.2
"""The cutoff frequency is MULTIPLE times the frequency of the motion, at least LOWEST Hz, and at
most SHARE of the sampling rate."""

BEYOND = 10.0
"""Duration by which signals are extended for the filter, in periods of the cutoff frequency."""

RATE = 10.0
"""Sampling rate after decimation, in multiples of the cutoff frequency."""

BRIEFEST = 1.0
"""Least duration of a stretch of a recording in s."""

MOVING = 0.99
"""Share of the power of the positions that is below the frequency of the motion."""


def low_pass(x: FloatArray, rate: float, cutoff: float) -> FloatArray:
    """Return columns x (N, ...), sampled at ``rate`` per second, below a frequency in Hz.

    Beyond both ends the columns are extended by reflection in their end points.
    """
    if cutoff >= PASSED * rate:
        return np.array(x)
    sections = butter(ORDER, cutoff, fs=rate, output="sos")
    beyond = min(len(x) - 1, math.ceil(BEYOND * rate / cutoff))
    return np.asarray(sosfiltfilt(sections, x, axis=0, padlen=beyond))


def rate_of(series: TimeSeries) -> float:
    """Return the samples per second of a series with a uniform clock."""
    return float((len(series) - 1) / (series.t[-1] - series.t[0]))


def motion_frequency(series: TimeSeries) -> float:
    """Return the largest frequency of the motion of all joints, in cycles per sample."""
    moving = np.ptp(series.q, axis=0) > 0.0
    x = (series.q - series.q.mean(axis=0))[:, moving] * np.hanning(len(series))[:, None]
    power = np.cumsum(np.abs(np.fft.rfft(x, axis=0)) ** 2, axis=0)
    places = (power < MOVING * power[-1]).sum(axis=0)
    return float(places.max(initial=0)) / len(series)


def cutoff_of(stretches: Sequence[TimeSeries]) -> float:
    """Return a cutoff frequency in Hz above the frequencies of the motion in all stretches."""
    cutoffs = []
    for series in stretches:
        rate = rate_of(series)
        motion = MULTIPLE * motion_frequency(series) * rate
        cutoffs.append(min(max(LOWEST, motion), SHARE * rate))
    return max(cutoffs)


def filtered(series: TimeSeries, cutoff: float) -> TimeSeries:
    """Return the motion and the torques of a stretch below a cutoff frequency in Hz.

    Measured rates of a joint are used if they have less noise than differences of its positions.
    Samples near both ends, where the filter is inaccurate, are omitted. Raises TimeSeriesError
    for a recording that is too short for the filter.
    """
    assert series.tau is not None
    rate, t = rate_of(series), series.t
    ends, step = int(rate / cutoff) + 1, max(1, int(rate / (RATE * cutoff)))
    least = max(BRIEFEST, 4.0 / cutoff)
    if t[-1] - t[0] < least:
        raise series.error(
            f"{t[-1] - t[0]:.3g} s are too short for a cutoff frequency of {cutoff:.3g} Hz; "
            f"at least {least:.3g} s are needed, and ten are better"
        )
    q = low_pass(series.q, rate, cutoff)
    spline = make_interp_spline(t, q, k=5)
    qd, qdd = spline(t, 1), spline(t, 2)
    if series.qd is not None:
        measured = np.isfinite(series.qd).all(axis=0)
        rates = np.where(measured, series.qd, 0.0)
        smoothed = low_pass(rates, rate, cutoff)
        slope = make_interp_spline(t, smoothed, k=5)(t, 1)
        quieter = measured & (
            _noise(rates, smoothed, ends) < _noise(np.gradient(series.q, t, axis=0), qd, ends)
        )
        qd, qdd = np.where(quieter, smoothed, qd), np.where(quieter, slope, qdd)
    tau = low_pass(series.tau, rate, cutoff)
    motion = replace(series, q=q, qd=qd, qdd=qdd, tau=tau, goal=None)
    return motion.rows(slice(ends, len(t) - ends, step))


def _noise(x: FloatArray, smooth: FloatArray, ends: int) -> FloatArray:
    """Return the power above the cutoff frequency of each column."""
    return np.asarray(np.square(x - smooth)[ends:-ends].mean(axis=0))
