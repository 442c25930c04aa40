# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loop-invariant code of parallel loops is computed once, before the loop."""

from __future__ import annotations

from collections.abc import Iterator

from mbs_dynamics.compiler.ir import nodes as ir


def hoisted(module: ir.Module) -> ir.Module:
    """Return the module with invariant statements before the parallel loops that they were in."""
    return module.rewritten(_hoisted)


def _hoisted(body: ir.Block) -> Iterator[ir.Statement]:
    for statement in body:
        if isinstance(statement, ir.For) and statement.parallel:
            within: list[ir.Statement] = []
            varying: set[ir.Operand] = set()
            for x in statement.body:
                defines = isinstance(x, (ir.Let, ir.Load))
                varies = any(statement.variable in at.variables for at in ir.indices_of(x))
                if defines and not varies and varying.isdisjoint(ir.operands_of(x)):
                    yield x
                    continue
                if isinstance(x, (ir.Let, ir.Load)):
                    varying.add(x.value)
                within.append(x)
            statement = statement._replace(body=tuple(within))
        yield statement
