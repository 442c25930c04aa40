# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""LLVM IR of any program: one walk over its module.

In code for several states every double is a vector with one state per lane, and so is every entry
of every buffer. Sines and cosines come from a function that all kernels share (see
:mod:`codegen.llvm_sines`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from mbs_dynamics.compiler.codegen import builder
from mbs_dynamics.compiler.codegen.builder import DOUBLE, I1, I32, LINE, PTR, VOID, Value
from mbs_dynamics.compiler.codegen.llvm_sines import sines
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops

STACK = 1 << 18
"""Bytes of scratch memory above which it is allocated on the heap."""


def emit_llvm(module: ir.Module, lanes: int = 1) -> str:
    """Return LLVM IR of ``i32 @<name>(ptr ports)``; ports are the addresses of inputs and outputs.

    All are addresses of doubles. For one state the function returns the status. For several, entry
    k of state j of a port is at ``lanes * k + j``, the statuses of all states are stored at the
    address that follows those of the ports, and the function returns 0 if all are 0. If there is no
    memory, it returns -1.
    """
    layout = _Layout(module, lanes)
    functions = [*(_procedure(layout, x) for x in module.procedures), _main(layout, module)]
    return builder.module(functions)


class _Layout:
    """Addresses of the buffers of a module, and names of its procedures."""

    def __init__(self, module: ir.Module, lanes: int) -> None:
        self.lanes, self.prefix = lanes, f"{module.name}.{lanes}"
        self.ports = (*module.inputs, *module.outputs)
        self.offsets: dict[ir.Buffer, int] = {}
        """Offsets of the scratch buffers in the memory, in entries."""
        self.lines = 0
        """Size of the memory in cache lines."""
        for buffer in module.scratch:
            self.offsets[buffer] = self.lines * LINE // lanes
            # an odd number of lines, so that equal entries of buffers are in different cache sets
            self.lines += -(-buffer.size * lanes // LINE) | 1

    def prototype(self, procedure: ir.Call) -> builder.Prototype:
        """Return the function of a procedure, whose arguments are the memory and the ports."""
        name = f'"{self.prefix}.{procedure.name}"'
        return builder.Prototype(name, VOID, PTR, builder.Pointer(PTR))


def _main(layout: _Layout, module: ir.Module) -> builder.Function:
    """Return the function that is called from outside, with the memory of an evaluation."""
    f = _Function(layout, builder.Prototype(module.name, I32, builder.Pointer(PTR)), exported=True)
    heap, size = None, builder.WORD * LINE * layout.lines
    if size <= STACK:
        memory = f.array(builder.vector(LINE, DOUBLE), layout.lines)
    else:
        heap, memory = f.heap(size)
        with f.if_(heap == builder.NULL):
            f.ret(-1)
    f.enter(memory, *f.parameters)
    f.body(module.body)
    status = f.final_status()
    if heap is not None:
        f.call(builder.FREE, heap)
    f.ret(status)
    return f


def _procedure(layout: _Layout, procedure: ir.Call) -> builder.Function:
    f = _Function(layout, layout.prototype(procedure))
    f.enter(*f.parameters)
    f.body(procedure.body)
    f.ret()
    return f


class _Function(builder.Function):
    """A function of a module."""

    def __init__(
        self, layout: _Layout, prototype: builder.Prototype, *, exported: bool = False
    ) -> None:
        super().__init__(prototype, exported=exported)
        self.layout, self.lanes = layout, layout.lanes
        self.number = builder.vector(self.lanes, DOUBLE)
        self.values: dict[int, Value] = {}
        self.checks: list[tuple[Value, int]] = []
        """Values that are checked, with their status."""

    def enter(self, memory: Value, ports: Value) -> None:
        """Emit loads of the addresses of buffers."""
        entry = builder.Pointer(self.number)
        self.memory, self.ports = memory, ports
        self.buffers = dict.fromkeys(self.layout.offsets, memory.to(entry))
        for k, port in enumerate(self.layout.ports):
            self.buffers[port] = ports.at(k).load(entry)

    def value(self, x: ir.Operand) -> Value:
        return self.values[x] if isinstance(x, int) else self.operand(x, self.number)

    def address(self, buffer: ir.Buffer, at: int) -> Value:
        return self.buffers[buffer].at(at + self.layout.offsets.get(buffer, 0))

    def body(self, body: Sequence[ir.Statement]) -> None:
        for statement in body:
            match statement:
                case ir.Let(value, op, args):
                    self.values[value] = self.operation(op, [self.value(x) for x in args])
                case ir.Load(value, buffer, at, volatile):
                    self.values[value] = self.address(buffer, at).load(volatile=volatile)
                case ir.Store(buffer, at, x, volatile):
                    self.address(buffer, at).store(self.value(x), volatile=volatile)
                case ir.Sines():
                    self.sines(statement)
                case ir.Check(value, status):
                    self.checks.append((self.values[value], status))
                case ir.Call(_, _, condition):
                    with (
                        contextlib.nullcontext()
                        if condition is None
                        else self.if_(self.values[condition])
                    ):
                        self.call(self.layout.prototype(statement), self.memory, self.ports)

    def operation(self, op: str, args: Sequence[Value]) -> Value:
        x, row = args[0], ops.TABLE[op]
        if "{" in row.llvm:
            kinds = {f"T{k}": arg.kind for k, arg in enumerate(args)}
            kind = builder.vector(self.lanes, I1) if row.is_condition else self.number
            return self.new(kind, row.llvm.format(*[arg.text for arg in args], **kinds))
        if row.llvm.startswith("llvm."):
            name = builder.intrinsic(row.llvm.removeprefix("llvm."), self.number)
            return self.call(
                builder.Prototype(name, self.number, *[self.number] * len(args)), *args
            )
        function = builder.Prototype(row.llvm, DOUBLE, *[DOUBLE] * len(args))  # of the C library
        if self.lanes == 1:
            return self.call(function, *args)
        result = Value(self, x.kind, "poison")
        for lane in range(self.lanes):
            one = self.call(function, *(arg.lane(lane) for arg in args))
            result = result.with_lane(lane, one)
        return result

    def sines(self, x: ir.Sines) -> None:
        angles = [self.value(angle) for angle in x.angles]
        together = angles[0]
        if self.lanes == 1:
            together = self.operand(0.0, builder.vector(x.width, DOUBLE))
            for lane, angle in enumerate(angles):
                together = together.with_lane(lane, angle)
        self.call(sines(x.width * self.lanes), together, self.address(x.buffer, x.first))

    def final_status(self) -> Value | int:
        """Emit the report of the status, and return the i32 that the function returns."""
        if not self.checks:
            return 0
        status = self.operand(0, builder.vector(self.lanes, I32))
        for x, k in reversed(self.checks):  # the first failure is reported
            status = self.select(x > 0.0, status, k)
        if self.lanes == 1:
            return status
        self.ports[len(self.layout.ports)].store(status)
        return (status != 0).cast("bitcast", f"i{self.lanes}").cast("zext", I32)
