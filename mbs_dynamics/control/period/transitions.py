# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The modes of an arm under guard, and the table of transitions between them.

    off -> ramping_in -> on -> ramping_out -> off        ramping_in, on -> stopping -> fault
    ramping_out -> ramping_in

Holding is not a mode, but a share, from 0 to 1, of the gains of the drives' position loops.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from mbs_dynamics.compiler import equal, less, select
from mbs_dynamics.control.period.logic import holds, is_one_of
from mbs_dynamics.control.period.records import Request, State

OFF, RAMPING_IN, ON, RAMPING_OUT, STOPPING, FAULT = 0.0, 1.0, 2.0, 3.0, 4.0, 5.0

ENGAGED = (RAMPING_IN, ON)
"""Modes in which torques follow the states of the arm, and in which failed checks stop it."""

RELEASED = (OFF, FAULT)
"""Modes that last."""

NONE, ENABLE, DISABLE, CLEAR, HOLD, TRIP = 0.0, 1.0, 2.0, 3.0, 4.0, 5.0
"""Actions that are requested. TRIP stops for an external reason."""


class Transition(NamedTuple):
    """One row of the table: the first row that applies counts."""

    modes: tuple[float, ...]
    when: str
    to: float


TRANSITIONS = (
    Transition(ENGAGED, "fails", STOPPING),
    Transition(ENGAGED, "tripped", STOPPING),
    Transition(ENGAGED, "disabled", RAMPING_OUT),
    Transition((OFF, RAMPING_OUT), "enabled", RAMPING_IN),
    Transition((FAULT,), "disabled while torques act", STOPPING),
    Transition((FAULT,), "cleared while torques act", RAMPING_OUT),
    Transition((FAULT,), "cleared", OFF),
    Transition((RAMPING_IN,), "ramped", ON),
    Transition((RAMPING_OUT,), "arrived", OFF),
    Transition((STOPPING,), "arrived", FAULT),
)


def moved(mode: Any, action: Any, conditions: Mapping[str, Any]) -> Any:
    """Return the next mode, after a request for an ``action``.

    ``conditions`` are that a check that stops an arm ``"fails"``; that no check forbids to enable
    torques, ``"allowed"``; that torques have ``"ramped"`` in; that the command has ``"arrived"`` at
    the torques that a release leads to; and that ``"torques act"`` alone, since a fault has
    retained them.
    """
    acts = conditions["torques act"]
    when = {
        "fails": conditions["fails"],
        "tripped": equal(action, TRIP),
        "disabled": equal(action, DISABLE),
        "enabled": equal(action, ENABLE) & conditions["allowed"],
        "disabled while torques act": equal(action, DISABLE) & acts,
        "cleared while torques act": equal(action, CLEAR) & acts,
        "cleared": equal(action, CLEAR),
        "ramped": conditions["ramped"],
        "arrived": conditions["arrived"],
    }
    to = mode
    for row in reversed(TRANSITIONS):
        to = select(is_one_of(mode, row.modes) & when[row.when], row.to, to)
    return to


def is_engaged(mode: Any) -> Any:
    """Return the condition that torques follow the states of the arm."""
    return is_one_of(mode, ENGAGED)


def is_at_rest(s: State) -> Any:
    """Return the condition that drives hold the arm, or that nothing is commanded."""
    released = is_one_of(s.mode, RELEASED)
    nothing = equal(sum(abs(s.command)), 0.0)
    return released & (equal(s.hold, 1.0) | nothing)


def begins_to_hold(s: State, r: Request, can_hold: Any, usable: Any) -> Any:
    """Return the condition that drives are requested to hold an arm that they do not hold yet."""
    return equal(r.action, HOLD) & equal(s.mode, OFF) & less(s.hold, 1.0) & holds(can_hold) & usable
