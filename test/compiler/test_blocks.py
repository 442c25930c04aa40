# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Each pass leaves what programs compute as it is, whatever their size."""

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreted import evaluate

from mbs_dynamics.compiler import Program, atan2, cos, less, positive, select, sin, sqrt, trace
from mbs_dynamics.compiler.codegen.python import compile_python, emit_python
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.interpreter import evaluate_on
from mbs_dynamics.compiler.ir.nodes import SCRATCH, Call, Let, Load, Module, operands_of
from mbs_dynamics.compiler.passes import branches, pipeline
from mbs_dynamics.compiler.passes.sines import with_sines_together
from mbs_dynamics.compiler.passes.spilling import spilled

SHORT = 4
"""Operations after which values are spilled, so that small programs have spills."""


def verified(module: Module) -> Module:
    """Return a module that C and LLVM accept: each body defines what it uses, once, before it does,
    and uses conditions as conditions and numbers as numbers.
    """
    for body in (*[x.body for x in module.procedures], module.body):
        is_condition: dict[int, bool] = {}
        for x in body:
            kinds = ops.TABLE[x.op].signature if isinstance(x, Let) else "n" * len(operands_of(x))
            kinds = "c" if isinstance(x, Call) else kinds
            for operand, kind in zip(operands_of(x), kinds, strict=False):
                if type(operand) is int:
                    assert is_condition[operand] == (kind == "c"), x
            if isinstance(x, (Let, Load)):
                assert x.value not in is_condition, x
                is_condition[x.value] = isinstance(x, Let) and ops.TABLE[x.op].is_condition
    return module


STEPS = ("+", "-", "*", "/", "neg", "sin", "cos", "sqrt", "atan2", "choose", "scale", "guard")
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


PASSES: tuple[Callable[[Module], Module], ...] = (
    lambda x: with_sines_together(x, 1),
    lambda x: with_sines_together(x, 8),
    lambda x: spilled(x, SHORT),
    lambda x: spilled(x, SHORT, 7, branches=True),
    lambda x: spilled(x, SHORT, 7),
)


@pytest.mark.long
@given(
    steps(),
    st.lists(st.integers(0, 400), min_size=1, max_size=12),
    st.integers(1, 40),
    st.lists(st.floats(-2.0, 2.0), min_size=4, max_size=4),
)
def test_any_program_means_the_same_after_each_pass(todo, wanted, size, x):
    def function(x: Any) -> Any:
        values = follow(todo, x)
        return {
            "some": [values[k % len(values)] for k in wanted],
            "other": [values[-1], 2.5, x[1], values[-1], positive(x[2] + 1.0, "x[2] > -1")],
        }

    program = trace(function, {"x": (4,)}, name="f")
    whole = verified(program.module)
    expected, status = evaluate(whole, {"x": x})
    for change in (*PASSES, lambda module: spilled(module, 10**6, size)):
        same(verified(change(whole)), expected, status, x)
    changed = whole
    for change in (*PASSES[:2], PASSES[-1]):
        changed = verified(change(changed))
        same(changed, expected, status, x)
    if not status:
        for found, (name, values) in zip(compile_python(changed)(x), expected.items(), strict=True):
            np.testing.assert_array_equal(found, values, name)


@pytest.fixture(autouse=True)
def _short_branches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Skip what takes two operations already."""
    monkeypatch.setattr(branches, "LEAST", 2)


@pytest.mark.parametrize("holds", [False, True])
def test_what_a_condition_alone_needs_is_left_out_without_it(holds):
    """Of two laws with a part in common, those run that are chosen."""

    def function(x: Any) -> Any:
        common = sqrt(1.0 + x[2] * x[2])
        law, other = (sin(common + k) / common for k in (1.0, 2.0))
        one, two = less(0.0, x[0]), less(0.0, x[1])
        return [select(one, law, 0.0), select(two, other, 0.0), select(one, 2.0 * law, x[2])]

    module = trace(function, {"x": (3,)}, name="f").module
    changed = verified(spilled(module, SHORT, 7, branches=True))
    x = [1.0 if holds else -1.0, -1.0, 0.5]
    same(changed, *evaluate(module, {"x": x}), x)
    counted: list[str] = []
    meaning = {
        row.name: lambda *a, row=row: counted.append(row.name) or row.meaning(*a)
        for row in ops.ROWS
    }
    evaluate_on(changed, {"x": x}, meaning)
    assert counted.count("sin") == counted.count("sqrt") == holds


def test_conditions_that_depend_on_values_of_each_other_have_an_order():
    def function(x: Any) -> Any:
        one, other = (sqrt(1.0 + x[k] * x[k]) / (2.0 + x[k]) for k in (0, 1))
        first = less(select(less(x[2], 0.0), other, x[0]), 0.5)
        second = less(select(less(x[3], 0.0), one, x[1]), 0.5)
        return [select(first, one, 0.0), select(second, other, 0.0)]

    module = trace(function, {"x": (4,)}, name="f").module
    changed = verified(spilled(module, SHORT, 7, branches=True))
    for x in itertools.product((-1.0, 1.0), repeat=4):
        same(changed, *evaluate(module, {"x": x}), x)


def same(module: Module, expected: Any, status: int, x: Any) -> None:
    found, failed = evaluate(module, {"x": x})
    assert failed == status
    for name, values in expected.items():
        np.testing.assert_array_equal(found[name], values, name)


def there_and_back(size: int) -> Program:
    """Return a program that computes so many values and then a result of each."""

    def function(x: Any) -> Any:
        angle = sin(x[0])
        there = [x[k] * angle for k in range(size)]
        return np.array([y + y * y * 2.0 for y in there])

    return trace(function, {"x": (size,)}, name="there_and_back")


def test_no_use_is_far_from_a_load_or_a_use_before():
    def function(x: Any) -> Any:
        first = x[0] * x[1]
        many = [(x[2] + k) * x[2] for k in range(1, 20)]
        return [*many, first * x[0]]

    body = spilled(trace(function, {"x": (3,)}, name="f").module, SHORT).body
    assert any(isinstance(x, Load) and x.volatile and x.buffer.kind == SCRATCH for x in body)
    assert any(isinstance(x, Load) and x.volatile and x.buffer.kind != SCRATCH for x in body)
    last: dict[Any, int] = {}
    now = 0
    for x in body:
        now += isinstance(x, Let) or (isinstance(x, Load) and not x.volatile)
        for value in x.args if isinstance(x, Let) else ():
            if type(value) is int:
                assert now - last[value] <= SHORT
                last[value] = now
        if isinstance(x, (Let, Load)):
            last[x.value] = now


@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("target", pipeline.PASSES)
def test_every_pass_of_a_target_leaves_the_meaning(target, large, monkeypatch):
    monkeypatch.setattr(pipeline, "FAR", SHORT)
    limit = 0 if large else 10**6
    monkeypatch.setattr(pipeline, "LARGEST_BLOCK", dict.fromkeys(pipeline.LARGEST_BLOCK, limit))
    monkeypatch.setattr(pipeline, "CHUNK", 20)
    program, x = there_and_back(30), np.linspace(-1.0, 1.0, 30)
    module = program.module
    expected, status = evaluate(verified(module), {"x": x})
    for run in pipeline.PASSES[target]:
        module = verified(run(module, target))
        same(module, expected, status, x)
    assert emit_python(pipeline.lower(program, target)) == emit_python(module)
    assert bool(module.procedures) == (large and target != "python")
