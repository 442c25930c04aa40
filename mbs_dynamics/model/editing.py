# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Mechanisms made of others: tools mounted, joints locked, another root.

Each function takes and returns the :class:`Parts` of a model.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ModelError, ModelWarning, UnknownJointError
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import GROUND, Body, Frame, preorder
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint, one_screw
from mbs_dynamics.model.payloads import Payload, Payloads


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
    bodies = list(parts.bodies)
    for body in tool.bodies:
        joint = replace(
            body.joint,
            name=prefix + body.joint.name,
            coordinate=first + body.joint.coordinate,
            mimics=None if body.joint.mimics is None else prefix + body.joint.mimics,
        )
        on_ground = body.parent == GROUND
        parent = to.body if on_ground else start + body.parent
        home = at @ body.home_rel if on_ground else body.home_rel
        bodies.append(Body(prefix + body.name, parent, home, joint, body.inertia))
    frames = dict(parts.frames)
    for frame in tool.frames.values():
        name = prefix + frame.name
        if name in frames:
            raise ModelError(
                f"there is a frame {name!r} already; choose another prefix than {prefix!r}"
            )
        fixed = frame.body == GROUND
        frames[name] = _fixed(
            bodies,
            frame._replace(name=name, body=GROUND if fixed else start + frame.body),
            to.body if fixed else start + frame.body,
            at if fixed else np.eye(4),
        )
    loads = [
        load._replace(link=prefix + load.link, body=start + load.body) for load in tool.payloads
    ]
    return Parts(tuple(bodies), frames, Payloads([*parts.payloads, *loads]))


def _fixed(bodies: list[Body], frame: Frame, body: int, pose: FloatArray) -> Frame:
    """Return a frame on another body, to which it hands its own inertia.

    ``pose`` (4, 4) is that of the former body in the frame of the other.
    """
    placed = frame._replace(body=body, placement=pose @ frame.placement)
    if frame.inertia is not None and body != GROUND:
        total = bodies[body].inertia + frame.inertia.transformed(placed.placement)
        bodies[body] = replace(bodies[body], inertia=total)
        return placed._replace(inertia=None)
    return placed


def locked(parts: Parts, positions: Mapping[str, FloatArray]) -> Parts:
    """Return a mechanism in which joints are fixed at positions (nq,), with those that mimic them.

    Their bodies become part of the bodies that they are fixed to, and frames on these.
    """
    joints = {body.joint.name: body.joint for body in parts.bodies}
    for name, q in positions.items():
        if name not in joints:
            raise UnknownJointError(name, joints)
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
    kept = [one.coordinate for one in joints.values() if one.mimics is None]
    kept = sorted(k for k in kept if not any(joints[name].coordinate == k for name in positions))
    sizes = {one.coordinate: one.nv for one in joints.values()}
    ends = np.cumsum([0, *(sizes[k] for k in kept)]).tolist()
    renumbered = dict(zip(kept, ends, strict=False))
    places: list[tuple[int, FloatArray]] = []  # of each former body: the body it is on, its pose
    bodies: list[Body] = []
    frames: dict[str, Frame] = {}
    for body in parts.bodies:
        on, C = places[body.parent] if body.parent != GROUND else (GROUND, np.eye(4))
        joint, home = body.joint, C @ body.home_rel
        driver = joint.mimics or joint.name
        if driver not in positions:
            joint = replace(joint, coordinate=renumbered[joint.coordinate])
            bodies.append(replace(body, parent=on, home_rel=home, joint=joint))
            places.append((len(bodies) - 1, np.eye(4)))
            continue
        q = positions[driver]
        pose = home @ joint.motion(joint.ratio * q + joint.offset if joint.nv == 1 else q)
        merged = Frame(body.name, GROUND, np.eye(4), body.inertia)
        frames[body.name] = _fixed(bodies, merged, on, pose)
        places.append((on, pose))
    for name, frame in parts.frames.items():
        if name not in frames and frame.body != GROUND:
            frames[name] = _fixed(bodies, frame, *places[frame.body])
        frames.setdefault(name, frame)
    loads = []
    for load in parts.payloads:
        on, pose = places[load.body]
        if on != GROUND:
            parameters = Inertia.from_parameters(load.parameters).transformed(pose).parameters
            loads.append(load._replace(body=on, parameters=checks.snap(parameters)))
    return Parts(tuple(bodies), frames, _sorted(loads))


