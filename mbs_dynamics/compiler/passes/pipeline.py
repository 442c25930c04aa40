# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What happens to a program between the trace and the printers, from top to bottom."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from mbs_dynamics.compiler.frontend.program import Program, uncollected
from mbs_dynamics.compiler.ir.nodes import Module
from mbs_dynamics.compiler.passes import lowering_straight
from mbs_dynamics.compiler.passes.outlining import outlined
from mbs_dynamics.compiler.passes.scheduling import scheduled
from mbs_dynamics.compiler.passes.sines import with_sines_together
from mbs_dynamics.compiler.passes.spilling import spilled
from mbs_dynamics.compiler.passes.strategy import CHUNK, LARGEST_BLOCK, WIDTH

if TYPE_CHECKING:
    from mbs_dynamics.compiler.frontend.loop_program import LoopProgram

Stages = Iterator[tuple[str, Module]]
"""The name of each pass, and the module after it."""


def for_llvm(program: Program, lanes: int = 1) -> Module:
    """Return a program as it is printed as LLVM IR, for one state or several at a time."""
    return _final(llvm_stages(program, lanes))


def for_c(program: Program) -> Module:
    """Return a program as it is printed in C."""
    return _final(c_stages(program))


def for_python(program: Program) -> Module:
    """Return a program as it is printed in Python."""
    return _final(python_stages(program))


def llvm_stages(program: Program, lanes: int = 1) -> Stages:
    """Yield the way of a program to LLVM IR."""
    if program.in_loops:
        return _stages_of_loops(program, transpose=lanes == 1)
    return _llvm_stages_of_blocks(program, lanes)


def _llvm_stages_of_blocks(program: Program, lanes: int) -> Stages:
    module = lowering_straight.lowered(program)
    yield "lowering_straight", module
    if lanes > 1:
        module = scheduled(module)
        yield "scheduling", module
    module = with_sines_together(module, WIDTH if lanes == 1 else 1)
    yield "sines", module
    if len(program.nodes) > LARGEST_BLOCK["llvm" if lanes == 1 else "llvm vectors"]:
        module = outlined(module, CHUNK)
        yield "outlining", module
    module = spilled(module)
    yield "spilling", module


def c_stages(program: Program) -> Stages:
    """Yield the way of a program to C."""
    if program.in_loops:
        yield from _stages_of_loops(program)
        return
    module = lowering_straight.lowered(program)
    yield "lowering_straight", module
    if len(program.nodes) > LARGEST_BLOCK["c"]:
        module = outlined(module, CHUNK)
        yield "outlining", module


def python_stages(program: Program) -> Stages:
    """Yield the way of a program to Python."""
    if program.in_loops:
        yield from _stages_of_loops(program)
    else:
        yield "lowering_straight", lowering_straight.lowered(program)


def _stages_of_loops(program: Program, *, transpose: bool = False) -> Stages:
    # most robots have no loops, and these imports take time
    from mbs_dynamics.compiler.passes.hoisting import hoisted
    from mbs_dynamics.compiler.passes.transposition import transposed

    module = of_loops(program).module
    yield "trace", module
    if transpose:
        module = transposed(module)
        yield "transposition", module
    module = hoisted(module)
    yield "hoisting", module


def of_loops(program: Program) -> LoopProgram:
    """Return a program that is in loops, as such."""
    from mbs_dynamics.compiler.frontend.loop_program import LoopProgram

    assert isinstance(program, LoopProgram)
    return program


def _final(stages: Iterable[tuple[str, Module]]) -> Module:
    """Return the last module; each is verified if the environment has MBS_VERIFY_IR."""
    with uncollected():
        for name, module in stages:
            if os.environ.get("MBS_VERIFY_IR"):
                verified(name, module)
    return module


def verified(name: str, module: Module) -> None:
    """Raise InvalidProgram, with the name of the pass, if a module breaks a rule."""
    from mbs_dynamics.compiler.ir.verifier import InvalidProgram, verify

    try:
        verify(module)
    except InvalidProgram as error:
        raise InvalidProgram(f"after {name} of {module.name}: {error}") from None
