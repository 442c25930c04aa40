# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""LLVM IR of any program: one walk over its module.

Code for one state takes several iterations of parallel loops at a time, one per lane of a vector.
In code for several states every double is a vector with one state per lane, and so is every entry
of every buffer but constants; parallel loops then take one iteration at a time. Sines and cosines
come from a function that all kernels share (see :mod:`codegen.llvm_shared`), several at a time
where they follow one another.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

from mbs_dynamics.compiler.codegen.builder import real
from mbs_dynamics.compiler.codegen.llvm_memory import NO_MEMORY, byte_table, emit_memory
from mbs_dynamics.compiler.frontend.program import Program, uncollected
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.nodes import (
    CONSTANT,
    INPUT,
    SCRATCH,
    TABLE,
    Buffer,
    Call,
    Check,
    Equal,
    Fill,
    For,
    Index,
    Let,
    Load,
    Lookup,
    Mirror,
    Module,
    Operand,
    Procedure,
    Sines,
    Statement,
    Store,
    Switch,
    Variable,
)
from mbs_dynamics.compiler.passes.pipeline import for_llvm
from mbs_dynamics.compiler.passes.strategy import WIDTH

FLAGS = "contract nsz arcp"
"""Fused multiply-add is allowed. Infinities and NaN keep their meaning: no nnan, no ninf."""

ARITHMETIC = {ops.ADD: "fadd", ops.SUB: "fsub", ops.MUL: "fmul", ops.DIV: "fdiv"}
COMPARISON = {ops.LESS: "olt", ops.LESS_EQUAL: "ole"}

BODY_PARAMETERS = "ptr noalias %memory, ptr %ports"
"""Parameters of every procedure, before its own: scratch memory, and the addresses of the ports."""


def emit_llvm(program: Program, lanes: int = 1) -> str:
    """Return LLVM IR of the function of a program that :func:`emit_module` describes."""
    with uncollected():
        return emit_module(for_llvm(program, lanes), lanes)


def emit_module(module: Module, lanes: int = 1) -> str:
    """Return LLVM IR of ``i32 @<name>(ptr ports)``; ports are the addresses of inputs and outputs.

    All are addresses of doubles. For one state the function returns the status. For several, entry
    k of state j of a port stands at ``lanes * k + j``, the statuses of all states are stored at the
    address that follows those of the ports, and what is returned is 0 if all are.
    """
    return _Printer(module, lanes).emit()


