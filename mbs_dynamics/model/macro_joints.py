# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joints of more than one degree of freedom: Mueller (kinematics), Tables 1 and 2, and Remark 4.

A joint with nu degrees of freedom has screws Z_1, ..., Z_nu in its frame, and its motion has two
descriptions. As a *macro joint* it is a series of joints with one degree of freedom each,
exp(Z_1 q_1) ... exp(Z_nu q_nu), canonical coordinates of the second kind. That is how models are
made, :func:`from_joints`. Where the joint generates a subgroup of motions, it is also
exp(Z_1 q_1 + ... + Z_nu q_nu), canonical coordinates of the first kind, :func:`joint_pose`.

==================  ===  ====================  ===================  ================================
kind                nu   subgroup, Table 1     takes                factors in order
==================  ===  ====================  ===================  ================================
revolute            1    SO(2)                 axis
prismatic           1    R                     axis
screw               1    H_p                   axis, pitch
planar_translation  2    R^2                   axes                 /x, /y
cylindrical         2    SO(2) x R             axis                 /z, /rz
universal           2    none                  axes                 /rx, /ry
translation         3    R^3                   axes                 /x, /y, /z
spherical           3    SO(3)                                      /rx, /ry, /rz
planar              3    SE(2)                 axis                 /x, /y, /rz
planar_screw        3    H_p x R^2             axis, pitch          /x, /y, /rz
schoenflies         4    SE(2) x R             axis                 /x, /y, /z, /rz
free                6    SE(3)                                      /x, /y, /z, /rx, /ry, /rz
==================  ===  ====================  ===================  ================================

Factors /x, /y, /z are translations in m, /rx, /ry, /rz rotations in rad about axes through the
origin of the joint frame. Their directions are the axes of the joint frame. Where a kind takes an
``axis``, that is z, and x is the projection onto its normal plane of the axis of the joint frame
that follows, cyclically, the one nearest to z. Where it takes ``axes``, those are x, y (and z);
they need not be orthogonal, but independent. Macro joints with three rotations have singular
configurations, at q = +-pi/2 of the second one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import derivative_of, series_of
from mbs_dynamics.errors import ArgumentError, ModelError, UnknownBodyError
from mbs_dynamics.lie import se3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND, Body
from mbs_dynamics.model.diagnostics import diagnose_made, warn
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.model import STANDARD_GRAVITY, Model

INDEPENDENT_TOLERANCE = 1e-6
"""Singular value, relative to the largest, below which axes or screws count as dependent."""

CLOSED_TOLERANCE = 1e-9
"""How far, relative to the screws, a bracket may be from their span and still count as in it."""

_FACTORS: dict[str, tuple[str, ...]] = {
    "revolute": ("rz",),
    "prismatic": ("z",),
    "screw": ("rz",),
    "planar_translation": ("x", "y"),
    "cylindrical": ("z", "rz"),
    "universal": ("rx", "ry"),
    "translation": ("x", "y", "z"),
    "spherical": ("rx", "ry", "rz"),
    "planar": ("x", "y", "rz"),
    "planar_screw": ("x", "y", "rz"),
    "schoenflies": ("x", "y", "z", "rz"),
    "free": ("x", "y", "z", "rx", "ry", "rz"),
}

_OPTIONS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("revolute", "prismatic", "cylindrical", "planar", "schoenflies"), ("axis",)),
    **dict.fromkeys(("screw", "planar_screw"), ("axis", "pitch")),
    **dict.fromkeys(("planar_translation", "universal", "translation"), ("axes",)),
}

KINDS = tuple(_FACTORS)
"""The kinds of :func:`macro_joint`."""


class MacroJoint(NamedTuple):
    """A joint as the series of the joints of one degree of freedom that it consists of."""

    kind: str
    factors: tuple[str, ...]
    """What the names of the factors have after the name of the joint; "" if there is but one."""
    screws: FloatArray
    """(nu, 6) Z_1, ..., Z_nu in the joint frame, in the order in which they follow each other."""


def macro_joint(
    kind: str,
    *,
    axis: ArrayLike | None = None,
    axes: ArrayLike | None = None,
    pitch: float | None = None,
) -> MacroJoint:
    """Return a joint of this kind as a series of joints; see the table in this module.

    :param kind: one of :data:`KINDS`.
    :param axis: (3,) unit vector in the joint frame, its z axis if None.
    :param axes: (2, 3) or (3, 3) unit vectors in the joint frame, its first axes if None.
    :param pitch: translation per radian in m; needed where a kind takes it.
    :raises ArgumentError: for an unknown kind, an argument that the kind does not take, or a wrong
        shape or type.
    :raises ModelError: for an axis that is not of unit length, or axes that are not independent.
    """
    if kind not in KINDS:
        raise ArgumentError(f"kind must be one of {', '.join(KINDS)}; got {kind!r}")
    takes = _OPTIONS.get(kind, ())
    for name, value in (("axis", axis), ("axes", axes), ("pitch", pitch)):
        if value is not None and name not in takes:
            valid = ", ".join(takes) or "nothing"
            raise ArgumentError(f"a {kind} joint has no {name}; it takes: {valid}; got {value!r}")
    if pitch is None and "pitch" in takes:
        raise ArgumentError(f"a {kind} joint needs a pitch, in m per radian")
    factors = _FACTORS[kind]
    if axis is not None:
        directions = _triad(_unit("axis", axis))
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
    names = ("",) if len(factors) == 1 else tuple("/" + factor for factor in factors)
    return MacroJoint(kind, names, checks.snap(np.array(screws)))


