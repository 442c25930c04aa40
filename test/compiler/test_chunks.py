# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Chunks: they compute what their program says, whatever their size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mbs_dynamics.compiler import (
    Program,
    Symbol,
    atan2,
    cos,
    less,
    positive,
    select,
    sin,
    sqrt,
    trace,
)
from mbs_dynamics.compiler.codegen.python import compile_python
from mbs_dynamics.compiler.frontend.graph import Condition
from mbs_dynamics.compiler.passes.chunks import Outline, hoistable, outlined

pytestmark = pytest.mark.backend_independent


def operation(node: Any, args: list[Any]) -> Any:
    """Evaluate one node."""
    return {
        "+": lambda a, b: a + b,
        "-": lambda a, b: a - b,
        "*": lambda a, b: a * b,
        "/": lambda a, b: a / b,
        "neg": lambda a: -a,
        "sin": math.sin,
        "cos": math.cos,
        "sqrt": math.sqrt,
        "atan2": math.atan2,
        "<": lambda a, b: a < b,
        "<=": lambda a, b: a <= b,
        "select": lambda c, a, b: a if c else b,
    }[node.op](*args)


def run(
    outline: Outline, program: Program, inputs: list[list[float]]
) -> tuple[list[Any], list[Any]]:
    """Return the outputs and the guards of a program in chunks, evaluated as machine code does."""
    memory: list[Any] = [math.nan] * outline.size
    ports = dict(zip((port.name for port in program.inputs), inputs, strict=True))
    outputs = [[x if isinstance(x, float) else math.nan for x in y] for y in program.values]

    def value(x: Any, slots: dict[int, int], known: dict[int, Any]) -> Any:
        if isinstance(x, float):
            return x
        if x.op == "input":
            return ports[x.args[0]][x.args[1]]
        return known[x.id] if x.id in known else memory[slots[x.id]]

    for node in (*outline.hoisted, *outline.sines):
        memory[outline.slots[node.id]] = operation(
            node, [value(x, outline.slots, {}) for x in node.args]
        )
    symbols = {x.id: x for y in program.values for x in y if isinstance(x, Symbol)}
    for k, entries in outline.outputs.items():
        for output, entry in entries:
            outputs[output][entry] = value(symbols[k], outline.slots, {})
    for chunk in outline.chunks:
        assert not set(chunk.loads.values()) & set(chunk.stores.values())
        known: dict[int, Any] = {}
        for node in chunk.nodes:
            args = [value(x, chunk.loads, known) for x in node.args]
            known[node.id] = operation(node, args)
            if node.id in chunk.stores:
                memory[chunk.stores[node.id]] = known[node.id]
            for output, entry in chunk.outputs.get(node.id, ()):
                outputs[output][entry] = known[node.id]
    return outputs, [value(x, outline.slots, {}) for x, _ in program.guards]


STEPS = (
    "+",
    "-",
    "*",
    "/",
    "neg",
    "sin",
    "cos",
    "sqrt",
    "atan2",
    "choose",
    "scale",
    "guard",
)
NUMBERS = (2.0, -3.0, 0.5, 0.1, 7.25)


def follow(steps: list[tuple[str, int, int, float]], x: Any) -> list[Any]:
    """Do these steps on whatever stands so far, and return it all."""
    values = list(x)
    for op, i, j, c in steps:
        a, b = values[i % len(values)], values[j % len(values)]
        value = {
            "+": lambda a=a, b=b: a + b,
            "-": lambda a=a, b=b: a - b,
            "*": lambda a=a, b=b: 0.1 * (a * b),
            "/": lambda a=a, b=b: a / (1.0 + b * b),
            "neg": lambda a=a: -a,
            "sin": lambda a=a: sin(a),
            "cos": lambda a=a: cos(a),
            "sqrt": lambda a=a: sqrt(1.0 + a * a),
            "atan2": lambda a=a, b=b: atan2(a, 2.0 + b * b),
            "choose": lambda a=a, b=b, c=c: select(less(a, b), c * a, b),
            "scale": lambda a=a, c=c: c * a,
            "guard": lambda a=a: positive(1.5 + sin(a), "never"),
        }[op]()
        values.append(value)
    return values


def steps() -> Any:
    step = st.tuples(
        st.sampled_from(STEPS), st.integers(0, 200), st.integers(0, 200), st.sampled_from(NUMBERS)
    )
    repeated = st.tuples(st.lists(step, min_size=1, max_size=12), st.integers(1, 8))
    return st.lists(repeated, min_size=1, max_size=5).map(
        lambda parts: [one for part, times in parts for one in part * times]
    )


@settings(max_examples=100)
@given(
    steps(),
    st.lists(st.integers(0, 400), min_size=1, max_size=12),
    st.sampled_from([1, 3, 8]),
    st.integers(1, 40),
)
def test_any_program_in_any_chunks(todo, wanted, group, size):
    def function(x: Any) -> Any:
        values = follow(todo, x)
        return {
            "some": [values[k % len(values)] for k in wanted],
            "other": [values[-1], 2.5, x[1], values[-1]],
        }

    program = trace(function, {"x": (4,)}, name="f")
    outline = outlined(program, group=group, size=size)
    x = [0.3, -0.7, 1.1, 0.2]
    found, guards = run(outline, program, [x])
    expected = compile_python(program)(x)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert all(guard > 0.0 for guard in guards)
    assert len(guards) == len(program.guards)
    sizes = [len(chunk.nodes) for chunk in outline.chunks]
    assert max(sizes, default=0) <= size
    assert max(sizes, default=0) - min(sizes, default=0) <= 1
    before = len(outline.hoisted) + len(outline.sines)
    inputs = sum(node.op == "input" for node in program.nodes)
    assert sum(sizes) + before + inputs == len(program.nodes)


def test_conditions_and_guards_cross_boundaries():
    def function(x: Any) -> Any:
        condition = less(x[0] * x[1], x[2])
        pivot = positive(x[2] * x[2], "never")
        many = [x[0] + k for k in range(10)]
        return [select(condition, y, pivot) for y in many]

    program = trace(function, {"x": (3,)}, name="f")
    outline = outlined(program, size=4)
    crossing = {k for chunk in outline.chunks for k in chunk.stores}
    assert any(isinstance(x, Condition) and x.id in crossing for x in program.nodes)
    for x in ([1.0, 2.0, 3.0], [1.0, 2.0, -1.0]):
        (found,), guards = run(outline, program, [x])
        np.testing.assert_array_equal(found, compile_python(program)(x)[0])
        assert guards == [x[2] * x[2]]


def test_angles_at_hand_are_hoisted():
    def function(x: Any) -> Any:
        first = sin(2.0 * x[0] + 0.5) * cos(x[1])
        return sin(first) + cos(atan2(x[0], x[1])) + sin(x[1])

    hoisted, sines = hoistable(trace(function, {"x": (2,)}, name="f"))
    assert [node.op for node in hoisted] == ["*", "+"]
    assert [node.op for node in sines] == ["sin", "cos", "sin"]


def test_an_empty_program_has_no_chunks():
    outline = outlined(trace(lambda x: [x[0], 1.0], {"x": (1,)}, name="f"))
    assert outline.chunks == []
    assert outline.size == 0


def test_slots_are_used_again():
    def function(x: Any) -> Any:
        value = x[0]
        for _ in range(1000):
            value = value * x[1] + value
        return [value]

    outline = outlined(trace(function, {"x": (2,)}, name="f"), size=10)
    assert len(outline.chunks) == 200
    assert outline.size <= 4
