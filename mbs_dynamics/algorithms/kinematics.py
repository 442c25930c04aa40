# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Forward kinematics: poses, twists and Jacobians of the bodies of a tree."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.algorithms._algorithm import algorithm
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.body import Frame
from mbs_dynamics.representation import BodyFixed, Representation, operators, screws_at
from mbs_dynamics.representation.tree import Tree

__all__ = ["forward_kinematics", "jacobian", "pose", "twists"]


def _frames(model: Tree, bodies: Sequence[str] | None) -> list[Frame]:
    """Return the frames of the named bodies or links; of all bodies, in order, for None."""
    if bodies is not None and (isinstance(bodies, str) or not isinstance(bodies, Iterable)):
        raise ArgumentError(f"bodies must be a list of names; got {bodies!r}")
    names = [body.name for body in model.bodies] if bodies is None else bodies
    return [model.frames[name] for name in names]


@algorithm(invariant=True)
def forward_kinematics(
    model: Tree, q: ArrayLike, *, bodies: Sequence[str] | None = None
) -> FloatArray:
    """Return the poses C_i (..., nb, 4, 4) of all bodies, or of the named bodies and links.

    C_i maps coordinates in the frame of body i to coordinates in the inertial frame.

    C_i = C_p B_i exp(X_i q_i): Mueller (kinematics), eq. (8); Mueller (dynamics), eq. (66a).
    """
    rep = BodyFixed(model, q)
    poses = [rep.C(frame.body) @ frame.placement for frame in _frames(model, bodies)]
    return np.array(poses).reshape(-1, 4, 4)


@algorithm(invariant=True)
def pose(model: Tree, q: ArrayLike, body: str) -> FloatArray:
    """Return the pose C (..., 4, 4) of a body or link: :func:`forward_kinematics` of one body."""
    return np.asarray(forward_kinematics(model, q, bodies=[body])[0])


@algorithm(invariant=False)
def twists(
    model: Tree,
    q: ArrayLike,
    qd: ArrayLike,
    *,
    bodies: Sequence[str] | None = None,
    representation: str = "body_fixed",
) -> FloatArray:
    """Return the twists V_i (..., nb, 6) of all bodies, or of the named bodies and links.

    The angular part in rad/s comes first, then the linear part in m/s.

    Mueller (kinematics), eqs. (14), (30), (42) and (52), the last one corrected: R_{i-1} in place
    of R_i.
    """
    rep = operators(representation, model, q)
    V = twists_of(model, rep, model.joint_rates(qd))
    if bodies is None:
        return model.by_body(V)
    at_frames = [rep.at(frame) @ V[frame.body] for frame in _frames(model, bodies)]
    return np.array(at_frames).reshape(-1, 6)


def twists_of(model: Tree, rep: Representation, rate: Any) -> Any:
    """Return the twists of bodies at given joint rates; that of the ground is the last one."""
    V = model.per_body(np.zeros(6))
    for i, _ in model.outward():
        V[i] = rep.twist(i, V, rate[i])
    return V


@algorithm(invariant=False)
def jacobian(
    model: Tree, q: ArrayLike, body: str, *, representation: str = "body_fixed"
) -> FloatArray:
    """Return the Jacobian J (..., 6, n) of a body or link, V = J qd, angular part first.

    Column j is the instantaneous screw of joint j as measured at the body; columns of joints that
    do not move the body are zero.

    Mueller (kinematics), eqs. (16), (28), (40) and (50).
    """
    rep = operators(representation, model, q)
    return model.to_coordinates(screws_at(rep, model.frames[body]))
