# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What is shown of a robot in a state, layer by layer. Knows no viewer and no ROS."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mbs_dynamics.algorithms import (
    center_of_mass,
    forward_kinematics,
    inverse_dynamics,
    jacobian,
    twists,
)
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import BLUE, GREEN, ORANGE, PURPLE, RED, SKY, YELLOW, Colour
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model
from mbs_dynamics.view.drawings import (
    Arrows,
    Discs,
    Drawing,
    Ellipsoids,
    Frames,
    Labels,
    Lines,
    between,
    same,
)
from mbs_dynamics.view.shapes import (
    Ellipsoid,
    ellipsoid_of_inertia,
    screw_axis,
    turn_to,
    velocity_ellipsoid,
)

UNLIMITED = 100.0
"""Effort in N m or N that counts as the limit of a joint without one."""

PER_NEWTON = 0.01
"""Metres of an arrow for a newton."""

PER_NEWTON_METRE = 0.05
"""Metres of an arrow for a newton metre."""

LARGEST_DISC = 0.2
"""Radius in m of a disc for a torque at its limit, of a robot of 1 m."""

SMALLEST_DISC = 0.3
"""Radius of a disc for no torque, as a share of the largest."""

AXIS = 0.5
"""Half the length in m of the screw axis of a twist, of a robot of 1 m."""

LEAST_LENGTH = 0.01
"""An arrow is not drawn if it is shorter, in m."""


class Parts(NamedTuple):
    """A model, its payloads included, and what of it does not depend on its state."""

    model: Model
    size: float
    """The longest way from the ground to a frame in m, but at least 0.1; lengths go by it."""
    massive: list[tuple[int, float, Ellipsoid]]
    """Number, mass and ellipsoid of the bodies that have both."""
    joints: list[tuple[int, int, FloatArray]]
    """Coordinate and body of each joint that moves, and a rotation (3, 3) in the frame of the body
    whose z axis is the joint's."""
    limits: FloatArray
    """(n,) of efforts, those of joints without one in their place."""

    @classmethod
    def of(cls, model: Model) -> Parts:
        """Return those of a model."""
        loaded = model.loaded()
        massive = [
            (i, float(body.inertia.mass), ellipsoid_of_inertia(body.inertia))
            for i, body in enumerate(loaded.bodies)
        ]
        first: dict[int, int] = {}
        for i, body in enumerate(model.bodies):
            if body.joint.mimics is None:
                first.setdefault(body.joint.coordinate, i)
        joints = [(k, i, turn_to(_axis(model, i))) for k, i in sorted(first.items())]
        limits = np.where(np.isfinite(model.effort_limits), model.effort_limits, UNLIMITED)
        massive = [one for one in massive if one[2].semi_axes.any()]
        return cls(model, _size(model), massive, joints, limits)


def _axis(model: Model, i: int) -> FloatArray:
    """Return the direction (3,) of a joint in the frame of the body that it moves."""
    screw = model.bodies[i].joint.screw
    axis = screw[:3] if screw[:3].any() else screw[3:]
    return np.asarray(axis / np.linalg.norm(axis), dtype=float)


def _size(model: Model) -> float:
    reach = np.zeros(model.nb)
    for i, p in enumerate(model.parents):
        step = np.linalg.norm(model.bodies[i].home_rel[:3, 3])
        reach[i] = step if p == GROUND else reach[p] + step
    ends = [
        reach[frame.body] + np.linalg.norm(frame.placement[:3, 3])
        for frame in model.frames.values()
        if frame.body != GROUND
    ]
    return max(float(max(ends, default=0.0)), 0.1)


