# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tracing of functions whose loops stay loops."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.compiler.frontend.containers import Matrix, Values
from mbs_dynamics.compiler.frontend.graph import Graph, Symbol
from mbs_dynamics.compiler.frontend.loop_ports import Assembled, Entries, Result, Texts
from mbs_dynamics.compiler.frontend.loop_program import Home, LoopProgram, Step, Store, Turn
from mbs_dynamics.compiler.frontend.loops import (
    CELL,
    INWARD,
    LOAD,
    OWN,
    PAIRS,
    ROWS,
    STATE,
    Forest,
    Loops,
    Place,
    Scope,
    Unsuitable,
)
from mbs_dynamics.compiler.frontend.program import Port, Program
from mbs_dynamics.errors import SingularError, TraceError

ATTEMPTS = 24
"""Each one finds at least one layout that was too narrow, in functions that can be traced so."""


def trace_loops(
    function: Callable[..., Any],
    inputs: Mapping[str, tuple[int, ...]],
    *,
    name: str,
    droppable: frozenset[str],
    forest: Forest,
    places: Mapping[str, Sequence[int]],
    rows: Mapping[str, str],
    columns: Collection[str],
    expand: Callable[[], Program],
) -> LoopProgram:
    """Call ``function(loops, **symbols)`` and return the loops that it leaves behind.

    ``places`` are numbers of the rows, and ``rows`` says for inputs that have entries for each row
    which of them are meant; inputs in ``columns`` have several such arrays below each other. The
    function returns a :class:`Result` or a mapping of names to such. Raises Unsuitable if it needs
    to know which row a row is.
    """
    hints: dict[int, Any] = {}
    for _ in range(ATTEMPTS):
        loops, top = Loops(forest, hints), Graph()
        symbols: dict[str, Any] = {}
        for key, shape in inputs.items():
            if key in columns:
                symbols[key] = [Entries(loops, key, (), k * shape[1]) for k in range(shape[0])]
            elif key in rows:
                symbols[key] = Entries(loops, key, shape[1:])
            else:
                symbols[key] = top.input(key, shape)
        try:
            result = function(loops, **symbols)
        except (SingularError, TraceError, Unsuitable, ZeroDivisionError):
            # of what was thought to be constant, too early
            if not loops.found:
                raise
        finally:
            loops.forget()
        if not loops.found:
            break
        hints.update(loops.found)
    else:
        raise Unsuitable
    results = result if isinstance(result, Mapping) else {name: result}
    strides = {
        key: 1 if key in columns else int(np.prod(shape[1:])) for key, shape in inputs.items()
    }
    by = {key: (rows[key], strides[key]) for key in rows}
    return _finished(loops, results, inputs, name, droppable, places, by, expand)


def _finished(
    loops: Loops,
    results: Mapping[str, Any],
    inputs: Mapping[str, tuple[int, ...]],
    name: str,
    droppable: frozenset[str],
    places: Mapping[str, Sequence[int]],
    rows: Mapping[str, tuple[str, int]],
    expand: Callable[[], Program],
) -> LoopProgram:
    slot_homes: dict[int, Home] = {}
    matrix_homes: dict[int, Home] = {}
    outputs, numbers = [], {}
    for key, value in results.items():
        result: Any = np.asarray(value, dtype=object)[()]
        parts = [(0, result)]
        if isinstance(result, Assembled):
            parts, numbers[key] = list(result.parts), result.numbers.reshape(-1)
            outputs.append(Port(key, result.numbers.shape))
        elif isinstance(result, Result):
            outputs.append(Port(key, result.shape))
        for first, part in parts:
            _find_home(loops, key, first, part, slot_homes, matrix_homes)
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
        numbers=numbers,
        guard_slots=tuple(guards),
    )


def _find_home(
    loops: Loops,
    port: str,
    first: int,
    result: Any,
    slot_homes: dict[int, Home],
    matrix_homes: dict[int, Home],
) -> None:
    """Note where in an output a container is kept."""
    if not isinstance(result, Result):
        raise Unsuitable
    by, across = result.by, result.across or result.by
    if isinstance(result.of, Matrix):
        if result.of.number in matrix_homes:
            raise Unsuitable
        matrix_homes[result.of.number] = Home(port, by, across, first, result.strides)
    elif isinstance(result.of, Values):
        slots, layout = result.of.slots(), result.of.layout
        by_row, _, by_entry = result.strides
        if layout is None or layout.has_numbers or layout.entries != tuple(range(len(slots))):
            raise Unsuitable
        for k, slot in enumerate(slots):
            at = first + k * by_entry
            slot_homes[slot] = Home(port, by, across, at, (by_row, 0, 0))
    else:
        raise Unsuitable


def _guards(loops: Loops) -> tuple[list[tuple[int, str]], list[str]]:
    """Give what must be positive a place, in the order in which rows are looked at."""
    guards: list[tuple[int, str]] = []
    said: list[str] = []
    for loop in loops.steps:
        found: list[list[tuple[Any, Any]]]
        found = [list(scope.guards.values()) for scope in loop.scopes.values()]
        if not any(found):
            continue
        if loop.sort != ROWS or any(len(each) != 1 for each in found):
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
