# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Paths through the bodies of a model, and the ends of its branches."""

from __future__ import annotations

import re

from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model

TOOLS = ({"tcp"}, {"tool"}, {"effector", "ee", "eef"}, {"hand", "palm"}, {"gripper"}, {"flange"})
"""Words in names of links that carry the tool of an arm, the preferred ones first."""


def leaves(model: Model) -> tuple[str, ...]:
    """Return the names of the bodies without children, in order."""
    parents = set(model.parents)
    return tuple(body.name for i, body in enumerate(model.bodies) if i not in parents)


def tools(model: Model) -> tuple[str, ...]:
    """Return the tool or hand at the end of each branch, for the longest branch first.

    A tool is a link whose name has a word in TOOLS, on the first such body of the branch, so that
    no finger is returned; of several links on that body, the one whose word comes first in TOOLS.
    Without any, the last body is returned; for a model without moving bodies, the root link.
    """
    named: dict[int, tuple[int, str]] = {}
    for name, frame in model.frames.items():
        words = {word.lower() for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
        rank = next((k for k, those in enumerate(TOOLS) if words & those), None)
        if rank is not None and (frame.body not in named or rank < named[frame.body][0]):
            named[frame.body] = rank, name
    depths: dict[str, int] = {}
    for leaf in leaves(model):
        branch = path(model, model.frames[leaf].body)
        carrying = next((i for i in branch if i in named), None)
        tool = leaf if carrying is None else named[carrying][1]
        depths[tool] = max(len(branch), depths.get(tool, 0))
    if not depths:
        return tuple(model.frames)[:1]
    return tuple(sorted(depths, key=lambda tool: -depths[tool]))


def path(model: Model, i: int) -> list[int]:
    """Return the bodies from the root to body i, both included; none for the ground."""
    bodies = []
    while i != GROUND:
        bodies.append(i)
        i = model.parents[i]
    return bodies[::-1]
