# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Programs with loops in two halves: loops over rows, then loops over pairs and columns.

The first half takes about as many operations for one row as the second for many pairs, and no lane
of a vector has anything to do there but for another state. The second half fills the lanes with the
pairs of one state, and its results with one row after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from mbs_dynamics.compiler.frontend.graph import Graph, Symbol
from mbs_dynamics.compiler.frontend.loop_program import LoopProgram, Step, Store, Turn
from mbs_dynamics.compiler.frontend.loops import (
    CELL,
    COLUMN,
    COLUMNS,
    ENTRY,
    LOAD,
    OWN,
    ROW,
    ROWS,
    STATE,
    Place,
)
from mbs_dynamics.compiler.frontend.program import Program

LEAST_ROWS = 32
"""With fewer rows matrices are so small that they may as well pass through a scratch area.

Measured for chains: with 27 rows it takes 0.85 to 1.2 of the time, with 40 0.65 to 0.9, with 60
0.5 to 0.75.
"""

LEAST_ROWS_OF_COLUMNS = 24
"""The same for chains with loops over columns, which stay in registers.

Measured: with 25 rows it takes 0.86 to 0.97 of the time, with 30 0.66 to 0.9.
"""


class Halves(NamedTuple):
    """Two programs with the inputs and outputs of one."""

    rows: LoopProgram
    """Computes values of rows, and the outputs that are such."""
    wide: LoopProgram
    """Computes matrices from values of rows that the first one has computed."""
    between: tuple[int, ...]
    """Values of rows that the second one reads."""

    @property
    def direct(self) -> tuple[bool, ...]:
        """For each input and output whether it is a matrix that the second one computes."""
        homes = {home.port for home in self.wide.matrix_homes.values()}
        return tuple(port.name in homes for port in (*self.rows.inputs, *self.rows.outputs))


def halves(program: Program) -> Halves | None:
    """Return a program in two halves, or None where that cannot be or is of no use."""
    if not isinstance(program, LoopProgram) or not program.has_wide_loops:
        return None
    columns = program.forest.is_chain and any(step.sort == COLUMNS for step in program.steps)
    if program.forest.count < (LEAST_ROWS_OF_COLUMNS if columns else LEAST_ROWS):
        return None
    if any(_reads(step) & {CELL, COLUMN} for step in program.steps if step.sort == ROWS):
        return None
    if any(_reads(step) & {ROW, ENTRY} for step in program.steps if step.sort != ROWS):
        return None
    if _written_too_late(program.steps):
        return None
    if not _are_whole(program):
        return None
    if any(by_column != 1 for _, by_column, *_ in program.matrices):
        return None  # entries of a row that do not lie side by side take longer than anything else
    first, second, slots = [], [], program.slots
    for step in program.steps:
        if step.sort != ROWS:
            second.append(step)
            continue
        kept, copies, slots = _without_cells(step, slots)
        first.append(kept)
        if copies:
            second.append(copies)
    between = {place.name for step in second for place in _loads(step) if place.space == STATE}
    if between & program.slot_homes.keys():
        return None
    rows = program.changed(
        name=f"{program.name}.rows",
        steps=tuple(first),
        slots=slots,
        matrices=(),
        blocks={},
        matrix_homes={},
    )
    wide = program.changed(
        name=f"{program.name}.wide",
        steps=tuple(second),
        early={},
        angles=(),
        slots=slots,
        slot_homes={},
        guard_slots=(),
    )
    return Halves(rows, wide, tuple(sorted(between)))


def _are_whole(program: LoopProgram) -> bool:
    """Whether each output is one container, of rows or a matrix."""
    homes = program.slot_homes.values()
    sizes = [(home.port, program.forest.count) for home in homes]
    for number, home in program.matrix_homes.items():
        sizes.append((home.port, program.matrices[number][3]))
    return sorted(sizes) == sorted((port.name, port.size) for port in program.outputs)


def _loads(step: Step) -> list[Place]:
    nodes = [node for turn in step.turns.values() for node in turn.nodes]
    return [node.args[0] for node in nodes if node.op == LOAD]


def _reads(step: Step) -> set[str]:
    return {place.space for place in _loads(step)}


def _written_too_late(steps: Iterable[Step]) -> bool:
    """Whether a loop over rows writes what a loop over pairs or columns before it has used."""
    used: set[tuple[str, Any]] = set()
    for step in steps:
        written = {
            (store.place.space, store.place.name)
            for turn in step.turns.values()
            for store in turn.stores
        }
        if step.sort != ROWS:
            used |= written | {(place.space, place.name) for place in _loads(step)}
        elif written & used:
            return True
    return False


def _without_cells(step: Step, slots: int) -> tuple[Step, Step | None, int]:
    """Return a loop over rows that keeps entries of matrices as values of the rows, and the loop
    that moves them to the matrices; and how many values there are then.
    """
    homes: dict[Place, int] = {}
    turns, copies = {}, {}
    for kind, turn in step.turns.items():
        graph, kept, moved = Graph(), [], []
        nodes: list[Symbol] = []
        for store in turn.stores:
            if store.place.space != CELL:
                kept.append(store)
                continue
            value = store.value
            if isinstance(value, Symbol):
                home = Place(STATE, homes.setdefault(store.place, slots + len(homes)), 0, OWN)
                kept.append(store._replace(place=home))
                value = graph.node(LOAD, (home,), (home,))
                nodes.append(value)
            moved.append(Store(store.place, value, len(nodes)))
        turns[kind] = Turn(turn.nodes, tuple(kept))
        if moved:
            copies[kind] = Turn(tuple(nodes), tuple(moved))
    loop = Step(ROWS, step.direction, step.span, copies) if copies else None
    return Step(ROWS, step.direction, step.span, turns), loop, slots + len(homes)
