# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tree that equations are written for: loops over bodies, and arrays of their results."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Series, series_of
from mbs_dynamics.errors import ArgumentError, UnknownJointError
from mbs_dynamics.lie import arrays
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import with_poses
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import path
from mbs_dynamics.model.payloads import loaded


class PositionSeries(NamedTuple):
    """Positions as functions of time: their values now, and the velocities as series."""

    now: Any
    velocities: Any


class Blocks:
    """A block (r_i, c_j) for each pair of bodies, zero at first, in a matrix (r, c)."""

    def __init__(self, rows: list[slice], columns: list[slice]) -> None:
        self.rows, self.columns = rows, columns
        shape = (rows[-1].stop, columns[-1].stop) if rows else (0, 0)
        self.matrix: Array = np.full(shape, 0.0, dtype=object)

    def __getitem__(self, pair: tuple[int, int]) -> Array:
        i, j = pair
        return self.matrix[self.rows[i], self.columns[j]]

    def __setitem__(self, pair: tuple[int, int], block: Array) -> None:
        i, j = pair
        self.matrix[self.rows[i], self.columns[j]] = block


def rotors(model: Model) -> FloatArray:
    """Return the armature (n,) of a model; none, (0,), if all of it is zero."""
    return model.armature if model.armature.any() else np.zeros(0)