def _unit(name: str, value: ArrayLike) -> FloatArray:
    e = checks.numbers(name, value, (3,))
    return e / checks.unit_length(name, e)


def _triad(z: FloatArray) -> FloatArray:
    """Return x, y, z, right-handed, with the directions in the plane that the module states."""
    following = np.eye(3)[(int(np.argmax(np.abs(z))) + 1) % 3]
    x = following - (following @ z) * z
    x /= np.linalg.norm(x)
    return np.array([x, np.cross(z, x), z])


def _independent(axes: ArrayLike, count: int) -> FloatArray:
    given = checks.numbers("axes", axes, (count, 3))
    directions = np.array([_unit(f"axes[{k}]", e) for k, e in enumerate(given)])
    if np.linalg.svd(directions, compute_uv=False)[-1] < INDEPENDENT_TOLERANCE:
        raise ModelError(f"axes must be independent of each other; got {given.tolist()}")
    return directions


# -- models: canonical coordinates of the second kind ----------------------------------------------


@dataclass(frozen=True, eq=False, kw_only=True)
class Connection:
    """A body and the joint that connects it to its parent, for :func:`from_joints`."""

    name: str
    """Name of the joint."""
    joint: MacroJoint
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


def from_joints(
    connections: Iterable[Connection],
    *,
    gravity: ArrayLike = STANDARD_GRAVITY,
    name: str = "mechanism",
) -> Model:
    """Return the model of a tree of bodies connected by joints of any kind.

    The two joint frames of a connection coincide at q = 0, and the body moves by
    S_parent exp(Z_1 q_1) ... exp(Z_nu q_nu) S_body^-1: Mueller (kinematics), eq. (3) and Remark 4.

    A joint with several degrees of freedom becomes a series of joints with one coordinate each,
    named ``<name>/x`` and so on as in the table of this module. Between them
    are massless bodies of the same names; the last factor moves the body. Bodies and coordinates
    are numbered in the order of ``connections``, in which a parent precedes its children.

    :param gravity: (3,) free-fall acceleration in the inertial frame, m/s^2.
    :param name: name of the mechanism.
    :raises ArgumentError: for a wrong shape or type, or a matrix that is not a pose.
    :raises UnknownBodyError: for a parent that is not the body of an earlier connection.
    :raises ModelError: for an inertia that no rigid body has, or a name used twice.
    """
    given = _checked_connections(connections)
    bodies: list[Body] = []
    index: dict[str | None, int] = {None: GROUND}
    for connection in given:
        where = f"joint {connection.name!r}"
        if connection.parent not in index:
            raise UnknownBodyError(connection.parent, [body.name for body in bodies])
        parent = index[connection.parent]
        pose = checks.pose(f"S_parent of {where}", connection.S_parent)
        S_body = checks.pose(f"S_body of {where}", connection.S_body)
        try:
            M = np.zeros((6, 6)) if connection.M_body is None else connection.M_body
            inertia = Inertia.from_matrix(M)
        except (ArgumentError, ModelError) as error:
            raise type(error)(f"body {connection.body!r}: {error}") from error
        for suffix, Z in zip(connection.joint.factors, connection.joint.screws, strict=True):
            joint = connection.name + suffix
            if suffix == connection.joint.factors[-1]:
                home = pose @ se3.inverse(S_body)  # (4)
                X = se3.Ad(S_body) @ Z  # (5)
                body = Body(connection.body, parent, home, Joint(joint, X, len(bodies)), inertia)
            else:
                body = Body(joint, parent, pose, Joint(joint, Z, len(bodies)), Inertia.zero())
            parent, pose = len(bodies), np.eye(4)
            index[body.name] = parent
            bodies.append(body)
    g = checks.numbers("gravity", gravity, (3,))
    return warn(Model(name, tuple(bodies), g, diagnostics=tuple(diagnose_made(bodies))))


