# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A program in chunks in C99: a static function for each chunk, and one that calls them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mbs_dynamics.compiler.codegen.c_body import Style
from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.passes.chunks import Chunk, Outline


def emit_chunks(
    program: Program, outline: Outline, style: Style, name: str, signature: str, *, own: bool
) -> str:
    """Return the definition of a program's function, and before it of the chunks that it calls.

    ``name`` begins the names of the chunks. The scratch memory is an array of the function if it is
    its ``own``, else its parameter ``workspace``.
    """
    kind = style.kind
    parameters = [f"{kind} *memory", *(f"const {kind} *{x}" for x in style.inputs)]
    parameters += [f"{kind} *{x}" for x in style.outputs]
    arguments = ", ".join(["memory", *style.inputs, *style.outputs])
    lines = []
    for k, chunk in enumerate(outline.chunks):
        lines += [f"static void {name}_{k}(", f"    {', '.join(parameters)})", "{"]
        lines += [*_chunk(chunk, style), "}", ""]
    memory = f"memory[{max(outline.size, 1)}]" if own else "*const memory = workspace"
    lines += [signature, "{", f"  {kind} {memory};"]
    lines += style.numbers()
    ref = _Operands(outline.slots, style)
    for node in (*outline.hoisted, *outline.sines):
        lines += _spilled(node, style.expression(node, ref), outline.slots[node.id], style)
    values = {x.id: x for values in program.values for x in values if isinstance(x, Symbol)}
    for k in outline.outputs:
        lines += _stored(ref(values[k]), outline.outputs[k], style)
    lines += [f"  {name}_{k}({arguments});" for k in range(len(outline.chunks))]
    return "\n".join([*lines, "  (void)memory;", *style.end(ref), ""])


class _Operands:
    """What stands for operands: inputs and slots of the scratch memory as they are."""

    def __init__(self, slots: dict[int, int], style: Style) -> None:
        self.slots, self.style = slots, style
        self.variables: set[int] = set()
        """Nodes, by id, whose values are in variables."""

    def __call__(self, x: Any) -> str:
        if not isinstance(x, (Symbol, Condition)):
            return self.style.constant(x)
        if x.op is g.INPUT:
            return self.style.expression(x, self)
        if x.id in self.variables:
            return f"t{x.id}"
        value = f"memory[{self.slots[x.id]}]"
        return f"({value} > {self.style.constant(0.0)})" if isinstance(x, Condition) else value


def _chunk(chunk: Chunk, style: Style) -> Iterator[str]:
    """Yield the lines of a chunk."""
    ref = _Operands(chunk.loads, style)
    used = {"memory"} if chunk.loads or chunk.stores else set()
    for node in chunk.nodes:
        used |= {style.of[x.args[0]] for x in node.args if type(x) is not float and x.op is g.INPUT}
        yield f"  const {style.type(node)} t{node.id} = {style.expression(node, ref)};"
        ref.variables.add(node.id)
        if node.id in chunk.stores:
            yield from _spilled(node, f"t{node.id}", chunk.stores[node.id], style)
        yield from _stored(f"t{node.id}", chunk.outputs.get(node.id, ()), style)
    used |= {style.outputs[output] for found in chunk.outputs.values() for output, _ in found}
    for name in ("memory", *style.inputs, *style.outputs):
        if name not in used:
            yield f"  (void){name};"


def _spilled(node: Symbol | Condition, value: str, slot: int, style: Style) -> Iterator[str]:
    """Yield the store of a value in a slot: of a condition one or zero."""
    number = f"({style.kind})({value})" if isinstance(node, Condition) else value
    yield f"  memory[{slot}] = {number};"


def _stored(value: str, entries: Any, style: Style) -> Iterator[str]:
    """Yield the stores of a value in these entries of outputs."""
    for output, k in entries:
        yield f"  {style.outputs[output]}[{k}] = {value};"
