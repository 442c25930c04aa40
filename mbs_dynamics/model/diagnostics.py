# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of a model: implausible inertias, missing limits, singular mass matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.model.body import GROUND, Body
from mbs_dynamics.model.coordinates import contradictions, is_continuous, limits_of
from mbs_dynamics.model.joint import Joint

MOST_TURNS = 8.0 * math.pi
"""Angle in rad beyond which a limit may be one in degrees."""

SINGULAR_TOLERANCE = 1e-13
"""Inertia along a joint, relative to the body's largest entry, that counts as none."""


class Diagnostic(NamedTuple):
    """A warning or a note about a link or joint."""

    subject: str
    """``"link 'forearm'"`` or ``"joint 'elbow'"``."""
    message: str
    severity: str = "warning"
    """``"warning"`` for implausible physics, ``"note"`` for merged or missing parts."""

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"


SINGULAR = "the mass matrix is singular"
"""End of messages about joints that move no inertia."""


def diagnose(bodies: Sequence[Body]) -> list[Diagnostic]:
    """Return diagnostics of the inertias of bodies, and of the joints that own coordinates."""
    diagnostics = []
    massless = bool(bodies) and not _any_inertia(bodies)
    if massless:
        message = "nothing that moves has mass or inertia: for kinematics only"
        diagnostics.append(Diagnostic("the robot", f"{message}, since the mass matrix is singular"))
    for body in bodies:
        link = f"link {body.name!r}"
        diagnostics += [Diagnostic(link, message) for message in body.inertia.violations()]
        if body.inertia.mass == 0.0 and not massless:
            diagnostics.append(Diagnostic(link, "moves but has no mass of its own", "note"))
    moved: dict[int, list[int]] = {}
    for i, body in enumerate(bodies):
        moved.setdefault(body.joint.coordinate, []).append(i)
    owners = [body.joint for body in bodies if body.joint.mimics is None]
    beyond = _inertia_beyond(bodies)
    limits = limits_of([body.joint for body in bodies], sum(joint.nv for joint in owners))
    contradicted = contradictions(limits.lower, limits.upper)
    endless = dict(zip(owners, is_continuous(owners, limits.lower, limits.upper), strict=True))
    for joint in owners:
        if joint.coordinate in contradicted:
            diagnostics.append(Diagnostic(f"joint {joint.name!r}", contradicted[joint.coordinate]))
        if not massless:
            diagnostics += _diagnose_mass(joint, moved[joint.coordinate], bodies, beyond)
        effort = joint.limits.effort
        if joint.nv == 1 and (effort is None or effort <= 0.0):
            stated = "no effort limit" if effort is None else f"an effort limit of {effort:g}"
            diagnostics.append(Diagnostic(f"joint {joint.name!r}", f"has {stated}", "note"))
    diagnostics += [
        Diagnostic(f"joint {joint.name!r}", message, "note")
        for joint in dict.fromkeys(body.joint for body in bodies)
        for message in (stopping_speed(joint), stopping_effort(joint))
        if message
    ]
    leaders = {joint.name: joint for joint in owners if endless[joint]}
    for body in bodies:
        joint = body.joint
        if joint.mimics in leaders and not _turns_with(joint):
            diagnostics.append(Diagnostic(f"joint {joint.name!r}", _UNKNOWN_TURN.format(joint)))
    return diagnostics


_UNKNOWN_TURN = (
    "mimics {0.mimics!r}, which has no limits, with the ratio {0.ratio:g}: its position depends on "
    "the turns of {0.mimics!r}, which a driver that reports angles within one turn does not count"
)


def _turns_with(joint: Joint) -> bool:
    """Return whether a mimic joint is at the same place after each turn of its leader."""
    return joint.ratio == 0.0 or (joint.is_periodic and float(joint.ratio).is_integer())


def stopping_speed(joint: Joint) -> str:
    """Return that the velocity limit of a joint allows no motion; empty if it does."""
    velocity = joint.limits.velocity
    if velocity is None or velocity > 0.0 or joint.nv > 1:
        return ""
    return f"has a velocity limit of {velocity:g}, so that its speed is not watched"


def stopping_effort(joint: Joint) -> str:
    """Return that soft limits allow a joint no effort; empty if they do."""
    gain = joint.limits.soft_gain
    if gain is None or gain > 0.0 or joint.nv > 1:
        return ""
    return (
        f"has a safety_controller with k_velocity {gain:g}: a limiter that enforces soft limits "
        "clamps each of its efforts to 0"
    )


def diagnose_made(bodies: Sequence[Body]) -> list[Diagnostic]:
    """Return diagnostics of bodies described by a program, which may all be massless.

    In the description of a real robot, such as a URDF, missing masses are reported one by one.
    """
    if not _any_inertia(bodies):
        message = "no body has mass or inertia: for kinematics only"
        return [Diagnostic("the mechanism", message, "note")]
    return diagnose(bodies)


def _any_inertia(bodies: Sequence[Body]) -> bool:
    return any(body.inertia.mass or body.inertia.tensor.any() for body in bodies)


def _inertia_beyond(bodies: Sequence[Body]) -> list[tuple[bool, bool]]:
    """Return whether each body, with all that it carries, has inertia, and whether it carries any.

    What it carries does not count for the second if it moves by the same coordinate.
    """
    heavy = [bool(b.inertia.mass or np.any(b.inertia.tensor)) for b in bodies]
    carries = [False] * len(bodies)
    for i in reversed(range(len(bodies))):  # parents come first
        p = bodies[i].parent
        if p != GROUND:
            heavy[p] |= heavy[i]
            same = bodies[p].joint.coordinate == bodies[i].joint.coordinate
            carries[p] |= carries[i] or not same
    return list(zip(heavy, carries, strict=True))


def _diagnose_mass(
    joint: Joint, moved: list[int], bodies: Sequence[Body], beyond: Sequence[tuple[bool, bool]]
) -> list[Diagnostic]:
    """Return a warning if a coordinate moves no inertia, nor a rotor."""

    def moves_inertia(body: Body) -> bool:  # whether S^T M S is regular up to rounding
        S = body.joint.screws
        least = np.linalg.eigvalsh(S.T @ (body.inertia @ S))[0]
        return bool(least > SINGULAR_TOLERANCE * np.abs(body.inertia.matrix()).max())

    if any(np.any(bodies[i].joint.armature) for i in moved):
        return []
    if not any(beyond[i][0] for i in moved):
        what = "nothing that it moves has mass or inertia"
    elif not any(beyond[i][1] or moves_inertia(bodies[i]) for i in moved):
        what = "there is no inertia along that motion"
    else:
        return []
    links = ", ".join(repr(bodies[i].name) for i in moved)
    message = f"moves link {links}, but {what}: {SINGULAR}"
    return [Diagnostic(f"joint {joint.name!r}", message)]