@dataclass(frozen=True)
class Scene:
    """A robot in a state, with a body that is looked at."""

    parts: Parts
    q: FloatArray
    """(n,) in rad or m."""
    qd: FloatArray | None = None
    """(n,) in rad/s or m/s; None if they are not known."""
    body: str = ""
    """The body or link that is looked at; empty for the first leaf."""
    representation: str = "body_fixed"
    """In which its twist and its Jacobian are given."""
    wrench: FloatArray = field(default_factory=lambda: np.zeros(6))
    """(6,) on it, moment first, in N m and N, in its origin and the axes of the inertial frame."""
    measured: FloatArray | None = None
    """(n,) torques to show in place of those that hold the robot."""

    @property
    def model(self) -> Model:
        """The robot's."""
        return self.parts.model

    @cached_property
    def looked_at(self) -> str:
        """The name of the body that is looked at."""
        return self.body or self.model.leaves[0]

    @cached_property
    def poses(self) -> FloatArray:
        """Of all bodies, (nb, 4, 4)."""
        return forward_kinematics(self.model, self.q)

    @cached_property
    def pose(self) -> FloatArray:
        """Of the body that is looked at, (4, 4)."""
        frame = self.model.frame(self.looked_at)
        return np.asarray(self.poses[frame.body] @ frame.placement)

    @cached_property
    def torques(self) -> FloatArray:
        """The torques (n,) that hold the robot at rest against gravity and the wrench."""
        if self.measured is not None:
            return self.measured
        R, rest = self.pose[:3, :3], np.zeros(self.model.n)
        on_body = np.concatenate([R.T @ self.wrench[:3], R.T @ self.wrench[3:]])
        wrenches = self.model.wrenches({self.looked_at: on_body})
        return inverse_dynamics(self.model, self.q, rest, rest, wrenches)

    def twist(self, representation: str = "") -> FloatArray:
        """Return the twist (6,) of the body that is looked at; zero if the rates are unknown."""
        if self.qd is None:
            return np.zeros(6)
        chosen = representation or self.representation
        looked_at = [self.looked_at]
        V: FloatArray = twists(
            self.model, self.q, self.qd, bodies=looked_at, representation=chosen
        )[0]
        return V

    def jacobian(self, representation: str = "") -> FloatArray:
        """Return the Jacobian (6, n) of the body that is looked at."""
        chosen = representation or self.representation
        return jacobian(self.model, self.q, self.looked_at, representation=chosen)


# -- layers ----------------------------------------------------------------------------------------


def body_frames(scene: Scene) -> list[Drawing]:
    """Return the frames of all bodies."""
    return [Frames(scene.poses, 0.08 * scene.parts.size)]


def joint_axes(scene: Scene) -> list[Drawing]:
    """Return an arrow along the axis of each joint, in the positive sense."""
    joints = scene.parts.joints
    along = np.stack([scene.poses[i, :3, :3] @ turned[:, 2] for _, i, turned in joints])
    origins = np.stack([scene.poses[i, :3, 3] for _, i, _ in joints])
    half = 0.07 * scene.parts.size * along
    return [Arrows(np.stack([origins - half, origins + half], axis=1), same(PURPLE, len(joints)))]


def centres_of_mass(scene: Scene) -> list[Drawing]:
    """Return a ball in the centre of mass of each body, as large as its share of the mass."""
    massive = scene.parts.massive
    if not massive:
        return []
    centres = np.stack([_at(scene.poses[i], each.centre) for i, _, each in massive])
    mass = np.array([m for _, m, _ in massive])
    radii = 0.05 * scene.parts.size * np.cbrt(mass / mass.sum())
    balls = _balls(centres, radii, same(SKY, len(massive)))
    return [balls, *centre_of_all_mass(scene)]


def centre_of_all_mass(scene: Scene) -> list[Drawing]:
    """Return a ball in the centre of all mass that moves."""
    if not scene.parts.massive:
        return []
    centre = center_of_mass(scene.model, scene.q)
    return [_balls(centre[None], np.array([0.03 * scene.parts.size]), same(YELLOW, 1))]


def inertia_ellipsoids(scene: Scene) -> list[Drawing]:
    """Return, for each body, the ellipsoid of uniform density that has its inertia."""
    massive = scene.parts.massive
    if not massive:
        return []
    C = scene.poses[[i for i, _, _ in massive]]
    shapes = [each for _, _, each in massive]
    centres = np.stack([_at(pose, each.centre) for pose, each in zip(C, shapes, strict=True)])
    axes = C[:, :3, :3] @ np.stack([each.axes for each in shapes])
    semi_axes = np.maximum(np.stack([each.semi_axes for each in shapes]), 5e-4)
    return [Ellipsoids(centres, axes, semi_axes, same(SKY, len(massive)), 0.35)]


