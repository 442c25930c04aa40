# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The bodies and frames of a URDF."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UrdfError
from mbs_dynamics.model import joints
from mbs_dynamics.model.body import GROUND, Body, Frame, add_inertia
from mbs_dynamics.model.diagnostics import MAX_ANGLE, Description, Diagnostic, diagnose
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint, Limits
from mbs_dynamics.model.slips import tensor_slip, twin_slips
from mbs_dynamics.model.subgroup import Subgroup
from mbs_dynamics.model.urdf_elements import ONE_FREEDOM, Inertial, Origin
from mbs_dynamics.model.urdf_elements import Joint as UrdfJoint
from mbs_dynamics.model.urdf_tree import LinkTree, driver_of, mimicked, part_of, tree_of

FLOATING_BASE = "floating_base"
"""Name of the joint between the ground and the root link of a floating base.

Underscores are appended while the description itself has a joint of that name.
"""

MAX_LENGTH = 15.0
"""Length in m beyond which a link is implausible."""

MAX_DISTANCE = 30.0
"""Distance in m of a joint from its parent link beyond which it is implausible."""

MAX_RPY = 8.0
"""Angle in rad beyond which those of an origin are likely in degrees: exporters add a turn."""

NEGLIGIBLE = 1e-4
"""Moment of inertia in kg m^2 up to which a tensor may be a placeholder."""


def describe(
    source: str | bytes | os.PathLike[str],
    root: str | None,
    tip: str | None,
    floating_base: bool,
    gravity: ArrayLike,
) -> Description:
    """Return the bodies and frames of a URDF; see :meth:`mbs_dynamics.Model.from_urdf`."""
    tree = tree_of(source)
    return _Assembly(tree, *part_of(tree, root, tip), floating_base).description(gravity)


