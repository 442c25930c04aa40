# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Faults of an arm under guard, and what they make doubtful."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Doubt(Enum):
    """Quantities that a fault makes doubtful, with the numbers that a period has for them.

    The reaction to a fault follows from its doubt.
    """

    NOTHING = 0.0
    """The arm is where it is measured, but beyond a limit, or its measurements have ended."""
    VELOCITY = 1.0
    """Torques follow the positions; nothing is damped."""
    STATE = 2.0
    """Torques follow no further state; drives hold the positions that were trusted last."""
    ENCODER = 3.0
    """A drive would follow its own wrong encoder: it damps, and gravity torques stay."""
    GRAVITY = 4.0
    """Something else carries the arm, or gravity torques are wrong: none is added to those that
    drives which hold the arm exert, and without such drives there are none."""
    MOTOR = 5.0
    """A drive that does not exert its torque: it holds by itself, without one."""


class Fault(NamedTuple):
    """Why torques stopped, or must not be enabled."""

    kind: str
    """A short key, such as ``"stale"``."""
    reason: str
    """The event, with names and numbers, for users."""
    doubt: Doubt = Doubt.NOTHING
    joints: tuple[int, ...] = ()
    """Places of the doubtful joints among those that are commanded; empty: not known, or all."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"
