# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tree of links and joints of a URDF, the selected part of it, and its mimic joints."""

from __future__ import annotations

import os
from typing import NamedTuple

from mbs_dynamics.errors import (
    ArgumentError,
    UnknownBodyError,
    UnknownJointError,
    UrdfError,
    listed,
)
from mbs_dynamics.model.urdf_elements import ONE_FREEDOM, Inertial, Joint, Mimic, read


class LinkTree(NamedTuple):
    """Links and joints of one tree, by name, in the order of the file."""

    where: str
    """Name of the source in messages."""
    name: str
    links: dict[str, Inertial | None]
    joints: dict[str, Joint]
    root: str
    above: dict[str, Joint]
    """The joint that moves a link; the root has none."""
    below: dict[str, list[Joint]]
    """The joints that a link carries."""

    def joints_below(self, link: str) -> list[Joint]:
        """Return all joints below a link, depth first, in the order of the file."""
        joints = []
        stack = self.below[link][::-1]
        while stack:
            joint = stack.pop()
            joints.append(joint)
            stack += self.below[joint.child][::-1]
        return joints

    def path(self, link: str) -> list[str]:
        """Return the links from the root to a link, both included."""
        path = [link]
        while path[-1] in self.above:
            path.append(self.above[path[-1]].parent)
        return path[::-1]


def tree_of(source: str | bytes | os.PathLike[str]) -> LinkTree:
    """Return the tree of a URDF; raise UrdfError if its links and joints are not one tree."""
    where, name, links, joints = read(source)
    if not links:
        raise UrdfError(f"{where}: robot {name!r} has no links")
    above: dict[str, Joint] = {}
    below: dict[str, list[Joint]] = {link: [] for link in links}
    for joint in joints.values():
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in links:
                raise UrdfError(
                    f"{where}: the {role} link {link!r} of joint {joint.name!r} does not exist; "
                    f"the links are: {listed(links)}"
                )
        if joint.child in above:
            raise UrdfError(
                f"{where}: link {joint.child!r} must be the child of one joint, not of both "
                f"{above[joint.child].name!r} and {joint.name!r}"
            )
        above[joint.child] = joint
        below[joint.parent].append(joint)
    roots = [link for link in links if link not in above]
    if len(roots) > 1:
        raise UrdfError(
            f"{where}: robot {name!r} has {len(roots)} root links, {listed(roots)}; connect "
            "them with joints"
        )
    tree = LinkTree(where, name, links, joints, roots[0] if roots else "", above, below)
    reached = {joint.child for joint in tree.joints_below(tree.root)} if roots else set()
    for link in links:
        if link not in reached and link != tree.root:
            seen = [link]
            while (link := above[link].parent) not in seen:
                seen.append(link)
            cycle = " -> ".join([link, *reversed(seen[seen.index(link) :])])
            raise UrdfError(f"{where}: links and joints form a cycle: {cycle}")
    return tree


def part_of(tree: LinkTree, root: str | None, tip: str | None) -> tuple[str, list[Joint]]:
    """Return the root link of a part of a tree, and the joints below it, depth first.

    With a ``tip`` they are those of the chain to this link.
    Raises UnknownBodyError for names of no link, ArgumentError for a tip not below the root.
    """
    for name in (root, tip):
        if name is not None and not (isinstance(name, str) and name in tree.links):
            raise UnknownBodyError(name, tree.links)
    start = tree.root if root is None else root
    below = tree.joints_below(start)
    if tip is None:
        return start, below
    if tip != start and tip not in (joint.child for joint in below):
        raise ArgumentError(f"tip: link {tip!r} is not below the root {start!r} of {tree.where}")
    chain, links, joints = {*tree.path(tip)}, {start}, []
    for joint in below:
        if joint.parent in links and (joint.type == "fixed" or joint.child in chain):
            links.add(joint.child)
            joints.append(joint)
    return start, joints


def driver_of(tree: LinkTree, joint: Joint) -> tuple[Joint, float, float]:
    """Return the joint whose coordinate drives a joint: itself, or the end of its chain of mimics.

    It is returned with ratio and offset: position = ratio * position of that joint + offset.
    Raises UrdfError for a cycle, and if that joint does not exist or does not have one coordinate.
    """
    chain: dict[str, Mimic] = {}
    while joint.mimic is not None:
        if joint.name in chain:
            names = " -> ".join([*chain, joint.name])
            raise UrdfError(f"{tree.where}: joints mimic one another: {names}")
        chain[joint.name] = joint.mimic
        other = mimicked(tree, joint.name, joint.mimic)
        for one in (joint, other):
            if one.type not in ONE_FREEDOM:
                raise UrdfError(
                    f"{tree.where}: joint {joint.name!r} cannot mimic joint {other.name!r}: "
                    f"{one.name!r} is {one.type} and has not one coordinate"
                )
        joint = other
    ratio, offset = 1.0, 0.0
    for mimic in reversed(chain.values()):
        ratio, offset = mimic.multiplier * ratio, mimic.multiplier * offset + mimic.offset
    return joint, ratio, offset


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
