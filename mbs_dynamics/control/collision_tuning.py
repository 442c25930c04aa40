# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Thresholds of collisions, tuned from recordings of free motion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.collision import NOISE, Threshold, threshold_settings
from mbs_dynamics.control.environment import payload_parameters
from mbs_dynamics.control.motion import Motion
from mbs_dynamics.control.motor_table import coordinate_of
from mbs_dynamics.control.period import collisions, transitions
from mbs_dynamics.control.period.following import GRAVITY_ALONE
from mbs_dynamics.control.period.function import Period
from mbs_dynamics.control.period.records import State, reports_of
from mbs_dynamics.control.period.settings import period_settings
from mbs_dynamics.control.running_period import RunningPeriod
from mbs_dynamics.control.settings import ArmSettings
from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.model.model import Model

MARGIN, SUSTAINED_MARGIN = 1.75, 2.0
"""Ratios of thresholds to the largest torques of the recording. Sustained torques contain errors of
the model, which depend on the posture."""

SHORTEST, SHORT = 10.0, 50.0
"""Shortest duration of motion in s for tuning, and shortest one without a remark."""

MOVED = 0.1
"""Smallest motion in rad or m of a joint that is watched."""

UNEXPLAINED = 0.7
"""Largest unexplained share of the torques; more means that the recording is of another robot."""

OUTLIER = 3.0
"""Ratio to the 99.9 % quantile above which a torque is reported as a contact in the recording."""


def tune(model: Model, stretches: Sequence[Any]) -> tuple[dict[str, Threshold], list[str]]:
    """Return thresholds by joint from recordings of free motion, and remarks on these recordings.

    A stretch has the names ``joints``, times ``t`` (N,), and ``q``, ``qd`` and ``tau`` (N, k) in SI
    units, as recordings do. A threshold is a line over speed, a margin above all external torques.
    Joints that never move are not watched.

    Raises ArgumentError for recordings without velocities, of another robot, or with less than
    SHORTEST of motion.
    """
    joints = stretches[0].joints
    parts = zip(*(_external(model, each) for each in stretches), strict=True)
    impact, sustained, rates = map(np.concatenate, parts)
    moved = np.max([np.ptp(each.q, axis=0) for each in stretches], axis=0) > MOVED
    seconds = sum(float(each.t[-1] - each.t[0]) for each in stretches)
    if seconds < SHORTEST or not moved.any():
        named = listed(joints) if not moved.any() else ""
        raise ArgumentError(
            f"the recording has {seconds:.3g} s of motion; must be at least {SHORTEST:g} s"
            + (f", in which {named} move by {MOVED:g} rad or m" if named else "")
        )
    tau = np.concatenate([each.tau for each in stretches])
    unexplained = math.sqrt(float((sustained**2).mean() / (tau**2).mean()))
    if unexplained > UNEXPLAINED:
        raise ArgumentError(
            f"the description leaves {100.0 * unexplained:.0f} % of the torques unexplained; valid "
            f"is at most {100.0 * UNEXPLAINED:.0f} %. Is the recording of another robot?"
        )
    notes = [] if seconds >= SHORT else [f"{seconds:.3g} s are short: record {SHORT:g} s or more"]
    fastest = np.abs(rates).max(axis=0)
    share = (np.abs(rates[:, moved]) / fastest[moved]).max(axis=1)
    rows = {}
    for k, name in enumerate(joints):
        if not moved[k]:
            notes.append(f"{name} did not move: it is not watched")
            continue
        limit = float(model.velocity_limits[coordinate_of(model, name)])
        if fastest[k] < 0.9 * limit < math.inf:
            notes.append(
                f"{name} reached {fastest[k]:.3g} of its velocity limit of {limit:.3g}: thresholds "
                "of faster motion are extrapolated"
            )
        usual = float(np.quantile(np.abs(impact[:, k]), 0.999))
        if np.abs(impact[:, k]).max() > OUTLIER * usual + NOISE:
            notes.append(
                f"the torque of {name} jumps by {np.abs(impact[:, k]).max():.3g}, where 99.9 % of "
                f"all are below {usual:.3g}: was the arm touched?"
            )
        rows[name] = Threshold(
            *_above(share, np.abs(impact[:, k]), MARGIN),
            *_above(share, np.abs(sustained[:, k]), SUSTAINED_MARGIN),
            float(fastest[k]),
        )
    return rows, notes


def _external(model: Model, part: Any) -> tuple[FloatArray, ...]:
    """Return external torques without and with drift (N, k) after settling, and velocities."""
    places = [coordinate_of(model, name) for name in part.joints]
    qd = np.full_like(part.q, np.nan) if part.qd is None else part.qd
    unknown = [name for name, x in zip(part.joints, qd.T, strict=True) if not np.isfinite(x).all()]
    if unknown:
        raise ArgumentError(f"the recording has no valid velocities of {listed(unknown)}")
    full: FloatArray = np.zeros((3, len(part.t), model.n))
    full[:, :, places] = part.q, qd, part.tau
    observer = ExternalTorqueObserver(
        model, dict.fromkeys(part.joints, Threshold(NOISE, 0.0, NOISE, 0.0, 1.0))
    )
    states = map(observer.after, part.t.tolist(), *full)
    rows = [
        (collisions.impact_of(s)[places], s.sustained[places], rates[places])
        for s, rates in zip(states, full[1], strict=True)
        if s.contact_time >= collisions.SETTLING
    ]
    return tuple(np.array(rows).reshape(-1, 3, len(places)).swapaxes(0, 1))


class ExternalTorqueObserver:
    """External torques of an arm at rest or in motion, as the guarded period computes them.

    ``thresholds`` are those of the joints that are watched, by name. Where one of these joints has
    no effort, all torques are unknown.
    """

    def __init__(self, model: Model, thresholds: Mapping[str, Threshold]) -> None:
        joints = [coordinate_of(model, name) for name in thresholds]
        settings = ArmSettings.of(tuple(thresholds))
        self.given = period_settings(
            model, joints, settings, model.gravity, payload_parameters(model),
            thresholds=threshold_settings(model, thresholds),
        )  # fmt: skip
        period = Period(model, settings.algorithm, GRAVITY_ALONE._replace(collisions=True))
        self._running = RunningPeriod(model, joints, period, self.given)
        request = Motion(model, joints, tuple(thresholds)).request(transitions.NONE, sends=True)
        self._running.set_request(request)

    def after(self, t: float, q: FloatArray, qd: FloatArray, tau: FloatArray) -> State:
        """Return the state of the period at time ``t`` in s, with q, qd and tau (n,) as measured.

        In its fields ``sustained``, ``drift`` and ``trend`` are external torques, in N m or N.
        """
        self._running.report(t, tuple(range(len(q))), reports_of(t, t, q, qd, tau))
        self._running.run()
        return self._running.state


def _above(share: FloatArray, torques: FloatArray, margin: float) -> tuple[float, float]:
    """Return a line over shares of speed (N,), ``margin`` above all torques (N,)."""
    bins = np.minimum((10.0 * share).astype(int), 9)
    used = np.unique(bins)
    most = np.array([torques[bins == one].max() for one in used])
    slope = float(np.polyfit(0.1 * used + 0.05, most, 1)[0]) if len(used) > 1 else 0.0
    slope = min(max(slope, 0.0), 0.5 * float(torques.max()))  # arms are seldom recorded at rest
    return margin * max(NOISE, float((torques - slope * share).max())), margin * slope