def _checked_connections(connections: Any) -> Sequence[Connection]:
    if not isinstance(connections, Iterable):
        raise ArgumentError(f"connections must be a sequence of Connection; got {connections!r}")
    given = list(connections)
    for k, one in enumerate(given):
        if not isinstance(one, Connection):
            raise ArgumentError(f"connections[{k}] must be a Connection; got {one!r}")
        if not isinstance(one.joint, MacroJoint):
            raise ArgumentError(
                f"the joint of connections[{k}] must be a MacroJoint, made by macro_joint(...); "
                f"got {one.joint!r}"
            )
        for what, name in (("name", one.name), ("body", one.body)):
            if not isinstance(name, str) or not name:
                raise ArgumentError(f"the {what} of connections[{k}] must be a name; got {name!r}")
        if one.parent is not None and not isinstance(one.parent, str):
            raise ArgumentError(
                f"the parent of connections[{k}] must be a name, or None; got {one.parent!r}"
            )
    if not given:
        raise ModelError("a mechanism needs a body that moves; got no connections")
    return given


# -- canonical coordinates of the first kind -------------------------------------------------------


def joint_pose(joint: MacroJoint | ArrayLike, q: Array) -> Array:
    """Return exp(Z_1 q_1 + ... + Z_nu q_nu) (..., 4, 4), the relative pose of the joint frames.

    Mueller (kinematics), Remark 4, first form. For a spherical joint q is axis times angle. This
    has no singularity such as Euler angles have, up to a full turn. A model has joints of
    one degree of freedom only; these functions are for integration and inverse kinematics on the
    group of one joint: an increment multiplies from the right, D exp(Z dq).

    :param joint: a :class:`MacroJoint`, or the screws Z (nu, 6) of one.
    :param q: (..., nu) coordinates of the first kind in rad or m: floats, traced symbols or series.
    :raises ArgumentError: for wrong shapes.
    :raises ModelError: if the screws do not generate a subgroup, as those of a universal joint.
    """
    return se3.exp(_combined(_basis(joint), "q", q))


def joint_jacobian(joint: MacroJoint | ArrayLike, q: Array) -> Array:
    """Return the body-fixed Jacobian (..., 6, nu) of :func:`joint_pose`: V^b = J qd in its frame.

    J = dexp_{-X} (Z_1, ..., Z_nu) with X = sum Z_k q_k: Mueller (dynamics), eq. (89), second form.
    It is Z at q = 0. With series of time (``mbs_dynamics.compiler.series_of``) for q this is a
    series as well, which has all time derivatives.

    Arguments and errors are those of :func:`joint_pose`.
    """
    Z = _basis(joint)
    return se3.dexp(-_combined(Z, "q", q)) @ Z.T


def joint_jacobian_rate(joint: MacroJoint | ArrayLike, q: Array, qd: Array) -> Array:
    """Return the time derivative (..., 6, nu) of :func:`joint_jacobian`: Vdot = J qdd + Jdot qd.

    ``qd`` (..., nu) are the rates of q. The other arguments and the errors are those of
    :func:`joint_pose`. Traced and compiled this is fast; called with floats it is not.
    """
    Z = _basis(joint)
    q, qd = (_coordinates(Z, name, value) for name, value in (("q", q), ("qd", qd)))
    q, qd = np.broadcast_arrays(q, qd)
    rate = derivative_of(se3.dexp(-(series_of([q, qd]) @ Z)) @ Z.T, 1)
    return rate if "O" in (q.dtype.kind, qd.dtype.kind) else rate.astype(np.float64)


def _combined(Z: FloatArray, name: str, q: Array) -> Array:
    """Return X = sum Z_k q_k (..., 6)."""
    return _coordinates(Z, name, q) @ Z


def _coordinates(Z: FloatArray, name: str, q: Array) -> Array:
    array = np.asarray(q)
    if array.shape[-1:] != (len(Z),):
        raise ArgumentError(f"{name} has shape {array.shape}; valid is (..., {len(Z)})")
    return array


def _basis(joint: MacroJoint | ArrayLike) -> FloatArray:
    """Return the screws (nu, 6) of a joint that generates a subgroup."""
    given: Any = joint.screws if isinstance(joint, MacroJoint) else joint
    Z = checks.numbers("joint", given, (len(np.atleast_1d(np.asarray(given))), 6))
    _check_subalgebra(Z.tobytes())
    return Z


@lru_cache(maxsize=256)
def _check_subalgebra(data: bytes) -> None:
    """Raise ModelError unless screws are independent and their brackets combinations of them."""
    Z = np.frombuffer(data).reshape(-1, 6)
    _, s, Vt = np.linalg.svd(Z, full_matrices=False)
    if not len(Z) or len(Z) > 6 or s[-1] <= INDEPENDENT_TOLERANCE * s[0]:
        raise ModelError(f"the screws of a joint must be independent; got {Z.tolist()}")
    for k, Z_k in enumerate(Z):
        for Z_l in Z[:k]:
            bracket = se3.ad(Z_k) @ Z_l
            if np.abs(bracket - Vt.T @ (Vt @ bracket)).max() > CLOSED_TOLERANCE * s[0] ** 2:
                raise ModelError(
                    "these screws do not generate a subgroup of motions, so the joint has no "
                    f"canonical coordinates of the first kind: the bracket of {Z_l.tolist()} and "
                    f"{Z_k.tolist()} is not a combination of the screws"
                )