class Tree:
    """The bodies of a model with their loads, and loops over them.

    Gravity (3,), loads (k, 10) of the k bodies that carry some, armature (n,), which may be empty,
    and placements (k, 3, 4) of some links are numbers or symbols; by default those of the model.
    """

    def __init__(
        self,
        model: Model,
        gravity: Any = None,
        loads: Any = None,
        armature: Any = None,
        placements: Any = None,
    ) -> None:
        self.model = model
        self.armature: Any = rotors(model) if armature is None else armature
        self.n, self.nb, self.joint_names = model.n, model.nb, model.joint_names
        self.gravity: Any = model.gravity if gravity is None else gravity
        self.loads: Any = model.payloads.parameters if loads is None else loads
        self.placements = placements
        bodies, self.frames = model.bodies, model.frames
        if placements is not None and model.variable_links:
            rows = [np.vstack([C, [[0.0, 0.0, 0.0, 1.0]]]) for C in placements]
            poses = dict(zip(model.variable_links, rows, strict=True))
            bodies, self.frames = with_poses(bodies, self.frames, poses)
        self.bodies: Any = loaded(bodies, zip(model.payloads.bodies, self.loads, strict=True))
        self.parents: Any = model.parents
        ends = np.cumsum([body.joint.nv for body in model.bodies], dtype=int).tolist()
        self.columns_of = [
            slice(end - body.joint.nv, end) for body, end in zip(model.bodies, ends, strict=True)
        ]
        """The columns of each body's joint, among those of the joints of all bodies."""

    def with_gravity(self, gravity: Any) -> Tree:
        """Return this tree with another gravity (3,), in m/s^2, inertial frame."""
        tree = copy.copy(self)
        tree.gravity = gravity
        return tree

    def with_armature(self, added: Any) -> Tree:
        """Return this tree with an armature (n,) in addition to its own, in kg m^2 or kg."""
        tree = copy.copy(self)
        tree.armature = self.armature + added if self.has_armature else added
        return tree

    @property
    def has_armature(self) -> bool:
        """Whether any joint may have armature."""
        return len(self.armature) > 0

    def rotor(self, i: int) -> Array:
        """Return the diagonal matrix (k, k) of the armature of the joint that moves body i.

        It is zero for a mimic joint, whose armature is part of that of its leader.
        """
        joint = self.model.bodies[i].joint
        none = not self.has_armature or joint.mimics is not None
        return np.diag(np.zeros(joint.nv) if none else self.armature[joint.velocities])

    def path(self, i: int) -> list[int]:
        """Return the bodies from the root to body i, both included."""
        return path(self.model, i)

    def outward(self) -> Iterator[tuple[int, int]]:
        """Yield (body, parent), parents before children."""
        return enumerate(self.parents)

    def inward(self) -> Iterator[tuple[int, int]]:
        """Yield (body, parent), children before parents."""
        return reversed(list(self.outward()))

    def inward_to(self, i: int) -> Iterator[tuple[int, int]]:
        """Yield (body, parent) for the bodies from body i to the root, both included."""
        return ((k, self.parents[k]) for k in reversed(self.path(i)))

    def per_body(self, ground: Any = None) -> list[Any]:
        """Return an empty list for one entry per body, with ``ground`` at index GROUND (-1)."""
        return [None] * self.nb + [ground]

    def zeros_per_joint(self, size: int) -> list[Array]:
        """Return a list of zeros (size, k) for the columns of each body's joint, and the ground."""
        widths = [*(body.joint.nv for body in self.model.bodies), 0]
        return [np.zeros((size, k)) for k in widths]

    def per_pair(self) -> Blocks:
        """Return a zero block (k_i, k_j) for each pair of bodies."""
        return Blocks(self.columns_of, self.columns_of)

    def rows_per_pair(self, size: int) -> Blocks:
        """Return a zero block (k_i, size) for each pair of bodies."""
        columns = [slice(i * size, (i + 1) * size) for i in range(self.nb)]
        return Blocks(self.columns_of, columns)

    @property
    def positions_are_coordinates(self) -> bool:
        """Whether each velocity is that of one joint alone."""
        direct = all(body.joint.ratio == 1.0 for body in self.bodies)
        return direct and self.n == sum(body.joint.nv for body in self.bodies)

    def moved_by(self, joints: Sequence[str]) -> list[int]:
        """Return the bodies that the named joints move, mimic joints included.

        Raises ArgumentError if ``joints`` is not a sequence of names, UnknownJointError.
        """
        if isinstance(joints, str) or not isinstance(joints, Sequence):
            raise ArgumentError(f"joints must be a sequence of names; got {joints!r}")
        index = {body.joint.name: i for i, body in enumerate(self.bodies)}
        UnknownJointError.check(joints, index)
        return [index[name] for name in joints]

    def beyond(self, i: int) -> list[int]:
        """Return the bodies that joint i moves, body i first, parents before children."""
        moved = [i]
        for k in range(i + 1, self.nb):
            if self.parents[k] in moved:
                moved.append(k)
        return moved

    def position_series(self, motion: Sequence[Any]) -> Any:
        """Return positions as functions of time, from q, qd, qdd, ..."""
        if all(body.joint.nv == 1 for body in self.model.bodies):
            return series_of(motion)
        return PositionSeries(motion[0], series_of(motion[1:]))

    def joint_positions(self, q: Any) -> list[Any]:
        """Return the positions of each body's joint from q (nq,), mimic joints included."""
        positions: list[Any] = []
        q = q if isinstance(q, PositionSeries) else np.asarray(q)
        for body in self.model.bodies:
            joint = body.joint
            at = self.model.positions(joint)
            if not isinstance(q, PositionSeries):
                positions.append(joint.ratio * q[at] + joint.offset)
            elif joint.nv > 1:
                positions.append(PositionSeries(q.now[at], q.velocities[joint.velocities]))
            else:
                rate = enumerate(q.velocities[joint.coordinate].c, 1)
                now = Series([q.now[at.start], *(x / k for k, x in rate)])
                positions.append(np.array([joint.ratio * now + joint.offset]))
        return positions

    def joint_rates(self, qd: Any) -> list[Any]:
        """Return velocities (k,) of each body's joint from qd (n,), or accelerations from qdd."""
        joints = [body.joint for body in self.model.bodies]
        return [joint.ratio * np.asarray(qd)[joint.velocities] for joint in joints]

    def of_joints(self, values: Any) -> list[Any]:
        """Return the entries (k,) of each body's joint from values (n,), such as torques."""
        return [np.asarray(values)[body.joint.velocities] for body in self.model.bodies]

    def to_coordinates(self, values: Any, axes: int = 1, *, symmetric: bool = False) -> FloatArray:
        """Return values of the joints of bodies, the last ``axes`` axes, for the n coordinates.

        ``values`` are a list of (..., k_i), in which None means zero and a last value, of the
        ground, adds nothing; or :class:`Blocks`, or an array. Values of joints that share a
        coordinate are summed, weighted by the ratios of the joints. A ``symmetric`` matrix is
        exactly symmetric also where joints share a coordinate.
        """
        joints = [body.joint for body in self.model.bodies]
        if isinstance(values, Blocks):
            values = values.matrix
        elif isinstance(values, list):
            like = next((np.shape(x)[:-1] for x in values if x is not None), ())
            none = [np.zeros((*like, joint.nv)) for joint in joints]
            given = [z if x is None else x for x, z in zip(values[: self.nb], none, strict=True)]
            values = np.concatenate([np.zeros((*like, 0)), *given], axis=-1)
        to = np.array([k for joint in joints for k in joint.velocities], dtype=int)
        lead = values.shape[: values.ndim - axes]
        result: Array = np.full((*lead, *(self.n,) * axes), 0.0, dtype=object)
        where = (..., *np.ix_(*[to] * axes))
        if self.positions_are_coordinates:
            result[where] = values
        else:
            ratio = np.array([joint.ratio for joint in joints for _ in joint.velocities])
            for k in range(axes):
                values = ratio.reshape([-1, *[1] * k]) * values
            np.add.at(result, where, values)  # type: ignore[arg-type]
        return np.asarray(arrays.symmetric(result) if symmetric else result)

    def by_body(self, values: Any) -> FloatArray:
        """Return the vectors of the bodies (nb, 6), without that of the ground."""
        return np.asarray(np.array(values[: self.nb]).reshape(-1, 6))
