# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Torques from motor currents, by given gains or by gains fitted to the description."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

import numpy as np

from mbs_dynamics.errors import UnknownJointError
from mbs_dynamics.identification.common_masses import scaled
from mbs_dynamics.identification.data import Data
from mbs_dynamics.identification.estimation import autocorrelation_time
from mbs_dynamics.identification.preparation import recorded
from mbs_dynamics.identification.torque_model import joint_columns, stacked
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError

CERTAIN = 0.1
"""Largest relative standard error of a gain that is fitted."""


def with_gains(series: TimeSeries, model: Model, gains: Mapping[str, float]) -> TimeSeries:
    """Return a recording of motor currents with torques instead, by gains in N m/A or N/A.

    It has the joints of the model only. Joints without a gain keep their efforts. Raises
    UnknownJointError for a joint that was not recorded, TimeSeriesError for a gain of zero.
    """
    series, tau, _ = recorded(series, model)
    UnknownJointError.check(gains, series.joints)
    for joint, gain in gains.items():
        if not np.isfinite(gain) or gain == 0.0:
            raise TimeSeriesError(f"the gain of {joint} must be finite and nonzero, got {gain:g}")
    factors = np.array([gains.get(joint, 1.0) for joint in series.joints])
    every = {"tau"} if set(series.joints) <= set(gains) else set()
    return replace(series, tau=factors * tau, declared=series.declared | every)


def fitted_gains(
    model: Model, recording: TimeSeries, *, known: Collection[str] = ()
) -> dict[str, float]:
    """Return the gains of the drives, by joint, with which currents best fit the description.

    Currents alone determine the inertias up to a factor per joint. The description sets it here, so
    the result is only as accurate as its total masses. Raises TimeSeriesError for joints whose gain
    the motion does not determine, unless it is ``known``.
    """
    torque_model, equations, *_ = Data.read(model, [recording], check=False)
    A, currents = stacked(equations)
    expected, terms = A @ torque_model.described(), joint_columns(A)
    gains: dict[str, float] = {}
    for j, joint in enumerate(torque_model.joints):
        columns = scaled(np.column_stack([expected[:, j], terms[:, j]]))
        fit = np.linalg.lstsq(columns, currents[:, j], rcond=1e-9)[0]
        residual = currents[:, j] - columns @ fit
        time = autocorrelation_time(residual[:, None], equations)
        variance = np.square(residual).mean() * time * np.linalg.pinv(columns.T @ columns)[0, 0]
        if np.sqrt(variance) < CERTAIN * fit[0]:
            gains[joint] = float(np.linalg.norm(expected[:, j]) / fit[0])
    without = [joint for joint in torque_model.joints if joint not in {*gains, *known}]
    if without:
        given = " ".join(f"{joint}=..." for joint in without)
        raise TimeSeriesError(
            f"{recording.name}: the motion does not determine the gain of {', '.join(without)}: "
            f"the torques are too small. Give it, as in --gains {given}"
        )
    return {joint: gain for joint, gain in gains.items() if joint not in known}
