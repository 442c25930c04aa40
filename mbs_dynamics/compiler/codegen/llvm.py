# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""LLVM IR of any program: one walk over its module.

Code for one state takes several iterations of a parallel loop at a time, one per lane of a vector.
In code for several states every double is a vector with one state per lane, and so is every entry
of every buffer but constants; parallel loops then take one iteration at a time. Sines and cosines
come from a function that all kernels share (see :mod:`codegen.llvm_shared`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mbs_dynamics.compiler.codegen.builder import real
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

LINE = 64
"""Bytes of a line of the cache, at multiples of which vectors are aligned."""

NO_MEMORY = -1
"""What a function returns if the heap is exhausted."""

ZERO = "zeroinitializer"


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
    return _Module(module, lanes).emit()


class _Module:
    """Where the buffers of a module are, and its functions."""

    def __init__(self, module: ir.Module, lanes: int) -> None:
        self.module, self.lanes = module, lanes
        self.prefix = f"{module.name}.{lanes}"
        self.ports = {x: k for k, x in enumerate((*module.inputs, *module.outputs))}
        self.offsets: dict[ir.Buffer, int] = {}
        """Where scratch buffers begin in the memory, in entries."""
        self.memory = 0
        """Entries of the memory so far."""
        self.tables: dict[ir.Buffer, None] = {}
        self.procedures: dict[ir.Procedure, None] = {}
        self.overrun: set[ir.Buffer] = set()
        """Scratch buffers of which vectors are loaded that may reach beyond the end."""
        self.declared: dict[str, str] = {}
        """Declarations of the functions called from outside, by name."""

    def emit(self) -> str:
        """Return all of it."""
        main = _Function(self, ())
        main.body(self.module.body)
        status = main.final_status()
        printed: dict[ir.Procedure, str] = {}
        while len(printed) < len(self.procedures):  # procedures call others
            for procedure in [x for x in self.procedures if x not in printed]:
                printed[procedure] = self._procedure(procedure)
        self._pad(main)
        size = 8 * self.lanes * self.memory
        ends = [f"  ret i32 {status}"]
        memory = [f"  %memory = alloca i8, i64 {max(size, 8)}, align {LINE}"]
        if size > STACK:
            allocate = main.call("ptr", "malloc", ("i64", str(size + LINE)))
            memory = [
                f"  %heap = {allocate}",
                "  %none = icmp eq ptr %heap, null",
                "  br i1 %none, label %full, label %begin",
                "begin:",
                "  %heap.at = ptrtoint ptr %heap to i64",
                f"  %heap.up = add i64 %heap.at, {LINE - 1}",
                f"  %heap.even = and i64 %heap.up, -{LINE}",
                "  %memory = inttoptr i64 %heap.even to ptr",
            ]
            free = main.call("void", "free", ("ptr", "%heap"))
            ends = [f"  {free}", *ends, "full:", f"  ret i32 {NO_MEMORY}"]
        head = f"define i32 @{self.module.name}(ptr %ports) nounwind {{\nentry:"
        lines = [head, *main.allocas, *memory, *main.pointers, *main.lines, *ends, "}"]
        tables = map(self._table, self.tables)
        return "\n".join([*tables, *printed.values(), *lines, *self.declared.values(), ""])

    def offset(self, buffer: ir.Buffer) -> int:
        """Return where a scratch buffer begins in the memory, in entries.

        There is room for a vector that begins at the last entry. Buffers take an odd number of
        lines, so that all sets of a cache serve the same entries of many buffers.
        """
        if buffer not in self.offsets:
            self.offsets[buffer] = self.memory
            line, room = max(LINE // 8 // self.lanes, 1), WIDTH - 1 if self.lanes == 1 else 0
            self.memory += line * (-(-(buffer.size + room) // line) | 1)
        return self.offsets[buffer]

    def _pad(self, main: _Function) -> None:
        """Set the entries behind buffers to zero.

        No iteration uses them, but arithmetic with denormal numbers takes a hundred times as long.
        """
        body, main.lines = main.lines, []
        for buffer in sorted(self.overrun, key=self.offsets.__getitem__):
            main.fill(ir.Fill(buffer, buffer.size, WIDTH - 1))
        main.lines += body

    def name(self, procedure: ir.Procedure) -> str:
        """Return the name of a procedure's function."""
        self.procedures.setdefault(procedure)
        return f'@"{self.prefix}.{procedure.name}"'

    def symbol(self, buffer: ir.Buffer) -> str:
        """Return the name of a table."""
        self.tables.setdefault(buffer)
        return f'@"{self.prefix}.{buffer.name}"'

    def _table(self, buffer: ir.Buffer) -> str:
        assert buffer.data is not None
        padding = np.zeros(WIDTH - 1, dtype=buffer.data.dtype)  # vectors reach beyond the end
        data = np.concatenate([buffer.data, padding]).tobytes()
        size, text = f"[{len(data)} x i8]", "\\" + data.hex("\\")
        return f'{self.symbol(buffer)} = private constant {size} c"{text}", align {LINE}'

    def _procedure(self, procedure: ir.Procedure) -> str:
        function = _Function(self, procedure.parameters)
        function.body(procedure.body)
        integers = (f"i64 %{x}" for x in procedure.parameters)
        parameters = ", ".join(["ptr noalias %memory, ptr %ports", *integers])
        head = f"define internal void {self.name(procedure)}({parameters}) nounwind {{\nentry:"
        lines = [head, *function.allocas, *function.pointers, *function.lines, "  ret void", "}"]
        return "\n".join(lines)


class _Function:
    """The lines of a function. Within a parallel loop every value is a vector."""

    def __init__(self, of: _Module, parameters: Sequence[ir.Variable]) -> None:
        self.of = of
        self.allocas: list[str] = []
        self.pointers: list[str] = []
        """The lines that load the addresses of ports."""
        self.lines: list[str] = []
        self.integers = {x: f"%{x}" for x in parameters}
        """The text of variables that have a value here."""
        self.text: dict[int, str] = {}
        """The text of values."""
        self.conditions: set[int] = set()
        self.width = of.lanes
        """How many lanes values have here."""
        self.across: ir.Variable | None = None
        """The variable of the parallel loop around, of which lanes are iterations."""
        self.mask = ""
        """The vector of whether its values are within the loop."""
        self.ports: dict[ir.Buffer, str] = {}
        self.loaded: dict[ir.Operand, tuple[ir.Buffer, int]] = {}
        """Entries of inputs, by the values that they were loaded as."""
        self.sines_of: dict[str, str] = {}
        """Where the sine and the cosine of an angle are, within a loop or case."""
        self.checks: list[tuple[str, int]] = []
        """Values that are checked, with their status."""
        self.names = 0

    def new(self, expression: str) -> str:
        """Define a value, and return its name."""
        self.names += 1
        name = f"%v{self.names}"
        self.lines.append(f"  {name} = {expression}")
        return name

    def alloca(self, size: int, kind: str = "double") -> str:
        """Return the address of an array on the stack."""
        name = f"%a{len(self.allocas)}"
        self.allocas.append(f"  {name} = alloca [{size} x {kind}], align {LINE}")
        return name

    def call(self, returns: str, name: str, *arguments: tuple[str, str]) -> str:
        """Return the call of a function that is not of this module; arguments come with types."""
        if name not in self.of.declared:
            kinds = ", ".join(kind for kind, _ in arguments)
            self.of.declared[name] = f"declare {returns} @{name}({kinds}) nounwind"
        given = ", ".join(f"{kind} {text}" for kind, text in arguments)
        return f"call {returns} @{name}({given})"

    # -- types and operands ----------------------------------------------------------------------

    def type(self, scalar: str) -> str:
        """Return the type of a value that has this type in one lane."""
        return scalar if self.width == 1 else f"<{self.width} x {scalar}>"

    def constant(self, x: float) -> str:
        """Return a number as an operand."""
        return real(x) if self.width == 1 else f"splat (double {real(x)})"

    def operand(self, x: ir.Operand) -> str:
        """Return an operand."""
        return self.constant(x) if isinstance(x, float) else self.text[x]

    def splat(self, text: str, kind: str) -> str:
        """Return the vector of which every lane is this."""
        vector = self.type(kind)
        one = self.new(f"insertelement {vector} poison, {kind} {text}, i64 0")
        zeros = f"<{self.width} x i32> {ZERO}"
        return self.new(f"shufflevector {vector} {one}, {vector} poison, {zeros}")

    # -- indices and addresses -------------------------------------------------------------------

    def index(self, at: ir.Index) -> str:
        """Return an index as an operand."""
        total = ""
        for atom, factor in at.terms:
            term = self.lookup(atom) if isinstance(atom, ir.Lookup) else self.integers[atom]
            if factor != 1:
                term = self.new(f"mul i64 {term}, {factor}")
            total = self.new(f"add i64 {total}, {term}") if total else term
        if total and at.constant:
            return self.new(f"add i64 {total}, {at.constant}")
        return total or str(at.constant)

    def lookup(self, x: ir.Lookup) -> str:
        """Return an integer of a table."""
        table, k = self.of.symbol(x.table), self.index(x.at)
        return self.new(f"load i64, ptr {self.new(f'getelementptr i64, ptr {table}, i64 {k}')}")

    def entry_type(self, buffer: ir.Buffer) -> str:
        """Return the type of an entry of a buffer."""
        lanes = self.of.lanes if buffer.kind != ir.CONSTANT else 1
        return "double" if lanes == 1 else f"<{lanes} x double>"

    def pointer(self, buffer: ir.Buffer) -> str:
        """Return the address that the addresses of a buffer's entries are counted from."""
        if buffer.kind == ir.CONSTANT:
            return self.of.symbol(buffer)
        if buffer.kind == ir.SCRATCH:
            return "%memory"
        if buffer not in self.ports:
            k = self.of.ports[buffer]
            self.ports[buffer] = f"%port{k}"
            self.pointers += [
                f"  %port{k}.at = getelementptr ptr, ptr %ports, i64 {k}",
                f"  %port{k} = load ptr, ptr %port{k}.at",
            ]
        return self.ports[buffer]

    def address(self, buffer: ir.Buffer, at: ir.Index) -> str:
        """Return the address of an entry; of that of the first lane in a parallel loop."""
        pointer, kind = self.pointer(buffer), self.entry_type(buffer)
        if buffer.kind == ir.SCRATCH:
            at = at._replace(constant=at.constant + self.of.offset(buffer))
        if self.across is not None and at.factor(self.across):  # the invariant part first
            rest = self.index(at.without(self.across))
            pointer = self.new(f"getelementptr {kind}, ptr {pointer}, i64 {rest}")
            at = ir.Index(((self.across, at.factor(self.across)),))
        k = self.index(at)
        return pointer if k == "0" else self.new(f"getelementptr {kind}, ptr {pointer}, i64 {k}")

    def addresses(self, buffer: ir.Buffer, at: ir.Index) -> str:
        """Return the addresses of an entry in all iterations, as a vector."""
        assert self.across is not None
        steps = (at.factor(self.across) * lane for lane in range(self.width))
        apart = ", ".join(f"i64 {step}" for step in steps)
        first = self.address(buffer, at)
        return self.new(f"getelementptr double, ptr {first}, {self.type('i64')} <{apart}>")

    # -- statements ------------------------------------------------------------------------------

    def body(self, body: Sequence[ir.Statement]) -> None:
        """Emit statements."""
        for statement in body:
            EMIT[type(statement)](self, statement)

    def let(self, x: ir.Let) -> None:
        """Emit an operation."""
        value, op, operands = x
        args, kind = [self.operand(arg) for arg in operands], self.type("double")
        if op in BINARY:
            expression = f"{BINARY[op]} {kind} {args[0]}, {args[1]}"
            if op in ops.CONDITIONS:
                self.conditions.add(value)
        elif op == ops.NEG:
            expression = f"fneg {FLAGS} {kind} {args[0]}"
        elif op == ops.SELECT:
            expression = f"select {self.type('i1')} {args[0]}, {kind} {args[1]}, {kind} {args[2]}"
        elif op == ops.SQRT:
            expression = self.call(kind, f"llvm.sqrt.{self.suffix()}f64", (kind, args[0]))
        elif op in (ops.SIN, ops.COS) and self.width > 1:
            expression = f"load {kind}, ptr {self.sine_of(op, args[0])}"
        else:
            expression = self.library(op, args)
        self.text[value] = self.new(expression)

    def suffix(self) -> str:
        """Return how the names of intrinsics begin to tell how many lanes their operands have."""
        return "" if self.width == 1 else f"v{self.width}"

    def library(self, name: str, args: Sequence[str]) -> str:
        """Return a call of the C library's function, made for one lane after another."""
        if self.width == 1:
            return self.call("double", name, *(("double", x) for x in args))
        kind, result, expression = self.type("double"), "poison", ""
        for lane in range(self.width):
            if lane:
                result = self.new(expression)
            each = [self.new(f"extractelement {kind} {x}, i64 {lane}") for x in args]
            value = self.new(self.call("double", name, *(("double", x) for x in each)))
            expression = f"insertelement {kind} {result}, double {value}, i64 {lane}"
        return expression

    def sine_of(self, op: str, x: str) -> str:
        """Return where the sine or cosine of an angle is; both are computed for the first."""
        if x not in self.sines_of:
            self.sines_of[x] = self.alloca(2 * self.width)
            self.call_sines(self.width, x, self.sines_of[x])
        return self.new(
            f"getelementptr double, ptr {self.sines_of[x]}, i64 {self.width * (op == ops.COS)}"
        )

    def call_sines(self, size: int, x: str, at: str) -> None:
        """Emit the call of a function that all kernels share: so many sines, then the cosines."""
        arguments = (f"<{size} x double>", x), ("ptr", at)
        self.lines.append("  " + self.call("void", f"mbs.sincos{size}", *arguments))

    def sines(self, x: ir.Sines) -> None:
        """Emit sines and cosines of several angles at once."""
        texts = [self.operand(angle) for angle in x.angles]
        angles = texts[0] if self.width > 1 else self.vector_of(x.angles, texts, x.width)
        at = self.address(x.buffer, ir.Index((), x.first))
        self.call_sines(x.width * self.width, angles, at)

    def vector_of(self, angles: Sequence[ir.Operand], texts: Sequence[str], width: int) -> str:
        """Return a vector of angles of one state: one load if they are contiguous."""
        vector, bits = f"<{width} x double>", f"<{width} x i1>"
        buffer, first = self.loaded.get(angles[0], (None, 0))
        places = [self.loaded.get(x) for x in angles]
        if buffer and places == [(buffer, first + k) for k in range(len(angles))]:
            lanes = ", ".join(f"i1 {str(k < len(angles)).lower()}" for k in range(width))
            given = ("ptr", self.address(buffer, ir.Index((), first))), ("i32", "8")
            name = f"llvm.masked.load.v{width}f64.p0"
            return self.new(self.call(vector, name, *given, (bits, f"<{lanes}>"), (vector, ZERO)))
        x = ZERO
        for lane, text in enumerate(texts):
            x = self.new(f"insertelement {vector} {x}, double {text}, i64 {lane}")
        return x

    def load(self, x: ir.Load) -> None:
        """Emit the load of an entry, or of those of all iterations."""
        value, buffer, at, volatile = x
        vector = self.type("double")
        factor = at.factor(self.across) if self.across else 0
        if factor == 1 and buffer.kind in (ir.SCRATCH, ir.CONSTANT):
            if buffer.kind == ir.SCRATCH:
                self.of.overrun.add(buffer)
            load = f"load {vector}, ptr {self.address(buffer, at)}, align 8"
            self.text[value] = self.new(load)
            return
        if factor:
            name, where = f"load.v{self.width}f64.p0", ("ptr", self.address(buffer, at))
            if factor != 1:
                name = f"gather.v{self.width}f64.v{self.width}p0"
                where = (self.type("ptr"), self.addresses(buffer, at))
            rest = ("i32", "8"), (self.type("i1"), self.mask), (vector, ZERO)
            self.text[value] = self.new(self.call(vector, f"llvm.masked.{name}", where, *rest))
            return
        kind, way = self.entry_type(buffer), "load volatile" if volatile else "load"
        text = self.new(f"{way} {kind}, ptr {self.address(buffer, at)}, align 8")
        self.text[value] = text if kind == vector else self.splat(text, "double")
        if buffer.kind == ir.INPUT and not at.terms:
            self.loaded[value] = buffer, at.constant

    def store(self, x: ir.Store) -> None:
        """Emit the store of an entry, or of those of all iterations."""
        buffer, at, operand, volatile = x
        kind, text = self.type("double"), self.operand(operand)
        if self.across is None:
            way = "store volatile" if volatile else "store"
            self.lines.append(f"  {way} {kind} {text}, ptr {self.address(buffer, at)}, align 8")
            return
        name, to = f"store.v{self.width}f64.p0", ("ptr", self.address(buffer, at))
        if at.factor(self.across) != 1:
            name = f"scatter.v{self.width}f64.v{self.width}p0"
            to = (self.type("ptr"), self.addresses(buffer, at))
        rest = ("i32", "8"), (self.type("i1"), self.mask)
        self.lines.append("  " + self.call("void", f"llvm.masked.{name}", (kind, text), to, *rest))

    def fill(self, x: ir.Fill) -> None:
        """Emit what sets entries to zero."""
        to = ("ptr", self.address(x.buffer, ir.Index((), x.first)))
        rest = ("i8", "0"), ("i64", str(8 * self.of.lanes * x.entries)), ("i1", "false")
        self.lines.append("  " + self.call("void", "llvm.memset.p0.i64", to, *rest))

    def for_(self, x: ir.For) -> None:
        """Emit a loop; several iterations at a time if they may be and no lane needs a look-up."""
        begin, end = self.index(x.begin), self.index(x.end)
        indices = [at for within in x.body for at in ir.indices_of(within)]
        if x.parallel and self.width == 1 and not any(at.looks_up(x.variable) for at in indices):
            self.vectors(x, begin, end)
            return
        with self.loop(begin, end, x.variable, backwards=x.backwards):
            self.body(x.body)

    @contextlib.contextmanager
    def loop(
        self, begin: str, end: str, variable: ir.Variable, *, step: int = 1, backwards: bool = False
    ) -> Iterator[str]:
        """Emit a loop around what is emitted within; yields the text of its variable."""
        self.names += 1
        label = f"l{self.names}"
        k = self.integers[variable] = f"%{label}.k"
        first, to = (self.new(f"add i64 {end}, -1"), "sge") if backwards else (begin, "slt")
        some = self.new(f"icmp slt i64 {begin}, {end}")
        self.lines += [
            f"  br label %{label}.from",
            f"{label}.from:",
            f"  br i1 {some}, label %{label}, label %{label}.end",
            f"{label}:",
            f"  {k} = phi i64 [ {first}, %{label}.from ], [ {k}.next, %{label}.again ]",
        ]
        self.sines_of.clear()
        yield k
        self.sines_of.clear()
        del self.integers[variable]
        self.lines += [
            f"  br label %{label}.again",
            f"{label}.again:",
            f"  {k}.next = add i64 {k}, {-step if backwards else step}",
            f"  {k}.more = icmp {to} i64 {k}.next, {begin if backwards else end}",
            f"  br i1 {k}.more, label %{label}, label %{label}.end",
            f"{label}.end:",
        ]

    def vectors(self, loop: ir.For, begin: str, end: str) -> None:
        """Emit a parallel loop, several iterations at a time; masked where it begins and ends."""
        unit = all(x.at.factor(loop.variable) == 1 for x in loop.body if isinstance(x, ir.Store))
        # vectors that straddle two lines of the cache take twice as long
        first = self.new(f"and i64 {begin}, -{WIDTH}") if unit else begin
        outside, self.width = self.text, WIDTH
        used = dict.fromkeys(k for x in loop.body for k in ir.operands_of(x) if type(k) is int)
        self.text = {
            k: self.splat(outside[k], "i1" if k in self.conditions else "double")
            for k in used
            if k in outside
        }
        word = self.type("i64")
        after, before = self.splat(end, "i64"), self.splat(begin, "i64")
        lanes = ", ".join(f"i64 {lane}" for lane in range(WIDTH))
        with self.loop(first, end, loop.variable, step=WIDTH) as k:
            self.across = loop.variable
            values = self.new(f"add {word} {self.splat(k, 'i64')}, <{lanes}>")
            below = self.new(f"icmp slt {word} {values}, {after}")
            above = self.new(f"icmp sge {word} {values}, {before}")
            self.mask = self.new(f"and {self.type('i1')} {below}, {above}")
            self.body(loop.body)
        self.text, self.width, self.across = outside, 1, None

    def switch(self, x: ir.Switch) -> None:
        """Emit the cases."""
        on = self.index(x.on)
        self.names += 1
        label = f"s{self.names}"
        targets = " ".join(f"i64 {k}, label %{label}.{k}" for k, _ in x.cases)
        self.lines.append(f"  switch i64 {on}, label %{label}.end [ {targets} ]")
        for k, body in x.cases:
            self.lines.append(f"{label}.{k}:")
            self.body(body)
            self.sines_of.clear()
            self.lines.append(f"  br label %{label}.end")
        self.lines.append(f"{label}.end:")

    def call_procedure(self, x: ir.Call) -> None:
        """Emit the call of a procedure."""
        integers = [f"i64 {self.index(at)}" for at in x.arguments]
        given = ", ".join(["ptr %memory", "ptr %ports", *integers])
        self.lines.append(f"  call void {self.of.name(x.procedure)}({given})")

    # -- the status ------------------------------------------------------------------------------

    def check(self, x: ir.Check) -> None:
        """Note a value that has to be positive; see :meth:`final_status`."""
        self.checks.append((self.operand(x.value), x.status))

    def final_status(self) -> str:
        """Emit what tells the caller of the status, and return the i32 to be returned."""
        if not self.checks:
            return "0"
        kind, status = self.type("i32"), ZERO
        for x, k in reversed(self.checks):  # the first one decides
            failed = str(k) if self.width == 1 else f"splat (i32 {k})"
            positive = self.new(f"fcmp ogt {self.type('double')} {x}, {self.constant(0.0)}")
            bit = f"{self.type('i1')} {positive}"
            status = self.new(f"select {bit}, {kind} {status}, {kind} {failed}")
        if self.width == 1:
            return status
        at = self.new(f"getelementptr ptr, ptr %ports, i64 {len(self.of.ports)}")
        self.lines.append(f"  store {kind} {status}, ptr {self.new(f'load ptr, ptr {at}')}")
        bad = self.new(f"icmp ne {kind} {status}, {ZERO}")
        mask = self.new(f"bitcast {self.type('i1')} {bad} to i{self.width}")
        return self.new(f"zext i{self.width} {mask} to i32")


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
