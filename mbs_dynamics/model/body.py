# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bodies, the frames fixed to them, and the fixed joints between these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import UnknownBodyError
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.values import Value

GROUND = -1
"""Parent of a root. Lists per body have one more entry, the last, for the ground: ``V[-1]``."""


@dataclass(frozen=True, eq=False)
class Body(Value):
    """A moving rigid body and the joint that connects it to its parent."""

    name: str
    parent: int
    """Index of the parent body, GROUND for a root; always smaller than the body's own index."""
    home_rel: FloatArray
    """(4, 4) B_i, the pose relative to the parent at q = 0: Mueller (kinematics), eq. (4)."""
    joint: Joint
    inertia: Inertia
    """In the frame of the body, links merged into it included."""
    on: str | None = None
    """Link of the parent that carries the joint; None means the link that names the parent."""

    def __post_init__(self) -> None:
        if np.asarray(self.home_rel).dtype != object:  # symbols if the placement is an input
            C = checks.pose(f"reference pose of body {self.name!r}", self.home_rel)
            object.__setattr__(self, "home_rel", checks.snap(C))


def add_inertia(bodies: list[Body], i: int, inertia: Inertia) -> None:
    """Add an inertia to body i of a list, unless i is the ground."""
    if i != GROUND:
        bodies[i] = replace(bodies[i], inertia=bodies[i].inertia + inertia)


class Frame(NamedTuple):
    """A named frame fixed to a body: a body's own frame, or a link merged into it."""

    name: str
    body: int
    """Index of the body it is fixed to, GROUND if it does not move."""
    placement: FloatArray
    """(4, 4) pose in the frame of that body."""
    inertia: Inertia | None = None
    """Inertia of a merged link, in the frame of that body, whose inertia includes it."""
    parent: str | None = None
    """Link to which it is fixed; None for the root link of its body or of the ground."""
    joint: str | None = None
    """Name of the fixed joint between the two; None if it has no name."""


class Frames(dict[str, Frame]):
    """Frames by name; other names raise UnknownBodyError, which lists the valid ones."""

    def __missing__(self, name: object) -> Frame:
        raise UnknownBodyError(name, self)


def with_poses(
    bodies: Sequence[Body], frames: Mapping[str, Frame], poses: Mapping[str, Any]
) -> tuple[tuple[Body, ...], Mapping[str, Frame]]:
    """Return bodies and frames with the B_i or placements (4, 4) that ``poses`` has for them.

    Poses are numbers or symbols.
    """
    moved, named = {body.name: body for body in bodies}, dict(frames)
    for name, C in poses.items():
        if name in moved:
            moved[name] = replace(moved[name], home_rel=C)
        else:
            named[name] = named[name]._replace(placement=C)
    return tuple(moved.values()), MappingProxyType(Frames(named))


def preorder(parents: Sequence[int]) -> list[int]:
    """Return the bodies of a tree in preorder, depth first, by their parents."""
    children: dict[int, list[int]] = {}
    for i, p in enumerate(parents):
        children.setdefault(p, []).append(i)
    order, left = [], children.get(GROUND, [])[::-1]
    while left:
        order.append(left.pop())
        left += children.get(order[-1], [])[::-1]
    return order


class FixedJoint(NamedTuple):
    """A fixed joint within a body or on the ground, with the links beyond it."""

    child: Frame
    """The link beyond it."""
    links: frozenset[str]
    """The links beyond it on the same body, the child included."""
    inertia: Inertia
    """Inertia of these links in the frame of the body, without payloads."""


def fixed_joint(bodies: Sequence[Body], frames: Mapping[str, Frame], child: str) -> FixedJoint:
    """Return the fixed joint above a link."""
    links = [name for name in frames if child in chain(frames, name)]
    inertias = (link_inertia(bodies, frames, name) for name in links)
    return FixedJoint(frames[child], frozenset(links), sum(inertias, start=Inertia.zero()))


def chain(frames: Mapping[str, Frame], link: str | None) -> list[str]:
    """Return a link, the one to which it is fixed, and so on to the root of its body."""
    links = []
    while link is not None:
        links.append(link)
        link = frames[link].parent
    return links


def start_of(bodies: Sequence[Body], i: int) -> str | None:
    """Return the link that carries the joint of body i; None for a ground without a name."""
    body = bodies[i]
    return bodies[body.parent].name if body.on is None and body.parent != GROUND else body.on


def link_inertia(bodies: Sequence[Body], frames: Mapping[str, Frame], link: str) -> Inertia:
    """Return the inertia of a single link, in the frame of its body.

    For the link that names the body it is the inertia of the body minus those of merged links.
    """
    frame = frames[link]
    if frame.body == GROUND or link != bodies[frame.body].name:
        return frame.inertia or Inertia.zero()
    inertia = bodies[frame.body].inertia
    for other in frames.values():
        if other.body == frame.body and other.inertia is not None:
            inertia = inertia - other.inertia
    return inertia
