# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tree in loops that are traced once: one body represents all bodies of its kind.

It has the interface of :class:`Tree`, with tables instead of the constants of the bodies and
containers instead of lists. Bodies are of one kind if they have the same kind of joint and the same
zeros and ones, and therefore the same operations. A root with several screws is written out before
the loops; it has a row for each of them. See :mod:`mbs_dynamics.compiler.loop_nests`.
"""

# ruff: noqa: D102 (methods are documented once, in the base class)

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from mbs_dynamics.compiler import Program, Symbol, series_of
from mbs_dynamics.compiler.loop_nests import (
    INWARD,
    LAST,
    OUTWARD,
    PAIRS,
    Assembled,
    Columns,
    Forest,
    Loops,
    Matrix,
    NoLoopNest,
    PerRow,
    Result,
    Row,
    Values,
    trace_loops,
)
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import GROUND, Frame
from mbs_dynamics.model.fixed_joints import FixedJoint
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joint import Joint
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import depth_first, path_to
from mbs_dynamics.model.subgroup import actuators_of
from mbs_dynamics.representation.tree import Course, Tree, integrated

KINDS = 6
"""Most kinds of bodies; if zeros and ones make more, they are treated as any numbers."""

ROWS = {
    "q": ("position", 0),
    **dict.fromkeys(("qd", "qdd", "qddd", "qdddd", "tau"), ("coordinate", 0)),
    "motion": ("coordinate", 1),
    "wrenches": ("body", 0),
    "payload": ("load", 0),
    "armature": ("coordinate", 0),
}
"""Arrays with entries for the bodies: in which order, and along which axis."""


def traced_in_loops(
    name: str,
    equations: Callable[..., Any],
    model: Model,
    inputs: Mapping[str, tuple[int, ...]],
    options: Mapping[str, Any],
    droppable: frozenset[str],
) -> Program:
    """Return equations traced as loops over the bodies, or over those on the path to a named one.

    The last inputs are those of the model. Raises NoLoopNest if equations, or bodies, are not
    alike enough.
    """
    whole = "body" not in options
    ordered, order = depth_first(model) if whole else path_to(model, options["body"])
    joints = [model.bodies[i].joint for i in order]
    columns = sum(joint.nv for joint in joints)
    coordinates = [k for joint in joints if joint.ratio == 1.0 for k in joint.velocities]
    if len(set(coordinates)) < columns or any(joint.nv > 1 for joint in joints[1:]):
        raise NoLoopNest  # mimic joints, and others with several columns, are traced one by one
    head = joints[0].nv if joints and joints[0].nv > 1 else 0
    if head and len(joints) == 1:
        raise NoLoopNest
    positions = [
        model.positions(joint).start + joint.nq - joint.nv + k
        for joint in joints
        for k in range(joint.nv)
    ]
    loads = {i: k for k, i in enumerate(model.payloads.bodies)} if whole else {}
    loaded = {k for k, i in enumerate(order) if i in loads}

    def on_generic(loops: Loops, gravity: Any, payload: Any, armature: Any, **symbols: Any) -> Any:
        del symbols["placements"], symbols["payload_beyond"]
        tree = GenericTree(ordered, loops, gravity, payload, loaded)
        tree.armature, tree.has_armature = armature, rotors
        tree.n = model.n  # of which those on a path are some
        if head:
            tree.of_head = model.positions(joints[0])
        return equations(tree, **symbols, **options)

    before = range(order[0] - max(head - 1, 0), order[0]) if head else []
    places = {
        "position": positions,
        "coordinate": coordinates,
        "body": [*before, *order],
        "load": [*before, *(loads.get(i, -1) for i in order)],
    }
    rotors = inputs["armature"] != (0,)
    absent = {"armature": not rotors, "payload": not loads}
    rows = {key: row for key, row in ROWS.items() if key in inputs and not absent.get(key)}
    forest = forest_of(ordered, loaded)
    return trace_loops(on_generic, inputs, rows, places, forest, name=name, droppable=droppable)


def forest_of(model: Model, loaded: Collection[int]) -> Forest:
    """Return the bodies, numbered depth first, as rows with their kinds.

    Bodies with a payload have separate kinds, and so has a root with several screws.
    """
    keys: list[Any]
    keys = [(b.parent == GROUND, b.joint.kind, i in loaded) for i, b in enumerate(model.bodies)]
    constants = _constants(model)
    alike = np.where(np.isin(constants, (-1.0, 0.0, 1.0)), constants, np.nan)
    finer = [(*key, row.tobytes()) for key, row in zip(keys, alike, strict=True)]
    if len(set(finer)) <= KINDS:
        keys = finer
    order = list(dict.fromkeys(keys))
    kinds = [order.index(key) for key in keys]
    if (head := model.bodies[0].joint.nv if keys else 1) == 1:
        return Forest(model.parents, kinds)
    parents = [GROUND if p == GROUND else p + head - 1 for p in model.parents]
    return Forest([GROUND] * (head - 1) + parents, [kinds[0]] * (head - 1) + kinds, head)


def _constants(model: Model) -> Any:
    """Return (nb, 32) home poses, screws and inertial parameters; the last screw of several."""
    rows = [
        [*body.home_rel.flat, *body.joint.screws[:, -1], *body.inertia.parameters]
        for body in model.bodies
    ]
    return np.array(rows)


class GenericTree(Tree):
    """A model numbered depth first, or the path to a frame of one, within loops.

    The position of each joint is a separate coordinate. ``payload`` has an entry for each body
    that carries one.
    """

    positions_are_coordinates = True

    def __init__(
        self, model: Model, loops: Loops, gravity: Any, payload: Any, loaded: Collection[int]
    ) -> None:
        self.model, self.loops, self.gravity, self.payload = model, loops, gravity, payload
        self.n, self.nb, self.joint_names = model.n, model.nb, model.joint_names
        self.bodies = PerRow(self._body)
        self.parents = PerRow(lambda i: i.parent)
        self._loaded = loaded
        self._head = loops.forest.head
        self.of_head = slice(0, 0)
        """Where the positions of a root with several screws are in q."""
        self._columns = np.repeat(_constants(model), self._widths(), axis=0).T
        self._known: dict[Row, Any] = {}

    def _widths(self) -> list[int]:
        return [body.joint.nv for body in self.model.bodies]

    def _body(self, i: Row) -> Any:
        """Return the properties of a body that equations use; it also identifies the coordinate."""
        if i.kind is None:
            raise NoLoopNest
        if i not in self._known:
            row = self.loops.forest.kinds.index(i.kind)
            example = max(row - max(self._head - 1, 0), 0)
            entries = np.array([self.loops.table(x, i) for x in self._columns], dtype=object)
            parameters = entries[22:]
            if example in self._loaded:
                parameters = parameters + self.payload[i]
            own, X = self.model.bodies[example].joint, _numbers(entries[16:22])
            columns = self.loops.columns_of(i)
            wide = len(columns) > 1
            joint = SimpleNamespace(
                kind=own.kind,
                screws=own.screws if wide else X[:, None],
                actuators=own.actuators if wide else actuators_of(X[:, None]),
                motion=own.motion if wide else lambda q: se3.exp_screw(X, q[0]),
                nv=own.nv,
                velocities=columns,
                ratio=1.0,
            )
            self._known[i] = SimpleNamespace(
                parent=i.parent,
                home_rel=_numbers(entries[:16]).reshape(4, 4),
                joint=joint,
                inertia=Inertia.from_parameters(parameters),
            )
        return self._known[i]

    def rotor(self, i: Row) -> Any:
        if not self.has_armature:
            return np.zeros((self.bodies[i].joint.nv,) * 2)
        return np.diag([self.armature[row] for row in self.loops.columns_of(i)])

    def fixed_joint(self, name: str) -> FixedJoint | None:
        """Raise NoLoopNest: named joints are no rows of a loop."""
        raise NoLoopNest

    def outward(self) -> Iterator[tuple[Any, Any]]:
        return self.loops.rows(OUTWARD)

    def inward(self) -> Iterator[tuple[Any, Any]]:
        return self.loops.rows(INWARD)

    def supporting(self, i: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the bodies between body i and the ground, but no children on the way to i."""
        for of_head in (False, True) if self._head else (False,):
            for j in self.loops.within(i, PAIRS, of_head=of_head):
                yield j, None

    def columns(self, i: Any, domain: str) -> Iterator[Any]:
        return self.loops.within(i, domain)

    def frame(self, name: str) -> Frame:
        """Return the frame at the end of a path."""
        if name not in self.model.frames or self.model.frames[name].body != self.nb - 1:
            raise NoLoopNest
        return self.model.frames[name]._replace(body=Row(LAST))  # type: ignore[arg-type]

    def outward_to(self, i: Any) -> Iterator[tuple[Any, Any]]:
        """Yield (body, parent) along a path, whose end is i."""
        return self.outward()

    def inward_to(self, i: Any) -> Iterator[tuple[Any, Any]]:
        """Raise NoLoopNest: nothing is handed on from body to body but by containers."""
        raise NoLoopNest

    def depth(self, i: Any) -> int:
        """Return how many joints move the body at the end of a path."""
        return self.nb

    def path(self, i: Any) -> list[Any]:
        """Return the body alone: within a loop, those before it are already processed."""
        return [i]

    def per_body(self, ground: Any = None) -> Values:
        return Values(self.loops, ground)

    def per_pair(self, size: int = 1, *, adjacent: bool = False) -> Matrix:
        return Matrix(self.loops, size, adjacent=adjacent)

    def per_column(self, size: int) -> Columns:
        return Columns(self.loops, size)

    def unit(self, i: Any, k: Any) -> Any:
        return np.array([[self.loops.unit(row, k)] for row in self.loops.columns_of(i)])

    def free_roots(self) -> dict[int, Any]:
        """Return none: the same for all bodies."""
        return {}

    def per_coordinate(self, values: Any) -> Any:
        """Return values indexed by coordinate; texts are those of all bodies in order."""
        if isinstance(values, (PerRow, Result)):
            return values
        own = [values[k] for body in self.model.bodies for k in body.joint.velocities]
        if own and isinstance(own[0], str):  # of the head one by one
            return PerRow(lambda i: own[self._row_of_head(i)] if self._is_head(i) else own)
        return PerRow(lambda i: self.loops.table(own, i))

    def _is_head(self, i: Row) -> bool:
        return len(self.loops.columns_of(i)) > 1

    def _row_of_head(self, i: Row) -> int:
        return self._head - 1 + i.shift

    def joint_positions(self, q: Any) -> PerRow:
        """Return the positions in memory, where sines and cosines of all are computed together."""
        course = q if isinstance(q, Course) else None
        now = course.now if course else q
        offsets = np.repeat([x.joint.offset for x in self.model.bodies], self._widths())
        positions = self.per_body()
        for i in self.loops.every_row():
            position = now[i] + self.loops.table(offsets, i)
            if course:
                position = integrated(position, course.velocities[i])
            positions[i] = np.array([position])

        def of(i: Row) -> Any:
            if not self._is_head(i):
                return positions[i]
            at, rows = range(self.of_head.start, self.of_head.stop), self.loops.columns_of(i)
            if len(at) > len(rows):  # with a quaternion, and no angle
                entries = [self.loops.scope.entry("q", k) for k in at]
            else:
                entries = [positions[row][0].c[0] if course else positions[row][0] for row in rows]
            if not course:
                return np.array(entries)
            return Course(np.array(entries), np.array([course.velocities[row] for row in rows]))

        return PerRow(of)

    def joint_rates(self, qd: Any) -> Any:
        values = self.per_coordinate(qd)
        return PerRow(lambda i: np.array([values[row] for row in self.loops.columns_of(i)]))

    def of_joints(self, values: Any) -> Any:
        return self.joint_rates(values)

    def of_joint(self, joint: Joint, qd: Any) -> Any:
        """Return the velocities of the root, before all loops."""
        return np.array([self.loops.before.entry("qd", k) for k in joint.velocities])

    def course(self, motion: Sequence[Any]) -> Any:
        several = len(motion) > 1
        return Course(motion[0], series_of(motion[1:])) if several else series_of(motion)

    def generalized(
        self, values: Any, axes: int = 1, *, weighted: bool = True, symmetric: bool = False
    ) -> Any:
        if not isinstance(values, Matrix):  # of which each column has a row
            of_row = PerRow(lambda i: np.asarray(values[i.whole])[..., i.shift - 1])
            return Result(of_row, "coordinate", self.n)
        return Result(values, "coordinate", self.n)

    def generalized_rows(self, values: Matrix) -> Any:
        return Result(values, "coordinate", self.n, columns="body")

    def beside(self, rows: Any, diagonal: Any) -> Any:
        own = self.per_pair()
        for i, _ in self.outward():
            own[i, i] = np.diag([diagonal[row] for row in self.loops.columns_of(i)])
        return Assembled([[rows, Result(own, "coordinate", self.n)]])

    def by_body(self, values: Any) -> Any:
        return Result(values, "body", self.nb, by_row=True)

    def assembled(self, rows: Sequence[Sequence[Any]]) -> Any:
        return Assembled(rows)


def _numbers(entries: Any) -> Any:
    symbolic = any(isinstance(x, Symbol) for x in entries)
    return entries if symbolic else entries.astype(np.float64)
