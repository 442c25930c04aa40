# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tree in loops that are traced once: one body represents all bodies of its kind.

It has the interface of :class:`Tree`, with tables instead of the constants of the bodies and
containers instead of lists. Bodies are of one kind if they have the same kind of joint and the same
zeros and ones, and therefore the same operations. See :mod:`mbs_dynamics.compiler.frontend.loops`.
"""

# ruff: noqa: D102 (methods are documented once, in the base class)

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from mbs_dynamics.compiler import Program, Symbol, series_of
from mbs_dynamics.compiler.frontend.containers import Columns, Matrix, Values
from mbs_dynamics.compiler.frontend.domains import LAST, OWN, PAIRS, Forest
from mbs_dynamics.compiler.frontend.loop_trace import Assembled, Result, trace_loops
from mbs_dynamics.compiler.frontend.loops import INWARD, OUTWARD, Loops, NoLoopNest, PerRow, Row
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import GROUND, Frame
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import depth_first, path_to
from mbs_dynamics.model.subgroup import actuators_of
from mbs_dynamics.representation.tree import Tree

KINDS = 6
"""Most kinds of bodies; if zeros and ones make more, they are treated as any numbers."""

ROWS = {
    **dict.fromkeys(("q", "qd", "qdd", "qddd", "qdddd", "tau"), ("coordinate", 0)),
    "motion": ("coordinate", 1),
    "wrenches": ("body", 0),
    "payload": ("load", 0),
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
    """Return equations traced as loops over the bodies, or if one is named those on the path to it.

    The last inputs are gravity and the payload. Raises NoLoopNest if equations, or bodies, are not
    alike enough.
    """
    if any(body.joint.nv > 1 for body in model.bodies):
        raise NoLoopNest  # joints with several columns are traced one by one
    whole = "body" not in options
    ordered, order = depth_first(model) if whole else path_to(model, options["body"])
    joints = [model.bodies[i].joint for i in order]
    coordinates = [joint.coordinate for joint in joints if joint.ratio == 1.0]
    if len(set(coordinates)) < len(joints):  # mimic joints are traced one by one
        raise NoLoopNest
    loads = {i: k for k, i in enumerate(model.payloads.bodies)} if whole else {}
    loaded = {k for k, i in enumerate(order) if i in loads}

    def on_generic(loops: Loops, gravity: Any, payload: Any, **symbols: Any) -> Any:
        tree = GenericTree(ordered, loops, gravity, payload, loaded)
        tree.n = model.n  # of which those on a path are some
        return equations(tree, **symbols, **options)

    places = {"coordinate": coordinates, "body": order, "load": [loads.get(i, -1) for i in order]}
    rows = {key: row for key, row in ROWS.items() if key in inputs and (loads or key != "payload")}
    forest = forest_of(ordered, loaded)
    return trace_loops(on_generic, inputs, rows, places, forest, name=name, droppable=droppable)


def forest_of(model: Model, loaded: Collection[int]) -> Forest:
    """Return the bodies, numbered depth first, as rows with their kinds.

    Bodies with a payload have separate kinds.
    """
    keys: list[Any]
    keys = [(b.parent == GROUND, b.joint.kind, i in loaded) for i, b in enumerate(model.bodies)]
    constants = _constants(model)
    alike = np.where(np.isin(constants, (-1.0, 0.0, 1.0)), constants, np.nan)
    finer = [(*key, row.tobytes()) for key, row in zip(keys, alike, strict=True)]
    if len(set(finer)) <= KINDS:
        keys = finer
    order = list(dict.fromkeys(keys))
    return Forest(model.parents, [order.index(key) for key in keys])


def _constants(model: Model) -> Any:
    """Return (nb, 32) home poses, screws and inertial parameters."""
    rows = [
        [*body.home_rel.flat, *body.joint.screw, *body.inertia.parameters] for body in model.bodies
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
        self._columns = _constants(model).T
        self._known: dict[Row, Any] = {}

    def _body(self, i: Row) -> Any:
        """Return the properties of a body that equations use; it also identifies the coordinate."""
        if i.kind is None:
            raise NoLoopNest
        if i not in self._known:
            example = self.loops.forest.kinds.index(i.kind)
            entries = np.array([self.loops.table(x, i) for x in self._columns], dtype=object)
            parameters = entries[22:]
            if example in self._loaded:
                parameters = parameters + self.payload[i]
            group, X = self.model.bodies[example].joint.group, _numbers(entries[16:22])
            joint = SimpleNamespace(
                kind=group.kind,
                screws=X[:, None],
                actuators=actuators_of(X[:, None]),
                motion=lambda q: se3.exp_screw(X, q[0]),
                nv=1,
                velocities=(i,),
                ratio=1.0,
            )
            self._known[i] = SimpleNamespace(
                parent=i.parent,
                home_rel=_numbers(entries[:16]).reshape(4, 4),
                joint=joint,
                inertia=Inertia.from_parameters(parameters),
            )
        return self._known[i]

    # -- loops and paths -------------------------------------------------------------------------

    def outward(self) -> Iterator[tuple[Any, Any]]:
        return self.loops.rows(OUTWARD)

    def inward(self) -> Iterator[tuple[Any, Any]]:
        return self.loops.rows(INWARD)

    def supporting(self, i: Any) -> Iterator[tuple[Any, Any]]:
        """Yield the bodies between body i and the ground, but no children on the way to i."""
        return ((j, None) for j in self.loops.within(i, PAIRS))

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

    # -- containers ------------------------------------------------------------------------------

    def per_body(self, ground: Any = None) -> Values:
        return Values(self.loops, ground)

    def per_pair(self, size: int = 1, *, adjacent: bool = False) -> Matrix:
        return Matrix(self.loops, size, adjacent=adjacent)

    def per_column(self, size: int) -> Columns:
        return Columns(self.loops, size)

    def unit(self, i: Any, k: Any) -> Any:
        return np.array([[self.loops.unit(i, k)]])

    def per_coordinate(self, values: Any) -> Any:
        """Return values indexed by coordinate; texts are those of all bodies in order."""
        if isinstance(values, (PerRow, Result)):
            return values
        own = [values[body.joint.coordinate] for body in self.model.bodies]
        if own and isinstance(own[0], str):
            return PerRow(lambda i: own)
        return PerRow(lambda i: self.loops.table(own, i))

    def joint_positions(self, q: Any) -> Values:
        """Return the positions in memory, where sines and cosines of all are computed together."""
        positions, offsets = self.per_body(), [x.joint.offset for x in self.model.bodies]
        for i, _ in self.outward():
            position = q[i] + self.loops.table(offsets, Row(OWN))  # the same for all kinds
            positions[i] = np.array([position])
        return positions

    def joint_rates(self, qd: Any) -> Any:
        values = self.per_coordinate(qd)
        return PerRow(lambda i: np.array([values[i]]))

    def of_joints(self, values: Any) -> Any:
        return self.joint_rates(values)

    def course(self, motion: Sequence[Any]) -> Any:
        return series_of(motion)

    # -- results ---------------------------------------------------------------------------------

    def generalized(
        self, values: Any, axes: int = 1, *, weighted: bool = True, symmetric: bool = False
    ) -> Any:
        if not isinstance(values, Matrix):  # of which there is one column for each row
            return Result(PerRow(lambda i: np.asarray(values[i])[..., 0]), "coordinate", self.n)
        return Result(values, "coordinate", self.n)

    def generalized_rows(self, values: Matrix) -> Any:
        return Result(values, "coordinate", self.n, columns="body")

    def by_body(self, values: Any) -> Any:
        return Result(values, "body", self.nb, by_row=True)

    def assembled(self, rows: Sequence[Sequence[Any]]) -> Any:
        return Assembled(rows)


def _numbers(entries: Any) -> Any:
    """Return an array of floats if it holds no symbols."""
    symbolic = any(isinstance(x, Symbol) for x in entries)
    return entries if symbolic else entries.astype(np.float64)
