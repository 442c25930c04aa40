# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification of gravity from a few still poses.

The friction of a joint at rest may be anything up to Coulomb friction in either direction. If each
pose is approached from both sides, friction cancels in the mean.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mbs_dynamics.algorithms.regressor import BaseParameters, independent_columns
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.estimation import (
    ConsistentEstimate,
    base_estimate,
    friction_estimate,
)
from mbs_dynamics.identification.identify import (
    FRICTION_SPEEDS,
    Errors,
    Identification,
    relative_error,
)
from mbs_dynamics.identification.recording import Recording, RecordingError
from mbs_dynamics.identification.torque_checks import Torques, check_torques
from mbs_dynamics.identification.torque_model import Equations, TorqueModel
from mbs_dynamics.model.model import Model

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


def identify_static(model: Model, recording: Recording) -> StaticIdentification:
    """Return the inertias with which a model reproduces the torques of still poses.

    Each sample of the recording is a pose; times and velocities are ignored. Parameters without
    effect on gravity remain as in the description. Errors are those of held-out poses. Raises
    RecordingError for too few poses, for a motion, or for torques in other units.
    """
    model = model.loaded()
    own = recording.of(model)
    q, tau, sides = _merged(own.q, own.tau)
    if _is_motion(own.q, len(q)):
        raise RecordingError(
            f"{recording.name}: its {len(own.q)} samples are those of a motion: poses follow each "
            "other without a jump. Valid are still poses; identify takes a motion"
        )
    if len(q) < FEWEST:
        raise RecordingError(
            f"{recording.name}: has {len(q)} different poses; at least {FEWEST} are needed"
        )
    torque_model = TorqueModel(model, own.joints, FRICTION_SPEEDS[0])
    equations = _equations(torque_model, q, tau)
    described = equations.A @ torque_model.described()
    torques = Torques(own.joints, tau, described, equations.gravity)
    notes = [*own.notes, *check_torques(recording.name, torques, stated=recording.torques_stated)]
    estimate = ConsistentEstimate(torque_model, [equations])
    choice = estimate.cross_validated()
    x = estimate.estimate(choice.weight)
    independent = _independent(torque_model)
    offsets = friction_estimate(torque_model, [equations])
    errors = Errors(
        relative_error([equations], torque_model.described()),
        relative_error([equations], offsets),
        choice.best,
    )
    base = base_estimate(torque_model, [equations], independent)
    if not sides:
        notes.append(
            "no pose was approached from both sides: the friction of joints at rest is in the "
            "result"
        )
    pose = _next_pose(torque_model, independent, q)
    return StaticIdentification(
        Identification(torque_model, x, 0.0, errors, choice, base, (equations,), tuple(notes)),
        len(q),
        sides,
        dict(zip(own.joints, pose.tolist(), strict=True)),
    )


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
