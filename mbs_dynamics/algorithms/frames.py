# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Twists and Jacobians with respect to arbitrary frames, and changes of frames.

A twist ^kV_i^j has three frames: it is the twist of body i, measured at the origin of frame j (the
point of body i that instantaneously coincides with it) and resolved in the axes of frame k: Mueller
(kinematics), eq. (79). That twist is absolute; :func:`relative_twist` adds a fourth frame, relative
to which body i moves. Each frame is a body, a link merged into one, or None: the inertial frame.

===========  ============  ===========  ===========
twist        relative_to   measured_at  resolved_in
===========  ============  ===========  ===========
body_fixed   None          the body     the body
spatial      None          None         None
hybrid       None          the body     None
eq. (81)     j             j            j
===========  ============  ===========  ===========

The mixed twist has its two parts in different frames. The text at (81) calls its result the twist
of j with respect to i; the formula is that of i with respect to j.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.lie import se3
from mbs_dynamics.lie.arrays import Array, shaped
from mbs_dynamics.model.body import GROUND, Frame
from mbs_dynamics.representation import BodyFixed, from_body_fixed, to_body_fixed
from mbs_dynamics.representation.tree import Tree

__all__ = [
    "change_of_body_frame",
    "change_of_inertial_frame",
    "relative_jacobian",
    "relative_twist",
]


@algorithm(invariant=True)
def relative_twist(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    body: str | None,
    *,
    relative_to: str | None = None,
    measured_at: str | None = None,
    resolved_in: str | None = None,
) -> FloatArray:
    """Return the twist (..., 6) of a body relative to another one, in arbitrary frames.

    The angular part in rad/s comes first, then the velocity in m/s of the point of ``body`` at the
    origin of ``measured_at``, as seen from ``relative_to``; both parts are resolved in the axes of
    ``resolved_in``.

    ``body``, ``relative_to``, ``measured_at`` and ``resolved_in`` are names of bodies or links;
    None means the inertial frame.

    With ``relative_to`` None this is ^kV_i^j of Mueller (kinematics), eq. (79); with one other
    frame in place of all three it is eq. (81), the difference of the twists of the two bodies.
    """
    moving, others = _movers(model, body, relative_to)
    rate = [float((j in moving) - (j in others)) * x for j, x in enumerate(model.joint_rates(qd))]
    view = _View(model, q, measured_at, resolved_in)
    at, rep = view.at, view.rep
    to_view = set(model.path(at.body))
    V = [np.zeros(6)] * (model.nb + 1)
    for j, p in model.inward():  # sum the motion of joints along the tree to the view
        if j not in to_view:
            V[p] = V[p] + rep.transform(j).undone(V[j] + rep.screw(j) @ rate[j])
    for j, _ in model.outward():
        if j in to_view:
            V[j] = V[j] + rep.twist(j, V, rate[j])
    return np.asarray(view.resolved(rep.at(at) @ V[at.body]))


@algorithm(invariant=True)
def relative_jacobian(
    model: Tree,
    q: ArrayLike,
    body: str | None,
    *,
    relative_to: str | None = None,
    measured_at: str | None = None,
    resolved_in: str | None = None,
) -> FloatArray:
    """Return the Jacobian J (..., 6, n) of :func:`relative_twist`, V = J qd.

    Columns of joints that move both bodies, or none of them, are zero. With two arms on one base
    this is the Jacobian of one hand relative to the other.

    The frames are those of :func:`relative_twist`.
    """
    view, J = _View(model, q, measured_at, resolved_in), model.zeros_per_joint(6)
    moving, others = _movers(model, body, relative_to)
    for j in sorted(moving ^ others):  # joints that move both bodies drop out
        S_j = view.resolved(se3.Ad(view.pose(j)) @ model.bodies[j].joint.screws)
        J[j] = S_j if j in moving else -S_j
    return model.to_coordinates(J)


class _View:
    """The mechanism as seen from the frame in which twists are measured.

    Poses follow the tree from there, inwards and then outwards, so that they depend only on the
    joints in between.
    """

    def __init__(self, model: Tree, q: Array, measured_at: str | None, resolved_in: str | None):
        self.model = model
        self.rep = BodyFixed(model, q)
        self.at = _frame(model, measured_at)
        C = se3.inverse(self.at.placement)
        self.poses = {self.at.body: C}
        for i in reversed(model.path(self.at.body)):
            C = C @ se3.inverse(self.rep.C_rel(i))
            self.poses[model.bodies[i].parent] = C
        self.axes = np.eye(3)
        if resolved_in != measured_at:
            frame = _frame(model, resolved_in)
            self.axes = (self.pose(frame.body) @ frame.placement)[:3, :3]

    def pose(self, i: int) -> Array:
        """Return the pose of a body or the ground in the frame where twists are measured."""
        for k in self.model.path(i):
            if k not in self.poses:
                self.poses[k] = self.poses[self.model.bodies[k].parent] @ self.rep.C_rel(k)
        return self.poses[i]

    def resolved(self, V: Array) -> Any:
        return np.concatenate([self.axes.T @ V[:3], self.axes.T @ V[3:]])


def _movers(model: Tree, *names: str | None) -> list[set[int]]:
    """Return the bodies whose joints move each of the named frames."""
    return [set(model.path(_frame(model, name).body)) for name in names]


def _frame(model: Tree, name: str | None) -> Frame:
    return Frame("the inertial frame", GROUND, np.eye(4)) if name is None else model.frames[name]


def change_of_body_frame(C: Array, S: Array, representation: str) -> Array:
    """Return D (..., 6, 6) with V' = D V for another choice of the frame of a body.

    D also transforms Jacobians, and D^-T wrenches.

    ``C`` (..., 4, 4) is the pose of the old frame and ``S`` (..., 4, 4) that of the new one in the
    old one, so that C' = C S; traced symbols are accepted. ``representation`` is ``"body_fixed"``,
    ``"spatial"``, ``"hybrid"`` or ``"mixed"``.

    D is Ad_S^-1 for body-fixed twists, Mueller (kinematics), eq. (20), and the identity for spatial
    ones.

    Raises ArgumentError for a wrong shape, UnknownRepresentationError.
    """
    C, S = shaped(C=(C, (4, 4)), S=(S, (4, 4)))
    if representation == "spatial":
        batch = np.broadcast_shapes(C.shape[:-2], S.shape[:-2])
        return np.broadcast_to(np.eye(6), (*batch, 6, 6)).copy()
    moved = se3.Ad(se3.inverse(S))  # (20)
    return from_body_fixed(C @ S, representation) @ moved @ to_body_fixed(C, representation)


def change_of_inertial_frame(S: Array, representation: str) -> Array:
    """Return D (..., 6, 6) with V' = D V for another choice of the inertial frame.

    D also transforms Jacobians, and D^-T wrenches.

    ``S`` (..., 4, 4) is the pose of the old inertial frame in the new one, so that C' = S C; traced
    symbols are accepted. ``representation`` is ``"body_fixed"``, ``"spatial"``, ``"hybrid"`` or
    ``"mixed"``.

    D is Ad_S for spatial twists, Mueller (kinematics), eq. (35), and the identity for body-fixed
    ones; the parts of hybrid and mixed twists that are resolved in the inertial frame are rotated.

    Raises ArgumentError for a wrong shape, UnknownRepresentationError.
    """
    (S,) = shaped(S=(S, (4, 4)))
    return from_body_fixed(S, representation)
