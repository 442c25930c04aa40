# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What a law is: a function of a model, a state and a reference, and nothing else."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.references import Reference
from mbs_dynamics.model.model import Model


class LawState(NamedTuple):
    """The state of an arm of which a law is a function. The arrays are not to be changed."""

    q: FloatArray
    """(n,) positions in rad or m."""
    qd: FloatArray
    """(n,) velocities in rad/s or m/s, within the velocity limits."""
    efforts: FloatArray
    """(n,) measured efforts in N m or N, NaN where they are unknown."""
    time: float
    """In s."""
    joints: Sequence[int]
    """(m,) coordinates of the commanded joints, in the order of the torques of a law."""
    gravity: FloatArray
    """(n,) gravity torques of the arm with its loads."""
    period: float = 0.0
    """Mean time in s between two states; 0: not known yet."""


Law = Callable[[Model, LawState, Reference], Sequence[float]]
"""Torques (m,) of the commanded joints, gravity included.

The model has the gravity and loads in force. A law with an attribute ``link`` follows poses of
that link, any other one positions of joints. ``check(model, state)``, if it has one, raises
ArgumentError for what the arm cannot bear at a state.
"""
