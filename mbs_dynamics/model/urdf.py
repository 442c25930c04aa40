# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The model of a URDF."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UrdfError
from mbs_dynamics.lie.so3 import from_quaternion
from mbs_dynamics.model import urdf_elements
from mbs_dynamics.model.body import GROUND, Body, Frame
from mbs_dynamics.model.diagnostics import Diagnostic, diagnose
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.macro_joints import macro_joint
from mbs_dynamics.model.model import STANDARD_GRAVITY, Model, warned
from mbs_dynamics.model.urdf_elements import Link, Origin, read
from mbs_dynamics.model.urdf_joint import diagnose_joint, drivers, dynamics, limits, motion
from mbs_dynamics.model.urdf_tensors import likely_slip, mirrored_tensors
from mbs_dynamics.model.urdf_tree import LinkTree, Part, part_of, tree_of
from mbs_dynamics.model.urdf_units import wrong_units

FLOATING_BASE = "floating_base"
"""Name of the joint that :func:`from_urdf` adds between the ground and the root link.

Underscores are appended while the description itself has a joint of that name.
"""


def from_urdf(
    source: str | bytes | os.PathLike[str],
    *,
    root: str | None = None,
    tip: str | None = None,
    floating_base: bool = False,
    gravity: ArrayLike = STANDARD_GRAVITY,
) -> Model:
    """Return the model of a URDF; see :meth:`mbs_dynamics.Model.from_urdf`."""
    where, robot = read(source)
    tree = tree_of(where, robot)
    part = part_of(tree, root, tip)
    return warned(_Assembly(tree, part, floating_base).model(gravity))


def link_inertias(source: str | bytes | os.PathLike[str]) -> dict[str, Inertia]:
    """Return the inertia of each link of a URDF in its own frame, zero where none is stated.

    Raises UrdfError for what cannot be read.
    """
    where, robot = read(source)
    return {name: _inertia(where, link) for name, link in tree_of(where, robot).links.items()}


