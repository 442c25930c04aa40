# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The scene that the layers draw: a robot in a state."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mbs_dynamics.algorithms import forward_kinematics, inverse_dynamics, twists
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model, body_wrenches
from mbs_dynamics.model.orders import tools
from mbs_dynamics.view.shapes import Ellipsoid, ellipsoid_of_inertia, turn_to

UNLIMITED = 100.0
"""Effort limit in N m or N assumed for joints without one."""


class DrawnModel(NamedTuple):
    """A model, and quantities for drawings that do not depend on the state."""

    model: Model
    size: float
    """Longest distance in m from the origin to a frame at rest, at least 0.1. Drawings are scaled
    with it."""
    massive: list[tuple[int, float, Ellipsoid]]
    """Index, mass and ellipsoid of each body with an inertia, payloads included."""
    joints: list[tuple[int, int, FloatArray]]
    """For each joint with one degree of freedom its coordinate, its body, and a rotation (3, 3) in
    the frame of the body whose z axis is the joint axis."""
    limits: FloatArray
    """(n,) effort limits; ``UNLIMITED`` for joints without one."""

    @classmethod
    def of(cls, model: Model) -> DrawnModel:
        """Return the drawn model of a model."""
        loaded = model.loaded()
        massive = [
            (i, float(body.inertia.mass), ellipsoid_of_inertia(body.inertia))
            for i, body in enumerate(loaded.bodies)
        ]
        first: dict[int, int] = {}
        for i, body in enumerate(model.bodies):
            if body.joint.mimics is None and body.joint.nv == 1:
                first.setdefault(body.joint.coordinate, i)
        joints = [(k, i, turn_to(_axis(model, i))) for k, i in sorted(first.items())]
        limits = np.where(np.isfinite(model.effort_limits), model.effort_limits, UNLIMITED)
        massive = [one for one in massive if one[2].semi_axes.any()]
        return cls(model, _size(model), massive, joints, limits)


def _axis(model: Model, i: int) -> FloatArray:
    """Return the direction (3,) of joint i in the frame of body i."""
    screw = model.bodies[i].joint.screw
    axis = screw[:3] if screw[:3].any() else screw[3:]
    return np.asarray(axis / np.linalg.norm(axis), dtype=float)


def _size(model: Model) -> float:
    """Return the longest distance in m from the origin to a frame, at least 0.1, at rest."""
    poses = forward_kinematics(model, model.neutral(within_limits=True))
    ends = [
        np.linalg.norm((poses[frame.body] @ frame.placement)[:3, 3])
        for frame in model.frames.values()
        if frame.body != GROUND
    ]
    return max(float(max(ends, default=0.0)), 0.1)


@dataclass(frozen=True)
class Scene:
    """A robot in a state, and the body whose twist, Jacobian and wrench are drawn."""

    drawn: DrawnModel
    q: FloatArray
    """(nq,) in rad or m."""
    qd: FloatArray | None = None
    """(n,) in rad/s or m/s; None if unknown."""
    body: str = ""
    """A body or link; empty for the first leaf."""
    representation: str = "body_fixed"
    """Representation of its twist and its Jacobian."""
    wrench: FloatArray = field(default_factory=lambda: np.zeros(6))
    """(6,) wrench on the body, moment first, in N m and N, at its origin and in inertial axes."""

    @property
    def model(self) -> Model:
        """The model of the robot."""
        return self.drawn.model

    @cached_property
    def body_name(self) -> str:
        """The name of the body."""
        return self.body or tools(self.model)[0]

    @cached_property
    def poses(self) -> FloatArray:
        """Poses of all bodies, (nb, 4, 4)."""
        return forward_kinematics(self.model, self.q)

    @cached_property
    def pose(self) -> FloatArray:
        """Pose of the body, (4, 4)."""
        frame = self.model.frames[self.body_name]
        if frame.body == GROUND:
            return np.asarray(frame.placement)
        return np.asarray(self.poses[frame.body] @ frame.placement)

    @cached_property
    def torques(self) -> FloatArray:
        """Torques (n,) that hold the robot at rest against gravity and the wrench."""
        rest, wrenches = np.zeros(self.model.n), None
        if self.wrench.any() and self.model.frames[self.body_name].body != GROUND:
            R = self.pose[:3, :3]
            local = np.concatenate([R.T @ self.wrench[:3], R.T @ self.wrench[3:]])
            wrenches = body_wrenches(self.model, {self.body_name: local})
        return inverse_dynamics(self.model, self.q, rest, rest, wrenches)

    @property
    def shares(self) -> FloatArray:
        """The magnitudes (n,) of the torques relative to their limits."""
        return np.abs(self.torques) / self.drawn.limits

    def twist(self, representation: str = "") -> FloatArray:
        """Return the twist (6,) of the body; zero if the rates are unknown."""
        if self.qd is None:
            return np.zeros(6)
        rep = representation or self.representation
        V = twists(self.model, self.q, self.qd, bodies=[self.body_name], representation=rep)
        return np.asarray(V[0])
