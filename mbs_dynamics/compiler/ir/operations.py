# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The operations on doubles, by the names that they have from the trace to the printers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from mbs_dynamics.compiler.ir.nodes import Block, Call, For, Let, Module, Switch, Variable

ADD, SUB, MUL, DIV, NEG = "+", "-", "*", "/", "neg"
SIN, COS, SQRT, ATAN2 = "sin", "cos", "sqrt", "atan2"
LESS, LESS_EQUAL, SELECT = "<", "<=", "select"

CONDITIONS = (LESS, LESS_EQUAL)
"""Operations whose values are conditions, not numbers."""


def evaluations(module: Module) -> Counter[str]:
    """Return how often each operation is evaluated. Both operands of a select are."""
    total: Counter[str] = Counter()
    own: dict[int, Counter[str]] = {}

    def count(body: Block, variables: Mapping[Variable, int], times: int) -> None:
        if id(body) not in own:
            own[id(body)] = Counter(x.op for x in body if isinstance(x, Let))
        for op, number in own[id(body)].items():
            total[op] += number * times
        for x in body:
            match x:
                case For():
                    rows = range(x.begin.value(variables), x.end.value(variables))
                    if x.parallel:
                        count(x.body, variables, len(rows) * times)
                    else:
                        for k in rows:
                            count(x.body, {**variables, x.variable: k}, times)
                case Switch():
                    count(dict(x.cases).get(x.on.value(variables), ()), variables, times)
                case Call(procedure, arguments):
                    given = [at.value(variables) for at in arguments]
                    count(
                        procedure.body, dict(zip(procedure.parameters, given, strict=True)), times
                    )

    count(module.body, {}, 1)
    return total
