# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The joints of a URDF: their motions, limits and mimics."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from mbs_dynamics.errors import UnknownJointError, UrdfError
from mbs_dynamics.model.diagnostics import Diagnostic
from mbs_dynamics.model.joint import Limits
from mbs_dynamics.model.macro_joints import macro_joint
from mbs_dynamics.model.subgroup import Subgroup
from mbs_dynamics.model.urdf_elements import Joint, Mimic
from mbs_dynamics.model.urdf_tree import LinkTree

SEVERAL_FREEDOMS = ("planar", "floating", "spherical")
"""Types of joints with several degrees of freedom."""


class Driver(NamedTuple):
    """The joint whose coordinate drives a joint: position = ratio * its position + offset."""

    owner: Joint
    ratio: float
    offset: float


def motion(where: str, joint: Joint) -> Subgroup:
    """Return the motion of a movable joint; see :func:`mbs_dynamics.model.urdf.from_urdf`."""
    if joint.type in ("floating", "spherical"):
        return macro_joint("free" if joint.type == "floating" else joint.type)
    axis = np.array((1.0, 0.0, 0.0) if joint.axis is None else joint.axis)
    length = math.hypot(*axis)
    if length == 0.0:
        raise UrdfError(f"{where}: the axis of joint {joint.name!r} is zero; valid is a direction")
    kind = "revolute" if joint.type == "continuous" else joint.type
    return macro_joint(kind, axis=axis / length)


def limits(joint: Joint) -> Limits:
    """Return the limits that a joint of one degree of freedom states."""
    if joint.limit is None:
        return Limits()
    lower, upper = position_limits(joint)
    if joint.type == "continuous" or reversed_limits(joint):
        lower = upper = None
    given = (lower, upper, joint.limit.velocity, joint.limit.effort)
    lower, upper, velocity, effort = (x if x is None or math.isfinite(x) else None for x in given)
    return Limits(lower, upper, velocity, effort, joint.soft_gain)


def position_limits(joint: Joint) -> tuple[float | None, float | None]:
    """Return the lower and upper limits of a joint, None if it states neither.

    One that is not stated, beside the other one, is 0 by the specification of URDF.
    """
    limit = joint.limit
    if limit is None or (limit.lower is None and limit.upper is None):
        return None, None
    return limit.lower or 0.0, limit.upper or 0.0


def reversed_limits(joint: Joint) -> bool:
    """Return whether the lower limit of a joint is above its upper one."""
    lower, upper = position_limits(joint)
    return lower is not None and upper is not None and lower > upper


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


def diagnose_joint(tree: LinkTree, joint: Joint) -> list[Diagnostic]:
    """Return diagnostics of implausible or ignored entries of a joint."""
    subject = f"joint {joint.name!r}"
    ignored = {"fixed": ("mimic",), **dict.fromkeys(SEVERAL_FREEDOMS, ("limit", "dynamics"))}
    if joint.type in ignored:
        return [
            Diagnostic(subject, f"is {joint.type}; its <{tag}> is left out", "note")
            for tag in ignored[joint.type]
            if getattr(joint, tag) is not None
        ]
    messages = []
    if joint.mimic is not None:
        meant = mimicked(tree, joint.name, joint.mimic).name
        if meant != joint.mimic.joint:
            other = f"mimics {joint.mimic.joint!r}, which does not exist"
            messages.append(f"{other}; taken to mean {meant!r}")
    if joint.type != "continuous" and reversed_limits(joint):
        lower, upper = position_limits(joint)
        ends = f"has the lower limit {lower:g} above the upper {upper:g}"
        messages.append(f"{ends}; taken as no limit")
    for what in ("damping", "friction"):
        value = dynamics(joint, what)
        if value < 0.0:
            messages.append(f"has the negative {what} {value:g}: it feeds in energy")
    notes = []
    if joint.type != "continuous" and joint.limit is not None:
        absent = [x for x in ("lower", "upper") if getattr(joint.limit, x) is None]
        if len(absent) == 1:
            notes.append(f"has no {absent[0]} limit; taken as 0, as URDF says")
        elif absent:
            notes.append("has neither a lower nor an upper limit; taken as none, where ROS takes 0")
    return [
        *(Diagnostic(subject, message) for message in messages),
        *(Diagnostic(subject, note, "note") for note in notes),
    ]


def dynamics(joint: Joint, what: str) -> float:
    """Return the ``"damping"`` or ``"friction"`` of a joint, zero if not stated."""
    return 0.0 if joint.dynamics is None else float(getattr(joint.dynamics, what))
