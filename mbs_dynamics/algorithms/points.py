# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Velocities, accelerations and Jacobians of points fixed to bodies, and of frames at points.

A point is an array and an input of the kernels: other points do not recompile.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.algorithms.kinematics import twists_of
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import derivative_of, series_of
from mbs_dynamics.lie import se3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import Frame
from mbs_dynamics.representation import BodyFixed, operators, screws_at
from mbs_dynamics.representation.tree import Tree

__all__ = [
    "frame_jacobian",
    "frame_twist",
    "point_acceleration",
    "point_jacobian",
    "point_velocity",
]


@algorithm(invariant=False)
def frame_twist(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    point: ArrayLike,
    body: str,
    *,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the twist V (..., 6) of a frame at a point of a body, parallel to the body's frame.

    The angular part in rad/s comes first, then the linear part in m/s; the spatial twist is the
    same for all points.

    Mueller (kinematics), eqs. (18), (20), (29), (42) and (52).
    """
    frame = frame_at(model, point, body)
    rep = operators(representation, model, q)
    V = twists_of(model, rep, model.joint_rates(qd))
    return np.asarray(rep.at(frame) @ V[frame.body])


@algorithm(invariant=False)
def frame_jacobian(
    model: Tree, q: ArrayLike, point: ArrayLike, body: str, *, representation: str = "body_fixed"
) -> FloatArray:
    """Return the Jacobian J (..., 6, n) of a frame at a point of a body: V = J qd.

    V is :func:`frame_twist`.

    Mueller (kinematics), eqs. (16), (20), (30), (40) and (50).
    """
    frame = frame_at(model, point, body)
    rep = operators(representation, model, q)
    return model.to_coordinates(screws_at(rep, frame))


@algorithm(invariant=True)
def point_velocity(
    model: Tree, q: ArrayLike, qd: ArrayLike, point: ArrayLike, body: str
) -> FloatArray:
    """Return the velocity (..., 3) in m/s of a point fixed to a body, in the inertial frame.

    The linear part of the hybrid twist, R v^b: Mueller (kinematics), eqs. (14) and (42).
    """
    frame, rep = model.frames[body], BodyFixed(model, q)
    V = frame_twist(model, q, qd, point, body, representation="body_fixed")
    velocity: Array = frame.placement[:3, :3] @ V[3:]
    for i in reversed(model.path(frame.body)):  # into the axes of body after body
        velocity = rep.transform(i).back(velocity)
    return np.asarray(velocity)


@algorithm(invariant=True)
def point_acceleration(
    model: Tree, q: ArrayLike, qd: ArrayLike, qdd: ArrayLike, point: ArrayLike, body: str
) -> FloatArray:
    """Return the acceleration (..., 3) in m/s^2 of a point fixed to a body, in the inertial frame.

    It is the time derivative of :func:`point_velocity`, without gravity.

    By truncated Taylor series along the motion.
    """
    positions, rates = model.position_series((q, qd)), series_of((qd, qdd))
    velocity = point_velocity(model, positions, rates, point, body)
    return np.asarray(derivative_of(velocity, 1))


@algorithm(invariant=True)
def point_jacobian(model: Tree, q: ArrayLike, point: ArrayLike, body: str) -> FloatArray:
    """Return the Jacobian (..., 3, n) of a point fixed to a body: its velocity is J qd.

    The velocity is :func:`point_velocity`.

    The linear rows of the hybrid Jacobian: Mueller (kinematics), eq. (40).
    """
    J = frame_jacobian(model, q, point, body, representation="hybrid")
    return np.asarray(J[3:])


def frame_at(model: Tree, point: Array, body: str) -> Frame:
    """Return the frame at a point of a body or link, parallel to its own frame."""
    frame = model.frames[body]
    return Frame(frame.name, frame.body, frame.placement @ se3.pose(np.eye(3), point))
