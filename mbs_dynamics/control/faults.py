# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Faults of an arm under guard, and the quantities that they make doubtful."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Doubt(Enum):
    """Quantities that a fault makes doubtful, with their numbers in a period.

    The reaction to a fault follows from its doubt.
    """

    NOTHING = 0.0
    """Measurements are right; the arm exceeds a limit, or its measurements have ended."""
    VELOCITY = 1.0
    """Torques follow the positions; nothing is damped."""
    STATE = 2.0
    """Torques follow no further state; drives hold the positions that were trusted last."""
    ENCODER = 3.0
    """A drive would follow its wrong encoder: it only damps, and gravity torques remain."""
    GRAVITY = 4.0
    """Something else carries the arm, or gravity torques are wrong. Drives that hold the arm
    receive no further torque; without such drives no torque is commanded."""
    MOTOR = 5.0
    """A drive does not exert its torque: its position loop holds the joint without one."""


class Fault(NamedTuple):
    """Why torques stopped, or must not be enabled."""

    kind: str
    """A short key, such as ``"stale"``."""
    reason: str
    """The event, with names and numbers, for users."""
    doubt: Doubt = Doubt.NOTHING
    joints: tuple[int, ...] = ()
    """Indices of the doubtful joints among the commanded ones; empty: unknown, or all."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"
