# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Detection of wrong units in a URDF: implausible sizes, and angles in degrees.

Each rule holds for numbers of a single link or joint that no real one has; thresholds were chosen
such that hardly any of some thousand links of public descriptions exceeds them without reason.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator

import numpy as np

from mbs_dynamics.model.diagnostics import MOST_TURNS, Diagnostic
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.urdf_elements import Joint, Origin
from mbs_dynamics.model.urdf_tree import LinkTree

FARTHEST = 10.0
"""Radius of gyration or distance to a centre of mass in m that no link has."""

FARTHEST_JOINT = 30.0
"""The same for the next joint, in m: cranes are longer than their links' inertias show."""

DENSEST = 1e6
"""Density in kg/m^3 of the ellipsoid of an inertia beyond any matter, if it is a heavy one."""

HEAVY = 50.0
"""Mass in kg from which a tiny inertia is no placeholder."""

FEW_LENGTHS = 6.0
"""Lengths of a link, as its frames and centre of mass show it, that its ellipsoid may have."""

NEGLIGIBLE = 1e-4
"""Moment of inertia in kg m^2 up to which it may be a placeholder."""

DEGREES = 720.0
"""Largest limit that is taken for one in degrees: larger ones stand for none."""

NO_LIMITS = (50.0, 100.0, 200.0, 500.0)
"""Limits that stand for none, with either sign."""

UNITS = (("kg cm^2", 1e-4), ("kg mm^2", 1e-6), ("g cm^2", 1e-7), ("g mm^2", 1e-9))
"""Units of inertia that programs for design export, in kg m^2."""

LENGTH = 0.05
"""Typical radius of gyration in m."""


def wrong_units(
    tree: LinkTree, links: Iterable[str], joints: Iterable[Joint], inertias: dict[str, Inertia]
) -> list[Diagnostic]:
    """Return warnings about numbers that are likely in other units than m, kg and rad."""
    diagnostics = []
    reach, moved = _reach(tree)
    for name in links:
        link = tree.links[name]
        subject = f"link {name!r}"
        length = _length(tree, name, inertias[name]) if name in moved else math.inf
        diagnostics += [Diagnostic(subject, x) for x in _of_inertia(inertias[name], length, reach)]
        if link.inertial is not None:
            diagnostics += [
                Diagnostic(subject, x) for x in _of_origin(link.inertial.origin, "inertial")
            ]
    for joint in joints:
        messages = [*_of_origin(joint.origin, "origin"), *_of_limits(joint)]
        placed = joint.type == "fixed" and joint.parent == tree.root
        if (distance := math.hypot(*joint.origin.xyz)) > FARTHEST_JOINT and not placed:
            messages.append(f"is {distance:.4g} m from its parent link; likely in mm")
        diagnostics += [Diagnostic(f"joint {joint.name!r}", message) for message in messages]
    return diagnostics


def _of_inertia(inertia: Inertia, length: float, reach: float) -> Iterator[str]:
    """Yield messages about an inertia that does not suit the length of its link, if known."""
    m = inertia.mass
    if m <= 0.0:
        if inertia.tensor.any():
            yield "has an inertia but no mass, as no body can"
        return
    com = float(np.linalg.norm(inertia.com))
    moments = np.linalg.eigvalsh(inertia.tensor_at_com)
    radius = math.sqrt(max(moments[-1], 0.0) / m)
    axes = np.sqrt(np.clip(2.5 / m * (moments.sum() - 2.0 * moments), 0.0, None))
    volume = 4.0 / 3.0 * math.pi * float(np.prod(axes))
    longest = 2.0 * float(axes.max())
    if com > min(FARTHEST, max(2.0, 5.0 * reach)):
        yield f"has its centre of mass {com:.4g} m from its frame; likely in mm"
    if radius > FARTHEST:
        yield (
            f"has a radius of gyration of {radius:.4g} m; its inertia is likely in {_unit(radius)}"
        )
    elif longest > max(FEW_LENGTHS * length, 0.9 * reach) and moments[-1] > NEGLIGIBLE:
        yield (
            f"has the inertia of an ellipsoid {longest:.3g} m long, in a robot that reaches "
            f"{reach:.3g} m; it is likely wrong, or in another unit than kg m^2"
        )
    elif m > HEAVY and volume * DENSEST < m:
        yield (
            f"has a mass of {m:.4g} kg within an ellipsoid {longest:.3g} m long, denser than any "
            "material; its mass is likely in g"
        )


def _unit(radius: float) -> str:
    """Return the unit of an inertia that makes a radius of gyration most like that of a link."""
    return min(UNITS, key=lambda unit: abs(math.log(radius * math.sqrt(unit[1]) / LENGTH)))[0]


def _length(tree: LinkTree, name: str, inertia: Inertia) -> float:
    """Return the approximate length of a link, infinite if unknown."""
    distances = [math.hypot(*j.origin.xyz) for j in tree.below[name]]
    if inertia.mass > 0.0:
        distances.append(float(np.linalg.norm(inertia.com)))
    return 2.0 * max(distances, default=math.inf)


def _reach(tree: LinkTree) -> tuple[float, set[str]]:
    """Return the length of the longest branch in m, and the links that joints of one freedom move.

    The length is infinite for fewer than three moving joints, which do not show it.
    """
    along, moved, count = {tree.root: 0.0}, set[str](), 0
    for joint in tree.joints_below(tree.root):
        placed = joint.type == "fixed" and joint.parent == tree.root
        step = 0.0 if placed else math.hypot(*joint.origin.xyz)
        along[joint.child] = along[joint.parent] + step
        moves = joint.type not in ("fixed", "floating", "planar")
        count += moves
        if moves or joint.parent in moved:
            moved.add(joint.child)
    return max(along.values()) if count >= 3 else math.inf, moved


def _of_origin(origin: Origin, what: str) -> Iterator[str]:
    if any(abs(x) > 2.0 * math.pi + 1e-3 and not _quarters(x) for x in origin.rpy):
        listed = " ".join(f"{x:g}" for x in origin.rpy)
        yield f"has rpy {listed!r} in its <{what}>; likely in degrees"


def _of_limits(joint: Joint) -> Iterator[str]:
    if joint.type != "revolute" or joint.limit is None:
        return
    ends = [x for x in (joint.limit.lower, joint.limit.upper) if x is not None]
    if len(ends) == 2 and MOST_TURNS < max(map(abs, ends)) <= DEGREES and not _turns(*ends):
        yield f"has limits of {ends[0]:g} and {ends[1]:g} rad; likely in degrees"


def _quarters(angle: float, rounding: float = 1e-3) -> bool:
    """Return whether an angle is a number of quarter turns in rad."""
    return abs(math.remainder(angle, math.pi / 2)) < rounding


def _turns(lower: float, upper: float) -> bool:
    """Return whether limits are whole turns, or placeholders for no limit."""
    turns = all(_quarters(x, 6e-3) and x != round(x) for x in (lower, upper) if x)
    return turns or (lower == -upper and upper in NO_LIMITS)
