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
from mbs_dynamics.compiler.frontend.loop_program import (
    Assignment,
    LoopBody,
    LoopProgram,
    OutputBinding,
    Step,
)
from mbs_dynamics.compiler.frontend.loops import (
    CELL,
    INWARD,
    LOAD,
    OWN,
    PAIRS,
    ROWS,
    STATE,
    Address,
    Forest,
    Loops,
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
    layouts: dict[int, Any] = {}
    for _ in range(ATTEMPTS):
        loops, top = Loops(forest, layouts), Graph()
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
            if not loops.inferred:
                raise
        finally:
            loops.forget()
        if not loops.inferred:
            break
        layouts.update(loops.inferred)
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
    value_bindings: dict[int, OutputBinding] = {}
    matrix_bindings: dict[int, OutputBinding] = {}
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
            _find_binding(loops, key, first, part, value_bindings, matrix_bindings)
    guards, texts = _guards(loops)
    fields = (*value_bindings, *(field for field, _ in guards))
    keep = {Address(STATE, field, 0, OWN) for field in fields}
    keep |= {Address(CELL, matrix, 0, "", "") for matrix in matrix_bindings}
    steps, hoisted = _needed(loops, keep)
    used = {port for loop_body in _loop_bodies(steps, hoisted) for port in _ports(loop_body)}
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
        hoisted=hoisted,
        angles=tuple(loops.angles),
        fields=loops.fields,
        tables=tuple(loops.tables),
        matrices=tuple(loops.matrices),
        blocks=dict(loops.blocks),
        places={key: np.array(value, dtype=np.int64) for key, value in places.items()},
        rows=dict(rows),
        value_bindings=value_bindings,
        matrix_bindings=matrix_bindings,
        numbers=numbers,
        guard_fields=tuple(guards),
    )


def _find_binding(
    loops: Loops,
    port: str,
    first: int,
    result: Any,
    value_bindings: dict[int, OutputBinding],
    matrix_bindings: dict[int, OutputBinding],
) -> None:
    """Note where in an output a container is kept."""
    if not isinstance(result, Result):
        raise Unsuitable
    by, across = result.by, result.across or result.by
    if isinstance(result.of, Matrix):
        if result.of.number in matrix_bindings:
            raise Unsuitable
        matrix_bindings[result.of.number] = OutputBinding(port, by, across, first, result.strides)
    elif isinstance(result.of, Values):
        fields, layout = result.of.fields(), result.of.layout
        by_row, _, by_entry = result.strides
        if layout is None or layout.has_numbers or layout.entries != tuple(range(len(fields))):
            raise Unsuitable
        for k, field in enumerate(fields):
            at = first + k * by_entry
            value_bindings[field] = OutputBinding(port, by, across, at, (by_row, 0, 0))
    else:
        raise Unsuitable


def _guards(loops: Loops) -> tuple[list[tuple[int, str]], list[str]]:
    """Give what must be positive an address, in the order in which rows are looked at."""
    guards: list[tuple[int, str]] = []
    said: list[str] = []
    for loop in loops.steps:
        found: list[list[tuple[Any, Any]]]
        found = [list(scope.guards.values()) for scope in loop.scopes.values()]
        if not any(found):
            continue
        if loop.sort != ROWS or any(len(each) != 1 for each in found):
            raise Unsuitable
        field = loops.new_fields(1)
        for scope, ((excess, text),) in zip(loop.scopes.values(), found, strict=True):
            scope.store(Address(STATE, field, 0, OWN), excess)
            if not isinstance(text, Texts):
                raise Unsuitable
        guards.append((field, loop.direction))
        said += text.texts[::-1] if loop.direction == INWARD else text.texts
    return guards, said


# -- what is needed --------------------------------------------------------------------------------


def _needed(loops: Loops, keep: set[Address]) -> tuple[tuple[Step, ...], dict[int, LoopBody]]:
    """Return the loops without what nobody loads."""
    wanted = {_target(address) for address in keep}
    scopes = [s for loop in loops.steps for s in loop.scopes.values()] + [*loops.hoisted.values()]
    for k in loops.angles:
        wanted.add((STATE, k))
    loop_bodies: dict[int, LoopBody] = {}
    before = -1
    while len(wanted) != before:
        before = len(wanted)
        loop_bodies = {id(scope): _loop_body(scope, wanted) for scope in scopes}
        for loop_body in loop_bodies.values():
            wanted |= {_target(node.args[0]) for node in loop_body.nodes if node.op == LOAD}
    steps = []
    for loop in loops.steps:
        live = {kind: loop_bodies[id(scope)] for kind, scope in loop.scopes.items()}
        live = {kind: loop_body for kind, loop_body in live.items() if loop_body.stores}
        if live:
            if loop.sort == PAIRS and len({loop_body.signature for loop_body in live.values()}) > 1:
                raise Unsuitable
            steps.append(Step(loop.sort, loop.direction, loop.domain, live))
    return tuple(steps), {kind: loop_bodies[id(scope)] for kind, scope in loops.hoisted.items()}


def _target(address: Address) -> tuple[str, Any]:
    return address.space, address.name


def _loop_body(scope: Scope, wanted: set[tuple[str, Any]]) -> LoopBody:
    stores = [
        Assignment(address, value, after)
        for address, (value, after) in scope.stores.items()
        if _target(address) in wanted
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
    return LoopBody(tuple(node for node in scope.nodes if needed[node.id]), tuple(stores))


def _loop_bodies(steps: Sequence[Step], hoisted: Mapping[int, LoopBody]) -> list[LoopBody]:
    return [loop_body for step in steps for loop_body in step.loop_bodies.values()] + list(
        hoisted.values()
    )


def _ports(loop_body: LoopBody) -> set[str]:
    """Return the names of the inputs that a loop body reads."""
    places = [node.args[0] for node in loop_body.nodes if node.op == LOAD]
    return {address.name for address in places if isinstance(address.name, str)}
