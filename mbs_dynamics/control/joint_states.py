# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the joints of a robot in messages of joint states, by name and in any order."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mbs_dynamics.errors import ArgumentError, UnknownJointError, listed

LARGEST = 1e9
"""Numbers of this size, in rad, m, rad/s, m/s, N m or N, are not measurements."""

MOST_NAMES = 10_000
"""Largest number of names in a message: to search more would take too long."""


class Rejection(NamedTuple):
    """The reason to reject a message, or not to answer an accepted one."""

    kind: str
    """A short key for counting, such as ``"duplicate_joints"``."""
    reason: str
    """The problem, with names and numbers, for users."""


class States(NamedTuple):
    """States of some joints, each (k,)."""

    joints: Sequence[int]
    """Coordinates, ascending, without fixed joints."""
    q: Sequence[float]
    qd: Sequence[float]
    """NaN where the message holds none."""
    efforts: Sequence[float]
    """NaN where the message holds none, or numbers that are not measurements."""


def fixed_coordinates(joint_names: Sequence[str], fixed: Mapping[str, float]) -> dict[int, float]:
    """Return the positions in rad or m of joints that no driver reports, by coordinate.

    Raises UnknownJointError for a name that is not among ``joint_names``, ArgumentError for a
    position that is not finite or too large.
    """
    UnknownJointError.check(fixed, joint_names)
    for name, position in fixed.items():
        if not abs(position) < LARGEST:
            raise ArgumentError(
                f"the fixed position of joint {name!r} is {position:g}; must be less than "
                f"{LARGEST:g} in size"
            )
    return {list(joint_names).index(name): float(position) for name, position in fixed.items()}


class JointStateReader:
    """Finds joints in messages. Other joints and ``fixed`` ones, by coordinate, are ignored."""

    def __init__(self, joint_names: Sequence[str], fixed: Sequence[int] = ()) -> None:
        self.joint_names, self._fixed = tuple(joint_names), frozenset(fixed)

    def read(
        self,
        names: Sequence[str],
        positions: Sequence[float],
        velocities: Sequence[float],
        efforts: Sequence[float],
    ) -> States | Rejection:
        """Return the states that a message holds, or why it is rejected as a whole.

        ``velocities`` and ``efforts`` may be empty.
        """
        joints = self._joints_in(names)
        if isinstance(joints, Rejection):
            return joints
        length = len(names)
        for what, values in (("position", positions), ("velocity", velocities)):
            if len(values) != length and (len(values) or what == "position"):
                message = f"{length} joint names but {len(values)} {what} value(s)"
                return Rejection(f"{what}_length", message)
        own, places = [self.joint_names[k] for k in joints], list(joints.values())
        q = [positions[k] for k in places]
        unknown = [math.nan] * len(q)
        qd = [velocities[k] for k in places] if len(velocities) else unknown
        if not math.hypot(*q, *qd) < LARGEST:  # nor is it for NaN
            known = [x if x == x else 0.0 for x in qd]
            if not math.hypot(*q) < LARGEST:
                return wild_numbers("position", own, q)
            if not math.hypot(*known) < LARGEST:
                return wild_numbers("velocity", own, known)
        tau = [efforts[k] for k in places] if len(efforts) == length else unknown
        if not math.hypot(*tau) < LARGEST:
            tau = [x if abs(x) < LARGEST else math.nan for x in tau]
        return States(list(joints), q, qd, tau)

    def _joints_in(self, names: Sequence[str]) -> dict[int, int] | Rejection:
        """Return the places of the joints in a message, by coordinate, or why it is rejected."""
        if len(names) > MOST_NAMES:
            message = f"the message names {len(names)} joints; must be at most {MOST_NAMES}"
            return Rejection("too_many_names", message)
        own, places = self.joint_names, {name: k for k, name in enumerate(names)}
        there = {k: places[name] for k, name in enumerate(own) if name in places}
        if not there:
            message = (
                f"none of the robot's joints is in the message: it holds "
                f"{listed(names) if names else 'no names at all'}; the robot has {listed(own)}"
            )
            return Rejection("no_joints", message)
        joints = {k: place for k, place in there.items() if k not in self._fixed}
        if len(places) < len(names):
            twice = [own[k] for k in joints if list(names).count(own[k]) > 1]
            if twice:
                message = f"joints named more than once: {listed(twice)}"
                return Rejection("duplicate_joints", message)
        if not joints:
            message = f"all joints in the message are fixed ones: {listed(own[k] for k in there)}"
            return Rejection("partial", message)
        return joints


def wild_numbers(what: str, names: Sequence[str], values: Sequence[float]) -> Rejection:
    """Return why numbers of these joints are rejected: not finite, or else too large."""
    pairs = list(zip(names, values, strict=True))
    bad = [f"{name} = {x}" for name, x in pairs if not math.isfinite(x)]
    if bad:
        return Rejection("not_finite", f"{what} is not finite: {listed(bad)}")
    name, x = max(pairs, key=lambda pair: abs(pair[1]))
    return Rejection("too_large", f"{what} is too large to be true: {name} = {x:g}")
