# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""A traced function whose loops have stayed loops."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.tracing import graph as g
from mbs_dynamics.errors import SingularError, TraceError
from mbs_dynamics.tracing.graph import Condition, Graph, Symbol
from mbs_dynamics.tracing.loop_values import Entries, Matrix, Result, Texts, Values
from mbs_dynamics.tracing.loops import (
    ALL,
    BEYOND,
    CELL,
    COLUMNS,
    EACH,
    INWARD,
    LOAD,
    OUTER,
    OWN,
    PAIRS,
    ROWS,
    SINCE,
    STATE,
    Forest,
    Loop,
    Loops,
    Place,
    Scope,
    Unsuitable,
)
from mbs_dynamics.tracing.program import KIND, Operations, Port, Program

ATTEMPTS = 24
"""Each one finds at least one layout that was too narrow, in functions that can be traced so."""

PARTS = {
    (ROWS, OWN, OWN): {0},
    (PAIRS, OUTER, OWN): {1},
    (PAIRS, OWN, OUTER): {-1},
    (ALL, OWN, EACH): {-1, 0, 1},
    (SINCE, OWN, EACH): {0, 1},
    (SINCE, EACH, OWN): {-1, 0},
}
"""Parts of a matrix, on (0), above and below the diagonal, that a loop computes."""

Node = Symbol | Condition


class Store(NamedTuple):
    """What goes to a place, not before so many nodes have been evaluated."""

    place: Place
    value: Any
    after: int


@dataclass(frozen=True, eq=False)
class Turn:
    """What a turn of a loop does for one kind of row."""

    nodes: tuple[Node, ...]
    stores: tuple[Store, ...]

    @cached_property
    def signature(self) -> Any:
        """The same for turns that do the same."""
        order = {node.id: k for k, node in enumerate(self.nodes)}

        def name(x: Any) -> Any:
            return order[x.id] if isinstance(x, (Symbol, Condition)) else ("number", x)

        nodes = tuple((node.op, *(name(x) for x in node.args)) for node in self.nodes)
        return nodes, tuple((store.place, name(store.value)) for store in self.stores)


    def mirrored(self, lane: str) -> dict[int, bool]:
        """Return the matrices to which lanes are stored down a column; whether also along a row."""
        values = {store.place: store.value for store in self.stores if store.place.space == CELL}
        found = {}
        for place, value in values.items():
            if place.role == lane != place.other:
                same = values.get(place._replace(role=place.other, other=lane))
                found[place.name] = same is value
        return found


@dataclass(frozen=True, eq=False)
class Step:
    """A loop over rows, in the one direction or the other, with a turn for each kind."""

    sort: str
    direction: str
    span: str
    turns: Mapping[int, Turn]


class Home(NamedTuple):
    """An output in which a container is kept, and what says where a row stands in it."""

    port: str
    by: str
    across: str


