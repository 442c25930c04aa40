# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Layers of drawings of a robot in a state, independent of any viewer and of ROS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from mbs_dynamics.algorithms import center_of_mass
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import BLUE, GREEN, GREY, ORANGE, PURPLE, RED, SKY, YELLOW, Colour
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.view.drawings import (
    BALL,
    DISC,
    Arrows,
    Drawing,
    Label,
    Solid,
    frame,
    same,
    scale,
)
from mbs_dynamics.view.scene import Scene

PER_NEWTON = 0.01
"""Length of a force arrow in m/N."""

PER_NEWTON_METRE = 0.05
"""Length of a moment arrow in m/(N m)."""

LARGEST_DISC = 0.2
"""Radius in m of a disc for a torque at its limit, for robots of 1 m and more."""

SMALLEST_DISC, THICKNESS = 0.3, 0.01
"""Radius of a disc for zero torque, relative to the largest, and thickness of all discs in m."""

LEAST_AXIS = 5e-4
"""Smallest semi-axis in m of an ellipsoid."""

AXIS = 0.5
"""Half the length in m of the screw axis of a twist, for robots of 1 m and more."""

LEAST_LENGTH = 0.01
"""Length in m below which an arrow is not drawn."""

SHARES = (BLUE, YELLOW, RED)
"""Colours of torques from zero to their limit."""

LEAST_SHARE, LEAST_OF_LARGEST = 0.005, 0.6
"""Torques have no label below this share of their limit, which would read 0 %, or if their share is
below LEAST_OF_LARGEST times the largest one: labels of neighbouring joints would overlap."""


def body_frames(scene: Scene) -> list[Drawing]:
    """Return the frames of all bodies."""
    return [frame(np.eye(4), 0.08 * scene.drawn.size, i) for i in range(scene.model.nb)]


def joint_axes(scene: Scene) -> list[Drawing]:
    """Return an arrow along each joint axis, in the positive sense."""
    half = 0.1 * scene.drawn.size
    return [
        Arrows(np.stack([-half * turned[:, 2], half * turned[:, 2]])[None], same(PURPLE, 1), body=i)
        for _, i, turned in scene.drawn.joints
    ]


def joint_names(scene: Scene) -> list[Drawing]:
    """Return the names of the joints with one degree of freedom, at their axes."""
    bodies = scene.model.bodies
    return [Label(np.zeros(3), bodies[i].joint.name, i) for _, i, _ in scene.drawn.joints]


def frame_names(scene: Scene) -> list[Drawing]:
    """Return the names of moving links and frames, at their origins."""
    return [
        Label(frame.placement[:3, 3], frame.name, frame.body)
        for frame in scene.model.frames.values()
        if frame.body != GROUND
    ]


def centres_of_mass(scene: Scene) -> list[Drawing]:
    """Return balls at the centres of mass, with volumes proportional to the masses."""
    massive = scene.drawn.massive
    if not massive:
        return []
    total, size = sum(mass for _, mass, _ in massive), scene.drawn.size
    balls: list[Drawing] = [
        _ball(shape.centre, 0.05 * size * np.cbrt(mass / total), SKY, i)
        for i, mass, shape in massive
    ]
    return [*balls, _ball(center_of_mass(scene.model, scene.q), 0.03 * size, YELLOW)]


def _ball(centre: FloatArray, radius: float, colour: Colour, body: int = GROUND) -> Solid:
    return Solid(BALL, centre, np.eye(3), np.full(3, radius), colour, body=body)


def inertia_ellipsoids(scene: Scene) -> list[Drawing]:
    """Return the uniform solid ellipsoids with the inertias of the bodies."""
    return [
        Solid(BALL, shape.centre, shape.axes, np.maximum(shape.semi_axes, LEAST_AXIS), SKY, 0.35, i)
        for i, _, shape in scene.drawn.massive
    ]


def torque_discs(scene: Scene) -> list[Drawing]:
    """Return a disc about each joint; radius and colour show the torque as a share of the limit.

    Discs of joints without a limit are grey and sized for a limit of ``UNLIMITED``.
    """
    drawings: list[Drawing] = []
    for k, i, turned in scene.drawn.joints:
        share = min(float(scene.shares[k]), 1.0)
        radius = disc_radius(scene) * (SMALLEST_DISC + (1.0 - SMALLEST_DISC) * share)
        limited = np.isfinite(scene.model.effort_limits[k])
        colour = scale(SHARES, share) if limited else GREY
        scales = np.array([radius, radius, THICKNESS])
        drawings.append(Solid(DISC, np.zeros(3), turned, scales, colour, 0.9, i))
    return drawings


