# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""An equivalent model: the same equations of motion in q, with fewer operations.

Torques, the mass matrix and joint accelerations are the same for models that differ in

- the frames of their bodies. Here z is the axis of the joint, and x the common normal with the axis
  of the next one, so that most constants of the placements vanish;
- inertia without effect on a joint. Such inertia has no momentum when the joint moves, and is the
  same in both bodies at every position of the joint, so that it may belong to either of them. It is
  moved inwards, and finally into the ground, where it vanishes.

The inertia D without effect on the joint with the screw X has D X = 0 and is invariant under exp(X
q): for a revolute joint all mass on the axis, which makes three of the ten parameters; for a
prismatic one the whole tensor, as both bodies have the same orientation; for a screw joint the
tensor of a rod on the axis. The remaining parameters are the base parameters of Khalil and
Kleinfinger.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import GROUND, Body, add_inertia
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model

PARALLEL = 0.05
"""Sine of an angle below which axes count as parallel: their common normal may be far away."""

NEAR = 1e-9
"""Distance in m, or sine, below which a direction is too uncertain to be an axis."""


def equivalent(model: Model, *, keep_frames: Collection[int] = (), regroup: bool = True) -> Model:
    """Return a model with the same tau(q, qd, qdd), of bodies with other frames and inertias.

    Bodies in ``keep_frames`` keep their frames, for wrenches and payloads that are given there.
    Payloads stay on their bodies. Joint wrenches, twists and momenta of bodies are not those of the
    original, and named frames of bodies beyond ``keep_frames`` are left out. Without ``regroup``
    bodies keep their inertias, and the model its energies and total momentum.
    """
    keep = set(keep_frames)
    turned = model if len(keep) == model.nb else _with_frames_on_axes(model, keep)
    if not regroup:
        return turned
    bodies = list(turned.bodies)
    for i, p in reversed(list(enumerate(turned.parents))):
        joint = bodies[i].joint
        if joint.nv == 1:  # little inertia is without effect on other joints
            with_effect, without_effect = _split(bodies[i].inertia, joint.screw)
            add_inertia(bodies, p, without_effect.transformed(bodies[i].home_rel))
            bodies[i] = replace(bodies[i], inertia=with_effect)
    return replace(turned, bodies=tuple(bodies))


def _split(inertia: Inertia, X: FloatArray) -> tuple[Inertia, Inertia]:
    """Return the parts of an inertia with and without effect on a joint with the screw X."""
    if not np.array_equal(X[:5], (0.0, 0.0, 1.0, 0.0, 0.0)) and X[:3].any():
        axis = _Line.of(X)  # z of the frame F
        x = np.eye(3)[(int(np.argmax(np.abs(axis.e))) + 1) % 3]
        F = se3.pose(_rotation(x, axis.e), axis.p)
        along_z = np.array([0.0, 0.0, 1.0, 0.0, 0.0, X[:3] @ X[3:]])
        parts = _split(inertia.transformed(se3.inverse(F)), along_z)
        return parts[0].transformed(F), parts[1].transformed(F)
    m, d, T = inertia.mass, inertia.moment, inertia.tensor
    rod = inertia.second_moments[2, 2] * np.diag([1.0, 1.0, 0.0])  # mass at z on the axis
    if not X[:3].any():
        without_effect = Inertia(0.0, np.zeros(3), T)
    elif abs(X[5]) <= checks.SNAP_TOLERANCE:
        without_effect = Inertia(m, d * (0.0, 0.0, 1.0), rod)
    else:
        without_effect = Inertia(0.0, np.zeros(3), rod)
    with_effect = Inertia(
        m - without_effect.mass,
        _without_rounding(d - without_effect.moment, d),
        _without_rounding(T - without_effect.tensor, T),
    )
    return with_effect, without_effect


def _without_rounding(difference: FloatArray, of: FloatArray) -> FloatArray:
    """Return a difference, with entries that are rounding relative to its operand set to zero."""
    size = checks.SNAP_TOLERANCE * np.abs(of).max()
    return np.asarray(np.where(np.abs(difference) <= size, 0.0, difference))


class _Line(NamedTuple):
    """The axis of a joint: a unit vector and a point."""

    e: FloatArray
    p: FloatArray

    @classmethod
    def of(cls, X: FloatArray) -> _Line:
        """Return the axis of a screw; through the origin if the joint is prismatic."""
        if not X[:3].any():
            return cls(X[3:], np.zeros(3))
        return cls(X[:3], np.cross(X[:3], X[3:]))

    def foot(self, other: _Line) -> FloatArray:
        """Return the point of this line that is nearest to another, or to its point if parallel."""
        d, c = other.p - self.p, np.cross(self.e, other.e)
        if np.linalg.norm(c) < PARALLEL:
            return self.p + self.e * (self.e @ d)
        return self.p + self.e * float(np.cross(d, other.e) @ c / (c @ c))

    def normal(self, other: _Line) -> FloatArray | None:
        """Return the direction of the common normal with another line, None if they coincide."""
        c = np.cross(self.e, other.e)
        if np.linalg.norm(c) < PARALLEL:
            d = other.p - self.p
            c = d - self.e * (self.e @ d)
        length = float(np.linalg.norm(c))
        return c / length if length > NEAR else None


