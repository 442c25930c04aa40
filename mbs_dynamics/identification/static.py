# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification of gravity from a few still poses.

The friction of a joint at rest may be anything up to Coulomb friction in either direction. If each
pose is approached from both sides, friction cancels in the mean.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.algorithms.regressor import BaseParameters, independent_columns
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.data import FRICTION_SPEEDS, shares_of_ranges
from mbs_dynamics.identification.identify import Identification, estimated
from mbs_dynamics.identification.preparation import recorded
from mbs_dynamics.identification.torque_checks import (
    check_ranges,
    check_torques,
    check_weight,
)
from mbs_dynamics.identification.torque_evidence import Torques
from mbs_dynamics.identification.torque_model import JOINT_TERMS, Equations, TorqueModel
from mbs_dynamics.model.coordinates import at_limits
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools
from mbs_dynamics.timeseries import TimeSeries

SAME = 0.02
"""Distance in rad or m of each joint below which two samples are one pose."""

FEWEST = 3
"""Least number of distinct poses."""

MANY = 50
"""Number of samples from which on they may be a motion."""

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
    """Still poses as equations of their torques, which were checked."""

    torque_model: TorqueModel
    independent: BaseParameters
    """Parameters that still poses may show."""
    equations: Equations
    """Those of torques of joints at a limit are 0 = 0."""
    q: FloatArray
    """(N, k) the poses, in rad or m."""
    pairs: int
    """Number of poses approached from several sides."""
    notes: list[str]

    @classmethod
    def read(cls, model: Model, recording: TimeSeries) -> StillData:
        """Return the poses of a recording; see :func:`identify_static`."""
        model = model.loaded()
        poses = replace(recording, qd=None, declared=recording.declared | {"t"})
        own, torques, notes = recorded(poses, model)
        if np.isnan(torques).any():
            raise own.error(f"holds no efforts of {own.named(np.isnan(torques[0]))}")
        q, tau, pairs = _merged(own.q, torques)
        if _is_motion(own.q, len(q)):
            raise own.error(
                f"its {len(own.q)} samples are those of a motion: poses follow each "
                "other without a jump; give still poses, or use identify for a motion"
            )
        if len(q) < FEWEST:
            raise own.error(f"has {len(q)} different poses; at least {FEWEST} are needed")
        torque_model = TorqueModel(model, own.joints, FRICTION_SPEEDS[0])
        independent, equations = _independent(torque_model), _equations(torque_model, q, tau)
        stopped = at_limits(q, model.lower[torque_model.places], model.upper[torque_model.places])
        held = stopped.mean(axis=0) > 0.5  # as fingers of a gripper that is closed
        free = ~stopped[:, ~held].any(axis=1)
        masses = [k for k in independent.columns if k < torque_model.rigid]
        columns = [own.column(f"tau_{name}") for name in own.joints]

        def torques_of(equations: Equations) -> Torques:
            gravity, columns_of = equations.gravity, equations.A[..., masses]
            given = Torques(own.joints, columns, tau, gravity, gravity, masses=columns_of)
            return given.part(free, ~held)

        if free.any() and not held.all():
            given = torques_of(equations)
            for meaning, convert in shares_of_ranges(torque_model, q, stated="q" in own.declared):
                other = torques_of(_equations(torque_model, convert(q), tau))
                check_ranges(recording.name, given, other, meaning)
            notes += check_torques(recording.name, given, stated="tau" in own.declared)
        equations = _without(equations, stopped)
        offsets = torque_model.rigid + JOINT_TERMS.index("offset")
        joints = equations.A[..., offsets :: len(JOINT_TERMS)]
        for tool in tools(model):
            body = 10 * model.frames[tool].body
            load = np.concatenate([equations.A[..., body : body + 4], joints], axis=-1)
            check_weight(recording.name, tool, load, equations.b, equations.gravity)
        for j in np.flatnonzero(stopped.any(axis=0)):
            notes.append(
                f"{own.joints[j]} is at a limit in {int(stopped[:, j].sum())} poses: its torques "
                "there are left out, since a stop may carry a part of the load"
            )
        if not pairs:
            notes.append(
                "no pose was approached from both sides: the friction of joints at rest is in the "
                "result"
            )
        return cls(torque_model, independent, equations, q, pairs, notes)


def identify_static(model: Model, recording: TimeSeries) -> StaticIdentification:
    """Return the inertias with which a model reproduces the torques of still poses.

    Each sample of the recording is a pose; times and velocities are ignored. Poses with missing
    values are left out, as are torques of joints at a limit, where a stop carries a part of the
    load. Parameters without effect on gravity remain as in the description. Errors are those of
    held-out poses. Raises TimeSeriesError for too few poses, for a motion, or for torques that
    cannot be those of the arm.
    """
    poses = StillData.read(model, recording)
    pose = _next_pose(poses.torque_model, poses.independent, poses.q)
    return StaticIdentification(
        estimated(
            poses.torque_model, [poses.equations], [], poses.notes, independent=poses.independent
        ),
        len(poses.q),
        poses.pairs,
        dict(zip(poses.torque_model.joints, pose.tolist(), strict=True)),
    )


def _without(equations: Equations, left_out: NDArray[np.bool_]) -> Equations:
    """Return the equations (N, k) without those of a mask: these become 0 = 0."""
    A = np.where(left_out[..., None], 0.0, equations.A)
    b, gravity = (np.where(left_out, 0.0, x) for x in (equations.b, equations.gravity))
    return equations._replace(A=A, b=b, gravity=gravity)


def _is_motion(q: FloatArray, poses: int) -> bool:
    """Return whether samples (N, k) are those of a motion with this number of distinct poses.

    Between still poses joints jump. Samples of a motion are close together, or lie on smooth curves
    if it is fast.
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


def _equations(torque_model: TorqueModel, q: FloatArray, tau: FloatArray) -> Equations:
    rest, A = np.zeros_like(q), torque_model.at_rest(q)
    gravity = A[..., : torque_model.rigid] @ torque_model.described()[: torque_model.rigid]
    return Equations(A, tau, rest, rest, gravity, 1.0)


def _independent(torque_model: TorqueModel) -> BaseParameters:
    rng = np.random.default_rng(0)
    k = len(torque_model.joints)
    q = rng.uniform(-np.pi, np.pi, (torque_model.rigid // k + 30, k))
    A = torque_model.at_rest(q)
    return independent_columns(A.reshape(-1, A.shape[-1]))


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
    spread = np.einsum("nip,pq,njq->nij", X, np.linalg.inv(information), X)
    gain = np.linalg.slogdet(np.eye(len(places)) + spread)[1]
    return np.asarray(candidates[int(np.argmax(gain))])
