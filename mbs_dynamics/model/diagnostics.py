# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Diagnostics of a model: implausible inertias, missing limits, singular mass matrices."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.model.body import GROUND, Body, Frame
from mbs_dynamics.model.coordinates import contradictions, is_continuous, properties_of
from mbs_dynamics.model.joint import Joint

MAX_ANGLE = 8.0 * math.pi
"""Angle in rad beyond which a limit is likely in degrees."""

SINGULAR_TOLERANCE = 1e-13
"""Inertia along a joint, relative to the largest entry of what it moves, that counts as zero."""

SINGULAR = "the mass matrix is singular"
"""End of messages about joints that move no inertia."""


class Diagnostic(NamedTuple):
    """A warning or a note about a link or joint."""

    subject: str
    """``"link 'forearm'"`` or ``"joint 'elbow'"``."""
    message: str
    severity: str = "warning"
    """``"warning"`` for implausible physics, ``"note"`` for merged or missing parts."""

    def __str__(self) -> str:
        return f"{self.subject}: {self.message}"


class Description(NamedTuple):
    """Result of a builder: the arguments of :class:`mbs_dynamics.Model`."""

    name: str
    bodies: tuple[Body, ...]
    gravity: ArrayLike
    frames: Mapping[str, Frame]
    diagnostics: Iterable[Diagnostic]


def diagnose(bodies: Sequence[Body], *, if_massless: str = "warning") -> Iterator[Diagnostic]:
    """Yield diagnostics of the inertias of bodies, and of the joints that own coordinates.

    ``if_massless`` is the severity if no body has mass: a note for bodies given by a program.
    """
    inertias = [body.inertia for body in bodies]
    massless = bool(bodies) and not any(each.mass or each.tensor.any() for each in inertias)
    if massless:
        message = f"nothing that moves has mass or inertia: for kinematics only, since {SINGULAR}"
        yield Diagnostic("the robot", message, if_massless)
    for body in bodies:
        link = f"link {body.name!r}"
        for message in body.inertia.violations():
            yield Diagnostic(link, message)
        if body.inertia.mass == 0.0 and not massless:
            yield Diagnostic(link, "moves but has no mass of its own", "note")
    if not massless:
        yield from _singular(bodies)
    joints = [body.joint for body in bodies]
    owners = [joint for joint in joints if joint.mimics is None]
    limits = properties_of(joints, sum(joint.nv for joint in owners))
    lower, upper = limits["lower"], limits["upper"]
    contradicted = contradictions(lower, upper)
    for joint in owners:
        subject, effort = f"joint {joint.name!r}", joint.limits.effort
        if joint.coordinate in contradicted:
            yield Diagnostic(subject, contradicted[joint.coordinate])
        if joint.nv == 1 and (effort is None or effort <= 0.0):
            stated = "no effort limit" if effort is None else f"an effort limit of {effort:g}"
            yield Diagnostic(subject, f"has {stated}", "note")
    endless = is_continuous(owners, lower, upper)
    leaders = {joint.name for joint, is_endless in zip(owners, endless, strict=True) if is_endless}
    for joint in joints:
        subject = f"joint {joint.name!r}"
        for message in (stopping_speed(joint), stopping_effort(joint)):
            if message:
                yield Diagnostic(subject, message, "note")
        # whether it is at the same place after each turn of its leader
        periodic = joint.ratio == 0.0 or (joint.is_periodic and float(joint.ratio).is_integer())
        if joint.mimics in leaders and not periodic:
            yield Diagnostic(
                subject,
                f"mimics {joint.mimics!r}, which has no limits, with the ratio {joint.ratio:g}: "
                f"its position depends on the turns of {joint.mimics!r}, which a driver that "
                "reports angles within one turn does not count",
            )


def stopping_speed(joint: Joint) -> str:
    """Return a message if the velocity limit of a joint allows no motion, else an empty text."""
    velocity = joint.limits.velocity
    if velocity is None or velocity > 0.0 or joint.nv > 1:
        return ""
    return f"has a velocity limit of {velocity:g}, so that its speed is not watched"


def stopping_effort(joint: Joint) -> str:
    """Return a message if soft limits allow a joint no effort, else an empty text."""
    gain = joint.limits.soft_gain
    if gain is None or gain > 0.0 or joint.nv > 1:
        return ""
    return (
        f"has a safety_controller with k_velocity {gain:g}: a limiter that enforces soft limits "
        "clamps each of its efforts to 0"
    )


def _singular(bodies: Sequence[Body]) -> Iterator[Diagnostic]:
    """Yield a warning for each coordinate that moves neither a rotor nor, anywhere, inertia."""
    rng = np.random.default_rng(0)
    moved = [body.inertia for body in bodies]  # by the joint of each body
    for i, body in reversed(list(enumerate(bodies))):
        if body.parent != GROUND:
            pose = body.home_rel @ body.joint.motion(rng.uniform(-1.0, 1.0, body.joint.nq))
            moved[body.parent] = moved[body.parent] + moved[i].transformed(pose)
    regular = set()
    for body, inertia in zip(bodies, moved, strict=True):
        S, size = body.joint.screws, np.abs(inertia.matrix()).max()
        least = np.linalg.eigvalsh(S.T @ (inertia @ S))[0]
        if np.any(body.joint.armature) or least > SINGULAR_TOLERANCE * size:
            regular.add(body.joint.coordinate)
    for joint in (body.joint for body in bodies if body.joint.mimics is None):
        if joint.coordinate not in regular:
            links = [x.name for x in bodies if x.joint.coordinate == joint.coordinate]
            what = f"moves link {', '.join(map(repr, links))}, but no inertia: {SINGULAR}"
            yield Diagnostic(f"joint {joint.name!r}", what)
