# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The joints of a URDF: their motions, limits and mimics, and warnings about them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from mbs_dynamics.errors import UnknownJointError, UrdfError
from mbs_dynamics.model import joints
from mbs_dynamics.model.diagnostics import MAX_ANGLE
from mbs_dynamics.model.joint import Limits
from mbs_dynamics.model.subgroup import Subgroup
from mbs_dynamics.model.urdf_elements import Joint, Mimic, Origin
from mbs_dynamics.model.urdf_tree import LinkTree

SEVERAL_FREEDOMS = ("planar", "floating", "spherical")
"""Types of joints with several degrees of freedom."""

MAX_DISTANCE = 30.0
"""Distance in m of a joint from its parent link that no robot has."""

MAX_RPY = 8.0
"""Angle in rad beyond which those of an origin are likely in degrees: exporters add a turn."""


class Driver(NamedTuple):
    """The joint whose coordinate drives a joint: position = ratio * its position + offset."""

    owner: Joint
    ratio: float
    offset: float


def motion(where: str, joint: Joint) -> Subgroup:
    """Return the motion of a movable joint; see :meth:`mbs_dynamics.Model.from_urdf`."""
    if joint.type in ("floating", "spherical"):
        return joints.joint("free" if joint.type == "floating" else joint.type)
    axis = np.array((1.0, 0.0, 0.0) if joint.axis is None else joint.axis)
    length = math.hypot(*axis)
    if length == 0.0:
        raise UrdfError(f"{where}: the axis of joint {joint.name!r} must not be zero")
    kind = "revolute" if joint.type == "continuous" else joint.type
    return joints.joint(kind, axis=axis / length)


def limits(joint: Joint) -> Limits:
    """Return the limits of a joint with one degree of freedom; infinite ones are None.

    One of the position limits that is not stated is 0 by the specification of URDF.
    """
    stated = joint.limit or Limits()
    lower, upper = stated.lower or 0.0, stated.upper or 0.0
    none = joint.type == "continuous" or stated.lower is stated.upper is None or lower > upper
    ends = (None, None) if none else (lower, upper)
    given = stated._replace(lower=ends[0], upper=ends[1])
    return Limits(*(x if x is None or math.isfinite(x) else None for x in given))


def drivers(tree: LinkTree, joints: Iterable[Joint]) -> dict[str, Driver]:
    """Return by name the joint whose coordinate drives each joint: itself, or the end of a chain.

    Raises UrdfError if that joint does not exist or has not one coordinate, and for a cycle.
    """
    by_joint: dict[str, Driver] = {}
    for joint in joints:
        chain: dict[str, Mimic] = {}
        while joint.mimic is not None and joint.name not in by_joint:
            if joint.name in chain:
                names = " -> ".join([*chain, joint.name])
                raise UrdfError(f"{tree.where}: joints mimic one another: {names}")
            chain[joint.name] = joint.mimic
            other = mimicked(tree, joint.name, joint.mimic)
            for one in (joint, other):
                if one.type in ("fixed", *SEVERAL_FREEDOMS):
                    raise UrdfError(
                        f"{tree.where}: joint {joint.name!r} cannot mimic joint {other.name!r}: "
                        f"{one.name!r} is {one.type} and has not one coordinate"
                    )
            joint = other
        end = by_joint.setdefault(joint.name, Driver(joint, 1.0, 0.0))
        for follower, (_, k, offset) in reversed(chain.items()):
            end = Driver(end.owner, k * end.ratio, k * end.offset + offset)
            by_joint[follower] = end
    return by_joint


def mimicked(tree: LinkTree, follower: str, mimic: Mimic) -> Joint:
    """Return the joint that a mimic joint names, in full or without the prefix of its own name."""
    name = mimic.joint
    if name in tree.joints:
        return tree.joints[name]
    ends = [k + 1 for k, letter in enumerate(follower) if not letter.isalnum()]
    meant = [follower[:end] + name for end in ends if follower[:end] + name in tree.joints]
    if len(meant) != 1:
        raise UrdfError(
            f"{tree.where}: joint {follower!r} mimics a joint that does not exist: "
            f"{UnknownJointError(name, tree.joints)}"
        )
    return tree.joints[meant[0]]


def joint_warnings(tree: LinkTree, joint: Joint) -> Iterator[str]:
    """Yield warnings about implausible entries of a joint."""
    distance = math.hypot(*joint.origin.xyz)
    if distance > MAX_DISTANCE and not (joint.type == "fixed" and joint.parent == tree.root):
        yield f"is {distance:.4g} m from its parent link; likely in mm"
    yield from origin_warnings(joint.origin, "origin")
    if joint.type in ("fixed", *SEVERAL_FREEDOMS):
        return
    if joint.mimic is not None:
        meant = mimicked(tree, joint.name, joint.mimic).name
        if meant != joint.mimic.joint:
            yield f"mimics {joint.mimic.joint!r}, which does not exist; taken to mean {meant!r}"
    if joint.dynamics is not None:
        for what, value in joint.dynamics._asdict().items():
            if value < 0.0:
                yield f"has the negative {what} {value:g}: it feeds in energy"
    if joint.limit is None or joint.type == "continuous":
        return
    lower, upper = joint.limit.lower or 0.0, joint.limit.upper or 0.0
    if lower > upper:
        yield f"has the lower limit {lower:g} above the upper {upper:g}; taken as no limit"
    if joint.type == "revolute" and MAX_ANGLE < max(abs(lower), abs(upper)) <= 360.0:
        yield f"has limits of {lower:g} and {upper:g} rad; are these degrees?"


def origin_warnings(origin: Origin, tag: str) -> Iterator[str]:
    """Yield a warning about angles of an origin that are likely in degrees."""
    if max(map(abs, origin.rpy)) > MAX_RPY:
        listed = " ".join(f"{x:g}" for x in origin.rpy)
        yield f"has rpy {listed!r} in its <{tag}>; likely in degrees"


def limit_note(joint: Joint) -> str:
    """Return that a position limit is not stated; empty if both or neither element are."""
    if joint.type not in ("revolute", "prismatic") or joint.limit is None:
        return ""
    absent = [x for x in ("lower", "upper") if getattr(joint.limit, x) is None]
    if len(absent) == 2:
        return "has neither a lower nor an upper limit; taken as none, where ROS takes 0"
    return f"has no {absent[0]} limit; taken as 0, as URDF says" if absent else ""
