# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models from joint screws: Mueller (kinematics), sections 2.2 to 2.4.

One mechanism has several descriptions, all of them one-line conversions of each other:

==========  ===========================  ======================================  ==============
frame       homes                        screws                                  motion
==========  ===========================  ======================================  ==============
spatial     A_i, absolute, eq. (11)      Y_i, in the inertial frame, eq. (12)    eq. (10)
body_fixed  B_i, to the parent, eq. (4)  X_i, in the frame of body i, eq. (5)    eq. (8), upper
parent      B_i, to the parent, eq. (4)  Xbar_i, in the parent's frame, eq. (7)  eq. (8), lower
==========  ===========================  ======================================  ==============

Everything is taken in the reference configuration q = 0. A screw is (e, p x e + h e) with the unit
vector e along the axis, a point p on it and the pitch h in m/rad (0 for a revolute joint), or
(0, e) for a prismatic joint. A :class:`~mbs_dynamics.Model` keeps the body-fixed form.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.lie.se3 import Ad, inverse
from mbs_dynamics.model.body import GROUND, Body
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint, one_screw

FRAMES = ("spatial", "body_fixed", "parent")
"""The frames in which screws are given."""


class Screws(NamedTuple):
    """A mechanism as :meth:`mbs_dynamics.Model.from_screws` takes it."""

    parents: tuple[int, ...]
    """Index of each body's parent; GROUND (-1) for a root."""
    homes: FloatArray
    """(nb, 4, 4) A_i if spatial, else B_i."""
    screws: FloatArray
    """(nb, 6) Y_i, X_i or Xbar_i."""
    M_body: FloatArray
    """(nb, 6, 6) inertia matrices in the frames of the bodies."""


def bodies_of_screws(
    parents: Sequence[int],
    homes: ArrayLike,
    screws: ArrayLike,
    M_body: ArrayLike | None,
    frame: str,
    body_names: Sequence[str] | None,
    joint_names: Sequence[str] | None,
) -> tuple[Body, ...]:
    """Return the bodies of a tree; see :meth:`mbs_dynamics.Model.from_screws`."""
    checks.one_of("frame", frame, FRAMES)
    tree = _checked_parents(parents)
    nb = len(tree)
    poses = checks.numbers("homes", homes, (nb, 4, 4))
    given = [checks.pose(f"homes[{i}]", C) for i, C in enumerate(poses)]
    # Snapped first: an axis of length 1e-17, left by some rotation, means a prismatic joint.
    S = checks.snap(checks.numbers("screws", screws, (nb, 6)))
    home_rel, screw_body = given, list(S)
    if frame == "spatial":
        A = [*given, np.eye(4)]  # the last one is the ground's: A[GROUND]
        home_rel = [inverse(A[p]) @ A[i] for i, p in enumerate(tree)]  # (11)
        screw_body = [Ad(inverse(A_i)) @ Y for A_i, Y in zip(given, S, strict=True)]  # (12)
    elif frame == "parent":
        screw_body = [Ad(inverse(B)) @ X_bar for B, X_bar in zip(given, S, strict=True)]  # (7)
    inertias = [Inertia.zero()] * nb
    if M_body is not None:
        matrices = checks.numbers("M_body", M_body, (nb, 6, 6))
        inertias = [Inertia.from_matrix(M, f"M_body[{i}]") for i, M in enumerate(matrices)]
    bodies = checked_names("body_names", body_names, "body", nb)
    joints = checked_names("joint_names", joint_names, "joint", nb)
    groups = [one_screw(f"screws[{i}]", X) for i, X in enumerate(screw_body)]
    return tuple(
        Body(bodies[i], tree[i], home_rel[i], Joint(joints[i], groups[i], i), inertias[i])
        for i in range(nb)
    )


def screws(bodies: Sequence[Body], frame: str) -> Screws:
    """Return the arguments of ``from_screws``; see :meth:`mbs_dynamics.Model.screws`."""
    checks.one_of("frame", frame, FRAMES)
    parents = tuple(body.parent for body in bodies)
    homes = np.array([body.home_rel for body in bodies])
    given = np.array([body.joint.screw for body in bodies])
    M = np.array([body.inertia.matrix() for body in bodies])
    if frame == "spatial":
        for i, p in enumerate(parents):
            homes[i] = homes[i] if p == GROUND else homes[p] @ homes[i]  # (11)
    if frame != "body_fixed":
        given = np.array([Ad(C) @ X for C, X in zip(homes, given, strict=True)])  # (12), (7)
    return Screws(parents, homes, given, M)


def _checked_parents(parents: Any) -> tuple[int, ...]:
    if not isinstance(parents, Iterable):
        raise ArgumentError(f"parents must be a sequence of integers; got {parents!r}")
    tree = []
    for i, p in enumerate(parents):
        try:
            tree.append(operator.index(p))
        except TypeError:
            raise ArgumentError(f"parents[{i}] must be an integer; got {p!r}") from None
        if not GROUND <= tree[i] < i:
            raise ModelError(
                f"parents[{i}] must be {GROUND} (the ground) or the index of a body that comes "
                f"before body {i}; got {p}"
            )
    if not tree:
        raise ModelError("parents is empty; a mechanism has at least one moving body")
    return tuple(tree)


def checked_names(argument: str, names: Any, default: str, nb: int) -> tuple[str, ...]:
    """Return nb names, by default numbered from one, or raise ArgumentError."""
    if names is None:
        return tuple(f"{default}{i + 1}" for i in range(nb))
    given = tuple(names) if isinstance(names, Iterable) and not isinstance(names, str) else ()
    if len(given) != nb or not all(isinstance(name, str) and name for name in given):
        raise ArgumentError(f"{argument} must be {nb} names, one for each body; got {names!r}")
    return given
