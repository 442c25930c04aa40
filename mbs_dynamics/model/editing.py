# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Mechanisms made of others: tools mounted, joints locked, another root.

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
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import (
    GROUND,
    Body,
    Frame,
    add_inertia,
    chain,
    link_inertia,
    preorder,
    start_of,
)
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import one_screw
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

    ``first`` is the index of the first velocity of the tool's joints. The inertia of links fixed to
    the tool's ground is that of the body.
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
        above = prefixed(frame.parent)
        if frame.body == GROUND:
            renamed = frame._replace(
                name=name, parent=above or to.name, joint=prefixed(frame.joint)
            )
            frames[name] = _moved(renamed, to.body, at)
            add_inertia(bodies, to.body, frames[name].inertia or Inertia.zero())
        else:
            renamed = frame._replace(name=name, parent=above, joint=prefixed(frame.joint))
            frames[name] = _moved(renamed, start + frame.body, np.eye(4))
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
        low = -np.inf if joint.limits.lower is None else joint.limits.lower
        high = np.inf if joint.limits.upper is None else joint.limits.upper
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
    places: list[tuple[int, FloatArray]] = []  # of each former body: the body it is on, its pose
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


def rerooted(parts: Parts, link: Frame, ground: str) -> Parts:
    """Return a mechanism whose ground is a link, and in which the former ground moves.

    Its body is called ``ground``. A reversed joint has the same position, and the opposite screw in
    the frame of the body that it moves now: C_p = C_i g(q)^-1 B^-1 = C_i B^-1 (B g(q)^-1 B^-1).

    If a free joint moves the former root, it moves the link instead, and the ground stays: with the
    placement P of the link in its body, C_i = (B F P^-1) (P g(q) P^-1), where F is the frame of the
    joint in the former root.
    """
    bodies, frames, path = parts.bodies, dict(parts.frames), [link.body]
    while bodies[path[-1]].parent != GROUND:
        path.append(bodies[path[-1]].parent)
    top, root, base = path[0], len(bodies), bodies[path[-1]]  # root: the former ground, for now
    floats = base.joint.kind == "free"
    former = GROUND if floats else root
    turned: dict[int, Body] = {}
    if floats:
        group = base.joint.group
        home = base.home_rel @ group.frame @ se3.inverse(link.placement)
        joint = replace(base.joint, group=replace(group, frame=link.placement))
        turned[top] = replace(bodies[top], parent=GROUND, home_rel=home, joint=joint, on=base.on)
        reversed_joints, inner, first = path[:-1], np.eye(4), GROUND
    else:
        loose = [name for name, x in frames.items() if x.body == GROUND and x.parent is None]
        for name in loose:
            frames[name] = frames[name]._replace(parent=None if name == ground else ground)
        reversed_joints, inner, first = path, se3.inverse(link.placement), top
    at_ground = None if floats else ground
    for i, body in enumerate(bodies):
        if i not in path:
            parent = former if body.parent == GROUND else body.parent
            turned[i] = replace(body, parent=parent, on=start_of(bodies, i) or at_ground)
    entry: str | None = link.name
    for i in reversed_joints:
        moved, H = bodies[i], bodies[i].home_rel
        p, above = moved.parent, start_of(bodies, i) or at_ground
        name, inertia = (
            (ground, Inertia.zero()) if p == GROUND else (bodies[p].name, bodies[p].inertia)
        )
        if p == GROUND:
            for frame in frames.values():
                if frame.body == GROUND and frame.inertia is not None:
                    inertia = inertia + frame.inertia
        start = chain(frames, moved.name)[-1]
        joint = moved.joint
        if joint.nv > 1:
            raise ModelError(
                f"joint {joint.name!r} is {joint.kind} and cannot be reversed; valid: joints "
                "with one degree of freedom between the link and the root"
            )
        joint = replace(joint, group=one_screw(f"joint {joint.name!r}", -se3.Ad(H) @ joint.screw))
        turned[root if p == GROUND else p] = Body(name, i, se3.inverse(H), joint, inertia, start)
        _turn(frames, entry)
        entry = above
    _turn(frames, entry)
    if not floats:
        inertia = link_inertia(bodies, frames, bodies[top].name)
        frames[bodies[top].name] = frames[bodies[top].name]._replace(inertia=inertia)
    keys, order = list(turned), {first: GROUND}  # the new indices of bodies
    tree = [GROUND if turned[i].parent == first else keys.index(turned[i].parent) for i in keys]
    ordered: list[Body] = []
    for k in preorder(tree):
        one = turned[keys[k]]
        home = inner @ one.home_rel if one.parent == first else one.home_rel
        ordered.append(replace(one, parent=order[one.parent], home_rel=home))
        order[keys[k]] = len(ordered) - 1
    order.setdefault(GROUND, order.get(root, GROUND))
    places = {i: (k, inner if i == top else np.eye(4)) for i, k in order.items()}
    for name, frame in frames.items():
        frames[name] = _moved(frame, *places[frame.body])
    return Parts(tuple(ordered), frames, _moved_loads(parts.payloads, frames, places))


def _turn(frames: dict[str, Frame], link: str | None) -> None:
    """Make a link the root of its body: fixed joints between it and the former root turn round."""
    above, joint = None, None
    for name in chain(frames, link):
        frame = frames[name]
        frames[name] = frame._replace(parent=above, joint=joint)
        above, joint = name, frame.joint


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
