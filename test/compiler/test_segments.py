# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Segments: a plan computes what its program says, whatever is cut where; chains share code."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mechanisms import random_mechanism

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import _in_loops as in_loops
from mbs_dynamics.algorithms import algorithm_of
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
from mbs_dynamics.compiler.frontend import graph
from mbs_dynamics.compiler.frontend.graph import Condition
from mbs_dynamics.compiler.passes.plan import MEMORY, Plan, prologue
from mbs_dynamics.compiler.passes.segments import segmented

pytestmark = pytest.mark.backend_independent


# -- a plan, step by step --------------------------------------------------------------------------


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


def run(plan: Plan, program: Program, inputs: list[list[float]]) -> tuple[list[Any], list[float]]:
    """Return the outputs and the guards of a plan, evaluated as machine code does."""
    memory = [math.nan] * plan.memory
    ports = [list(map(float, x)) for x in inputs]
    ports += [
        [x if isinstance(x, float) else math.nan for x in values] for values in program.values
    ]
    names = [port.name for port in program.inputs]

    def known(x: Any) -> float:
        if isinstance(x, float):
            return x
        return (
            ports[names.index(x.args[0])][x.args[1]] if x.op == "input" else memory[plan.home[x.id]]
        )

    for node in (*plan.early, *plan.trig):
        memory[plan.home[node.id]] = operation(node, [known(x) for x in node.args])
    addresses, constants = plan.addresses.tolist(), plan.constants.tolist()
    for call in plan.calls:
        function = plan.functions[call]
        row, addresses = addresses[: function.addresses], addresses[function.addresses :]
        numbers, constants = constants[: function.constants], constants[function.constants :]
        following = iter(function.numbers)
        values: dict[int, Any] = {}

        def at(place: Any, row: Any = row) -> tuple[list[float], int]:
            where = memory if place.port == MEMORY else ports[place.port]
            return where, place.offset + (0 if place.column is None else row[place.column])

        for node in function.nodes:
            args = []
            for x in node.args:
                if isinstance(x, float):
                    number = next(following)
                    args.append(number if isinstance(number, float) else numbers[number])
                elif x.id in values:
                    args.append(values[x.id])
                else:
                    where, k = at(function.loads[x.id])
                    args.append(where[k])
            values[node.id] = operation(node, args)
            for place in function.stores.get(node.id, ()):
                where, k = at(place)
                where[k] = values[node.id]
    assert not addresses
    assert not constants
    outputs = ports[len(inputs) :]
    before = {x.id for x in (*plan.early, *plan.trig)}
    for values_, output in zip(program.values, outputs, strict=True):
        for k, x in enumerate(values_):
            if isinstance(x, Symbol) and (x.op == "input" or x.id in before):
                output[k] = known(x)
    return outputs, [known(x) for x, _ in program.guards]


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
    "turn",
)
NUMBERS = (2.0, -3.0, 0.5, 0.1, 7.25)


def follow(steps: list[tuple[str, int, int, float]], x: Any) -> list[Any]:
    """Do these steps on whatever stands so far, and return it all."""
    values = list(x)
    for op, i, j, c in steps:
        a, b = values[i % len(values)], values[j % len(values)]
        if op == "turn":
            if isinstance(x[0], Symbol):
                x[0].graph.turn()
            continue
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
    st.integers(1, 20),
    st.booleans(),
)
def test_any_program_in_any_pieces(todo, wanted, together, longest, shortest, rolled):
    def function(x: Any) -> Any:
        values = follow(todo, x)
        return {
            "some": [values[k % len(values)] for k in wanted],
            "other": [values[-1], 2.5, x[1], values[-1]],
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "LARGE", 0 if rolled else sys.maxsize)
        program = trace(function, {"x": (4,)}, name="f")
    plan = segmented(program, together=together, longest=longest, shortest=shortest)
    x = [0.3, -0.7, 1.1, 0.2]
    found, guards = run(plan, program, [x])
    expected = compile_python(program)(x)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)
    assert all(guard > 0.0 for guard in guards)
    assert len(guards) == len(program.guards)
    pieces = [len(plan.functions[k].nodes) for k in plan.calls]
    before = len(plan.early) + len(plan.trig) + sum(x.op == "input" for x in program.nodes)
    assert sum(pieces) + before == len(program.nodes)


