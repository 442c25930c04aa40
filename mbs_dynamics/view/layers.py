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
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.view.drawings import (
    Arrows,
    Discs,
    Drawing,
    Ellipsoids,
    Fixed,
    Frames,
    Label,
    Lines,
    same,
    scale,
)
from mbs_dynamics.view.scene import Scene
from mbs_dynamics.view.shapes import ScrewAxis, screw_axis, velocity_ellipsoid

PER_NEWTON = 0.01
"""Length of a force arrow in m/N."""

PER_NEWTON_METRE = 0.05
"""Length of a moment arrow in m/(N m)."""

LARGEST_DISC = 0.2
"""Radius in m of a disc for a torque at its limit, for robots of 1 m and more."""

SMALLEST_DISC = 0.3
"""Radius of a disc for zero torque, relative to the largest."""

AXIS = 0.5
"""Half the length in m of the screw axis of a twist, for robots of 1 m and more."""

LEAST_LENGTH = 0.01
"""Length in m below which an arrow is not drawn."""

SHARES = (BLUE, YELLOW, RED)
"""Colours of torques from zero to their limit."""

LEAST_SHARE, LEAST_OF_LARGEST = 0.005, 0.1
"""Torques have no label below this share of their limit, which would read 0 %, or if their share is
below LEAST_OF_LARGEST times the largest one."""


def body_frames(scene: Scene) -> list[Drawing]:
    """Return the frames of all bodies."""
    frame = Frames(np.eye(4)[None], 0.08 * scene.drawn.size)
    return [Fixed(i, frame) for i in range(scene.model.nb)]


def joint_axes(scene: Scene) -> list[Drawing]:
    """Return an arrow along each joint axis, in the positive sense."""
    half = 0.07 * scene.drawn.size
    return [
        Fixed(
            i, Arrows(np.stack([-half * turned[:, 2], half * turned[:, 2]])[None], same(PURPLE, 1))
        )
        for _, i, turned in scene.drawn.joints
    ]


def joint_names(scene: Scene) -> list[Drawing]:
    """Return the names of the joints with one degree of freedom, at their axes."""
    return [
        Fixed(i, Label(np.zeros(3), scene.model.bodies[i].joint.name))
        for _, i, _ in scene.drawn.joints
    ]


def frame_names(scene: Scene) -> list[Drawing]:
    """Return the names of moving links and frames, at their origins."""
    return [
        Fixed(frame.body, Label(frame.placement[:3, 3], frame.name))
        for frame in scene.model.frames.values()
        if frame.body != GROUND
    ]


def centres_of_mass(scene: Scene) -> list[Drawing]:
    """Return balls at the centres of mass, with volumes proportional to the masses."""
    massive = scene.drawn.massive
    if not massive:
        return []
    total = sum(mass for _, mass, _ in massive)
    balls: list[Drawing] = []
    for i, mass, shape in massive:
        radius = 0.05 * scene.drawn.size * np.cbrt(mass / total)
        balls.append(Fixed(i, _ball(shape.centre, radius, SKY)))
    centre = center_of_mass(scene.model, scene.q)
    return [*balls, _ball(centre, 0.03 * scene.drawn.size, YELLOW)]


def inertia_ellipsoids(scene: Scene) -> list[Drawing]:
    """Return the uniform solid ellipsoids with the inertias of the bodies."""
    drawings: list[Drawing] = []
    for i, _, shape in scene.drawn.massive:
        semi_axes = np.maximum(shape.semi_axes, 5e-4)[None]
        solid = Ellipsoids(shape.centre[None], shape.axes[None], semi_axes, same(SKY, 1), 0.35)
        drawings.append(Fixed(i, solid))
    return drawings


def torque_discs(scene: Scene) -> list[Drawing]:
    """Return a disc about each joint; radius and colour show the torque as a share of the limit.

    Discs of joints without a limit are grey and sized for a limit of ``UNLIMITED``.
    """
    drawings: list[Drawing] = []
    for k, i, turned in scene.drawn.joints:
        share = min(float(scene.shares[k]), 1.0)
        radius = disc_radius(scene) * (SMALLEST_DISC + (1.0 - SMALLEST_DISC) * share)
        limited = np.isfinite(scene.model.effort_limits[k])
        colour = scale(SHARES, share) if limited else np.array(GREY)
        disc = Discs(np.zeros((1, 3)), turned[None], np.array([radius]), colour[None])
        drawings.append(Fixed(i, disc))
    return drawings


