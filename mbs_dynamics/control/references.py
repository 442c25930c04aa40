# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Targets of laws, and references that approach them; see ``period/references.py``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.trajectory import Trajectory


class JointTarget(NamedTuple):
    """Target positions of some or all commanded joints; the others keep their targets."""

    names: Sequence[str]
    positions: Sequence[float]
    """In rad or m, in the order of names."""
    velocities: Sequence[float] = ()
    """In rad/s or m/s, with which the positions continue until the next target; empty: none."""


class PoseTarget(NamedTuple):
    """Target pose of the link that the law moves."""

    pose: Any
    """(4, 4) in m."""
    frame: str = ""
    """The fixed link in whose frame the pose is; empty: the root link of the description."""


Target = JointTarget | PoseTarget | Trajectory


class JointReference(NamedTuple):
    """Reference of a joint law at one time. Joints without a command have their measured state."""

    q: FloatArray
    """(n,) positions in rad or m."""
    qd: FloatArray
    """(n,) velocities."""
    qdd: FloatArray
    """(n,) accelerations."""


class PoseReference(NamedTuple):
    """Reference of a law for a link at one time."""

    pose: FloatArray
    """(4, 4) pose of the link in the root frame, in m."""
    twist: FloatArray
    """(6,) hybrid: angular velocity, then the velocity of the link's origin, in the root's axes."""
    posture: FloatArray
    """(n,) preferred positions among those that reach the pose."""
    posture_rate: FloatArray
    """(n,) velocities of the posture."""