def rerooted(parts: Parts, link: Frame, ground: str) -> Parts:
    """Return a mechanism whose ground is a link, and in which the former ground moves.

    Its body is called ``ground``. A reversed joint has the same position, and the opposite screw in
    the frame of the body that it moves now: C_p = C_i g(q)^-1 B^-1 = C_i B^-1 (B g(q)^-1 B^-1).
    """
    bodies, path = parts.bodies, [link.body]
    while bodies[path[-1]].parent != GROUND:
        path.append(bodies[path[-1]].parent)
    inner = se3.inverse(link.placement)
    root = len(bodies)  # the former ground, for now
    rest = [frame for frame in parts.frames.values() if frame.body == GROUND]
    inertia = Inertia.zero()
    for frame in rest:
        if frame.inertia is not None:
            inertia = inertia + frame.inertia.transformed(frame.placement)
    found: dict[int, Body] = {}
    for i, body in enumerate(bodies):
        if i not in path:
            parent = root if body.parent == GROUND else body.parent
            found[i] = replace(body, parent=parent)
    for i in path:
        p = root if bodies[i].parent == GROUND else bodies[i].parent
        own = (ground, inertia) if p == root else (bodies[p].name, bodies[p].inertia)
        H = bodies[i].home_rel
        joint = _reversed(bodies[i].joint, H)
        found[p] = Body(own[0], i, se3.inverse(H), joint, own[1])
    top, keys = path[0], list(found)
    order: dict[int, int] = {top: GROUND}  # the new indices of bodies
    above = [GROUND if found[i].parent == top else keys.index(found[i].parent) for i in keys]
    placed: list[Body] = []
    for k in preorder(above):
        one = found[keys[k]]
        home = inner @ one.home_rel if one.parent == top else one.home_rel
        placed.append(replace(one, parent=order[one.parent], home_rel=home))
        order[keys[k]] = len(placed) - 1
    frames = {}
    for name, frame in parts.frames.items():
        if frame.body == top:
            own_inertia = bodies[top].inertia if name == bodies[top].name else None
            frames[name] = Frame(name, GROUND, inner @ frame.placement, own_inertia)
        else:
            at = order[root if frame.body == GROUND else frame.body]
            frames[name] = frame._replace(body=at, inertia=None)
    loads = [load._replace(body=order[load.body]) for load in parts.payloads if load.body != top]
    return Parts(tuple(placed), frames, _sorted(loads))


def _reversed(joint: Joint, home: FloatArray) -> Joint:
    """Return a joint that moves its former parent, in the frame of that."""
    if joint.nv > 1:
        raise ModelError(
            f"joint {joint.name!r} is {joint.kind} and cannot be reversed; valid are joints with "
            "one degree of freedom between the link and the root"
        )
    group = one_screw(f"joint {joint.name!r}", -se3.Ad(home) @ joint.screw)
    return replace(joint, group=group)


def _sorted(loads: Sequence[Payload]) -> Payloads:
    return Payloads(sorted(loads, key=lambda load: (load.body, load.link)))


def positions_of(joint: Joint, value: Any) -> FloatArray:
    """Return positions (nq,) of a joint that are given as a number or as an array."""
    given = np.atleast_1d(np.asarray(value, dtype=float)) if np.ndim(value) < 2 else value
    return checks.numbers(f"the position of joint {joint.name!r}", given, (joint.nq,))