def torque_labels(scene: Scene) -> list[Drawing]:
    """Return the torque of each loaded joint, and its share of the limit if there is one.

    Labels are next to the discs, along the joint axes. The largest shares have the highest rank.
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
        place = 0.5 * disc_radius(scene) * turned[:, 2]
        drawings.append(Fixed(i, Label(place, text, 1.0 + float(shares[k]))))
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


def screw(scene: Scene) -> list[Drawing]:
    """Return the screw axis of the twist of the body, centred at its point nearest to the body."""
    axis = screw_axis(scene.twist("spatial"))
    if not axis.direction.any():
        return []
    middle = _nearest(axis, scene.pose[:3, 3])
    half = AXIS * min(scene.drawn.size, 1.0) * axis.direction
    return [Arrows(np.stack([middle - half, middle + half])[None], same(ORANGE, 1))]


def _nearest(axis: ScrewAxis, point: FloatArray) -> FloatArray:
    """Return the point (3,) of a screw axis nearest to a point; for a translation, the point."""
    start = axis.point if axis.rate else point
    return np.asarray(start + (axis.direction @ (point - start)) * axis.direction)


def twist(scene: Scene) -> list[Drawing]:
    """Return the screw axis, and the twist of the body in the chosen representation.

    The angular and the linear velocity are arrows from the reference point of the representation,
    0.3 m per rad/s or m/s for a robot of 1 m, with the axes in which it resolves the linear
    velocity.
    """
    axis = screw_axis(scene.twist("spatial"))
    if not axis.direction.any():
        return []
    pose = np.eye(4) if scene.representation == "spatial" else scene.pose
    V = scene.twist("spatial" if scene.representation == "spatial" else "hybrid")
    axes = pose.copy()
    if scene.representation != "body_fixed":
        axes[:3, :3] = np.eye(3)
    per_unit = 0.3 * scene.drawn.size
    parts = [(V[:3], ORANGE), (V[3:], SKY)]
    arrows = _arrows([(pose[:3, 3], per_unit * part, colour) for part, colour in parts])
    frames = Frames(axes[None], 0.15 * scene.drawn.size)
    text = f"{axis.rate:.3g} rad/s, {axis.speed:.3g} m/s along the axis"
    place = _nearest(axis, scene.pose[:3, 3]) + 0.5 * per_unit * axis.direction
    return [*screw(scene), *arrows, frames, Label(place, text)]


def jacobian_columns(scene: Scene) -> list[Drawing]:
    """Return, for each joint before the body, its screw axis and the resulting body velocity."""
    spatial, hybrid = scene.jacobian("spatial"), scene.jacobian("hybrid")
    near, size = scene.pose[:3, 3], scene.drawn.size
    lines, arrows = [], []
    for column, J in zip(spatial.T, hybrid.T, strict=True):
        if not column.any():
            continue
        axis = screw_axis(column)
        middle = _nearest(axis, near)
        half = 0.4 * size * axis.direction
        lines.append([middle - half, middle + half])
        arrows.append((near, 0.3 * J[3:], BLUE))
    if not lines:
        return []
    return [Lines(np.array(lines), same(PURPLE, len(lines))), *_arrows(arrows)]


def velocity_layer(scene: Scene) -> list[Drawing]:
    """Return the velocity and force ellipsoids of the body, for rates and torques of norm 1."""
    J = scene.jacobian("hybrid")[3:]
    if not J.any():
        return []
    shape, centre, size = velocity_ellipsoid(J), scene.pose[:3, 3], scene.drawn.size
    speed = shape.semi_axes
    least = 0.05 * speed.max()  # forces are unbounded at a singularity
    force = 1.0 / np.maximum(speed, least)
    semi_axes = np.stack([0.2 * size * each / each.max() for each in (speed, force)])
    text = f"{speed.max():.3g} m/s per rad/s, {force.max():.3g} N per N m"
    top = centre + semi_axes[0].max() * shape.axes[:, np.argmax(speed)]
    return [
        Ellipsoids(
            np.stack([centre, centre]),
            np.stack([shape.axes, shape.axes]),
            np.maximum(semi_axes, 5e-4),
            np.array([GREEN, RED]),
            0.3,
        ),
        Label(top, text),
    ]


def wrench(scene: Scene) -> list[Drawing]:
    """Return arrows of the force and the moment on the body, with their heads at its origin."""
    at, drawn = scene.pose[:3, 3], []
    for part, length in ((scene.wrench[3:], PER_NEWTON), (scene.wrench[:3], PER_NEWTON_METRE)):
        drawn.append((at - length * part, length * part, GREEN))
    return _arrows(drawn)


def contact_forces(scene: Scene) -> list[Drawing]:
    """Return arrows of the forces of the floor, with their heads at the contacts."""
    forces = scene.contact_forces
    weight = scene.model.total_mass * float(np.linalg.norm(scene.model.gravity))
    per_newton = 0.4 * scene.drawn.size / max(weight, 1e-9)
    return _arrows([(p - per_newton * f, per_newton * f, GREEN) for (_, p), f in forces])


def _arrows(drawn: Sequence[tuple[FloatArray, FloatArray, Colour]]) -> list[Drawing]:
    """Return arrows of (tail, vector, colour), without those shorter than LEAST_LENGTH."""
    arrows = [one for one in drawn if np.linalg.norm(one[1]) >= LEAST_LENGTH]
    if not arrows:
        return []
    points = np.stack([np.stack([tail, tail + vector]) for tail, vector, _ in arrows])
    return [Arrows(points, np.array([colour for _, _, colour in arrows]))]


def _ball(centre: FloatArray, radius: float, colour: Colour) -> Ellipsoids:
    return Ellipsoids(centre[None], np.eye(3)[None], np.full((1, 3), radius), same(colour, 1))


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
            (
                BLUE,
                "0 % of the limit: the torque that holds the joint at rest, or the measured one",
            ),
            (YELLOW, "50 %; the size of a disc is the share as well"),
            (RED, "100 % and more"),
            (GREY, "joint without a limit"),
        ),
        shown=True,
    ),
    Layer("twist", twist, ((ORANGE, "screw axis, angular velocity"), (SKY, "linear velocity"))),
    Layer(
        "Jacobian columns",
        jacobian_columns,
        ((PURPLE, "screw axis of a joint"), (BLUE, "body velocity at 1 rad/s or m/s")),
    ),
    Layer(
        "velocity and force ellipsoids",
        velocity_layer,
        ((GREEN, "velocities at rates of norm 1"), (RED, "forces at torques of norm 1")),
    ),
    Layer("applied wrench", wrench, ((GREEN, "force, moment on the body"),), shown=True),
    Layer(
        "contact forces",
        contact_forces,
        ((GREEN, "of the floor on a floating base, the smallest that hold it"),),
        shown=True,
    ),
)
"""All layers, in the order of the page."""
