# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bodies, the frames fixed to them, and the loads they carry."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.values import Value

GROUND = -1
"""The parent of a root. Lists per body keep one entry more, the last, for the ground: ``V[-1]``."""


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
    """In the frame of the body."""

    def __post_init__(self) -> None:
        C = checks.pose(f"reference pose of body {self.name!r}", self.home_rel)
        object.__setattr__(self, "home_rel", checks.snap(C))


class Frame(NamedTuple):
    """A named frame fixed to a body: a body's own frame, or a link merged into it."""

    name: str
    body: int
    """Index of the body it is fixed to, GROUND if it does not move."""
    placement: FloatArray
    """(4, 4) pose in the frame of that body."""


class Payload(NamedTuple):
    """A load fixed to a link, in addition to the inertia of the body."""

    link: str
    """Name of the frame to which it is fixed; a link carries at most one load."""
    body: int
    """Index of the body that moves with it."""
    parameters: FloatArray
    """(10,) :attr:`Inertia.parameters` in the frame of that body."""


def loaded(bodies: Sequence[Body], loads: Iterable[tuple[int, Any]]) -> tuple[Body, ...]:
    """Return the bodies with inertial parameters (10,), numbers or symbols, added to some."""
    found = list(bodies)
    for i, parameters in loads:
        inertia = found[i].inertia + Inertia.from_parameters(parameters)
        found[i] = replace(found[i], inertia=inertia)
    return tuple(found)


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
