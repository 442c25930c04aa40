# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""LLVM IR of any program: one walk over its module.

Code for one state takes several iterations of a parallel loop at a time, one per lane of a vector.
In code for several states every double is a vector with one state per lane, and so is every entry
of every buffer but constants; parallel loops then take one iteration at a time. Sines and cosines
come from a function that all kernels share (see :mod:`codegen.llvm_shared`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mbs_dynamics.compiler.codegen import builder
from mbs_dynamics.compiler.codegen.builder import DOUBLE, I1, I32, I64, PTR, VOID, Value
from mbs_dynamics.compiler.codegen.llvm_shared import sines
from mbs_dynamics.compiler.frontend.program import Program, uncollected
from mbs_dynamics.compiler.ir import nodes as ir
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.passes.pipeline import for_llvm
from mbs_dynamics.compiler.passes.strategy import STACK, WIDTH

FLAGS = "contract nsz arcp"
"""Fused multiply-add is allowed. Infinities and NaN keep their meaning: no nnan, no ninf."""

BINARY = {
    ops.ADD: f"fadd {FLAGS}",
    ops.SUB: f"fsub {FLAGS}",
    ops.MUL: f"fmul {FLAGS}",
    ops.DIV: f"fdiv {FLAGS}",
    ops.LESS: "fcmp olt",
    ops.LESS_EQUAL: "fcmp ole",
}

LINE = 8
"""Doubles in a line of the cache, at multiples of which vectors are aligned."""

NO_MEMORY = -1
"""Value that a function returns if the heap is exhausted."""

MALLOC, FREE = builder.Prototype("malloc", PTR, I64), builder.Prototype("free", VOID, PTR)
MASK_POINTER = builder.Prototype(builder.intrinsic("ptrmask", PTR, I64), PTR, PTR, I64)


def emit_llvm(program: Program, lanes: int = 1) -> str:
    """Return LLVM IR of the function of a program that :func:`emit_module` describes."""
    with uncollected():
        return emit_module(for_llvm(program, lanes), lanes)


def emit_module(module: ir.Module, lanes: int = 1) -> str:
    """Return LLVM IR of ``i32 @<name>(ptr ports)``; ports are the addresses of inputs and outputs.

    All are addresses of doubles. For one state the function returns the status. For several, entry
    k of state j of a port is at ``lanes * k + j``, the statuses of all states are stored at the
    address that follows those of the ports, and the function returns 0 if all are 0.
    """
    layout = _Layout(module, lanes)
    functions = [*(_procedure(layout, x) for x in module.procedures), _main(layout, module)]
    return "".join([*map(layout.table, layout.tables), builder.module(functions)])


class _Layout:
    """Addresses of the buffers of a module, and names of its tables and procedures."""

    def __init__(self, module: ir.Module, lanes: int) -> None:
        self.lanes, self.prefix = lanes, f"{module.name}.{lanes}"
        self.ports = (*module.inputs, *module.outputs)
        buffers = module.buffers(ir.SCRATCH, ir.CONSTANT, ir.TABLE)
        self.tables = [x for x in buffers if x.kind != ir.SCRATCH]
        loops = [x for x in module.statements if type(x) is ir.For and x.parallel and lanes == 1]
        loads = [x for loop in loops for x in loop.body if type(x) is ir.Load]
        filled = {x.buffer for x in module.statements if type(x) is ir.Fill}
        vectors = [x.buffer for x in loads if len(x.at.terms) == 1 or x.buffer in filled]
        self.room = {x: WIDTH for x in vectors if x.kind == ir.SCRATCH}
        """Entries behind scratch buffers of which whole vectors are loaded: nothing in these is
        undefined, as it may be in a matrix that is not filled with zeros first."""
        self.offsets: dict[ir.Buffer, int] = {}
        """Where scratch buffers begin in the memory, in entries."""
        self.lines = 0
        """The size of the memory."""
        for buffer in (x for x in buffers if x.kind == ir.SCRATCH):
            self.offsets[buffer] = self.lines * LINE // lanes
            doubles = (buffer.size + self.room.get(buffer, 0)) * lanes
            # odd numbers of lines, so that all sets of a cache serve the same entries of many
            self.lines += -(-doubles // LINE) | 1

    def name(self, of: ir.Buffer | ir.Procedure) -> str:
        return f'"{self.prefix}.{of.name}"'

    def prototype(self, procedure: ir.Procedure) -> builder.Prototype:
        """Return the function of a procedure; its first arguments are the memory and the ports."""
        integers = [I64] * len(procedure.parameters)
        return builder.Prototype(self.name(procedure), VOID, PTR, builder.Pointer(PTR), *integers)

    def table(self, buffer: ir.Buffer) -> str:
        assert buffer.data is not None
        data = buffer.data.tobytes() + bytes(builder.WORD * (WIDTH - 1))  # vectors reach beyond it
        bytes_ = f'[{len(data)} x i8] c"' + "\\" + data.hex("\\")
        return f'@{self.name(buffer)} = private constant {bytes_}", align {builder.WORD * LINE}\n'


def _main(layout: _Layout, module: ir.Module) -> builder.Function:
    """Return the function that is called from outside, with the memory of an evaluation."""
    f = _Function(layout, builder.Prototype(module.name, I32, builder.Pointer(PTR)), exported=True)
    line, heap = builder.WORD * LINE, None
    if line * layout.lines <= STACK:
        memory = f.array(builder.vector(LINE, DOUBLE), layout.lines)
    else:
        heap = f.call(MALLOC, line * (layout.lines + 1))
        with f.if_(heap == builder.NULL):
            f.ret(NO_MEMORY)
        memory = f.call(MASK_POINTER, heap.byte(line), -line)
    f.enter(memory, *f.parameters)
    # nothing uses what is computed with these, but denormal numbers take a hundred times as long
    for buffer, room in layout.room.items():
        f.address(buffer, ir.index(buffer.size)).store(f.operand(0.0, builder.vector(room, DOUBLE)))
    f.body(module.body)
    status = f.final_status()
    if heap is not None:
        f.call(FREE, heap)
    f.ret(status)
    return f


def _procedure(layout: _Layout, procedure: ir.Procedure) -> builder.Function:
    f = _Function(layout, layout.prototype(procedure))
    memory, ports, *integers = f.parameters
    f.integers.update(zip(procedure.parameters, integers, strict=True))
    f.enter(memory, ports)
    f.body(procedure.body)
    f.ret()
    return f


class _Function(builder.Function):
    """A function of a module. Within a parallel loop every value is a vector."""

    def __init__(
        self, layout: _Layout, prototype: builder.Prototype, *, exported: bool = False
    ) -> None:
        super().__init__(prototype, exported=exported)
        self.layout = layout
        self.integers: dict[ir.Variable, Value] = {}
        self.values: dict[int, Value] = {}
        self.width = layout.lanes
        """How many lanes values have here."""
        self.across: ir.Variable | None = None
        """The variable of the parallel loop around, of which lanes are iterations."""
        self.mask: Value | None = None
        """The vector of whether they are iterations of the loop."""
        self.angles: dict[str, Value] = {}
        """Where the sines and cosines of angles are that the present body has computed."""
        self.checks: list[tuple[Value, int]] = []
        """Values that are checked, with their status."""

    def enter(self, memory: Value, ports: Value) -> None:
        """Emit loads of the addresses of buffers."""
        entry = builder.Pointer(builder.vector(self.layout.lanes, DOUBLE))
        self.memory, self.ports = memory, ports
        self.buffers = dict.fromkeys(self.layout.offsets, memory.to(entry))
        for k, port in enumerate(self.layout.ports):
            self.buffers[port] = ports.at(k).load(entry)
        for table in self.layout.tables:
            kind = builder.Pointer(DOUBLE if table.kind == ir.CONSTANT else I64)
            self.buffers[table] = self.symbol(self.layout.name(table), kind)

    def type(self, scalar: str) -> str:
        """Return the type of a value that has this type in one lane."""
        return builder.vector(self.width, scalar)

    def value(self, x: ir.Operand) -> Value:
        return self.values[x] if isinstance(x, int) else self.operand(x, self.type(DOUBLE))

    def index(self, at: ir.Index, offset: int = 0) -> Value | int:
        """Return an index, counted from so many entries before."""
        total: Value | None = None
        for atom, factor in at.terms:
            if isinstance(atom, ir.Lookup):
                term = self.buffers[atom.table][self.index(atom.at)]
            else:
                term = self.integers[atom]
            term = term if factor == 1 else term * factor
            total = term if total is None else total + term
        constant = at.constant + offset
        if total is None:
            return constant
        return total + constant if constant else total

    def address(self, buffer: ir.Buffer, at: ir.Index) -> Value:
        """Return the address of an entry.

        In a parallel loop, if its iterations have different entries: of the first one's where they
        are contiguous, else of all as a vector.
        """
        pointer, offset = self.buffers[buffer], self.layout.offsets.get(buffer, 0)
        step = self.step(at)
        if not step or self.across is None:
            return pointer.at(self.index(at, offset))
        invariant = pointer.at(self.index(at.without(self.across), offset))
        first = invariant.at(self.index(ir.index(self.across) * step))
        if step == 1:
            return first
        apart = self.numbers(self.width, step)
        return self.new(self.type(PTR), f"getelementptr {DOUBLE}, {first}, {apart}")

    def step(self, at: ir.Index) -> int:
        """Return the distance of entries of successive iterations of a parallel loop."""
        return at.factor(self.across) if self.across else 0

    def body(self, body: Sequence[ir.Statement]) -> None:
        outer, self.angles = self.angles, {}
        for statement in body:
            EMIT[type(statement)](self, statement)
        self.angles = outer

    def let(self, x: ir.Let) -> None:
        self.values[x.value] = self.operation(x.op, [self.value(arg) for arg in x.args])

    def operation(self, op: str, args: Sequence[Value]) -> Value:
        x = args[0]
        if op in BINARY:
            kind = self.type(I1) if op in ops.CONDITIONS else x.kind
            return self.new(kind, f"{BINARY[op]} {x.kind} {x.text}, {args[1].text}")
        if op == ops.NEG:
            return self.new(x.kind, f"fneg {FLAGS} {x}")
        if op == ops.SELECT:
            return self.select(*args)
        if op == ops.SQRT:
            root = builder.Prototype(builder.intrinsic("sqrt", x.kind), x.kind, x.kind)
            return self.call(root, x)
        if op in (ops.SIN, ops.COS) and self.width > 1:
            if x.text not in self.angles:  # both are computed for the first of them
                self.angles[x.text] = self.array(x.kind, 2)
                self.call(sines(self.width), x, self.angles[x.text])
            return self.angles[x.text][(ops.SIN, ops.COS).index(op)]
        function = builder.Prototype(op, DOUBLE, *[DOUBLE] * len(args))  # of the C library
        if self.width == 1:
            return self.call(function, *args)
        result = Value(self, x.kind, "poison")
        for lane in range(self.width):
            one = self.call(function, *(arg.lane(lane) for arg in args))
            result = result.with_lane(lane, one)
        return result

    def sines(self, x: ir.Sines) -> None:
        angles = [self.value(angle) for angle in x.angles]
        together = angles[0]
        if self.width == 1:
            together = self.operand(0.0, builder.vector(x.width, DOUBLE))
            for lane, angle in enumerate(angles):
                together = together.with_lane(lane, angle)
        at = self.address(x.buffer, ir.Index((), x.first))
        self.call(sines(x.width * self.width), together, at)

    def load(self, x: ir.Load) -> None:
        """Emit the load of an entry, or of those of all iterations."""
        address = self.address(x.buffer, x.at)
        if step := self.step(x.at):
            own = step == 1 and (x.buffer.kind == ir.CONSTANT or x.buffer in self.layout.room)
            self.values[x.value] = address.load(self.type(DOUBLE), None if own else self.mask)
            return
        entry = address.load(volatile=x.volatile)
        if self.width > builder.lanes_of(entry.kind):
            entry = self.splat(entry, self.width)
        self.values[x.value] = entry

    def store(self, x: ir.Store) -> None:
        address = self.address(x.buffer, x.at)
        address.store(self.value(x.value), self.mask, volatile=x.volatile)

    def fill(self, x: ir.Fill) -> None:
        """Emit stores of zeros: whole vectors, then the remaining entries one by one."""
        zeros = self.operand(0.0, builder.vector(LINE, DOUBLE))
        at = self.address(x.buffer, ir.index(x.first))
        doubles = self.layout.lanes * x.entries
        with self.loop(doubles // LINE) as k:
            at.to(builder.Pointer(zeros.kind)).at(k).store(zeros)
        with self.loop(doubles // LINE * LINE, doubles) as k:
            at.to(builder.Pointer(DOUBLE))[k] = 0.0

    def for_(self, x: ir.For) -> None:
        """Emit a loop; several iterations at a time if they may be and no lane needs a look-up."""
        indices = [at for within in x.body for at in ir.indices_of(within)]
        if x.parallel and self.width == 1 and not any(at.looks_up(x.variable) for at in indices):
            self.vectors(x)
            return
        begin, end = self.index(x.begin), self.index(x.end)
        with self.loop(begin, end, backwards=x.backwards) as self.integers[x.variable]:
            self.body(x.body)

    def vectors(self, x: ir.For) -> None:
        """Emit a parallel loop, several iterations at a time; masked where it begins and ends."""
        begin, end = (self.operand(self.index(at), I64) for at in (x.begin, x.end))
        steps = {store.at.factor(x.variable) for store in x.body if type(store) is ir.Store}
        # vectors that straddle two lines of the cache take twice as long
        first = begin & -WIDTH if 1 in steps else begin
        outside, used = self.values, {k for within in x.body for k in ir.operands_of(within)}
        self.values = {k: self.splat(v, WIDTH) for k, v in outside.items() if k in used}
        before, after = self.splat(begin, WIDTH), self.splat(end, WIDTH)
        self.width, self.across = WIDTH, x.variable
        with self.loop(first, end, WIDTH) as k:
            self.integers[x.variable] = k
            lanes = self.splat(k, WIDTH) + self.numbers(WIDTH)
            self.mask = (lanes < after) & (lanes >= before)
            self.body(x.body)
        self.values, self.width, self.across, self.mask = outside, 1, None, None

    def switch(self, x: ir.Switch) -> None:
        on, end = self.operand(self.index(x.on), I64), self.label()
        cases = " ".join(f"{I64} {k}, label %{end}.{k}" for k, _ in x.cases)
        self.lines.append(f"  switch {on}, label %{end} [{cases}]")
        for k, body in x.cases:
            self.begin(f"{end}.{k}")
            self.body(body)
            self.jump(end)
        self.begin(end)

    def call_procedure(self, x: ir.Call) -> None:
        given = map(self.index, x.arguments)
        self.call(self.layout.prototype(x.procedure), self.memory, self.ports, *given)

    def check(self, x: ir.Check) -> None:
        """Note a value that has to be positive; see :meth:`final_status`."""
        self.checks.append((self.values[x.value], x.status))

    def final_status(self) -> Value | int:
        """Emit the report of the status, and return the i32 that the function returns."""
        if not self.checks:
            return 0
        status = self.operand(0, self.type(I32))
        for x, k in reversed(self.checks):  # the first one decides
            status = self.select(x > 0.0, status, k)
        if self.width == 1:
            return status
        self.ports[len(self.layout.ports)].store(status)
        return (status != 0).cast("bitcast", f"i{self.width}").cast("zext", I32)


EMIT: dict[type, Callable[[_Function, Any], None]] = {
    ir.Let: _Function.let,
    ir.Load: _Function.load,
    ir.Store: _Function.store,
    ir.Fill: _Function.fill,
    ir.Sines: _Function.sines,
    ir.Check: _Function.check,
    ir.For: _Function.for_,
    ir.Switch: _Function.switch,
    ir.Call: _Function.call_procedure,
}
