# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification of gravity parameters from a few still poses.

At rest, the friction of a joint has any value up to Coulomb friction, in either direction. It
cancels in the mean if each pose is approached from both sides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mbs_dynamics.algorithms.regressor import BaseParameters
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.data import FRICTION_SPEEDS, Data
from mbs_dynamics.identification.identify import Identification, estimated
from mbs_dynamics.identification.preparation import recorded
from mbs_dynamics.identification.torque_checks import check_torques
from mbs_dynamics.identification.torque_model import Equations, TorqueModel
from mbs_dynamics.model.coordinates import at_limits
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries

SAME = 0.02
"""Two samples are the same pose if no joint differs by this much, in rad or m."""

FEWEST = 3
"""Smallest number of distinct poses."""

MANY = 50
"""Smallest number of samples that may be those of a motion."""

CANDIDATES = 2000
"""Number of candidates for the next pose."""


class StaticIdentification(NamedTuple):
    """Result of :func:`identify_static`."""

    identification: Identification
    poses: int
    """Number of distinct poses."""
    pairs: int
    """Number of poses approached from several sides."""
    next_pose: dict[str, float]
    """The most informative next pose, by joint name."""


class StillData(NamedTuple):
    """Still poses whose torques have passed the checks."""

    data: Data
    """One set of equations; the equation of a joint at its limit is 0 = 0."""
    q: FloatArray
    """(N, k) the poses, in rad or m."""
    pairs: int
    """Number of poses approached from several sides."""

    @classmethod
    def read(cls, model: Model, recording: TimeSeries) -> StillData:
        """Return the poses of a recording; see :func:`identify_static`."""
        model = model.loaded()
        untimed = replace(recording, qd=None, declared=recording.declared | {"t"})
        poses, torques, notes = recorded(untimed, model)
        if np.isnan(torques).any():
            raise poses.error(f"holds no efforts of {poses.named(np.isnan(torques[0]))}")
        q, tau, pairs = _merged(poses.q, torques)
        if _is_motion(poses.q, len(q)):
            raise poses.error(
                f"its {len(poses.q)} samples are those of a motion: there are no jumps from pose "
                "to pose; give still poses, or use identify for a motion"
            )
        if len(q) < FEWEST:
            raise poses.error(f"has {len(q)} different poses; at least {FEWEST} are needed")
        torque_model = TorqueModel(model, poses.joints, FRICTION_SPEEDS[0])
        independent, rigid = torque_model.independent(at_rest=True), torque_model.rigid
        stopped = at_limits(q, model.lower[torque_model.places], model.upper[torque_model.places])

        def equations_of(series: TimeSeries) -> Equations:
            A, rest = torque_model.at_rest(series.q), np.zeros_like(series.q)
            A, b = np.where(stopped[..., None], 0.0, A), np.where(stopped, 0.0, tau)
            gravity = A[..., :rigid] @ torque_model.described()[:rigid]
            return Equations(A, b, rest, rest, gravity, 1.0)

        merged = poses.rows(slice(len(q)))
        merged = replace(merged, q=q, tau=tau)
        equations = equations_of(merged)
        notes += check_torques(torque_model, [merged], [equations], equations_of, independent)
        for j in np.flatnonzero(stopped.any(axis=0)):
            notes.append(
                f"{poses.joints[j]} is at a limit in {int(stopped[:, j].sum())} poses: its torques "
                "there are left out, since a stop may carry part of the load"
            )
        if not pairs:
            notes.append(
                "no pose was approached from both sides: the friction of joints at rest is in the "
                "result"
            )
        return cls(Data(torque_model, [equations], independent, notes), q, pairs)


def identify_static(model: Model, recording: TimeSeries) -> StaticIdentification:
    """Return the inertias with which a model reproduces the torques of still poses.

    Each sample of the recording is a pose; times and velocities are ignored. Poses with missing
    values are left out, and so are torques of joints at a limit, where a stop may carry part of the
    load. Parameters without effect on gravity remain as in the description. Errors are those of
    held-out poses. Raises TimeSeriesError for too few poses, for a motion, or for torques that
    cannot be those of the arm.
    """
    data, q, pairs = StillData.read(model, recording)
    pose = _next_pose(data.torque_model, data.independent, q)
    next_pose = dict(zip(data.torque_model.joints, pose.tolist(), strict=True))
    return StaticIdentification(estimated(data, data.equations, []), len(q), pairs, next_pose)


def _is_motion(q: FloatArray, poses: int) -> bool:
    """Return whether samples (N, k), with this number of distinct poses, are those of a motion.

    Joints jump from one still pose to the next. Samples of a slow motion are close together, and
    those of a fast one lie on smooth curves.
    """
    steps = np.diff(q, axis=0)
    sizes = np.abs(steps).max(axis=1)
    bends = np.abs(np.diff(steps, axis=0)).max(axis=1)
    creeps = len(q) >= MANY and poses > 2 * (1 + int((sizes >= SAME).sum()))
    return creeps or (len(q) >= 4 * MANY and bool(np.median(bends) < 0.5 * np.median(sizes)))


def _merged(q: FloatArray, tau: FloatArray) -> tuple[FloatArray, FloatArray, int]:
    """Return distinct poses with their mean torques, and the number with several samples."""
    groups: list[list[int]] = []
    for i, pose in enumerate(q):
        for group in groups:
            if np.abs(q[group[0]] - pose).max() < SAME:
                group.append(i)
                break
        else:
            groups.append([i])
    means = [np.array([x[group].mean(axis=0) for group in groups]) for x in (q, tau)]
    return means[0], means[1], sum(len(group) > 1 for group in groups)


def _next_pose(torque_model: TorqueModel, independent: BaseParameters, q: FloatArray) -> FloatArray:
    """Return the pose within the limits that adds most to the determinant of the information."""
    model, places = torque_model.model, torque_model.places
    low = np.where(np.isfinite(model.lower), model.lower, -np.pi)[places]
    high = np.where(np.isfinite(model.upper), model.upper, np.pi)[places]
    inner = 0.1 * (high - low)
    rng = np.random.default_rng(0)
    candidates = rng.uniform(low + inner, high - inner, (CANDIDATES, len(places)))
    columns = list(independent.columns)

    A = torque_model.at_rest(q)[..., columns].reshape(-1, len(columns))
    information = A.T @ A + 1e-6 * np.trace(A.T @ A) * np.eye(len(columns))
    X = torque_model.at_rest(candidates)[..., columns]
    gained = np.linalg.slogdet(information + np.swapaxes(X, 1, 2) @ X)[1]
    return np.asarray(candidates[int(np.argmax(gained))])
