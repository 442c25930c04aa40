# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The scene that the layers draw: a robot in a state."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from mbs_dynamics.algorithms import forward_kinematics, inverse_dynamics, jacobian, twists
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.integrate.standing import Contact, standing_forces
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
    """Longest distance in m along the tree from the ground to a frame, at least 0.1. Drawings are
    scaled with it."""
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
    measured: FloatArray | None = None
    """(n,) torques that are drawn instead of the computed holding torques."""
    contacts: tuple[Contact, ...] = ()
    """Points where the floor can push against a floating base."""

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
        if self.measured is not None:
            return self.measured
        rest = np.zeros(self.model.n)
        wrenches = body_wrenches(self.model, self.wrenches) if self.wrenches else None
        return inverse_dynamics(self.model, self.q, rest, rest, wrenches)

    @cached_property
    def wrenches(self) -> dict[str, FloatArray]:
        """Wrenches (6,) by body, in the body's frame: ``wrench``, and forces of contacts."""
        wrenches = self._set_wrench()
        for (body, point), force in self.contact_forces:
            name, pose = self.model.bodies[body].name, self.poses[body]
            local = pose[:3, :3].T @ force
            moment = np.cross(pose[:3, :3].T @ (point - pose[:3, 3]), local)
            before = wrenches.get(name, np.zeros(6))
            wrenches[name] = before + np.concatenate([moment, local])
        return wrenches

    def _set_wrench(self) -> dict[str, FloatArray]:
        """Return ``wrench`` by the name of the body, in the body's frame; none on the ground."""
        if self.model.frames[self.body_name].body == GROUND or not self.wrench.any():
            return {}
        R = self.pose[:3, :3]
        return {self.body_name: np.concatenate([R.T @ self.wrench[:3], R.T @ self.wrench[3:]])}

    @cached_property
    def contact_forces(self) -> list[tuple[Contact, FloatArray]]:
        """Contacts and forces (3,) of the floor; see :func:`standing_forces`."""
        return standing_forces(self.model, self.q, self.contacts, self._set_wrench())

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

    def jacobian(self, representation: str = "") -> FloatArray:
        """Return the Jacobian (6, n) of the body."""
        rep = representation or self.representation
        return jacobian(self.model, self.q, self.body_name, representation=rep)
