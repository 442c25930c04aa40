# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""LLVM IR of programs in chunks: a function for each chunk, and one that calls them in order."""

from __future__ import annotations

from typing import Any

from mbs_dynamics.compiler.codegen.llvm_body import PER_CALL, WIDTH, Body
from mbs_dynamics.compiler.codegen.llvm_memory import NO_MEMORY, emit_memory
from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.passes.chunks import Chunk, Entries, outlined

PARAMETERS = (
    "ptr noalias nocapture readonly %memory, ptr noalias nocapture writeonly %spills, "
    "ptr nocapture readonly %ports"
)
"""Parameters of a chunk. The scratch memory comes twice, as two that do not overlap: no chunk
stores to a slot that it loads from."""


class _Outlined(Body):
    """A body whose operands may be inputs, or values in the scratch memory ``%memory``."""

    def __init__(self, program: Program, slots: dict[int, int], lanes: int) -> None:
        super().__init__(lanes)
        self.program, self.slots = program, slots
        self.storing = "volatile "  # else LLVM compares each of them with all others

    def ref(self, x: Any) -> str:
        """Return an operand, loaded at its first use."""
        if isinstance(x, (Symbol, Condition)) and x.id not in self.text:
            if x.op is g.INPUT:
                self.node(x)
            else:
                value = self.new(f"load {self.real}, ptr {self.entry('%memory', self.slots[x.id])}")
                if isinstance(x, Condition):
                    value = self.new(f"fcmp une {self.real} {value}, {self.constant(0.0)}")
                self.text[x.id] = value
        return super().ref(x)

    def spill(self, node: Symbol | Condition, pointer: str, slot: int) -> None:
        """Emit the store of a value in a slot: of a condition one or zero."""
        value = self.text[node.id]
        if isinstance(node, Condition):
            one, zero = self.constant(1.0), self.constant(0.0)
            value = self.new(f"select {self.bit} {value}, {self.real} {one}, {self.real} {zero}")
        self.lines.append(f"  store {self.real} {value}, ptr {self.entry(pointer, slot)}")

    def store_outputs(self, node: Symbol | Condition, outputs: Entries) -> None:
        """Emit the stores of the entries of outputs that are a node."""
        for output, k in outputs.get(node.id, ()):
            self.store(self.program.outputs[output], k, node)


def emit_chunks(program: Program, lanes: int = 1) -> str:
    """Return LLVM IR of the same function as :func:`codegen.llvm_body.emit_straight`."""
    outline = outlined(program, group=WIDTH if lanes == 1 else PER_CALL)
    names = [f'@"{program.name}.{lanes}.{k}"' for k in range(len(outline.chunks))]
    body = _Outlined(program, outline.slots, lanes)
    body.lines.append("entry:")
    body.pointers(program)
    lines, on_heap = emit_memory(8 * lanes * max(outline.size, 1))
    body.lines += lines
    body.store_numbers(program)
    for node in outline.hoisted:
        body.node(node)
        body.spill(node, "%memory", outline.slots[node.id])
    body.sines_and_cosines(outline.sines, "%memory")
    values = {x.id: x for values in program.values for x in values if isinstance(x, Symbol)}
    for k in outline.outputs:
        body.store_outputs(values[k], outline.outputs)
    for name in names:
        body.lines.append(f"  call void {name}(ptr %memory, ptr %memory, ptr %ports)")
    status = body.status(program.guards, len(program.inputs) + len(program.outputs))
    if on_heap:
        body.lines.append("  call void @free(ptr %heap)")
    body.lines.append(f"  ret i32 {status}")
    if on_heap:
        body.lines += ["full:", f"  ret i32 {NO_MEMORY}"]
    declarations = "declare ptr @malloc(i64)\ndeclare void @free(ptr)\n" if on_heap else ""
    return "".join(
        [
            *(_chunk(program, *x, lanes) for x in zip(names, outline.chunks, strict=True)),
            f"define i32 @{program.name}(ptr %ports) nounwind {{\n",
            "\n".join(body.lines),
            "\n}\n",
            declarations,
            body.declarations(),
        ]
    )


def _chunk(program: Program, name: str, chunk: Chunk, lanes: int) -> str:
    """Return the function of a chunk."""
    body = _Outlined(program, chunk.loads, lanes)
    body.pointers(program)
    for node in chunk.nodes:
        body.node(node)
        if node.id in chunk.stores:
            body.spill(node, "%spills", chunk.stores[node.id])
        body.store_outputs(node, chunk.outputs)
    lines = "\n".join(body.lines)
    return f"define internal void {name}({PARAMETERS}) nounwind {{\n{lines}\n  ret void\n}}\n"
