# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Pipeline of passes from the trace to the printers, in order."""

from __future__ import annotations

from collections.abc import Iterator

from mbs_dynamics.compiler.frontend.program import Program, uncollected
from mbs_dynamics.compiler.ir.nodes import Module
from mbs_dynamics.compiler.passes.sines import with_sines_together
from mbs_dynamics.compiler.passes.spilling import spilled
from mbs_dynamics.compiler.passes.strategy import CHUNK, FAR, LARGEST_BLOCK, WIDTH

Stages = Iterator[tuple[str, Module]]
"""The name of each pass, and the module after it."""


def for_llvm(program: Program, lanes: int = 1) -> Module:
    """Return a program as it is printed as LLVM IR, for one state or several at a time."""
    with uncollected():
        return last_of(llvm_stages(program, lanes))


def for_c(program: Program) -> Module:
    """Return a program as it is printed in C."""
    with uncollected():
        return last_of(c_stages(program))


def llvm_stages(program: Program, lanes: int = 1) -> Stages:
    """Yield the stages of a program up to LLVM IR."""
    program = program if lanes == 1 else program.straight
    yield "trace", (module := program.module)
    if not program.in_loops:
        yield "sines", (module := with_sines_together(module, WIDTH if lanes == 1 else 1))
        large = len(program.module.body) > LARGEST_BLOCK["llvm" if lanes == 1 else "llvm vectors"]
        yield "spilling", spilled(module, FAR, CHUNK if large else None)


def c_stages(program: Program) -> Stages:
    """Yield the stages of a program up to C."""
    yield "trace", (module := program.straight.module)
    if not program.in_loops and len(module.body) > LARGEST_BLOCK["c"]:
        yield "spilling", spilled(module, len(module.body), CHUNK)


def last_of(stages: Stages) -> Module:
    """Return the module after the last pass."""
    *_, (_, module) = stages
    return module