def test_a_condition_and_a_guard_cross_boundaries():
    def function(x: Any) -> Any:
        condition = less(x[0] * x[1], x[2])
        pivot = positive(x[2] * x[2], "never")
        x[0].graph.turn()
        many = [x[0] + k for k in range(10)]
        x[0].graph.turn()
        return [select(condition, y, pivot) for y in many]

    program = trace(function, {"x": (3,)}, name="f")
    plan = segmented(program, longest=4, shortest=1)
    assert any(isinstance(node, Condition) for f in plan.functions for node in f.nodes)
    for x in ([1.0, 2.0, 3.0], [1.0, 2.0, -1.0]):
        (found,), guards = run(plan, program, [x])
        np.testing.assert_array_equal(found, compile_python(program)(x)[0])
        assert guards == [x[2] * x[2]]


def test_the_prologue_takes_angles_that_are_at_hand():
    def function(x: Any) -> Any:
        first = sin(2.0 * x[0] + 0.5) * cos(x[1])
        return sin(first) + cos(atan2(x[0], x[1])) + sin(x[1])

    early, trig = prologue(trace(function, {"x": (2,)}, name="f"))
    assert [node.op for node in early] == ["*", "+"]
    assert [node.op for node in trig] == ["sin", "cos", "sin"]


def test_an_empty_program():
    plan = segmented(trace(lambda x: [x[0], 1.0], {"x": (1,)}, name="f"))
    assert plan.calls == ()
    assert plan.functions == ()


# -- robots ----------------------------------------------------------------------------------------


def chain(n: int) -> mbs.Model:
    """Return a generic chain of n revolute joints."""
    return random_mechanism(5, range(-1, n - 1), ("revolute",)).model


def plan_of(function: Any, model: mbs.Model, **options: Any) -> Plan:
    """Return the plan of an algorithm, traced as a large program is."""
    made = algorithm_of(function)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(graph, "LARGE", 0)
        patch.setattr(in_loops, "MANY", sys.maxsize)
        patch.setattr(in_loops, "DEEP", np.inf)
        program = made.program(model, made.required, {**made.options, **options})
    return segmented(program, together=8)


SHARING = [
    (mbs.inverse_dynamics, "body_fixed", 15, 2500),
    (mbs.forward_dynamics, "body_fixed", 25, 4000),
    (mbs.mass_matrix, "body_fixed", 30, 5000),
    (mbs.mass_matrix, "spatial", 40, 6000),
]
"""Algorithms, and what they are compiled from: at most so many functions with so many nodes."""


@pytest.mark.parametrize(("function", "representation", "functions", "nodes"), SHARING)
def test_chains_of_any_length_share_code(function, representation, functions, nodes):
    for n in (24, 64):
        plan = plan_of(function, chain(n), representation=representation)
        assert len(plan.functions) <= functions
        assert sum(len(f.nodes) for f in plan.functions) <= nodes
    assert len(plan.calls) > 4 * len(plan.functions)


def test_what_has_no_loops_that_turn_shares_code_as_well():
    for n in (24, 64):
        model = chain(n)
        plan = plan_of(mbs.jacobian, model, body=model.leaves[0], representation="body_fixed")
        assert sum(len(f.nodes) for f in plan.functions) <= 2000


def test_frames_are_used_again():
    short, long = (plan_of(mbs.mass_matrix, chain(n), representation="spatial") for n in (24, 48))
    assert long.memory < 2.5 * short.memory  # linear in the bodies; the operations are quadratic
