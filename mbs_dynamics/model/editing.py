# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Mechanisms made of others: tools mounted, joints locked.

Each function takes and returns the :class:`Parts` of a model.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError, ModelWarning
from mbs_dynamics.model.body import GROUND, Body, Frame, add_inertia, chain, link_inertia, start_of
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.payloads import Payloads


class Parts(NamedTuple):
    """Bodies, frames and payloads of a mechanism."""

    bodies: tuple[Body, ...]
    frames: Mapping[str, Frame]
    payloads: Payloads


def attached(
    parts: Parts, tool: Parts, to: Frame, placement: FloatArray, prefix: str, first: int
) -> Parts:
    """Return a mechanism with a tool whose ground is fixed at a placement (4, 4) in a frame.

    ``first`` is the index of the first velocity of the tool's joints. Links fixed to the tool's
    ground add their inertia to the body of the frame.
    """
    start, at = len(parts.bodies), to.placement @ placement
    bodies, frames = list(parts.bodies), dict(parts.frames)

    def prefixed(name: str | None) -> str | None:
        return None if name is None else prefix + name

    for i, body in enumerate(tool.bodies):
        joint = replace(
            body.joint,
            name=prefix + body.joint.name,
            coordinate=first + body.joint.coordinate,
            mimics=prefixed(body.joint.mimics),
        )
        parent, home = start + body.parent, body.home_rel
        if body.parent == GROUND:
            parent, home = to.body, at @ home
        on = prefixed(start_of(tool.bodies, i)) or to.name
        bodies.append(Body(prefix + body.name, parent, home, joint, body.inertia, on))
    for frame in tool.frames.values():
        name = prefix + frame.name
        if name in frames:
            raise ModelError(
                f"there is a frame {name!r} already; choose another prefix than {prefix!r}"
            )
        on_ground, above = frame.body == GROUND, prefixed(frame.parent)
        carrier, pose = (to.body, at) if on_ground else (start + frame.body, np.eye(4))
        above = above or (to.name if on_ground else None)
        renamed = frame._replace(name=name, parent=above, joint=prefixed(frame.joint))
        frames[name] = _moved(renamed, carrier, pose)
        if on_ground:
            add_inertia(bodies, to.body, frames[name].inertia or Inertia.zero())
    loads = [
        load._replace(link=prefix + load.link, body=start + load.body) for load in tool.payloads
    ]
    return Parts(tuple(bodies), frames, Payloads([*parts.payloads, *loads]))


def _moved(frame: Frame, body: int, pose: FloatArray) -> Frame:
    """Return a frame on another body, in whose frame the former body has the pose (4, 4)."""
    inertia = frame.inertia and frame.inertia.transformed(pose)
    return frame._replace(body=body, placement=pose @ frame.placement, inertia=inertia)


def locked(parts: Parts, positions: Mapping[str, FloatArray]) -> Parts:
    """Return a mechanism in which joints are fixed at positions (nq,), with those that mimic them.

    They become fixed joints: their bodies are merged into those that carry them.
    """
    joints = {body.joint.name: body.joint for body in parts.bodies}
    for name, q in positions.items():
        joint = joints[name]
        if joint.mimics is not None:
            raise ModelError(f"joint {name!r} mimics {joint.mimics!r}: lock that one")
        low, high = joint.limits.range
        if joint.nv == 1 and not low <= q[0] <= high:
            message = (
                f"joint {name!r} is locked at {q[0]:g}, outside its limits {low:g} to {high:g}"
            )
            warnings.warn(message, ModelWarning, stacklevel=4)
    free = [
        joint for joint in joints.values() if joint.mimics is None and joint.name not in positions
    ]
    free.sort(key=lambda joint: joint.coordinate)
    starts = np.cumsum([0, *(joint.nv for joint in free)]).tolist()
    renumbered = {joint.coordinate: k for joint, k in zip(free, starts[:-1], strict=True)}
    places: list[tuple[int, FloatArray]] = []  # for each former body: its new body, its pose there
    bodies: list[Body] = []
    frames = dict(parts.frames)
    for i, body in enumerate(parts.bodies):
        on, C = places[body.parent] if body.parent != GROUND else (GROUND, np.eye(4))
        joint, home, above = body.joint, C @ body.home_rel, start_of(parts.bodies, i)
        driver = joint.mimics or joint.name
        if driver not in positions:
            joint = replace(joint, coordinate=renumbered[joint.coordinate])
            bodies.append(replace(body, parent=on, home_rel=home, joint=joint, on=above))
            places.append((len(bodies) - 1, np.eye(4)))
            continue
        q = positions[driver]
        pose = home @ joint.motion(joint.ratio * q + joint.offset if joint.nv == 1 else q)
        places.append((on, pose))
        add_inertia(bodies, on, body.inertia.transformed(pose))
        inertia = link_inertia(parts.bodies, parts.frames, body.name)
        frames[body.name] = frames[body.name]._replace(inertia=inertia)
        root = chain(frames, body.name)[-1]
        frames[root] = frames[root]._replace(parent=above, joint=joint.name)
    for name, frame in frames.items():
        if frame.body != GROUND:
            frames[name] = _moved(frame, *places[frame.body])
    return Parts(tuple(bodies), frames, _moved_loads(parts.payloads, frames, places))


def _moved_loads(loads: Payloads, frames: dict[str, Frame], places: Any) -> Payloads:
    """Return the loads on other bodies; those that no longer move become part of their links.

    ``places`` has the new body for each former one, and the pose of the former in its frame.
    """
    moved = []
    for load in loads:
        body, pose = places[load.body]
        inertia = Inertia.from_parameters(load.parameters).transformed(pose)
        if body == GROUND:
            total = (frames[load.link].inertia or Inertia.zero()) + inertia
            frames[load.link] = frames[load.link]._replace(inertia=total)
        else:
            parameters = checks.snap(inertia.parameters)
            moved.append(load._replace(body=body, parameters=parameters))
    return Payloads(sorted(moved, key=lambda load: (load.body, load.link)))