def torque_discs(scene: Scene) -> list[Drawing]:
    """Return a disc about each joint: larger and redder, the nearer its torque is to the limit."""
    joints, shares = scene.parts.joints, shares_of_limits(scene)
    if not joints:
        return []
    coordinates = [k for k, _, _ in joints]
    share = np.minimum(shares[coordinates], 1.0)
    C = scene.poses[[i for _, i, _ in joints]]
    turned = C[:, :3, :3] @ np.stack([turned for _, _, turned in joints])
    radii = disc_radius(scene) * (SMALLEST_DISC + (1.0 - SMALLEST_DISC) * share)
    return [Discs(C[:, :3, 3], turned, radii, between(BLUE, RED, share))]


def torque_labels(scene: Scene) -> list[Drawing]:
    """Return the torque of each joint, and its share of the limit where there is one."""
    joints, shares = scene.parts.joints, shares_of_limits(scene)
    texts = []
    for k, i, _ in joints:
        unit = "N m" if scene.model.bodies[i].joint.screw[:3].any() else "N"
        text = f"{fixed(scene.torques[k], 2)} {unit}"
        limited = np.isfinite(scene.model.effort_limits[k])
        texts.append(f"{text} ({100.0 * shares[k]:.0f} %)" if limited else text)
    places = np.stack([scene.poses[i, :3, 3] for _, i, _ in joints])
    return [Labels(places, tuple(texts))]


def fixed(x: float, digits: int) -> str:
    """Return a number with so many digits after the point, and no zero below zero."""
    return f"{round(float(x), digits) + 0.0:.{digits}f}"


def torques(scene: Scene) -> list[Drawing]:
    """Return the discs of torques with their labels."""
    return [*torque_discs(scene), *torque_labels(scene)] if scene.parts.joints else []


def disc_radius(scene: Scene) -> float:
    """Return the radius in m of a disc for a torque at its limit."""
    return LARGEST_DISC * min(scene.parts.size, 1.0)


def shares_of_limits(scene: Scene) -> FloatArray:
    """Return the size of each torque as a share (n,) of its limit, or of ``UNLIMITED``."""
    return np.abs(scene.torques) / scene.parts.limits


def screw(scene: Scene) -> list[Drawing]:
    """Return the screw axis of the twist of the body that is looked at, where it passes it."""
    axis = screw_axis(scene.twist("spatial"))
    if not axis.direction.any():
        return []
    near = scene.pose[:3, 3]
    middle = axis.point if axis.rate else near
    middle = middle + (axis.direction @ (near - middle)) * axis.direction
    half = AXIS * min(scene.parts.size, 1.0) * axis.direction
    return [Arrows(np.stack([middle - half, middle + half])[None], same(ORANGE, 1))]


def twist(scene: Scene) -> list[Drawing]:
    """Return the screw axis, and the two parts of the twist where the representation has them.

    The angular velocity and the velocity are arrows that begin where the representation measures
    them, one metre for a rad/s or m/s and a robot of 1 m, beside the axes in which it states them.
    """
    if not scene.twist().any():
        return []
    pose = np.eye(4) if scene.representation == "spatial" else scene.pose
    V = scene.twist("spatial" if scene.representation == "spatial" else "hybrid")
    stated = pose.copy()
    if scene.representation != "body_fixed":  # mixed: the velocity, the angular part in the body
        stated[:3, :3] = np.eye(3)
    scale = 0.3 * scene.parts.size
    arrows = [(V[:3], ORANGE), (V[3:], SKY)]
    drawn = _arrows([(pose[:3, 3], scale * part, colour) for part, colour in arrows])
    axis = screw_axis(scene.twist("spatial"))
    words = f"{axis.rate:.3g} rad/s, {axis.speed:.3g} m/s along"
    frames = Frames(stated[None], 0.15 * scene.parts.size)
    return [*screw(scene), *drawn, frames, Labels(scene.pose[None, :3, 3], (words,))]


def jacobian_columns(scene: Scene) -> list[Drawing]:
    """Return the screw axis of each joint that moves the body, and the velocity that it gives."""
    spatial, hybrid = scene.jacobian("spatial"), scene.jacobian("hybrid")
    near, size = scene.pose[:3, 3], scene.parts.size
    lines, arrows = [], []
    for column, J in zip(spatial.T, hybrid.T, strict=True):
        if not column.any():
            continue
        axis = screw_axis(column)
        middle = axis.point + (axis.direction @ (near - axis.point)) * axis.direction
        half = 0.4 * size * axis.direction
        lines.append([middle - half, middle + half])
        arrows.append((near, 0.3 * J[3:], BLUE))
    if not lines:
        return []
    return [Lines(np.array(lines), same(PURPLE, len(lines))), *_arrows(arrows)]