class _Printer:
    """A module: tables, where its buffers are, its functions."""

    def __init__(self, module: Module, lanes: int) -> None:
        self.module, self.lanes = module, lanes
        self.prefix = f"{module.name}.{lanes}"
        self.ports = {x: k for k, x in enumerate((*module.inputs, *module.outputs))}
        self.offsets: dict[Buffer, int] = {}
        """Where scratch buffers begin in the memory, in entries."""
        self.memory = 0
        """Entries of the memory so far."""
        self.tables: dict[Buffer, None] = {}
        self.procedures: dict[Procedure, None] = {}
        self.overrun: set[Buffer] = set()
        """Scratch buffers of which vectors are loaded that may go beyond the end."""

    def emit(self) -> str:
        """Return all of it."""
        main = _Function(self, ())
        main.body(self.module.body)
        printed: dict[Procedure, str] = {}
        while len(printed) < len(self.procedures):  # those that are called call others
            for procedure in [x for x in self.procedures if x not in printed]:
                printed[procedure] = self._procedure(procedure)
        functions = printed.values()
        tables = [self._table(x) for x in self.tables]
        size = 8 * self.lanes * max(self.memory, 1)
        lines, heap = emit_memory(size) if self.memory or printed else ([], False)
        lines += self._padding()
        status = main.final_status(len(self.ports))
        ends = ["  call void @free(ptr %heap)"] if heap else []
        ends.append(f"  ret i32 {status}")
        ends += ["full:", f"  ret i32 {NO_MEMORY}"] if heap else []
        head = f"define i32 @{self.module.name}(ptr %ports) nounwind {{\nentry:"
        text = [head, *main.allocas, *lines, *main.lines, *ends, "}"]
        return "\n".join([*tables, *functions, *text, declarations(self.lanes)])

    def _padding(self) -> Iterator[str]:
        """Yield what fills the room behind buffers with zeros.

        No lane uses it, but what is left over in memory may look like denormal numbers, which take
        a hundred times as long.
        """
        for k, buffer in enumerate(sorted(self.overrun, key=self.offsets.__getitem__)):
            end, room = self.offsets[buffer] + buffer.size, _padded(buffer.size, 1) - buffer.size
            yield f"  %pad{k} = getelementptr double, ptr %memory, i64 {end}"
            yield f"  call void @llvm.memset.p0.i64(ptr %pad{k}, i8 0, i64 {8 * room}, i1 false)"

    def offset(self, buffer: Buffer) -> int:
        """Return where a scratch buffer begins in the memory, in entries."""
        if buffer not in self.offsets:
            self.offsets[buffer] = self.memory
            self.memory += _padded(buffer.size, self.lanes)
        return self.offsets[buffer]

    def name(self, procedure: Procedure) -> str:
        """Return the name of a procedure's function."""
        self.procedures.setdefault(procedure)
        return f'@"{self.prefix}.{procedure.name}"'

    def symbol(self, buffer: Buffer) -> str:
        """Return the name of a table."""
        self.tables.setdefault(buffer)
        return f'@"{self.prefix}.{buffer.name}"'

    def _table(self, buffer: Buffer) -> str:
        assert buffer.data is not None
        padding = np.zeros(WIDTH, dtype=buffer.data.dtype)  # vectors go beyond the end
        return byte_table(f"{self.prefix}.{buffer.name}", np.concatenate([buffer.data, padding]))

    def _procedure(self, procedure: Procedure) -> str:
        function = _Function(self, procedure.parameters)
        function.body(procedure.body)
        parameters = ", ".join([BODY_PARAMETERS, *(f"i64 %{x}" for x in procedure.parameters)])
        head = f"define internal void {self.name(procedure)}({parameters}) nounwind {{\nentry:"
        return "\n".join([head, *function.allocas, *function.lines, "  ret void", "}"])


