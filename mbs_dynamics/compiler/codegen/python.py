# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The plain-Python emitter: a program as the source of one Python function."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.program import Program

INLINE_DEPTH = 12
"""How deep nodes with a single user are nested into the expression of that user."""

INFIX = {g.ADD: "+", g.SUB: "-", g.MUL: "*", g.DIV: "/", g.LESS: "<", g.LESS_EQUAL: "<="}
CALL = {g.SIN: "sin", g.COS: "cos", g.SQRT: "sqrt", g.ATAN2: "atan2"}


def emit_python(program: Program) -> str:
    """Return the source of ``def <name>(<inputs>)``, which takes flat lists and returns flat lists.

    The source needs ``sin, cos, sqrt, atan2, quotient`` and ``failed`` in its namespace; see
    :func:`compile_python`.
    """
    if program.in_loops:
        return _in_loops(program)[0]
    users: dict[int, int] = {}
    for node in program.nodes:
        if node.op != g.INPUT:
            for x in node.args:
                if isinstance(x, (Symbol, Condition)):
                    users[x.id] = users.get(x.id, 0) + 1
    for output in (*program.values, [x for x, _ in program.guards]):
        for x in output:
            if isinstance(x, Symbol):
                users[x.id] = users.get(x.id, 0) + 1

    text: dict[int, str] = {}
    depth: dict[int, int] = {}
    lines = []

    def ref(x: Any) -> str:
        return text[x.id] if isinstance(x, (Symbol, Condition)) else repr(float(x))

    for port in program.inputs:
        if port.size:
            names = "".join(f"{port.name}_{k}, " for k in range(port.size))
            lines.append(f"    ({names}) = {port.name}")
    for node in program.nodes:
        if node.op == g.INPUT:
            text[node.id], depth[node.id] = f"{node.args[0]}_{node.args[1]}", 0
            continue
        expression = _expression(node, ref)
        level = 1 + max((depth.get(getattr(x, "id", -1), 0) for x in node.args), default=0)
        if users[node.id] == 1 and level <= INLINE_DEPTH:
            text[node.id], depth[node.id] = f"({expression})", level
        else:
            lines.append(f"    t{node.id} = {expression}")
            text[node.id], depth[node.id] = f"t{node.id}", 0
    for k, (x, _) in enumerate(program.guards):
        lines.append(f"    if not {ref(x)} > 0.0: failed({k})")
    results = ["[" + ", ".join(ref(x) for x in output) + "]" for output in program.values]
    lines.append(f"    return {', '.join(results)},")
    arguments = ", ".join(port.name for port in program.inputs)
    return f"def {program.name}({arguments}):\n" + "\n".join(lines) + "\n"


def _expression(node: Symbol | Condition, ref: Callable[[Any], str]) -> str:
    args = [ref(x) for x in node.args]
    if node.op == g.NEG:
        return f"-{args[0]}"
    if node.op == g.SELECT:
        return f"{args[1]} if {args[0]} else {args[2]}"
    if node.op == g.DIV:
        return f"quotient({args[0]}, {args[1]})"
    if node.op in INFIX:
        return f"{args[0]} {INFIX[node.op]} {args[1]}"
    return f"{CALL[node.op]}({', '.join(args)})"


def _quotient(a: float, b: float) -> float:
    """IEEE division, as in machine code: no exception in a branch that select does not take."""
    try:
        return a / b
    except ZeroDivisionError:
        return math.nan if a == 0.0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _quiet(function: Callable[[float], float]) -> Callable[[float], float]:
    """Return NaN where ``math`` raises, as machine code does."""

    def quiet(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan

    return quiet


class Failed(Exception):  # noqa: N818
    """A guard was not positive; the argument is its index."""


def _failed(guard: int) -> None:
    raise Failed(guard)


NAMESPACE: dict[str, Any] = {
    "sin": _quiet(math.sin),
    "cos": _quiet(math.cos),
    "sqrt": _quiet(math.sqrt),
    "atan2": math.atan2,
    "quotient": _quotient,
    "failed": _failed,
    "inf": math.inf,
    "nan": math.nan,
    "__builtins__": {},
}


def compile_python(program: Program) -> Callable[..., Sequence[list[float]]]:
    """Return the program as a Python function of flat lists; one flat list per output."""
    names = dict(NAMESPACE)
    source, more = _in_loops(program) if program.in_loops else (emit_python(program), {})
    names.update(more)
    exec(compile(source, f"<{program.name}>", "exec"), names)
    return names[program.name]  # type: ignore[no-any-return]


def _in_loops(program: Program) -> tuple[str, dict[str, Any]]:
    """Return the source of a program with loops, and the names that it needs."""
    from mbs_dynamics.compiler.codegen import python_module
    from mbs_dynamics.compiler.frontend.loop_program import LoopProgram
    from mbs_dynamics.compiler.passes.pipeline import loop_nest

    assert isinstance(program, LoopProgram)
    module = loop_nest(program)
    return python_module.emit_module(module), python_module.namespace(module)