class _Assembly:
    """The bodies, frames and diagnostics that a part of a URDF becomes."""

    def __init__(
        self, tree: LinkTree, root: str, joints_below: list[UrdfJoint], floating_base: bool
    ) -> None:
        self.tree, self.root, self.joints_below = tree, root, joints_below
        base = FLOATING_BASE
        while base in tree.joints:
            base += "_"
        self.base = Joint(base, joints.joint("free"), 0) if floating_base else None
        self.inertias = link_inertias(tree)
        self.bodies: list[Body] = []
        self.frames: dict[str, Frame] = {}
        self.diagnostics: list[Diagnostic] = []
        movable = [joint for joint in joints_below if joint.type != "fixed"]
        self.drivers = {joint.name: driver_of(tree, joint) for joint in movable}
        self.motions = {joint.name: _motion(tree.where, joint) for joint in movable}
        self.coordinates: dict[str, int] = {}
        """The first velocity of each joint that mimics no other one."""
        n = 0 if self.base is None else self.base.nv
        for joint in movable:
            if joint.mimic is None:
                self.coordinates[joint.name] = n
                n += self.motions[joint.name].nv

    def description(self, gravity: ArrayLike) -> Description:
        tree, root = self.tree, self.root
        if self.base is not None:
            self.check_base(self.base)
        elif all(joint.type == "fixed" for joint in self.joints_below):
            if root != tree.root:
                raise UrdfError(
                    f"{tree.where}: robot {tree.name!r} has no joint that moves below the link "
                    f"{root!r}"
                )
            text = "has no joint that moves; a free body needs a floating joint to the ground"
            self.report(f"robot {tree.name!r}", text, "warning")
        g = checks.numbers("gravity", gravity, (3,))
        if self.base is None:
            g = self.mount(g)
        else:
            self.add(root, None, np.eye(4), self.base)
        for joint in self.joints_below:
            for message in _joint_warnings(tree, joint):
                self.report(f"joint {joint.name!r}", message, "warning")
            if note := _limit_note(joint):
                self.report(f"joint {joint.name!r}", note)
            parent = self.frames[joint.parent]
            pose = parent.placement @ joint.origin.pose()
            if joint.type == "fixed":
                self.merge(joint.child, parent.body, pose, joint)
            else:
                self.add(joint.child, parent, pose, self.joint(joint))
        self.report_left_out_links()
        for link, message in twin_slips(self.inertias):
            self.report(f"link {link!r}", message)
        known = {  # reported for the links, before they were merged
            Diagnostic(f"link {body.name!r}", message)
            for body in self.bodies
            for message in body.inertia.violations()
        }
        self.diagnostics += [each for each in diagnose(self.bodies) if each not in known]
        return Description(tree.name, tuple(self.bodies), g, self.frames, self.diagnostics)

    def report(self, subject: str, message: str, severity: str = "note") -> None:
        self.diagnostics.append(Diagnostic(subject, message, severity))

    def mount(self, gravity: FloatArray) -> FloatArray:
        """Fix the root and all links above it to the ground; return gravity in its axes."""
        tree, root = self.tree, self.root
        poses = {tree.root: np.eye(4)}
        for link in tree.path(root)[1:]:
            joint = tree.above[link]
            if joint.type != "fixed":
                moves = f"joint {joint.name!r} above it moves"
                self.report(f"link {root!r}", f"{moves}, so that gravity is taken in its axes")
                poses = {root: np.eye(4)}
                break
            poses[link] = poses[joint.parent] @ joint.origin.pose()
        from_root = np.linalg.inv(poses[root])
        for link, pose in poses.items():
            above = tree.above.get(link) if len(poses) > 1 else None
            self.merge(link, GROUND, checks.snap(from_root @ pose), above)
        turned: FloatArray = self.frames[next(iter(poses))].placement[:3, :3] @ gravity
        if not np.allclose(turned, gravity, rtol=0.0, atol=1e-9):
            listed = ", ".join(f"{x:.6g}" for x in turned)
            message = f"is turned against {tree.root!r}: gravity is ({listed}) m/s^2 in its axes"
            self.report(f"link {root!r}", message)
        return turned

    def merge(self, link: str, body: int, pose: FloatArray, joint: UrdfJoint | None) -> None:
        """Fix a link to a body or to the ground, by a fixed joint unless it is a root."""
        inertia = self.inertias[link].transformed(pose)
        above = (None, None) if joint is None else (joint.parent, joint.name)
        self.frames[link] = Frame(link, body, checks.snap(pose), inertia, *above)
        add_inertia(self.bodies, body, inertia)
        if inertia.mass > 0.0:
            into = "fixed to the ground"
            if body != GROUND:
                into = f"merged into link {self.bodies[body].name!r}"
            how = "" if joint is None else f" by the fixed joint {joint.name!r}"
            self.report(f"link {link!r}", f"{inertia.mass:g} kg {into}{how}")
        self.diagnose_link(link)

    def check_base(self, base: Joint) -> None:
        """Raise ArgumentError if a floating joint connects the root link and what it moves."""
        fixed = {self.root}
        for joint in self.joints_below:
            if joint.parent in fixed and joint.type == "fixed":
                fixed.add(joint.child)
            elif joint.parent in fixed and joint.type == "floating":
                raise ArgumentError(
                    f"floating_base: {self.tree.where} has the floating joint {joint.name!r} at "
                    f"its root already; leave the argument out, or choose root={joint.child!r}"
                )
        if base.name != FLOATING_BASE:
            text = f"is the description's own; the joint of the base is called {base.name!r}"
            self.report(f"joint {FLOATING_BASE!r}", text)

    def add(self, link: str, on: Frame | None, pose: FloatArray, joint: Joint) -> None:
        """Add the body of a link, whose joint is ``on`` a frame, or on the ground if None."""
        parent, above = (GROUND, None) if on is None else (on.body, on.name)
        self.bodies.append(Body(link, parent, pose, joint, self.inertias[link], above))
        self.frames[link] = Frame(link, len(self.bodies) - 1, np.eye(4))
        self.diagnose_link(link)

    def joint(self, joint: UrdfJoint) -> Joint:
        name, group = joint.name, self.motions[joint.name]
        owner, ratio, offset = self.drivers[name]
        if owner.name not in self.coordinates:
            raise UrdfError(
                f"{self.tree.where}: joint {name!r} mimics joint {owner.name!r}, which is left out "
                "by the choice of root and tip"
            )
        coordinate = self.coordinates[owner.name]
        if group.nv > 1:
            return Joint(name, group, coordinate)
        damping, friction = joint.dynamics or (0.0, 0.0)
        mimics = None if owner is joint else owner.name
        return Joint(
            name, group, coordinate, mimics, ratio, offset, _limits(joint), damping, friction
        )

    def diagnose_link(self, link: str) -> None:
        for message in _link_warnings(self.tree.links[link], self.inertias[link]):
            self.report(f"link {link!r}", message, "warning")

    def report_left_out_links(self) -> None:
        """Report the mass of the links beside the path to the tip."""
        below = [joint.child for joint in self.tree.joints_below(self.root)]
        left_out = [link for link in below if link not in self.frames]
        mass = sum(self.inertias[link].mass for link in left_out)
        if mass:
            message = f"left out with those below it, beside the path to the tip: {mass:g} kg"
            self.report(f"link {left_out[0]!r}", message, "warning")


def _motion(where: str, joint: UrdfJoint) -> Subgroup:
    """Return the motion of a movable joint; see :meth:`mbs_dynamics.Model.from_urdf`."""
    if joint.type in ("floating", "spherical"):
        return joints.joint("free" if joint.type == "floating" else joint.type)
    axis = np.array((1.0, 0.0, 0.0) if joint.axis is None else joint.axis)
    length = math.hypot(*axis)
    if length == 0.0:
        raise UrdfError(f"{where}: the axis of joint {joint.name!r} must not be zero")
    kind = "revolute" if joint.type == "continuous" else joint.type
    return joints.joint(kind, axis=axis / length)