class _Level:
    """Lines that are as deep in loops and cases as each other, and what they have computed."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.known: dict[object, str] = {}


class _Function:
    """The lines of a function. Addresses are computed as far outside of loops as they can be."""

    def __init__(self, printer: _Printer, parameters: Sequence[Variable]) -> None:
        self.of, self.lanes = printer, printer.lanes
        self.allocas: list[str] = []
        self.levels = [_Level()]
        self.counters = {x: (f"%{x}", 0) for x in parameters}
        """Of variables: their text, and the level from which on they are known."""
        self.floor = 0
        """The level of the case around: nothing in it is computed outside."""
        self.text: dict[int, str] = {}
        self.varying: set[int] = set()
        """Values that differ from lane to lane of a parallel loop."""
        self.across: Variable | None = None
        """The variable that does."""
        self.conditions: set[int] = set()
        self.loaded: dict[Operand, tuple[Buffer, int]] = {}
        """Entries of inputs, by the values that they were loaded as."""
        self.status = ""
        """The address of the status, if there is one."""
        self.checks: list[tuple[str, int]] = []
        """Values that are checked outside of loops, before any within, with their status."""
        self._names = 0

    @property
    def lines(self) -> list[str]:
        """The lines of the innermost level."""
        return self.levels[-1].lines

    def new(self, expression: str, level: int = -1) -> str:
        """Define a value, and return its name."""
        self._names += 1
        name = f"%v{self._names}"
        self.levels[level].lines.append(f"  {name} = {expression}")
        return name

    def known(self, key: object, expression: str, level: int = -1) -> str:
        """Define a value unless this level has it already, and return its name."""
        known = self.levels[level].known
        if key not in known:
            known[key] = self.new(expression, level)
        return known[key]

    def alloca(self, size: int, kind: str = "double") -> str:
        """Return the address of so many doubles on the stack."""
        name = f"%a{len(self.allocas)}"
        self.allocas.append(f"  {name} = alloca [{size} x {kind}], align 64")
        return name

    # -- types and operands ----------------------------------------------------------------------

    def width(self, varying: bool) -> int:
        """Return how many lanes a value has."""
        return self.lanes if self.lanes > 1 else WIDTH if varying else 1

    def type(self, scalar: str, varying: bool = False) -> str:
        """Return the type of a value that has this type in one lane."""
        width = self.width(varying)
        return scalar if width == 1 else f"<{width} x {scalar}>"

    def constant(self, x: float, varying: bool = False) -> str:
        """Return a number as an operand."""
        return real(x) if self.width(varying) == 1 else f"splat (double {real(x)})"

    def operand(self, x: Operand, varying: bool = False) -> str:
        """Return an operand, the same in all lanes if the operation varies and it does not."""
        if isinstance(x, float):
            return self.constant(x, varying)
        if varying and x not in self.varying and self.lanes == 1:
            text = self.text[x]
            kind = "double" if x not in self.conditions else "i1"
            return self.splat(text, kind, WIDTH, -2)
        return self.text[x]

    def splat(self, text: str, kind: str, width: int, level: int = -1) -> str:
        """Return the vector of which every lane is this."""
        vector = f"<{width} x {kind}>"
        one = self.known(
            ("one", text), f"insertelement {vector} poison, {kind} {text}, i64 0", level
        )
        zeros = f"<{width} x i32> zeroinitializer"
        shuffle = f"shufflevector {vector} {one}, {vector} poison, {zeros}"
        return self.known(("all", text), shuffle, level)

    # -- indices and addresses -------------------------------------------------------------------

    def level(self, at: Index) -> int:
        """Return the outermost level at which an index is known."""
        return max([self.floor, *(self.counters[x][1] for x in at.variables)])

    def index(self, at: Index) -> str:
        """Return an index as an operand, computed at the outermost level."""
        text = ""
        for atom, factor in at.terms:
            here = Index(((atom, factor),))
            level = self.level(here)
            term = self.counters[atom][0] if isinstance(atom, Variable) else self.lookup(atom)
            if factor != 1:
                term = self.known(here, f"mul i64 {term}, {factor}", level)
            text = (
                self.known(("+", text, term), f"add i64 {text}, {term}", self.level(at))
                if text
                else term
            )
        if at.constant and text:
            text = self.known(at, f"add i64 {text}, {at.constant}", self.level(at))
        return text or str(at.constant)

    def lookup(self, x: Lookup) -> str:
        """Return an integer of a table."""
        level, k = self.level(x.at), self.index(x.at)
        at = f"getelementptr i64, ptr {self.of.symbol(x.table)}, i64 {k}"
        return self.known(x, f"load i64, ptr {self.known(('at', x), at, level)}", level)

    def entry_type(self, buffer: Buffer) -> str:
        """Return the type of an entry of a buffer."""
        return "double" if buffer.kind == CONSTANT else self.type("double")

    def pointer(self, buffer: Buffer) -> str:
        """Return the address of a buffer."""
        if buffer.kind in (CONSTANT, TABLE):
            return self.of.symbol(buffer)
        if buffer.kind == SCRATCH:
            kind, first = self.entry_type(buffer), self.of.offset(buffer)
            return self.known(buffer, f"getelementptr {kind}, ptr %memory, i64 {first}", 0)
        at = self.known(
            (buffer, "at"), f"getelementptr ptr, ptr %ports, i64 {self.of.ports[buffer]}", 0
        )
        return self.known(buffer, f"load ptr, ptr {at}", 0)

    def address(self, buffer: Buffer, at: Index) -> str:
        """Return the address of an entry; of that of the first lane, if it varies."""
        pointer, kind = self.pointer(buffer), self.entry_type(buffer)
        if not at.terms:
            key, expression = (pointer, at.constant), f"{kind}, ptr {pointer}, i64 {at.constant}"
            return self.known(key, f"getelementptr {expression}", self.floor)
        by_level: dict[int, Index] = {}
        for atom, factor in at.terms:  # the outer ones first
            term = Index(((atom, factor),))
            level = self.level(term)
            by_level[level] = by_level.get(level, Index()) + term
        if at.constant:
            first = min(by_level, default=self.floor)
            by_level[first] = by_level.get(first, Index()) + at.constant
        for level in sorted(by_level):
            k = self.index(by_level[level])
            pointer = self.known(
                (pointer, k, kind), f"getelementptr {kind}, ptr {pointer}, i64 {k}", level
            )
        return pointer

    # -- statements ------------------------------------------------------------------------------

    def body(self, body: Sequence[Statement]) -> None:
        """Emit statements."""
        for statement in body:
            self.statement(statement)

    def statement(self, statement: Statement) -> None:
        """Emit one statement."""
        match statement:
            case Let(value, op, args):
                self.let(value, op, args)
            case Equal(value, a, b):
                self.equal(value, a, b)
            case Load():
                self.load(statement)
            case Store():
                self.store(statement)
            case Fill(buffer, first, entries):
                at_first = self.address(buffer, Index((), first))
                size = 8 * self.lanes * entries
                self.lines.append(
                    f"  call void @llvm.memset.p0.i64(ptr {at_first}, i8 0, i64 {size}, i1 false)"
                )
            case Sines():
                self.sines(statement)
            case Check(value, status):
                self.check(value, status)
            case Mirror(source, first, target, target_first, size):
                matrices = [
                    f"ptr {self.address(x, Index((), at))}"
                    for x, at in ((source, first), (target, target_first))
                ]
                self.lines.append(f"  call void @mbs.mirror({', '.join(matrices)}, i64 {size})")
            case For() if statement.parallel and self.lanes == 1:
                self.vectors(statement)
            case For():
                begin, end = self.index(statement.begin), self.index(statement.end)
                with self.loop(begin, end, statement.variable, backwards=statement.backwards):
                    self.body(statement.body)
            case Switch():
                self.switch(statement)
            case Call():
                given = [f"i64 {self.index(x)}" for x in statement.arguments]
                arguments = ", ".join([BODY_PARAMETERS, *given])
                self.lines.append(f"  call void {self.of.name(statement.procedure)}({arguments})")

    @contextlib.contextmanager
    def loop(
        self, begin: str, end: str, variable: Variable, *, step: int = 1, backwards: bool = False
    ) -> Iterator[str]:
        """Emit a loop around what is emitted within; yields the text of its counter."""
        self._names += 1
        label, outer = f"l{self._names}", self.levels[-1]
        k = f"%{label}.k"
        self.counters[variable] = k, len(self.levels)
        self.levels.append(_Level())
        yield k
        inner = self.levels.pop()
        del self.counters[variable]
        first, limit = (begin, end)
        if backwards:
            first = self.new(f"add i64 {end}, -1")
        some = self.new(f"icmp slt i64 {begin}, {end}")
        more = f"icmp sge i64 {k}.next, {begin}" if backwards else f"icmp slt i64 {k}.next, {limit}"
        outer.lines += [
            f"  br label %{label}.from",
            f"{label}.from:",
            f"  br i1 {some}, label %{label}, label %{label}.end",
            f"{label}:",
            f"  {k} = phi i64 [ {first}, %{label}.from ], [ {k}.next, %{label}.again ]",
            *inner.lines,
            f"  br label %{label}.again",
            f"{label}.again:",
            f"  {k}.next = add i64 {k}, {-step if backwards else step}",
            f"  {k}.more = {more}",
            f"  br i1 {k}.more, label %{label}, label %{label}.end",
            f"{label}.end:",
        ]

    def vectors(self, loop: For) -> None:
        """Emit a parallel loop, several iterations at a time; masked where it begins and ends."""
        begin, end = self.index(loop.begin), self.index(loop.end)
        strided = any(isinstance(x, Store) and x.at.factor(loop.variable) != 1 for x in loop.body)
        first = begin
        if not strided:  # vectors that straddle two lines of the cache take twice as long
            first = self.known(("aligned", begin), f"and i64 {begin}, -{WIDTH}")
        word = f"<{WIDTH} x i64>"
        all_end, all_begin = (self.splat(x, "i64", WIDTH) for x in (end, begin))
        lanes = ", ".join(f"i64 {lane}" for lane in range(WIDTH))
        self.across = loop.variable
        with self.loop(first, end, loop.variable, step=WIDTH) as k:
            every = self.new(f"add {word} {self.splat(k, 'i64', WIDTH)}, <{lanes}>")
            self.levels[-1].known["lanes"] = every
            below = self.new(f"icmp slt {word} {every}, {all_end}")
            above = self.new(f"icmp sge {word} {every}, {all_begin}")
            self.levels[-1].known["mask"] = self.new(f"and <{WIDTH} x i1> {below}, {above}")
            self.body(loop.body)
        self.across = None
        self.varying.clear()

    def switch(self, switch: Switch) -> None:
        """Emit the cases, each with a level of its own."""
        on = self.index(switch.on)
        self._names += 1
        label = f"s{self._names}"
        targets = " ".join(f"i64 {k}, label %{label}.{k}" for k, _ in switch.cases)
        self.lines.append(f"  switch i64 {on}, label %{label}.end [ {targets} ]")
        for k, body in switch.cases:
            before, self.floor = self.floor, len(self.levels)
            self.levels.append(_Level())
            self.body(body)
            lines = self.levels.pop().lines
            self.floor = before
            self.lines.extend([f"{label}.{k}:", *lines, f"  br label %{label}.end"])
        self.lines.append(f"{label}.end:")

    def let(self, value: int, op: str, args: Sequence[Operand]) -> None:
        """Emit an operation."""
        varying = bool(self.varying) and any(type(x) is int and x in self.varying for x in args)
        if varying:
            self.varying.add(value)
        real = self.type("double", varying)
        x = [self.operand(x, varying) for x in args]
        if op in ARITHMETIC:
            expression = f"{ARITHMETIC[op]} {FLAGS} {real} {x[0]}, {x[1]}"
        elif op == ops.NEG:
            expression = f"fneg {FLAGS} {real} {x[0]}"
        elif op in COMPARISON:
            self.conditions.add(value)
            expression = f"fcmp {COMPARISON[op]} {real} {x[0]}, {x[1]}"
        elif op == ops.SELECT:
            expression = f"select {self.type('i1', varying)} {x[0]}, {real} {x[1]}, {real} {x[2]}"
        elif op == ops.SQRT:
            expression = f"call {real} @llvm.sqrt.{suffix(self.width(varying))}({real} {x[0]})"
        elif op in (ops.SIN, ops.COS):
            expression = self.trigonometric(op, x[0], varying)
        else:
            expression = self.library(op, x, self.width(varying))
        self.text[value] = self.new(expression)

    def trigonometric(self, op: str, x: str, varying: bool) -> str:
        """Return the load of a sine or cosine of one angle; both are computed at its first use."""
        width = self.width(varying)
        size, known = (WIDTH if width == 1 else width), self.levels[-1].known
        key = "sines", x
        if key not in known:
            if width == 1:
                x = self.new(f"insertelement <{size} x double> zeroinitializer, double {x}, i64 0")
            known[key] = self.alloca(2 * size)
            self.call_sines(size, x, known[key])
        at = self.new(f"getelementptr double, ptr {known[key]}, i64 {size * (op == ops.COS)}")
        return f"load {self.type('double', varying)}, ptr {at}"

    def sines(self, sines: Sines) -> None:
        """Emit sines and cosines of several angles at once."""
        buffer, first, angles, width = sines
        texts = [self.operand(x) for x in angles]
        x = self.vector_of(angles, texts) if self.lanes == 1 else texts[0]
        self.call_sines(width * self.lanes, x, self.address(buffer, Index((), first)))

    def call_sines(self, size: int, x: str, at: str) -> None:
        """Emit the call of a function that all kernels share: so many sines, then the cosines."""
        self.lines.append(f"  call void @mbs.sincos{size}(<{size} x double> {x}, ptr {at})")

    def vector_of(self, angles: Sequence[Operand], texts: Sequence[str]) -> str:
        """Return a vector of angles of one state: one load if they stand side by side."""
        vector = f"<{WIDTH} x double>"
        buffer, first = self.loaded.get(angles[0], (None, 0))
        places = [self.loaded.get(x) for x in angles]
        if buffer and places == [(buffer, first + k) for k in range(len(angles))]:
            at = self.address(buffer, Index((), first))
            lanes = ", ".join(f"i1 {str(k < len(angles)).lower()}" for k in range(WIDTH))
            return self.new(
                f"call {vector} @llvm.masked.load.v{WIDTH}f64.p0(ptr {at}, i32 8, "
                f"<{WIDTH} x i1> <{lanes}>, {vector} zeroinitializer)"
            )
        x = "zeroinitializer"
        for lane, text in enumerate(texts):
            x = self.new(f"insertelement {vector} {x}, double {text}, i64 {lane}")
        return x

    def library(self, name: str, args: Sequence[str], width: int) -> str:
        """Return a call of the C library's function, made for one lane after another."""
        if width == 1:
            return f"call double @{name}({', '.join(f'double {x}' for x in args)})"
        real = f"<{width} x double>"
        result = expression = "poison"
        for lane in range(width):
            each = [self.new(f"extractelement {real} {x}, i64 {lane}") for x in args]
            value = self.new(f"call double @{name}({', '.join(f'double {x}' for x in each)})")
            if lane:
                result = self.new(expression)
            expression = f"insertelement {real} {result}, double {value}, i64 {lane}"
        return expression

    def equal(self, value: int, a: Index, b: Index) -> None:
        """Emit one where two indices are equal, else zero."""
        sides = [self.vector_index(x) for x in (a, b)]
        varying = any(varies for _, varies in sides)
        word = f"<{WIDTH} x i64>" if varying else "i64"
        x, y = (
            text if varies or not varying else self.splat(text, "i64", WIDTH, -2)
            for text, varies in sides
        )
        same = self.new(f"icmp eq {word} {x}, {y}")
        one, zero = (self.constant(k, varying) for k in (1.0, 0.0))
        real, bit = self.type("double", varying), f"<{WIDTH} x i1>" if varying else "i1"
        self.text[value] = self.new(f"select {bit} {same}, {real} {one}, {real} {zero}")
        if varying:
            self.varying.add(value)

    def vector_index(self, at: Index) -> tuple[str, bool]:
        """Return an index, as a vector if it varies, and whether it does."""
        if self.across not in at.variables:
            return self.index(at), False
        word, total = f"<{WIDTH} x i64>", ""
        rest = Index((), at.constant)
        for atom, factor in at.terms:
            if isinstance(atom, Variable) and atom != self.across:
                rest += Index(((atom, factor),))
                continue
            if isinstance(atom, Lookup) and self.across not in atom.at.variables:
                rest += Index(((atom, factor),))
                continue
            term = self.levels[-1].known["lanes"]
            if isinstance(atom, Lookup):
                places, _ = self.vector_index(atom.at)
                table = self.of.symbol(atom.table)
                places = self.new(f"getelementptr i64, ptr {table}, {word} {places}")
                gather = f"{word} @llvm.masked.gather.v{WIDTH}i64.v{WIDTH}p0"
                term = self.new(
                    f"call {gather}(<{WIDTH} x ptr> {places}, i32 8, {self.mask()}, "
                    f"{word} zeroinitializer)"
                )
            if factor != 1:
                term = self.new(f"mul {word} {term}, splat (i64 {factor})")
            total = self.new(f"add {word} {total}, {term}") if total else term
        if rest != Index():
            total = self.new(
                f"add {word} {total}, {self.splat(self.index(rest), 'i64', WIDTH, -2)}"
            )
        return total, True

    def mask(self) -> str:
        """Return the lanes that are within the loop."""
        return f"<{WIDTH} x i1> {self.levels[-1].known['mask']}"

    def load(self, load: Load) -> None:
        """Emit the load of an entry, or of those of all lanes."""
        value, buffer, at, volatile = load
        if self.across is None or self.across not in at.variables:
            kind, way = self.entry_type(buffer), "load volatile" if volatile else "load"
            text = self.new(f"{way} {kind}, ptr {self.address(buffer, at)}, align 8")
            if kind == "double" and self.lanes > 1:
                text = self.splat(text, "double", self.lanes)
            self.text[value] = text
            if buffer.kind == INPUT and not at.terms:
                self.loaded[value] = buffer, at.constant
            return
        self.varying.add(value)
        vector = f"<{WIDTH} x double>"
        if at.factor(self.across) != 1 or at.looks_up(self.across):
            call = f"call {vector} @llvm.masked.gather.v{WIDTH}f64.v{WIDTH}p0"
            arguments = f"{self.apart(buffer, at)}, i32 8, {self.mask()}, {vector} zeroinitializer"
            self.text[value] = self.new(f"{call}({arguments})")
            return
        pointer = self.address(buffer, at)
        if buffer.kind in (SCRATCH, CONSTANT):  # there is room for a vector beyond the end
            if buffer.kind == SCRATCH:
                self.of.overrun.add(buffer)
            self.text[value] = self.new(f"load {vector}, ptr {pointer}, align 8")
            return
        call = f"call {vector} @llvm.masked.load.v{WIDTH}f64.p0"
        arguments = f"ptr {pointer}, i32 8, {self.mask()}, {vector} zeroinitializer"
        self.text[value] = self.new(f"{call}({arguments})")

    def apart(self, buffer: Buffer, at: Index) -> str:
        """Return the addresses of the entries of all lanes."""
        places, _ = self.vector_index(at)
        pointers = f"getelementptr double, ptr {self.pointer(buffer)}, <{WIDTH} x i64> {places}"
        return f"<{WIDTH} x ptr> {self.new(pointers)}"

    def store(self, store: Store) -> None:
        """Emit the store of an entry, or of those of all lanes."""
        buffer, at, x, volatile = store
        if self.across is None:
            real, value = self.type("double"), self.operand(x)
            pointer, way = self.address(buffer, at), "store volatile" if volatile else "store"
            self.lines.append(f"  {way} {real} {value}, ptr {pointer}, align 8")
            return
        vector = f"<{WIDTH} x double>"
        value = f"{vector} {self.operand(x, varying=True)}"
        if at.factor(self.across) == 1 and not at.looks_up(self.across):
            call, where = f"@llvm.masked.store.v{WIDTH}f64.p0", f"ptr {self.address(buffer, at)}"
        else:
            call = f"@llvm.masked.scatter.v{WIDTH}f64.v{WIDTH}p0"
            where = self.apart(buffer, at)
        self.lines.append(f"  call void {call}({value}, {where}, i32 8, {self.mask()})")

    def check(self, value: int, status: Index) -> None:
        """Emit what keeps the first status that is not zero."""
        if not status.terms and not self.status and len(self.levels) == 1:
            self.checks.append((self.operand(value), status.constant))
            return
        kind, real, bit = self.type("i32"), self.type("double"), self.type("i1")
        if not self.status:
            self.status = self.alloca(self.lanes, "i32")
            self.levels[0].lines.insert(0, f"  store {kind} zeroinitializer, ptr {self.status}")
        before = self.new(f"load {kind}, ptr {self.status}")
        good = self.new(f"fcmp ogt {real} {self.operand(value)}, {self.constant(0.0)}")
        failed = self.new(f"icmp ne {kind} {before}, zeroinitializer")
        stays = self.new(f"or {bit} {good}, {failed}")
        number = self.new(f"trunc i64 {self.index(status)} to i32")
        if self.lanes > 1:
            number = self.splat(number, "i32", self.lanes)
        after = self.new(f"select {bit} {stays}, {kind} {before}, {kind} {number}")
        self.lines.append(f"  store {kind} {after}, ptr {self.status}")

    def final_status(self, ports: int) -> str:
        """Emit what tells the caller of the status, and return the i32 to be returned."""
        if not self.status and not self.checks:
            return "0"
        kind, status = self.type("i32"), "0" if self.lanes == 1 else "zeroinitializer"
        if self.status:
            status = self.new(f"load {kind}, ptr {self.status}")
        for x, k in reversed(self.checks):  # the first one is said
            good = self.new(f"fcmp ogt {self.type('double')} {x}, {self.constant(0.0)}")
            failed = str(k) if self.lanes == 1 else f"splat (i32 {k})"
            status = self.new(f"select {self.type('i1')} {good}, {kind} {status}, {kind} {failed}")
        if self.lanes == 1:
            return status
        at = self.new(f"getelementptr ptr, ptr %ports, i64 {ports}")
        at = self.new(f"load ptr, ptr {at}")
        self.lines.append(f"  store {kind} {status}, ptr {at}")
        bad = self.new(f"icmp ne {kind} {status}, zeroinitializer")
        mask = self.new(f"bitcast {self.type('i1')} {bad} to i{self.lanes}")
        return self.new(f"zext i{self.lanes} {mask} to i32")


