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
from mbs_dynamics.model import joints, urdf_elements
from mbs_dynamics.model.body import GROUND, Body, Frame, add_inertia
from mbs_dynamics.model.diagnostics import Description, Diagnostic, diagnose
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.slips import tensor_slip, twin_slips
from mbs_dynamics.model.urdf_elements import Inertial
from mbs_dynamics.model.urdf_joint import (
    drivers,
    joint_warnings,
    limit_note,
    limits,
    motion,
    origin_warnings,
)
from mbs_dynamics.model.urdf_tree import LinkTree, part_of, tree_of

FLOATING_BASE = "floating_base"
"""Name of the joint between the ground and the root link of a floating base.

Underscores are appended while the description itself has a joint of that name.
"""

MAX_LENGTH = 15.0
"""Length in m that no link has."""

NEGLIGIBLE = 1e-4
"""Moment of inertia in kg m^2 up to which it may be a placeholder."""


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


def link_inertias(source: str | bytes | os.PathLike[str]) -> dict[str, Inertia]:
    """Return the inertia of each link of a URDF in its own frame, zero where none is stated.

    Raises UrdfError for what cannot be read.
    """
    return _inertias(tree_of(source))


class _Assembly:
    """The bodies, frames and diagnostics that a part of a URDF becomes."""

    def __init__(
        self,
        tree: LinkTree,
        root: str,
        joints_below: list[urdf_elements.Joint],
        floating_base: bool,
    ) -> None:
        self.tree = tree
        self.root, self.joints_below = root, joints_below
        base = FLOATING_BASE
        while base in tree.joints:
            base += "_"
        self.base = Joint(base, joints.joint("free"), 0) if floating_base else None
        self.inertias = _inertias(tree)
        self.bodies: list[Body] = []
        self.frames: dict[str, Frame] = {}
        self.diagnostics: list[Diagnostic] = []
        movable = [joint for joint in joints_below if joint.type != "fixed"]
        self.drivers = drivers(tree, movable)
        self.motions = {joint.name: motion(tree.where, joint) for joint in movable}
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
            for message in joint_warnings(tree, joint):
                self.report(f"joint {joint.name!r}", message, "warning")
            if note := limit_note(joint):
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
        known = {  # of the links already, before they were merged
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

    def merge(
        self, link: str, body: int, pose: FloatArray, joint: urdf_elements.Joint | None
    ) -> None:
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
        """Add the body of a link; its joint starts ``on`` a frame, or at the ground if None."""
        parent, above = (GROUND, None) if on is None else (on.body, on.name)
        self.bodies.append(Body(link, parent, pose, joint, self.inertias[link], above))
        self.frames[link] = Frame(link, len(self.bodies) - 1, np.eye(4))
        self.diagnose_link(link)

    def joint(self, joint: urdf_elements.Joint) -> Joint:
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
            name, group, coordinate, mimics, ratio, offset, limits(joint), damping, friction
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


def _link_warnings(inertial: Inertial | None, inertia: Inertia) -> Iterator[str]:
    """Yield warnings about an inertia that no link of a robot has."""
    m = inertia.mass
    if inertial is None:
        return
    violations = inertia.violations()
    yield from violations
    if violations and inertial.inertia is not None and (slip := tensor_slip(inertial.inertia)):
        yield slip
    yield from origin_warnings(inertial.origin, "inertial")
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


def _inertias(tree: LinkTree) -> dict[str, Inertia]:
    """Return the inertia of each link about the origin of its own frame, zero where not stated."""
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