def _limits(joint: UrdfJoint) -> Limits:
    """Return the limits of a joint with one degree of freedom, with None for infinite ones.

    If only one position limit is stated, the other is 0 by the specification of URDF.
    """
    stated = joint.limit or Limits()
    lower, upper = stated.lower or 0.0, stated.upper or 0.0
    none = joint.type == "continuous" or stated.lower is stated.upper is None or lower > upper
    ends = (None, None) if none else (lower, upper)
    given = stated._replace(lower=ends[0], upper=ends[1])
    return Limits(*(x if x is None or math.isfinite(x) else None for x in given))


def _joint_warnings(tree: LinkTree, joint: UrdfJoint) -> Iterator[str]:
    """Yield warnings about implausible entries of a joint."""
    distance = math.hypot(*joint.origin.xyz)
    if distance > MAX_DISTANCE and not (joint.type == "fixed" and joint.parent == tree.root):
        yield f"is {distance:.4g} m from its parent link; likely in mm"
    yield from _origin_warnings(joint.origin, "origin")
    if joint.type not in ONE_FREEDOM:
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


def _origin_warnings(origin: Origin, tag: str) -> Iterator[str]:
    """Yield a warning about angles of an origin that are likely in degrees."""
    if max(map(abs, origin.rpy)) > MAX_RPY:
        listed = " ".join(f"{x:g}" for x in origin.rpy)
        yield f"has rpy {listed!r} in its <{tag}>; likely in degrees"


def _limit_note(joint: UrdfJoint) -> str:
    """Return a message if <limit> lacks a position limit, else an empty text."""
    if joint.type not in ("revolute", "prismatic") or joint.limit is None:
        return ""
    absent = [x for x in ("lower", "upper") if getattr(joint.limit, x) is None]
    if len(absent) == 2:
        return "has neither a lower nor an upper limit; taken as none, where ROS takes 0"
    return f"has no {absent[0]} limit; taken as 0, as URDF says" if absent else ""


def _link_warnings(inertial: Inertial | None, inertia: Inertia) -> Iterator[str]:
    """Yield warnings about the implausible inertia of a link."""
    m = inertia.mass
    if inertial is None:
        return
    violations = inertia.violations()
    yield from violations
    if violations and inertial.inertia is not None and (slip := tensor_slip(inertial.inertia)):
        yield slip
    yield from _origin_warnings(inertial.origin, "inertial")
    if inertial.mass is None:
        yield "has an <inertial> without a mass; taken to be 0 kg"
    elif inertial.inertia is None and m:
        yield f"has a mass of {m:g} kg without an <inertia>; taken as a point"
    if m <= 0.0:
        if inertia.tensor.any():
            yield "has an inertia but no mass, as no body can"
        return
    com = float(np.linalg.norm(inertia.com))
    moment = float(np.linalg.norm(inertia.tensor_at_com, 2))
    radius = math.sqrt(moment / m)
    if com > MAX_LENGTH:
        yield f"has its centre of mass {com:.4g} m from its frame; likely in mm"
    if moment > NEGLIGIBLE and radius > MAX_LENGTH / math.sqrt(12.0):
        yield (
            f"has a radius of gyration of {radius:.3g} m, as a rod of {MAX_LENGTH:g} m does not "
            "have; its inertia is likely in another unit than kg m^2"
        )
    elif m > 0.2 and inertial.inertia is not None and radius < 1e-4:
        yield (
            f"has a mass of {m:g} kg and a radius of gyration of {radius:.2g} m; its inertia is "
            "likely forgotten"
        )
    elif m > 50.0 and radius < 0.01:
        yield (
            f"has a mass of {m:g} kg and a radius of gyration of {radius:.2g} m, denser than any "
            "material; its mass is likely in g"
        )


def link_inertias(tree: LinkTree) -> dict[str, Inertia]:
    """Return the inertia of each link of a URDF in its own frame, zero where not stated."""
    inertias = dict.fromkeys(tree.links, Inertia.zero())
    for name, inertial in tree.links.items():
        if inertial is not None:
            mass = inertial.mass or 0.0
            if mass < 0.0:
                raise UrdfError(f"{tree.where}: link {name!r} has the negative mass {mass:g} kg")
            C = inertial.origin.pose()
            tensor = np.zeros((3, 3)) if inertial.inertia is None else inertial.inertia
            inertias[name] = Inertia.from_com(mass, C[:3, 3], C[:3, :3] @ tensor @ C[:3, :3].T)
    return inertias