def velocity_layer(scene: Scene) -> list[Drawing]:
    """Return which velocities rates of length 1 give the body, and what forces torques hold."""
    J = scene.jacobian("hybrid")[3:]
    if not J.any():
        return []
    shape, centre, size = velocity_ellipsoid(J), scene.pose[:3, 3], scene.parts.size
    speed = shape.semi_axes
    least = 0.05 * speed.max()  # near a singularity forces are endless in theory
    force = 1.0 / np.maximum(speed, least)
    semi_axes = np.stack([0.2 * size * each / each.max() for each in (speed, force)])
    largest = f"{speed.max():.3g} m/s per rad/s, {force.max():.3g} N per N m"
    return [
        Ellipsoids(
            np.stack([centre, centre]),
            np.stack([shape.axes, shape.axes]),
            np.maximum(semi_axes, 5e-4),
            np.array([GREEN, RED]),
            0.3,
        ),
        Labels(centre[None], (largest,)),
    ]


def wrench(scene: Scene) -> list[Drawing]:
    """Return the force on the body as an arrow that ends there, and the moment as a second."""
    at, drawn = scene.pose[:3, 3], []
    for part, scale in ((scene.wrench[3:], PER_NEWTON), (scene.wrench[:3], PER_NEWTON_METRE)):
        drawn.append((at - scale * part, scale * part, GREEN))
    return _arrows(drawn)


def _arrows(drawn: Sequence[tuple[FloatArray, FloatArray, Colour]]) -> list[Drawing]:
    """Return arrows from beginnings, ways and colours, without those that are too short."""
    kept = [one for one in drawn if np.linalg.norm(one[1]) >= LEAST_LENGTH]
    if not kept:
        return []
    points = np.stack([np.stack([begin, begin + way]) for begin, way, _ in kept])
    return [Arrows(points, np.array([colour for _, _, colour in kept]))]


def _balls(centres: FloatArray, radii: FloatArray, colours: FloatArray) -> Ellipsoids:
    rotations = np.tile(np.eye(3), (len(centres), 1, 1))
    return Ellipsoids(centres, rotations, np.tile(radii[:, None], (1, 3)), colours)


def _at(pose: FloatArray, point: FloatArray) -> FloatArray:
    """Return a point (3,) of a body in the inertial frame."""
    return np.asarray(pose[:3, :3] @ point + pose[:3, 3])


class Layer(NamedTuple):
    """A layer that a viewer can switch."""

    name: str
    draw: Callable[[Scene], list[Drawing]]
    legend: tuple[tuple[Colour, str], ...]
    """What each of its colours is."""
    shown: bool = False
    """Whether it is shown at first."""


_FRAME = ((RED, "x axis"), (GREEN, "y axis"), (BLUE, "z axis"))

LAYERS = (
    Layer("body frames", body_frames, _FRAME),
    Layer("joint axes", joint_axes, ((PURPLE, "axis of a joint, in its positive sense"),)),
    Layer(
        "centres of mass",
        centres_of_mass,
        ((SKY, "of a body, as large as its mass"), (YELLOW, "of the whole robot")),
    ),
    Layer("inertia ellipsoids", inertia_ellipsoids, ((SKY, "uniform body of the same inertia"),)),
    Layer("torques", torques, ((BLUE, "no torque"), (RED, "at its limit")), shown=True),
    Layer(
        "twist",
        twist,
        ((ORANGE, "screw axis and angular velocity"), (SKY, "velocity at the point of reference")),
    ),
    Layer(
        "Jacobian columns",
        jacobian_columns,
        ((PURPLE, "screw axis of a joint"), (BLUE, "velocity of the body at 1 rad/s")),
    ),
    Layer(
        "velocity and force ellipsoids",
        velocity_layer,
        ((GREEN, "velocities at rates of length 1"), (RED, "forces at torques of length 1")),
    ),
    Layer("applied wrench", wrench, ((GREEN, "force, moment"),), shown=True),
)
"""All layers, in the order in which they are listed."""
