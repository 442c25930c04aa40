# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joints of any kind in trees of bodies: Mueller (kinematics), Tables 1 and 2, and Remark 4.

A joint generates a subgroup of motions, with screws Z_1, ..., Z_k in the joint frame: :data:`KINDS`
lists the kinds, and :mod:`mbs_dynamics.model.subgroup` their configurations and velocities.

Directions are the axes of the joint frame. Where a kind takes an ``axis``, that is z, and x is the
projection onto its normal plane of the axis of the joint frame that follows, cyclically, the one
nearest to z. Where it takes ``axes``, those are x, y (and z); they need not be orthogonal, but
independent. A universal joint generates no subgroup: it is two revolute joints in series.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, ModelError, UnknownBodyError
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import GROUND, Body
from mbs_dynamics.model.diagnostics import Description, diagnose
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.subgroup import Subgroup

INDEPENDENT_TOLERANCE = 1e-6
"""Singular value below which axes count as dependent."""

KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "revolute": (("axis",), ("rz",)),
    "prismatic": (("axis",), ("z",)),
    "screw": (("axis", "pitch"), ("rz",)),
    "planar_translation": (("axes",), ("x", "y")),
    "cylindrical": (("axis",), ("z", "rz")),
    "translation": (("axes",), ("x", "y", "z")),
    "spherical": ((), ("rx", "ry", "rz")),
    "planar": (("axis",), ("rz", "x", "y")),
    "planar_screw": (("axis", "pitch"), ("rz", "x", "y")),
    "schoenflies": (("axis",), ("rz", "x", "y", "z")),
    "free": ((), ("rx", "ry", "rz", "x", "y", "z")),
}
"""Arguments of :func:`joint` for each kind, and its screws in order.

``x``, ``y`` and ``z`` are translations along these axes, ``rx``, ``ry`` and ``rz`` rotations about
them, with a translation of ``pitch`` per radian if the kind takes one."""


def joint(
    kind: str,
    *,
    axis: ArrayLike | None = None,
    axes: ArrayLike | None = None,
    pitch: float | None = None,
) -> Subgroup:
    """Return the motion of a joint of this kind; see :data:`KINDS`.

    :param kind: one of :data:`KINDS`.
    :param axis: (3,) unit vector in the joint frame, its z axis if None.
    :param axes: (2, 3) or (3, 3) unit vectors in the joint frame, its first axes if None.
    :param pitch: translation per radian in m; needed where a kind takes it.
    :raises ArgumentError: for an unknown kind, an argument that the kind does not take, or a wrong
        shape or type.
    :raises ModelError: for an axis that is not of unit length, or axes that are not independent.
    """
    if kind not in tuple(KINDS):
        two = "; a universal joint is two revolute ones" if kind == "universal" else ""
        raise ArgumentError(f"kind must be one of {', '.join(KINDS)}{two}; got {kind!r}")
    takes, factors = KINDS[kind]
    for name, value in (("axis", axis), ("axes", axes), ("pitch", pitch)):
        if value is not None and name not in takes:
            valid = ", ".join(takes) or "nothing"
            raise ArgumentError(f"a {kind} joint has no {name}; it takes: {valid}; got {value!r}")
    if pitch is None and "pitch" in takes:
        raise ArgumentError(f"a {kind} joint needs a pitch, in m per radian")
    if axis is not None:
        z = _unit("axis", axis)
        following = np.eye(3)[(int(np.argmax(np.abs(z))) + 1) % 3]
        x = following - (following @ z) * z
        x /= np.linalg.norm(x)
        directions = np.array([x, np.cross(z, x), z])
    elif axes is not None:
        directions = _independent(axes, len(factors))
    else:
        directions = np.eye(3)
    h = 0.0 if pitch is None else checks.number("pitch", pitch)
    screws = []
    for factor in factors:
        e = directions["xyz".index(factor[-1])]
        turns = factor[0] == "r"
        screws.append(np.concatenate([e, h * e] if turns else [np.zeros(3), e]))
    return Subgroup("revolute" if kind == "screw" and not h else kind, np.array(screws).T)


def _unit(name: str, value: ArrayLike) -> FloatArray:
    e = checks.numbers(name, value, (3,))
    return e / checks.unit_length(name, e)


def _independent(axes: ArrayLike, count: int) -> FloatArray:
    given = checks.numbers("axes", axes, (count, 3))
    directions = np.array([_unit(f"axes[{k}]", e) for k, e in enumerate(given)])
    if np.linalg.svd(directions, compute_uv=False)[-1] < INDEPENDENT_TOLERANCE:
        raise ModelError(f"axes must be independent of each other; got {given.tolist()}")
    return directions


@dataclass(frozen=True, eq=False, kw_only=True)
class Connection:
    """A body and the joint that connects it to its parent, for ``Model.from_joints``."""

    name: str
    """Name of the joint."""
    joint: Subgroup
    """Its motion, made by :func:`joint`."""
    body: str
    """Name of the body that the joint moves."""
    M_body: ArrayLike | None = None
    """(6, 6) inertia matrix in the frame of the body; see :func:`mbs_dynamics.spatial_inertia`.
    None means no mass: a model for kinematics."""
    parent: str | None = None
    """Name of the body that carries the joint; None means the ground."""
    S_parent: ArrayLike = field(default_factory=lambda: np.eye(4))
    """(4, 4) pose of the joint frame in the frame of the parent, in m: Mueller's S_{i-1,i}."""
    S_body: ArrayLike = field(default_factory=lambda: np.eye(4))
    """(4, 4) pose of the joint frame in the frame of the body, in m: Mueller's S_{i,i}."""


def describe(connections: Iterable[Connection], gravity: ArrayLike, name: str) -> Description:
    """Return the bodies of connections; see :meth:`mbs_dynamics.Model.from_joints`."""
    bodies: list[Body] = []
    index: dict[str | None, int] = {None: GROUND}
    n = 0
    for connection in _checked_connections(connections):
        where = f"joint {connection.name!r}"
        if connection.parent not in index:
            raise UnknownBodyError(connection.parent, [body.name for body in bodies])
        pose = checks.pose(f"S_parent of {where}", connection.S_parent)
        back = se3.inverse(checks.pose(f"S_body of {where}", connection.S_body))
        inertia = Inertia.zero()
        if connection.M_body is not None:
            argument = f"M_body of body {connection.body!r}"
            inertia = Inertia.from_matrix(connection.M_body, argument)
        moved_by = Joint(connection.name, connection.joint.seen_from(back), n)  # (4), (5)
        parent = index[connection.parent]
        bodies.append(Body(connection.body, parent, pose @ back, moved_by, inertia))
        index[connection.body] = len(bodies) - 1
        n += moved_by.nv
    diagnostics = diagnose(bodies, if_massless="note")
    return Description(name, tuple(bodies), gravity, {}, diagnostics)


def _checked_connections(connections: Any) -> Sequence[Connection]:
    if not isinstance(connections, Iterable):
        raise ArgumentError(f"connections must be a sequence of Connection; got {connections!r}")
    given = list(connections)
    for k, one in enumerate(given):
        if not isinstance(one, Connection) or not isinstance(one.joint, Subgroup):
            raise ArgumentError(
                f"connections[{k}] must be a Connection, with a joint made by joint(...); "
                f"got {one!r}"
            )
    if not given:
        raise ModelError("a mechanism needs a body that moves; got no connections")
    return given