class LoopProgram(Program):
    """A program as loops. Its nodes are those of the same function traced without loops."""

    forest: Forest
    steps: tuple[Step, ...]
    early: Mapping[int, Turn]
    """What computes the angles of each kind of row, before all steps."""
    angles: tuple[int, ...]
    """The first of three values each, of every row: an angle, its sine, its cosine."""
    slots: int
    """Number of values of every row."""
    tables: tuple[NDArray[np.float64], ...]
    matrices: tuple[tuple[int, int, int, int], ...]
    blocks: Mapping[int, tuple[str, int]]
    places: Mapping[str, NDArray[np.int64]]
    """Numbers of the rows in inputs and outputs, by name."""
    rows: Mapping[str, str]
    """For each input with entries of each row the name of these numbers."""
    slot_homes: Mapping[int, Home]
    matrix_homes: Mapping[int, Home]
    guard_slots: tuple[tuple[int, str], ...]
    """Values that must be positive in all rows, and in which direction rows are looked at."""

    def __init__(self, *, expand: Callable[[], Program], **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_expand", expand)

    @cached_property
    def expanded(self) -> Program:
        """The same function without loops."""
        expand: Callable[[], Program] = self._expand  # type: ignore[attr-defined]
        return expand()

    @property
    def nodes(self) -> tuple[Node, ...]:  # type: ignore[override]
        """The nodes of the same function without loops."""
        return self.expanded.nodes

    @property
    def values(self) -> tuple[tuple[Symbol | float, ...], ...]:  # type: ignore[override]
        """The entries of the outputs of the same function without loops."""
        return self.expanded.values

    @property
    def operations(self) -> Operations:
        """How many operations of each kind one evaluation takes."""
        counts: dict[str, int] = {}
        loops = [(ALL, "", self.early), *((s.sort, s.span, s.turns) for s in self.steps)]
        for sort, span, turns in loops:
            for kind, turn in list(turns.items())[: 1 if sort == PAIRS else None]:
                times = sum(self.passes(sort, span, kind))
                for node in turn.nodes:
                    if node.op in KIND:
                        counts[KIND[node.op]] = counts.get(KIND[node.op], 0) + times
        trigonometric = 2 * len(self.angles) * self.forest.count
        return Operations(**{**counts, "trigonometric": trigonometric})

    @property
    def has_wide_loops(self) -> bool:
        """Whether there are loops over pairs or columns, of which lanes do several at once."""
        return any(step.sort != ROWS for step in self.steps)

    @cached_property
    def twins(self) -> set[int]:
        """Matrices of which the parts above and below the diagonal are computed side by side."""
        lanes = {PAIRS: OWN, COLUMNS: EACH}
        return {
            number
            for step in self.steps
            if step.sort in lanes
            for turn in step.turns.values()
            for number, same in turn.mirrored(lanes[step.sort]).items()
            if not same
        }

    def fills(self, matrix: int) -> bool:
        """Whether all of a matrix is computed, if rows form a chain."""
        parts = set()
        for step in self.steps:
            for turn in step.turns.values():
                for place, *_ in turn.stores:
                    if (place.space, place.name) == (CELL, matrix):
                        parts |= PARTS.get((step.span or step.sort, place.role, place.other), set())
        return len(parts) == 3

    def in_order(self, by: str) -> bool:
        """Whether rows stand in inputs and outputs in their own order."""
        numbers = self.places[by]
        return bool((numbers == np.arange(len(numbers))).all())

    def passes(self, sort: str, span: str, kind: int) -> list[int]:
        """Return for each row of a kind how often the operations of a turn are done."""
        ends, count = self.forest.ends, self.forest.count
        rows = [i for i in range(count) if self.forest.kinds[i] == kind or sort == PAIRS]
        if sort == PAIRS:
            return [ends[i] - i - 1 for i in rows]
        if sort != COLUMNS:
            return [1] * len(rows)
        return [count if span == ALL else (ends[i] if span == BEYOND else count) - i for i in rows]


def trace_loops(
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    *,
    name: str,
    droppable: frozenset[str],
    forest: Forest,
    places: Mapping[str, Sequence[int]],
    rows: Mapping[str, str],
    expand: Callable[[], Program],
) -> LoopProgram:
    """Call ``function(loops, **symbols)`` and return the loops that it leaves behind.

    ``places`` are numbers of the rows, and ``rows`` says for inputs that have entries for each row
    which of them are meant. The function returns a :class:`Result` or a mapping of names to such.
    Raises Unsuitable if the function needs to know which row a row is.
    """
    hints: dict[int, Any] = {}
    for _ in range(ATTEMPTS):
        loops, top = Loops(forest, hints), Graph()
        symbols = {
            key: Entries(loops, key, shape[1:]) if key in rows else top.input(key, shape)
            for key, shape in inputs.items()
        }
        try:
            result = function(loops, **symbols)
        except (SingularError, TraceError, Unsuitable, ZeroDivisionError):
            # of what was thought to be constant, too early
            if not loops.found:
                raise
        if not loops.found:
            break
        hints.update(loops.found)
    else:
        raise Unsuitable
    results = result if isinstance(result, Mapping) else {name: result}
    return _finished(loops, results, inputs, name, droppable, places, rows, expand)


def _finished(
    loops: Loops,
    results: Mapping[str, Any],
    inputs: Mapping[str, tuple[int, ...]],
    name: str,
    droppable: frozenset[str],
    places: Mapping[str, Sequence[int]],
    rows: Mapping[str, str],
    expand: Callable[[], Program],
) -> LoopProgram:
    slot_homes, matrix_homes, outputs = {}, {}, []
    for key, value in results.items():
        result = value if isinstance(value, Result) else np.asarray(value, dtype=object)[()]
        if not isinstance(result, Result):
            raise Unsuitable
        if isinstance(result.of, Matrix):
            if result.of.number in matrix_homes:
                raise Unsuitable
            matrix_homes[result.of.number] = Home(key, result.by, result.across or result.by)
        elif isinstance(result.of, Values) and len(slots := result.of.slots()) == 1:
            slot_homes[slots[0]] = Home(key, result.by, result.by)
        else:
            raise Unsuitable
        outputs.append(Port(key, result.shape))
    guards, texts = _guards(loops)
    keep = {Place(STATE, slot, 0, OWN) for slot in (*slot_homes, *(slot for slot, _ in guards))}
    keep |= {Place(CELL, matrix, 0, "", "") for matrix in matrix_homes}
    steps, early = _needed(loops, keep)
    used = {port for turn in _turns(steps, early) for port in _ports(turn)}
    return LoopProgram(
        expand=expand,
        name=name,
        inputs=tuple(
            Port(k, tuple(s)) for k, s in inputs.items() if k in used or k not in droppable
        ),
        outputs=tuple(outputs),
        guards=tuple((0.0, text) for text in texts),
        turns=(),
        forest=loops.forest,
        steps=steps,
        early=early,
        angles=tuple(loops.angles),
        slots=loops.slots,
        tables=tuple(loops.tables),
        matrices=tuple(loops.matrices),
        blocks=dict(loops.blocks),
        places={key: np.array(value, dtype=np.int64) for key, value in places.items()},
        rows=dict(rows),
        slot_homes=slot_homes,
        matrix_homes=matrix_homes,
        guard_slots=tuple(guards),
    )


def _guards(loops: Loops) -> tuple[list[tuple[int, str]], list[str]]:
    """Give what must be positive a place, in the order in which rows are looked at."""
    guards, said = [], []
    for loop in loops.steps:
        found = [list(scope.guards.values()) for scope in loop.scopes.values()]
        if not any(found):
            continue
        if loop.sort in (PAIRS, COLUMNS) or any(len(each) != 1 for each in found):
            raise Unsuitable
        slot = loops.new_slots(1)
        for scope, ((excess, text),) in zip(loop.scopes.values(), found, strict=True):
            scope.store(Place(STATE, slot, 0, OWN), excess)
            if not isinstance(text, Texts):
                raise Unsuitable
        guards.append((slot, loop.direction))
        said += text.texts[::-1] if loop.direction == INWARD else text.texts
    return guards, said


# -- what is needed --------------------------------------------------------------------------------


def _needed(loops: Loops, keep: set[Place]) -> tuple[tuple[Step, ...], dict[int, Turn]]:
    """Return the loops without what nobody loads."""
    wanted = {_target(place) for place in keep}
    scopes = [s for loop in loops.steps for s in loop.scopes.values()] + [*loops.early.values()]
    for k in loops.angles:
        wanted.add((STATE, k))
    turns: dict[int, Turn] = {}
    before = -1
    while len(wanted) != before:
        before = len(wanted)
        turns = {id(scope): _turn(scope, wanted) for scope in scopes}
        for turn in turns.values():
            wanted |= {_target(node.args[0]) for node in turn.nodes if node.op == LOAD}
    steps = []
    for loop in loops.steps:
        live = {kind: turns[id(scope)] for kind, scope in loop.scopes.items()}
        live = {kind: turn for kind, turn in live.items() if turn.stores}
        if live:
            if loop.sort == PAIRS and len({turn.signature for turn in live.values()}) > 1:
                raise Unsuitable
            steps.append(Step(loop.sort, loop.direction, loop.span, live))
    return tuple(steps), {kind: turns[id(scope)] for kind, scope in loops.early.items()}


def _target(place: Place) -> tuple[str, Any]:
    return place.space, place.name


def _turn(scope: Scope, wanted: set[tuple[str, Any]]) -> Turn:
    stores = [
        Store(place, value, after)
        for place, (value, after) in scope.stores.items()
        if _target(place) in wanted
    ]
    needed = bytearray(len(scope.nodes))
    for store in stores:
        if isinstance(store.value, Symbol):
            if store.value.graph is not scope:
                raise Unsuitable
            needed[store.value.id] = 1
    for node in reversed(scope.nodes):
        if needed[node.id] and node.op != LOAD:
            for x in node.args:
                if type(x) is not float:
                    needed[x.id] = 1
    return Turn(tuple(node for node in scope.nodes if needed[node.id]), tuple(stores))


def _turns(steps: Sequence[Step], early: Mapping[int, Turn]) -> list[Turn]:
    return [turn for step in steps for turn in step.turns.values()] + list(early.values())


def _ports(turn: Turn) -> set[str]:
    """Return the names of the inputs that a turn reads."""
    places = [node.args[0] for node in turn.nodes if node.op == LOAD]
    return {place.name for place in places if isinstance(place.name, str)}


def columns_of(direction: str, parents: Sequence[int]) -> tuple[NDArray[np.int64], int]:
    """Return where the columns of rows stand in a block, (count, 3), and how many places it has.

    For each row where its own are, where those of its parent are read, and where they are written.
    Place 0 holds zeros. Places are used again once a row is done with.
    """
    count = len(parents)
    places = np.zeros((count, 3), dtype=np.int64)
    home: dict[int, int] = {}
    free: list[int] = []
    top = 1

    def new() -> int:
        nonlocal top
        if free:
            return free.pop()
        top += 1
        return top - 1

    last = {p: i for i, p in enumerate(parents)}
    for i in reversed(range(count)) if direction == INWARD else range(count):
        p = parents[i]
        if direction == INWARD:
            own = home.pop(i, None)
            places[i, 0] = own or 0
            if p in home:
                places[i, 1:] = home[p]
                if own:
                    free.append(own)
            elif p >= 0:
                home[p] = own or new()
                places[i, 2] = home[p]
            elif own:
                free.append(own)
        else:
            places[i, 1] = home.get(p, 0)
            takes_over = p in home and last[p] == i
            home[i] = home[p] if takes_over else new()
            places[i, 0] = home[i]
            if i not in last:
                free.append(home[i])
    return places, top
