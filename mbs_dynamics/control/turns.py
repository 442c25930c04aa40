# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Whole turns of joints without limits, which drivers may count or omit.

Positions of such a joint that differ by whole turns are equivalent. Each input unwraps reported
positions once, so that positions are continuous from there on. A target may be whole turns away,
and a drive takes positions in the turn that it reports.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.coordinates import is_continuous
from mbs_dynamics.model.model import Model


def turning(model: Model) -> list[bool]:
    """Return (n,) whether each velocity is that of a joint that turns without limits.

    Such a joint is revolute, and neither it nor a joint that mimics it has limits.
    """
    turns = [False] * model.n
    endless = is_continuous(model.joints, model.lower, model.upper)
    for joint, so in zip(model.joints, endless, strict=True):
        turns[joint.coordinate] = so
    return turns


def sliding(model: Model) -> list[bool]:
    """Return (n,) whether each velocity is that of a prismatic joint."""
    slides = [False] * model.n
    for joint in model.joints:
        slides[joint.coordinate] = joint.nv == 1 and not joint.turns
    return slides


def turns_to(position: float, near: float) -> float:
    """Return the whole turns in rad that bring ``position`` nearest to ``near``.

    The result is zero if a position is not finite.
    """
    apart = near - position
    return math.tau * round(apart / math.tau) if math.isfinite(apart) else 0.0


def nearest(positions: ArrayLike, near: ArrayLike, turns: ArrayLike) -> FloatArray:
    """Return positions (n,), with those of joints that turn nearest to ``near`` (n,) in rad.

    ``turns`` (n,) tells which joints turn.
    """
    q = np.asarray(positions, dtype=float)
    shift = math.tau * np.round((np.asarray(near, dtype=float) - q) / math.tau)
    return np.asarray(np.where(turns, q + shift, q))
