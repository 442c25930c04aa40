# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What happens to a program between the trace and the printers, from top to bottom."""

from __future__ import annotations

from mbs_dynamics.compiler.frontend.loop_program import LoopProgram
from mbs_dynamics.compiler.ir.nodes import Module
from mbs_dynamics.compiler.passes.fission import divided
from mbs_dynamics.compiler.passes.hoisting import hoisted
from mbs_dynamics.compiler.passes.lowering_loops import lowered
from mbs_dynamics.compiler.passes.transposition import transposed


def loop_nest(program: LoopProgram, lanes: int = 1) -> Module:
    """Return a program with loops as it is printed, with memory for so many states at a time."""
    module = lowered(program, lanes)
    return hoisted(module)


def vector_loop_nest(program: LoopProgram) -> Module:
    """Return the same for one state, where parallel loops take several iterations at a time."""
    module = lowered(program)
    module = transposed(module)
    return hoisted(module)


def divided_loop_nest(program: LoopProgram, lanes: int) -> tuple[Module, Module] | None:
    """Return it as two modules for batches, for so many states and for one; None if it has none."""
    first, second = (divided(lowered(program, n)) for n in (lanes, 1))
    if first is None or second is None:
        return None
    return hoisted(first.rows), hoisted(transposed(second.wide))
