# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What is the same in all iterations of a parallel loop is computed once, before the loop."""

from __future__ import annotations

from collections.abc import Sequence

from mbs_dynamics.compiler.ir.nodes import (
    Equal,
    For,
    Let,
    Load,
    Module,
    Procedure,
    Statement,
    Variable,
    calling,
    indices_of,
    operands_of,
)


def hoisted(module: Module) -> Module:
    """Return the module with what does not vary before the parallel loops of its procedures."""
    instead: dict[Procedure, Procedure] = {}
    for procedure in module.procedures:
        body = calling(_hoisted(procedure.body), instead)
        instead[procedure] = procedure.with_body(body)
    return module._replace(body=calling(_hoisted(module.body), instead))


def _hoisted(body: Sequence[Statement]) -> tuple[Statement, ...]:
    found: list[Statement] = []
    for statement in body:
        if isinstance(statement, For) and statement.parallel:
            before, within = _divided(statement.body, statement.variable)
            found += before
            statement = statement._replace(body=tuple(within))
        found.append(statement)
    return tuple(found)


def _divided(
    body: Sequence[Statement], variable: Variable
) -> tuple[list[Statement], list[Statement]]:
    """Return what does not depend on the variable, and what does."""
    before: list[Statement] = []
    within: list[Statement] = []
    varying: set[int] = set()
    for statement in body:
        if isinstance(statement, (Let, Load, Equal)):
            operands = varying.intersection(x for x in operands_of(statement) if type(x) is int)
            if not operands and not _varies(statement, variable):
                before.append(statement)
                continue
            varying.add(statement.value)
        within.append(statement)
    return before, within


def _varies(statement: Statement, variable: Variable) -> bool:
    return any(variable in at.variables for at in indices_of(statement))
