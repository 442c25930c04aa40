# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which controller takes the efforts, as the controller manager lists it. Knows no ROS."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

EFFORT = "effort"
"""The command interface of a joint that takes torques or forces."""


class Controller(NamedTuple):
    """A controller that is loaded."""

    name: str
    state: str
    """unconfigured, inactive, active or finalized."""
    type: str
    command_interfaces: tuple[str, ...]
    """What it commands, ``joint1/effort`` for example, in the order in which it takes commands.
    Known in the states inactive and active."""


def find(controllers: Sequence[Controller], name: str) -> Controller | None:
    """Return the controller of that name; None if it is not loaded."""
    return next((one for one in controllers if one.name == name), None)


def not_loaded(controllers: Sequence[Controller], name: str) -> str:
    """Return the sentence that a controller is not loaded, and which ones are."""
    loaded = ", ".join(one.name for one in controllers) or "none"
    return f"controller {name!r} is not loaded; loaded controllers: {loaded}"


def problem(
    controllers: Sequence[Controller],
    name: str,
    joints: Sequence[str],
    states: Sequence[str] = ("active",),
) -> str:
    """Return why controller ``name`` does not take efforts of ``joints`` in this order.

    ``states`` are those in which it may be. Returns "" if it is the right controller.
    """
    controller = find(controllers, name)
    if controller is None:
        return not_loaded(controllers, name)
    if controller.state not in states:
        return f"controller {name!r} is {controller.state}; valid is {' or '.join(states)}"
    if not controller.command_interfaces:
        return f"controller {name!r} ({controller.type}) commands no joint"
    taken = [split(interface) for interface in controller.command_interfaces]
    others = [f"{joint}/{kind}" for joint, kind in taken if kind != EFFORT]
    if others:
        return f"controller {name!r} commands {', '.join(others)}; valid is the interface {EFFORT}"
    theirs, ours = [joint for joint, _ in taken], list(joints)
    if theirs != ours:
        wrong = "order" if sorted(theirs) == sorted(ours) else "joints"
        return (
            f"controller {name!r} has other {wrong}: it takes [{', '.join(theirs)}]; "
            f"joints is [{', '.join(ours)}]"
        )
    return ""


def split(interface: str) -> tuple[str, str]:
    """Return the joint and the kind of a command interface: ``joint1/effort``."""
    joint, _, kind = interface.rpartition("/")
    return joint, kind


def controller_of(topic: str) -> str:
    """Return the controller whose topic of commands this is; "" if the name does not say it.

    ``/left/forward_effort_controller/commands`` is that of ``forward_effort_controller``.
    """
    *_, name, last = ["", "", *topic.split("/")]
    return name if last == "commands" else ""