def torque_labels(scene: Scene) -> list[Drawing]:
    """Return the largest torques, and their shares of the limits if there are any.

    Labels are next to the discs, along the joint axes.
    """
    joints, shares = scene.drawn.joints, scene.shares
    largest = max((float(shares[k]) for k, _, _ in joints), default=0.0)
    least = max(LEAST_SHARE, LEAST_OF_LARGEST * largest)
    drawings: list[Drawing] = []
    for k, i, turned in joints:
        if shares[k] < least:
            continue
        unit = "N m" if scene.model.bodies[i].joint.screw[:3].any() else "N"
        text = f"{fixed(scene.torques[k], 2)} {unit}"
        limited = np.isfinite(scene.model.effort_limits[k])
        text = f"{text} ({100.0 * shares[k]:.0f} %)" if limited else text
        drawings.append(Label(0.5 * disc_radius(scene) * turned[:, 2], text, i))
    return drawings


def fixed(x: float, digits: int) -> str:
    """Return a number as text with ``digits`` decimals, without negative zeros."""
    return f"{round(float(x), digits) + 0.0:.{digits}f}"


def torques(scene: Scene) -> list[Drawing]:
    """Return the torque discs with their labels."""
    return [*torque_discs(scene), *torque_labels(scene)]


def disc_radius(scene: Scene) -> float:
    """Return the radius in m of a disc for a torque at its limit."""
    return LARGEST_DISC * min(scene.drawn.size, 1.0)


def twist(scene: Scene) -> list[Drawing]:
    """Return the screw axis, and the twist of the body in the chosen representation.

    The axis is centred at its point nearest to the body. The angular and the linear velocity are
    arrows from the reference point of the representation, 0.3 m per rad/s or m/s for a robot of
    1 m, with the axes in which it resolves the linear velocity.
    """
    point, direction, pitch, magnitude = se3.screw_parameters(scene.twist("spatial"))
    if not direction.any():
        return []
    rate, speed = (0.0, magnitude) if np.isinf(pitch) else (magnitude, pitch * magnitude)
    origin, size = scene.pose[:3, 3], scene.drawn.size
    start = origin if np.isinf(pitch) else point
    middle = start + (direction @ (origin - start)) * direction
    half = AXIS * min(size, 1.0) * direction
    screw = Arrows(np.stack([middle - half, middle + half])[None], same(ORANGE, 1))
    spatial = scene.representation == "spatial"
    axes = np.eye(4) if spatial else scene.pose.copy()
    if scene.representation != "body_fixed":
        axes[:3, :3] = np.eye(3)
    V = 0.3 * size * scene.twist("spatial" if spatial else "hybrid")
    arrows = _arrows([(axes[:3, 3], V[:3], ORANGE), (axes[:3, 3], V[3:], SKY)])
    text = f"{rate:.3g} rad/s, {speed:.3g} m/s along the axis"
    label = Label(middle + 0.15 * size * direction, text)
    return [screw, *arrows, frame(axes, 0.15 * size), label]


def wrench(scene: Scene) -> list[Drawing]:
    """Return arrows of the force and the moment on the body, with their heads at its origin."""
    at, drawn = scene.pose[:3, 3], []
    for part, length in ((scene.wrench[3:], PER_NEWTON), (scene.wrench[:3], PER_NEWTON_METRE)):
        drawn.append((at - length * part, length * part, GREEN))
    return _arrows(drawn)


def _arrows(drawn: Sequence[tuple[FloatArray, FloatArray, Colour]]) -> list[Drawing]:
    """Return arrows of (tail, vector, colour), without those shorter than LEAST_LENGTH."""
    arrows = [one for one in drawn if np.linalg.norm(one[1]) >= LEAST_LENGTH]
    if not arrows:
        return []
    points = np.stack([np.stack([tail, tail + vector]) for tail, vector, _ in arrows])
    return [Arrows(points, np.array([colour for _, _, colour in arrows]))]


class Layer(NamedTuple):
    """A layer that can be switched on and off."""

    name: str
    draw: Callable[[Scene], list[Drawing]]
    legend: tuple[tuple[Colour, str], ...]
    """Meaning of each of its colours."""
    shown: bool = False
    """Whether it is on by default."""


LAYERS = (
    Layer("body frames", body_frames, ((RED, "x axis"), (GREEN, "y axis"), (BLUE, "z axis"))),
    Layer("joint axes", joint_axes, ((PURPLE, "joint axis, positive sense"),)),
    Layer("names of joints", joint_names, ()),
    Layer("names of links and frames", frame_names, ()),
    Layer(
        "centres of mass",
        centres_of_mass,
        ((SKY, "of a body, volume proportional to mass"), (YELLOW, "of the robot")),
    ),
    Layer(
        "inertia ellipsoids",
        inertia_ellipsoids,
        ((SKY, "uniform solid with the inertia of the body"),),
    ),
    Layer(
        "torques",
        torques,
        (
            (BLUE, "0 % of the limit: the torque that holds the joint at rest"),
            (YELLOW, "50 %; the size of a disc is the share as well"),
            (RED, "100 % and more"),
            (GREY, "joint without a limit"),
        ),
        shown=True,
    ),
    Layer("twist", twist, ((ORANGE, "screw axis, angular velocity"), (SKY, "linear velocity"))),
    Layer("applied wrench", wrench, ((GREEN, "force, moment on the body"),), shown=True),
)
"""All layers, in the order of the page."""