def _with_frames_on_axes(model: Model, keep: set[int]) -> Model:
    """Return the model with Denavit-Hartenberg frames, except for the bodies to ``keep``.

    The body of a prismatic joint gets axes parallel to those of the parent. Bodies of joints with
    several degrees of freedom keep their frames.
    """
    F: list[FloatArray] = [np.eye(4)] * (model.nb + 1)  # the new frames in the old ones
    bodies = list(model.bodies)
    next_axes = _next_axes(model)
    for i, p in enumerate(model.parents):
        body = model.bodies[i]
        parent, offset = se3.inverse(body.home_rel) @ F[p], 0.0
        if i not in keep and body.joint.nv == 1 and not body.joint.turns:
            F[i] = parent
        elif i not in keep and body.joint.turns:
            X = body.joint.screw
            F[i], offset = _on_axis(_Line.of(X), next_axes[i], parent, p == GROUND)
        bodies[i] = _moved(body, F[p], F[i], offset)
    frames = {name: frame for name, frame in model.frames.items() if frame.body in keep}
    return replace(model, bodies=tuple(bodies), frames=frames)


def _next_axes(model: Model) -> list[_Line | None]:
    """Return for each body the axis, in its frame, about which the largest branch beyond turns."""
    size = [1] * model.nb
    largest: list[tuple[int, _Line | None]] = [(0, None)] * (model.nb + 1)
    for i, p in reversed(list(enumerate(model.parents))):
        body = model.bodies[i]
        axis = largest[i][1]
        if body.joint.nv > 1:
            axis = None
        elif body.joint.turns:
            axis = _Line.of(body.joint.screw)
        if axis is not None and size[i] > largest[p][0]:
            R, r = body.home_rel[:3, :3], body.home_rel[:3, 3]
            largest[p] = size[i], _Line(R @ axis.e, R @ axis.p + r)
        if p != GROUND:
            size[p] += size[i]
    return [axis for _, axis in largest[:-1]]


def _on_axis(
    axis: _Line, following: _Line | None, parent: FloatArray, at_root: bool
) -> tuple[FloatArray, float]:
    """Return the pose of a frame on the axis of a joint, and the offset of the joint angle.

    Poses and axes are in the frame of the body at q = 0; ``parent`` is the pose of the parent's new
    frame. The origin of a root's frame is nearest to the axis of the next joint, as the ground does
    not move.
    """
    before = _Line(parent[:3, 2], parent[:3, 3])
    origin = axis.foot(following if at_root and following is not None else before)
    x = None if following is None else _Line(axis.e, origin).normal(following)
    if x is None:  # nearest to an axis of the parent
        x = max(
            parent[:3, 0], parent[:3, 1], key=lambda a: float(np.linalg.norm(np.cross(a, axis.e)))
        )
    R = _rotation(x, axis.e)
    relative = parent[:3, :3].T @ R  # = Rz(gamma) Rx(alpha) Rz(angle)
    if np.hypot(relative[2, 0], relative[2, 1]) > NEAR:
        angle = float(np.arctan2(relative[2, 0], relative[2, 1]))
    else:
        angle = float(np.arctan2(relative[1, 0], relative[0, 0]))
    quarters = round(angle / (np.pi / 2))
    if abs(angle - quarters * (np.pi / 2)) > checks.SNAP_TOLERANCE:
        return se3.pose(R, origin), angle  # the placement then has the usual zeros
    for _ in range(quarters % 4):  # these cost no operation
        R = R @ np.array([[0.0, 1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    return se3.pose(R, origin), 0.0


def _rotation(x: FloatArray, z: FloatArray) -> FloatArray:
    """Return the rotation matrix whose third column is z, and whose first is nearest to x."""
    x = x - z * (z @ x)
    x = x / np.linalg.norm(x)
    return checks.snap(np.column_stack([x, np.cross(z, x), z]))


def _moved(body: Body, F_parent: FloatArray, F: FloatArray, offset: float) -> Body:
    """Return a body with another frame, of pose F in its present one, and its joint turned."""
    back = se3.inverse(F)
    group = body.joint.group.seen_from(F)
    home = se3.inverse(F_parent) @ body.home_rel @ F
    if offset:
        home = home @ se3.exp_screw(group.screws[:, 0], -offset)
    joint = replace(body.joint, group=group, offset=body.joint.offset + offset)
    inertia = body.inertia.transformed(back)
    return replace(body, home_rel=home, joint=joint, inertia=inertia)
