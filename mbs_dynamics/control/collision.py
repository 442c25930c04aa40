# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Collision thresholds by joint, tuned from recordings of free motion, and detected collisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray, positive
from mbs_dynamics.control.contact import tool_wrench
from mbs_dynamics.control.motor_table import check_keys, coordinate_of
from mbs_dynamics.control.period import collisions
from mbs_dynamics.control.period.records import NEVER, Settings, State
from mbs_dynamics.errors import ArgumentError, listed
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools

KINDS = ("impact", "sustained")
"""Thresholds of a joint: of sudden external torques, and of all, errors of the model included."""

MARGINS = 1.7, 2.0
"""Ratios of thresholds to the largest torques of the recording, for errors in other postures."""

SHORTEST, MOVED = 10.0, 0.1
"""Shortest motion for tuning in s, and smallest one in rad or m of a joint that is watched."""

UNEXPLAINED = 0.7
"""Largest unexplained share of the torques; more means that the recording is of another robot."""


def thresholds_of(model: Model, table: Any) -> FloatArray:
    """Return the thresholds (2, n) in the table of a file, or NEVER. Raises MbsError."""
    check_keys("the file", table, ("joints",))
    check_keys("joints", table["joints"], (), model.joint_names)
    thresholds = np.full((2, model.n), NEVER)
    for name, row in table["joints"].items():
        check_keys(name, row, KINDS)
        values = [positive(f"{name}: {kind}", row[kind]) for kind in KINDS]
        thresholds[:, coordinate_of(model, name)] = values
    return thresholds


def tune(model: Model, stretches: Sequence[Any]) -> dict[str, dict[str, float]]:
    """Return thresholds by joint, of those that move, from recordings of free motion.

    A stretch is a TimeSeries, or part of one. Thresholds are a margin above all external torques.
    Raises ArgumentError for recordings without velocities, of another robot, or too short ones.
    """
    joints = stretches[0].joints
    moved = np.max([np.ptp(each.q, axis=0) for each in stretches], axis=0) > MOVED
    seconds = sum(float(each.t[-1] - each.t[0]) for each in stretches)
    if seconds < SHORTEST or not moved.any():
        raise ArgumentError(
            f"the recording has {seconds:.3g} s, in which {int(moved.sum())} of {listed(joints)} "
            f"move by {MOVED:g} rad or m; must be at least {SHORTEST:g} s of motion"
        )
    torques = np.concatenate([external_torques(model, each) for each in stretches])
    tau = np.concatenate([each.tau for each in stretches])
    unexplained = float(np.sqrt(np.mean(torques[:, 1] ** 2) / np.mean(tau**2)))
    if unexplained > UNEXPLAINED:
        raise ArgumentError(
            f"the description leaves {100.0 * unexplained:.0f} % of the torques unexplained; valid "
            f"is at most {100.0 * UNEXPLAINED:.0f} %. Is the recording of another robot?"
        )
    thresholds = np.array(MARGINS)[:, None] * np.abs(torques).max(axis=0)
    return {
        name: {kind: float(f"{x:.4g}") for kind, x in zip(KINDS, thresholds[:, k], strict=True)}
        for k, name in enumerate(joints)
        if moved[k]
    }


def external_torques(model: Model, part: Any) -> FloatArray:
    """Return impact and sustained torques (N, 2, k) after settling. Other joints are at rest."""
    places = [coordinate_of(model, name) for name in part.joints]
    q, qd, tau = np.zeros((3, len(part.t), model.n))
    q[:, places], qd[:, places], tau[:, places] = part.q, part.qd, part.tau
    lacking = [model.joint_names[k] for k in places if not np.isfinite(qd[:, k]).all()]
    if lacking:
        raise ArgumentError(f"the recording has no valid velocities of {listed(lacking)}")
    momentum, rate = mbs.generalized_momentum(model, q, qd)
    rate = rate + tau + collisions.resistance(model, qd)
    watched, rows = np.isin(np.arange(model.n), places), []
    s = State(*[np.full(model.n, np.nan)] * len(State._fields))._replace(contact_time=0.0)
    for k, elapsed in enumerate(np.diff(part.t, prepend=np.nan)):
        s = collisions.with_contact(s, watched, elapsed, momentum[k], rate[k])
        if s.contact_time >= collisions.SETTLING:
            rows.append((collisions.impact_of(s)[places], s.sustained[places]))
    return np.reshape(rows, (-1, 2, len(places)))


class Collision(NamedTuple):
    """A detected contact."""

    joint: str
    """The joint whose external torque exceeds its threshold most."""
    stamp: int
    """Stamp of the measurement in ns."""
    torques: FloatArray
    """(n,) external torques in N m or N; 0 at joints that are not watched."""
    link: str
    wrench: FloatArray
    """(6,) estimated wrench on this link in its frame, moment first. It grows for some 30 ms."""


def collision_of(s: State, p: Settings, model: Model) -> Collision:
    """Return the collision that began with the latest period of an arm, from its state."""
    link, k, watched = tools(model)[0], int(s.collided), p.impact_threshold < NEVER
    kinds = (collisions.impact_of(s), p.impact_threshold), (s.sustained, p.sustained_threshold)
    torques, _ = max(kinds, key=lambda kind: abs(kind[0][k]) / kind[1][k])
    J = mbs.jacobian(model, np.array(s.trusted), link, representation="body_fixed")
    W = tool_wrench(J[:, watched], torques[watched]).W
    stamp = int(1e9 * float(np.max(s.stamp[np.asarray(p.commanded) > 0.0])))
    return Collision(model.joint_names[k], stamp, np.where(watched, torques, 0.0), link, W)
