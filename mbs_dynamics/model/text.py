# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A model as text: its tree of bodies, a line for each."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.body import GROUND, Body, preorder
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.payloads import Payloads


def size(nq: int, n: int) -> str:
    """Return the number of coordinates in words."""
    return f"{n} coordinates" if nq == n else f"{nq} positions, {n} velocities"


def text(
    name: str, coordinates: str, bodies: Sequence[Body], gravity: FloatArray, payloads: Payloads
) -> str:
    """Return the text that ``print(model)`` shows.

    A body is listed below its parent, indented if the parent has other children.
    """
    parents = [body.parent for body in bodies]
    rows, indent = [("body", "joint", "kind", "limits", "mass")], {GROUND: -1}
    siblings = Counter(parents)
    siblings[GROUND] = 2
    for i in preorder(parents):
        body, p = bodies[i], parents[i]
        indent[i] = indent[p] + (siblings[p] > 1)
        names = "  " * indent[i] + body.name, body.joint.name
        rows.append((*names, body.joint.kind, _limits(body.joint), f"{body.inertia.mass:.4g} kg"))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    fall = ", ".join(f"{x:g}" for x in gravity)
    title = f"{name}: {coordinates}, {len(bodies)} bodies, gravity ({fall}) m/s^2"
    loads = [f"load on {load.link}: {load.parameters[0]:.4g} kg" for load in payloads]
    return "\n".join([title, *lines, *loads])


def _limits(joint: Joint) -> str:
    if joint.mimics is not None:
        offset = f" {joint.offset:+.4g}" if joint.offset else ""
        return f"= {joint.ratio:.4g} {joint.mimics}{offset}"
    unit = "rad" if joint.turns else "m"
    low, high = joint.limits.range
    return "none" if -low == high == math.inf else f"{low:.4g} to {high:.4g} {unit}"
