# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A program in C99, without dependencies beyond math.h; in chunks if it is large."""

from __future__ import annotations

from typing import NamedTuple

from mbs_dynamics.compiler.codegen.c_body import Style, emit_straight, identifier
from mbs_dynamics.compiler.codegen.c_chunks import emit_chunks
from mbs_dynamics.compiler.frontend.program import Program, uncollected
from mbs_dynamics.compiler.passes.chunks import outlined

STRAIGHT = 6000
"""Programs of more nodes than this are written in chunks.

Measured with gcc -O1 for arms and humanoids: chunks take 0.6 to 0.7 of the time of one function to
compile with 4,000 to 6,000 nodes and a quarter with 9,000, and as long to run.
"""

STACK = 1 << 16
"""A scratch memory of more bytes than this is the caller's: an argument of the function."""


class CFunction(NamedTuple):
    """A program as C99 source of ``int <name>(const double inputs..., double outputs...)``.

    The function returns 0, or k if the k-th of the program's guards, counted from one, is not
    positive; the outputs then mean nothing. All arguments are flat, row-major arrays of the sizes
    written in the signature; outputs must not overlap inputs. The function allocates nothing and
    keeps no state. In single precision every number and every operation is a float.
    """

    signature: str
    """The declaration, without the semicolon."""
    definition: str
    """The function, and before it the static functions that it needs."""
    stack: int
    """Bytes of an array of its own on the stack; the compiler's variables come on top."""
    workspace: int
    """How many numbers there must be room for at the last argument, ``workspace``, which means
    nothing between calls; 0 if there is no such argument."""


def c_function(
    program: Program, *, name: str | None = None, precision: str = "double"
) -> CFunction:
    """Return a program in C. Memory beyond :data:`STACK` is the caller's."""
    name = name or identifier(program.name)
    style = Style(program, precision)
    if program.in_loops:
        return _in_loops(program, style, name)
    if len(program.nodes) <= STRAIGHT:
        signature = style.signature(name)
        return CFunction(signature, emit_straight(program, style, signature), 0, 0)
    with uncollected():
        outline = outlined(program)
        size = style.bytes * outline.size
        workspace = outline.size if size > STACK else 0
        signature = style.signature(name, workspace)
        definition = emit_chunks(program, outline, style, name, signature, own=not workspace)
    return CFunction(signature, definition, 0 if workspace else size, workspace)


def emit_c(program: Program) -> str:
    """Return a C99 file with the program as one function; see :class:`CFunction`."""
    return "#include <math.h>\n\n" + c_function(program).definition


def _in_loops(program: Program, style: Style, name: str) -> CFunction:
    """Return a program in C whose loops are loops: a function of its own with other names."""
    from mbs_dynamics.compiler.codegen.c_module import emit_module, memory_of
    from mbs_dynamics.compiler.frontend.loop_program import LoopProgram
    from mbs_dynamics.compiler.passes.pipeline import loop_nest

    assert isinstance(program, LoopProgram)
    module = loop_nest(program)
    size = memory_of(module)
    workspace = size if style.bytes * size > STACK else 0
    signature = style.signature(name, workspace)
    memory = "workspace" if workspace else "memory"
    given = ", ".join([memory, *style.inputs, *style.outputs])
    own = [] if workspace else [f"  {style.kind} memory[{max(size, 1)}];"]
    lines = [signature, "{", *own, f"  return {name}_all({given});", "}", ""]
    definition = emit_module(module, name, style.kind, style.suffix) + "\n".join(lines)
    return CFunction(signature, definition, 0 if workspace else style.bytes * size, workspace)
