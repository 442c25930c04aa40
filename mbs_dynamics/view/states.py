# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""States of all coordinates of a model at any time, from motion data."""

from __future__ import annotations

import math

import numpy as np

from mbs_dynamics.algorithms import difference, displaced
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.coordinates import is_continuous, position_names, velocity_names
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.timeseries.joints import matched


def states_of(series: TimeSeries, model: Model) -> TimeSeries:
    """Return motion data with all coordinates of a model in its order, from t = 0 on.

    Joints that were not recorded are at zero or the limit nearest to it. Rates that were not
    recorded are differences of positions. Joints of other robots are left out. Names are matched by
    :func:`~mbs_dynamics.timeseries.joints.matched`, which raises errors.
    """
    places, names = position_names(model.joints), velocity_names(model.joints)
    if not len(series):
        raise ArgumentError(f"the motion {series.name} has no states")
    q = np.tile(model.neutral(within_limits=True), (len(series), 1))
    for place, name in matched(series.name, series.positions, places).items():
        q[:, places.index(place)] = series.q[:, series.positions.index(name)]
    qd = _rates(model, series.t, q)
    if series.qd is not None:
        for joint, name in matched(series.name, series.joints, names).items():
            column = series.qd[:, series.joints.index(name)]
            if not np.isnan(column[0]):
                qd[:, names.index(joint)] = column
    t = series.t - series.t[0]
    return TimeSeries(t, names, q, qd=qd, positions=places, name=series.name)


def _rates(model: Model, t: FloatArray, q: FloatArray) -> FloatArray:
    """Return the rates (N, n) of positions (N, nq) by central differences."""
    if len(t) == 1:
        return np.zeros((1, model.n))
    slopes = _steps(model, q[:-1], q[1:]) / np.diff(t)[:, None]
    return np.concatenate([slopes[:1], 0.5 * (slopes[1:] + slopes[:-1]), slopes[-1:]])


def _steps(model: Model, q: FloatArray, q2: FloatArray) -> FloatArray:
    """Return the displacements (N, n) from q to q2; unlimited angles take the shorter way."""
    steps = np.array(difference(model, q, q2))
    for joint, turns in zip(
        model.joints, is_continuous(model.joints, model.lower, model.upper), strict=True
    ):
        if turns and joint.nv == 1:
            k = joint.coordinate
            steps[:, k] -= math.tau * np.round(steps[:, k] / math.tau)
    return steps


def states_at(model: Model, states: TimeSeries, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return positions (k, nq) and rates (k, n) at times (k,) in s.

    ``states`` is the result of :func:`states_of`. Between its rows, joints move at constant rates,
    and rates are interpolated linearly. Before and after, the first and last row hold.
    """
    t, q, qd = states.t, states.q, states.qd
    assert qd is not None
    last = len(t) - 1
    begin = np.clip(np.searchsorted(t, times, side="right") - 1, 0, max(last - 1, 0))
    end = np.minimum(begin + 1, last)
    share = np.clip((times - t[begin]) / np.where(end > begin, t[end] - t[begin], 1.0), 0.0, 1.0)
    share = share[:, None]
    moved = displaced(model, q[begin], share * _steps(model, q[begin], q[end]))
    return np.asarray(moved), (1.0 - share) * qd[begin] + share * qd[end]