def _padded(size: int, lanes: int) -> int:
    """Return how many entries from one scratch buffer to the next.

    There is room for a vector that begins at the last entry, and an odd number of lines, so that
    all sets of a cache serve the same entries of many buffers.
    """
    line, room = max(WIDTH // lanes, 1), WIDTH - 1 if lanes == 1 else 0
    return line * (-(-(size + room) // line) | 1)


def suffix(width: int) -> str:
    """Return how LLVM's intrinsics name a type."""
    return "f64" if width == 1 else f"v{width}f64"


def declarations(lanes: int) -> str:
    """Return the declarations of what functions may call."""
    w = f"v{WIDTH}f64"
    vector, pointers, bits = (f"<{WIDTH} x {x}>" for x in ("double", "ptr", "i1"))
    roots = [
        f"declare {'double' if k == 1 else f'<{k} x double>'} @llvm.sqrt.{suffix(k)}"
        f"({'double' if k == 1 else f'<{k} x double>'})"
        for k in sorted({1, WIDTH, lanes})
    ]
    trigonometric = [
        f"declare void @mbs.sincos{k}(<{k} x double>, ptr nocapture writeonly) "
        "nounwind memory(argmem: write)"
        for k in sorted({WIDTH, lanes} - {1})
    ]
    return "\n".join(
        [
            *roots,
            *trigonometric,
            "declare void @mbs.mirror(ptr, ptr, i64)",
            "declare double @atan2(double, double)",
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
            f"declare {vector} @llvm.masked.load.{w}.p0(ptr, i32, {bits}, {vector})",
            f"declare void @llvm.masked.store.{w}.p0({vector}, ptr, i32, {bits})",
            f"declare {vector} @llvm.masked.gather.{w}.v{WIDTH}p0"
            f"({pointers}, i32, {bits}, {vector})",
            f"declare void @llvm.masked.scatter.{w}.v{WIDTH}p0({vector}, {pointers}, i32, {bits})",
            f"declare <{WIDTH} x i64> @llvm.masked.gather.v{WIDTH}i64.v{WIDTH}p0"
            f"({pointers}, i32, {bits}, <{WIDTH} x i64>)",
            "declare ptr @malloc(i64)",
            "declare void @free(ptr)",
            "",
        ]
    )
