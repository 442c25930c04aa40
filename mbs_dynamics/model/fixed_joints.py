# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Fixed joints, and what hangs on them: where force-torque sensors are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from mbs_dynamics.model.body import GROUND, Body, Frame
from mbs_dynamics.model.inertia import Inertia


class FixedJoint(NamedTuple):
    """A fixed joint within a body or on the ground, with what hangs on it."""

    child: Frame
    """The link beyond it."""
    links: frozenset[str]
    """The links beyond it on the same body, the child included."""
    inertia: Inertia
    """Of these links, in the frame of the body, as their description states it; no payloads."""


def fixed_joint(bodies: Sequence[Body], frames: Mapping[str, Frame], child: str) -> FixedJoint:
    """Return the fixed joint above a link."""
    body = frames[child].body
    merged = [name for name, frame in frames.items() if frame.body == body]
    links = frozenset(name for name in merged if child in chain(frames, name))
    inertia = Inertia.zero()
    for name in links:
        inertia = inertia + link_inertia(bodies, frames, name)
    return FixedJoint(frames[child], links, inertia)


def chain(frames: Mapping[str, Frame], link: str | None) -> list[str]:
    """Return a link, the one to which it is fixed, and so on to the root of its body."""
    links = []
    while link is not None:
        links.append(link)
        link = frames[link].parent
    return links


def start_of(bodies: Sequence[Body], i: int) -> str | None:
    """Return the link from which the joint of body i starts; None for a nameless ground."""
    body = bodies[i]
    return bodies[body.parent].name if body.on is None and body.parent != GROUND else body.on


def link_inertia(bodies: Sequence[Body], frames: Mapping[str, Frame], link: str) -> Inertia:
    """Return the inertia of a link alone, in the frame of its body.

    That of the link that names a body is what the merged links leave.
    """
    frame = frames[link]
    if frame.body == GROUND or link != bodies[frame.body].name:
        return frame.inertia or Inertia.zero()
    inertia = bodies[frame.body].inertia
    for other in frames.values():
        if other.body == frame.body and other.inertia is not None:
            inertia = inertia - other.inertia
    return inertia