class _Assembly:
    """The bodies, frames and diagnostics that a part of a URDF becomes."""

    def __init__(self, tree: LinkTree, part: Part, floating_base: bool) -> None:
        self.tree = tree
        self.part = part
        self.base = Joint(_base_name(tree), macro_joint("free"), 0) if floating_base else None
        self.inertias = {name: _inertia(tree.where, link) for name, link in tree.links.items()}
        self.bodies: list[Body] = []
        self.frames: dict[str, Frame] = {}
        self.diagnostics: list[Diagnostic] = []
        movable = [joint for joint in part.joints if joint.type != "fixed"]
        self.drivers = drivers(tree, movable)
        self.motions = {joint.name: motion(tree.where, joint) for joint in movable}
        self.coordinates: dict[str, int] = {}
        """The first velocity of each joint that mimics no other one."""
        n = 0 if self.base is None else self.base.nv
        for joint in movable:
            if joint.mimic is None:
                self.coordinates[joint.name] = n
                n += self.motions[joint.name].nv

    def model(self, gravity: ArrayLike) -> Model:
        tree, part = self.tree, self.part
        if self.base is not None:
            self.check_base(self.base)
        elif all(joint.type == "fixed" for joint in part.joints):
            if part.root != tree.root:
                raise UrdfError(
                    f"{tree.where}: robot {tree.name!r} has no joint that moves below the link "
                    f"{part.root!r}"
                )
            text = "has no joint that moves; a free body needs a floating joint to the ground"
            self.report(f"robot {tree.name!r}", text, "warning")
        g = checks.numbers("gravity", gravity, (3,))
        if self.base is None:
            g = self.mount(g)
        else:
            self.add(part.root, None, np.eye(4), self.base)
        for joint in part.joints:
            self.diagnostics += diagnose_joint(tree, joint)
            parent = self.frames[joint.parent]
            pose = parent.placement @ _pose(joint.origin)
            if joint.type == "fixed":
                self.merge(joint.child, parent.body, pose, joint)
            else:
                self.add(joint.child, parent, pose, self.joint(joint))
        self.report_left_out_links()
        self.diagnostics += wrong_units(tree, self.frames, part.joints, self.inertias)
        self.diagnostics += mirrored_tensors(tree.links, self.frames)
        known = {  # of the links already, before they were merged
            Diagnostic(f"link {body.name!r}", message)
            for body in self.bodies
            for message in body.inertia.violations()
        }
        self.diagnostics += [each for each in diagnose(self.bodies) if each not in known]
        return Model(tree.name, tuple(self.bodies), g, self.frames, tuple(self.diagnostics))

    def report(self, subject: str, message: str, severity: str = "note") -> None:
        self.diagnostics.append(Diagnostic(subject, message, severity))

    def mount(self, gravity: FloatArray) -> FloatArray:
        """Fix the root and all links above it to the ground; return gravity in its axes."""
        tree, root = self.tree, self.part.root
        poses = {tree.root: np.eye(4)}
        for link in tree.path(root)[1:]:
            joint = tree.above[link]
            if joint.type != "fixed":
                moves = f"joint {joint.name!r} above it moves"
                self.report(f"link {root!r}", f"{moves}, so that gravity is taken in its axes")
                poses = {root: np.eye(4)}
                break
            poses[link] = poses[joint.parent] @ _pose(joint.origin)
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
        into = "the ground"
        if body != GROUND:
            into = f"link {self.bodies[body].name!r}"
            total = self.bodies[body].inertia + inertia
            self.bodies[body] = replace(self.bodies[body], inertia=total)
        if inertia.mass > 0.0:
            verb = "fixed to" if body == GROUND else "merged into"
            how = "" if joint is None else f" by the fixed joint {joint.name!r}"
            self.report(f"link {link!r}", f"{inertia.mass:g} kg {verb} {into}{how}")
        self.diagnose_link(link)

    def check_base(self, base: Joint) -> None:
        """Raise ArgumentError if a floating joint connects the root link and what it moves."""
        fixed = {self.part.root}
        for joint in self.part.joints:
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
        """Add the body of a link that a joint moves, which starts from another link or nowhere."""
        parent, above = (GROUND, None) if on is None else (on.body, on.name)
        self.bodies.append(Body(link, parent, pose, joint, self.inertias[link], above))
        self.frames[link] = Frame(link, len(self.bodies) - 1, np.eye(4))
        self.diagnose_link(link)

    def joint(self, joint: urdf_elements.Joint) -> Joint:
        where, name = self.tree.where, joint.name
        owner, ratio, offset = self.drivers[name]
        if owner.name not in self.coordinates:
            raise UrdfError(
                f"{where}: joint {name!r} mimics joint {owner.name!r}, which is left out by the "
                "choice of root and tip"
            )
        group, coordinate = self.motions[name], self.coordinates[owner.name]
        if group.nv > 1:
            return Joint(name, group, coordinate)
        return Joint(
            name,
            group,
            coordinate,
            mimics=None if owner is joint else owner.name,
            ratio=ratio,
            offset=offset,
            limits=limits(joint),
            damping=dynamics(joint, "damping"),
            friction=dynamics(joint, "friction"),
        )

    def diagnose_link(self, link: str) -> None:
        messages = self.inertias[link].violations()
        inertial = self.tree.links[link].inertial
        if messages and inertial is not None and inertial.inertia is not None:
            slip = likely_slip(inertial.inertia)
            messages = [f"{message}; {slip}" if slip else message for message in messages]
        if inertial is not None and inertial.mass is None:
            messages.append("has an <inertial> without a mass; taken to be 0 kg")
        elif inertial is not None and inertial.inertia is None and inertial.mass:
            messages.append(
                f"has a mass of {inertial.mass:g} kg without an <inertia>; taken as a point"
            )
        self.diagnostics += [Diagnostic(f"link {link!r}", message) for message in messages]

    def report_left_out_links(self) -> None:
        """Report the mass of the links that ``root`` and ``tip`` exclude."""
        part = self.part
        outside = [link for link in part.outside if link not in self.frames]
        if outside:
            message = f"left out, as is all that is not below {part.root!r}: {self.masses(outside)}"
            self.report(f"link {outside[0]!r}", message)
        for links in part.dropped:
            severity = "warning" if any(self.inertias[link].mass for link in links) else "note"
            message = f"dropped with all beyond it: {self.masses(links)}"
            self.report(f"link {links[0]!r}", message, severity)

    def masses(self, links: Sequence[str]) -> str:
        """Return the mass of some links in words, in all and each by name."""
        each = [(link, self.inertias[link].mass) for link in links]
        listed = ", ".join(f"{link} {mass:g}" for link, mass in each if mass > 0.0)
        return f"{sum(mass for _, mass in each):g} kg" + (f" ({listed})" if listed else "")


def _base_name(tree: LinkTree) -> str:
    """Return a name for the joint of a floating base that no joint of the description has."""
    name = FLOATING_BASE
    while name in tree.joints:
        name += "_"
    return name


def _inertia(where: str, link: Link) -> Inertia:
    """Return the inertia of a link about the origin of its own frame, zero where not stated."""
    inertial = link.inertial
    if inertial is None:
        return Inertia.zero()
    mass = inertial.mass or 0.0
    if mass < 0.0:
        raise UrdfError(f"{where}: link {link.name!r} has the negative mass {mass:g} kg")
    C = _pose(inertial.origin)
    R = C[:3, :3]
    tensor = np.zeros((3, 3))
    if inertial.inertia is not None:
        tensor[np.triu_indices(3)] = inertial.inertia
        tensor += np.triu(tensor, 1).T
    return Inertia.from_com(mass, C[:3, 3], R @ tensor @ R.T)


def _pose(origin: Origin) -> FloatArray:
    return pose_of(*origin)


def pose_of(
    xyz: Sequence[float], rpy: Sequence[float], quaternion: Sequence[float] | None = None
) -> FloatArray:
    """Return the (4, 4) pose of a URDF's ``xyz`` and ``rpy``, or ``quat_xyzw`` in place of ``rpy``.

    ``rpy`` turns about the fixed axes x, y, z in turn. A quaternion may have any length but zero.
    """
    C = np.eye(4)
    C[:3, 3] = xyz
    if quaternion is not None:
        x = np.array(quaternion, dtype=float)
        C[:3, :3] = from_quaternion(x / np.linalg.norm(x))
        return C
    (sr, sp, sy), (cr, cp, cy) = np.sin(rpy), np.cos(rpy)
    C[:3, :3] = [
        [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
        [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
        [-sp, cp * sr, cp * cr],
    ]
    return C
