# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The LLVM emitter: a program as machine code, for one state or for several at once.

The function that is written takes one pointer, to the addresses of all inputs and outputs, and is
one basic block. In a body of several lanes every value is a vector with one state per lane, and the
lanes of an entry lie side by side in memory.

A value that is used again after many other operations waits in memory. Left to LLVM, long bodies
take twice as long to compile, most of it for the registers, and are slower. The loads and stores
are volatile, else LLVM would see through them. Results are stored as soon as they are known, so
outputs must not overlap inputs.

Sines and cosines come from a function that all kernels share (see
:mod:`codegen.llvm_shared`), several at a time: those of angles that are at hand first,
then those of angles that depend on the first, and so on.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

from mbs_dynamics.compiler.codegen.llvm_prefetch import APART, Prefetched
from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.program import Port, Program
from mbs_dynamics.compiler.passes.scheduling import waiting_places

FLAGS = "contract nsz arcp"
"""Fused multiply-add is allowed. Infinities and NaN keep their meaning: no nnan, no ninf."""

WIDTH = 8
"""Angles of one state that the shared function takes at once."""

PER_CALL = 2
"""Angles of several states that it takes at once in straight-line code: 0.8 of the time of one."""

FAR = 150
"""A value that was not used for so many operations waits in memory."""

LONG = 6000
"""In straight-line code of one state with more nodes than this, stores of outputs are volatile.

LLVM would compare each of them with all others: with thousands it takes two to three times as long.
"""

DIRECT = 64
"""An output with more zeros than this is filled with zeros first."""

ARITHMETIC = {g.ADD: "fadd", g.SUB: "fsub", g.MUL: "fmul", g.DIV: "fdiv"}
COMPARISON = {g.LESS: "olt", g.LESS_EQUAL: "ole"}
TRIG = (g.SIN, g.COS)


def constant(x: float) -> str:
    """Return a double as LLVM writes it, to the bit."""
    bits = struct.unpack("<Q", struct.pack("<d", x))[0]
    return f"0x{bits:016X}"


class Body:
    """Lines of IR, and by the id of its node the text of every value that they define."""

    def __init__(self, lanes: int = 1) -> None:
        self.lanes = lanes
        self.lines: list[str] = []
        self.text: dict[int, str] = {}
        self.real, self.bit, self.word = self.type("double"), self.type("i1"), self.type("i64")
        self.sqrt = "f64" if lanes == 1 else f"v{lanes}f64"
        self.prefix = "splat (double {})" if lanes > 1 else "{}"
        self.storing = ""
        """What is said of the stores of outputs."""
        self._spare = 0
        self._now = 0
        self._used: dict[int, int] = {}
        self._waiting: dict[int, str] = {}

    def type(self, scalar: str) -> str:
        """Return the type of a value that has this type in one state."""
        return scalar if self.lanes == 1 else f"<{self.lanes} x {scalar}>"

    def constant(self, x: float) -> str:
        """Return a number as an operand."""
        return self.prefix.format(constant(x))

    def whole(self, n: int) -> str:
        """Return an integer as an operand."""
        return f"splat (i64 {n})" if self.lanes > 1 else str(n)

    def ref(self, x: Any) -> str:
        """Return a node or a number as an operand."""
        return self.text[x.id] if isinstance(x, (Symbol, Condition)) else self.constant(float(x))

    def operand(self, x: Any) -> str:
        """Return a node or a number as an operand of the current operation, loaded if need be."""
        if not isinstance(x, Symbol) or x.id not in self._waiting:
            return self.ref(x)
        if self._now - self._used[x.id] > FAR:
            self.text[x.id] = self.new(f"load volatile {self.real}, ptr {self._waiting[x.id]}")
        self._used[x.id] = self._now
        return self.text[x.id]

    def set(self, name: str, expression: str) -> str:
        """Emit the definition of a value and return its name."""
        self.lines.append(f"  {name} = {expression}")
        return name

    def new(self, expression: str) -> str:
        """Emit the definition of a value without a name of its own, and return its name."""
        self._spare += 1
        return self.set(f"%v{self._spare}", expression)

    def entry(self, pointer: str, k: int) -> str:
        """Emit the address of the k-th entry of an array and return it."""
        return self.new(f"getelementptr {self.real}, ptr {pointer}, i64 {k}")

    def node(self, node: Symbol | Condition) -> None:
        """Emit one operation."""
        op, real = node.op, self.real
        self._now += 1
        self._used[node.id] = self._now
        if op == g.INPUT:
            port, k = node.args
            at = self.entry(input_pointer(port), k)
            if node.id in self._waiting:
                self._waiting[node.id] = at
            expression = f"load {real}, ptr {at}"
        else:
            args = [self.operand(x) for x in node.args]
            if op in ARITHMETIC:
                expression = f"{ARITHMETIC[op]} {FLAGS} {real} {args[0]}, {args[1]}"
            elif op == g.NEG:
                expression = f"fneg {FLAGS} {real} {args[0]}"
            elif op in COMPARISON:
                expression = f"fcmp {COMPARISON[op]} {real} {args[0]}, {args[1]}"
            elif op == g.SELECT:
                expression = f"select {self.bit} {args[0]}, {real} {args[1]}, {real} {args[2]}"
            elif op == g.SQRT:
                expression = f"call {real} @llvm.sqrt.{self.sqrt}({real} {args[0]})"
            else:
                expression = self.library(op, args)
        self.text[node.id] = self.set(f"%t{node.id}", expression)
        if op != g.INPUT and node.id in self._waiting:
            home = self._waiting[node.id]
            self.lines.append(f"  store volatile {real} %t{node.id}, ptr {home}")

    def keep(self, inputs: Sequence[int], places: Mapping[int, int]) -> None:
        """Give nodes, which are yet to be emitted, a place in memory to wait in, by their ids."""
        size = 8 * self.lanes
        count = 1 + max(places.values(), default=-1)
        self.set("%waiting", f"alloca [{count} x {self.real}], align {size}")
        every = [self.entry("%waiting", k) for k in range(count)]
        self._waiting.update({x: "" for x in inputs})  # these wait where they are
        self._waiting.update({x: every[k] for x, k in places.items()})

    def library(self, name: str, args: Sequence[str]) -> str:
        """Return a call of the C library's function, made for one lane after another."""
        if self.lanes == 1:
            return f"call double @{name}({', '.join(f'double {x}' for x in args)})"
        result = expression = "poison"
        for lane in range(self.lanes):
            each = [self.new(f"extractelement {self.real} {x}, i64 {lane}") for x in args]
            value = self.new(f"call double @{name}({', '.join(f'double {x}' for x in each)})")
            if lane:
                result = self.new(expression)
            expression = f"insertelement {self.real} {result}, double {value}, i64 {lane}"
        return expression

    def pointers(self, program: Program) -> None:
        """Emit the loads of the addresses of inputs and outputs from the array ``%ports``."""
        names = [input_pointer(port.name) for port in program.inputs]
        names += [output_pointer(port.name) for port in program.outputs]
        for k, name in enumerate(names):
            at = self.new(f"getelementptr ptr, ptr %ports, i64 {k}")
            self.set(name, f"load ptr, ptr {at}")

    def in_all_lanes(self, number: str) -> str:
        """Emit the vector of which every lane is this double, and return it."""
        if self.lanes == 1:
            return number
        one = self.new(f"insertelement {self.real} poison, double {number}, i64 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return self.new(f"shufflevector {self.real} {one}, {self.real} poison, {mask}")

    def zero(self, at: str, count: int) -> None:
        """Emit the filling of so many entries with zeros."""
        size = 8 * self.lanes * count
        self.lines.append(f"  call void @llvm.memset.p0.i64(ptr {at}, i8 0, i64 {size}, i1 false)")

    def store(self, port: Port, k: int, x: Any) -> None:
        """Emit the store of one entry of an output."""
        at = self.entry(output_pointer(port.name), k)
        self.lines.append(f"  store {self.storing}{self.real} {self.operand(x)}, ptr {at}")

    def store_numbers(self, program: Program) -> None:
        """Emit the stores of the entries of outputs that are numbers."""
        for port, values in zip(program.outputs, program.values, strict=True):
            zeros = sum(not isinstance(x, Symbol) and x == 0.0 for x in values)
            if zeros > DIRECT:
                self.zero(output_pointer(port.name), port.size)
            for k, x in enumerate(values):
                if not isinstance(x, Symbol) and (x != 0.0 or zeros <= DIRECT):
                    self.store(port, k, x)

    def status(self, guards: Sequence[tuple[Any, str]], ports: int) -> str:
        """Emit the number of the first guard that fails, or 0, and return the i32 to be returned.

        In a body of several lanes the numbers of all lanes are stored at the address that follows
        those of the ports, and what is returned is 0 if no guard fails in any lane.
        """
        if not guards:
            return "0"
        number = self.type("i32")
        status = "zeroinitializer" if self.lanes > 1 else "0"
        for k, (x, _) in reversed(list(enumerate(guards, 1))):  # the first one is said
            good = self.new(f"fcmp ogt {self.real} {self.operand(x)}, {self.constant(0.0)}")
            failed = f"splat (i32 {k})" if self.lanes > 1 else str(k)
            status = self.new(f"select {self.bit} {good}, {number} {status}, {number} {failed}")
        return self.said(status, ports)

    def said(self, status: str, ports: int) -> str:
        """Emit what tells the caller of a status, and return the i32 to be returned."""
        if self.lanes == 1:
            return status
        number = self.type("i32")
        at = self.new(f"getelementptr ptr, ptr %ports, i64 {ports}")
        at = self.new(f"load ptr, ptr {at}")
        self.lines.append(f"  store {number} {status}, ptr {at}")
        bad = self.new(f"icmp ne {number} {status}, zeroinitializer")
        mask = self.new(f"bitcast {self.bit} {bad} to i{self.lanes}")
        return self.new(f"zext i{self.lanes} {mask} to i32")

    # -- sines and cosines -------------------------------------------------------------------------

    def sines_and_cosines(self, trig: Sequence[Symbol | Condition], table: str = "") -> None:
        """Emit these sines and cosines, of angles that are at hand.

        ``table`` is where they are stored: the sines of a group of angles, then their cosines.
        Without it a table is made on the stack.
        """
        angles = list({node.args[0].id: node.args[0] for node in trig}.values())
        per_call = WIDTH if self.lanes == 1 else PER_CALL
        size = per_call * self.lanes
        groups = [angles[k : k + per_call] for k in range(0, len(angles), per_call)]
        where: dict[tuple[int, str], int] = {}
        table = table or self.new(f"alloca [{2 * size * len(groups)} x double], align {8 * size}")
        for k, group in enumerate(groups):
            x = self._together(group) if self.lanes == 1 else self._side_by_side(group)
            at = self.new(f"getelementptr double, ptr {table}, i64 {2 * size * k}")
            self.lines.append(f"  call void @mbs.sincos{size}(<{size} x double> {x}, ptr {at})")
            for j, angle in enumerate(group):
                where[angle.id, g.SIN] = 2 * size * k + self.lanes * j
                where[angle.id, g.COS] = 2 * size * k + size + self.lanes * j
        for node in trig:
            place = where[node.args[0].id, node.op]
            at = self.new(f"getelementptr double, ptr {table}, i64 {place}")
            self.text[node.id] = self.set(f"%t{node.id}", f"load {self.real}, ptr {at}")
            self._used[node.id], self._waiting[node.id] = self._now, at

    def _together(self, angles: Sequence[Symbol]) -> str:
        """Emit a vector of angles of one state: one load if they lie side by side."""
        vector = f"<{WIDTH} x double>"
        places = [x.args for x in angles if x.op == g.INPUT]
        first = places[0] if places else ("", 0)
        if places == [(first[0], first[1] + k) for k in range(len(angles))]:
            at = self.new(f"getelementptr double, ptr {input_pointer(first[0])}, i64 {first[1]}")
            lanes = ", ".join(f"i1 {str(k < len(angles)).lower()}" for k in range(WIDTH))
            return self.new(
                f"call {vector} @llvm.masked.load.v{WIDTH}f64.p0(ptr {at}, i32 8, "
                f"<{WIDTH} x i1> <{lanes}>, {vector} zeroinitializer)"
            )
        x = "zeroinitializer"
        for lane, angle in enumerate(angles):
            x = self.new(f"insertelement {vector} {x}, double {self.ref(angle)}, i64 {lane}")
        return x

    def _side_by_side(self, angles: Sequence[Symbol]) -> str:
        """Emit a vector of angles of all lanes; the last one stands for those that are missing."""
        names = [self.ref(angles[min(k, len(angles) - 1)]) for k in range(PER_CALL)]
        lanes = ", ".join(f"i32 {k}" for k in range(PER_CALL * self.lanes))
        pair = f"{self.real} {names[0]}, {self.real} {names[1]}"
        return self.new(f"shufflevector {pair}, <{PER_CALL * self.lanes} x i32> <{lanes}>")

    def prefetch(self, port: int, distance: int) -> None:
        """Emit the prefetch of memory at a distance in bytes from an address in the ports."""
        at = self.new(f"getelementptr ptr, ptr %ports, i64 {port}")
        at = self.new(f"getelementptr i8, ptr {self.new(f'load ptr, ptr {at}')}, i64 {distance}")
        self.lines.append(f"  call void @llvm.prefetch.p0(ptr {at}, i32 0, i32 2, i32 1)")

    def declarations(self) -> str:
        """Return the declarations of all functions that the body may call."""
        real, sizes = self.real, [WIDTH]
        if self.lanes > 1:
            sizes = [self.lanes, PER_CALL * self.lanes]
        vector = f"<{WIDTH} x double>"
        return (
            "declare double @sin(double)\n"
            "declare double @cos(double)\n"
            "declare double @atan2(double, double)\n"
            f"declare {real} @llvm.sqrt.{self.sqrt}({real})\n"
            f"declare {vector} @llvm.masked.load.v{WIDTH}f64.p0"
            f"(ptr, i32, <{WIDTH} x i1>, {vector})\n"
            "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)\n"
            "declare void @llvm.prefetch.p0(ptr, i32, i32, i32)\n"
        ) + "".join(
            f"declare void @mbs.sincos{size}(<{size} x double>, ptr nocapture writeonly) "
            "nounwind memory(argmem: write)\n"
            for size in sizes
        )


def input_pointer(name: str) -> str:
    """Return the name of an input's address in the IR."""
    return f'%"in.{name}"'


def output_pointer(name: str) -> str:
    """Return the name of an output's address in the IR."""
    return f'%"out.{name}"'


def emit_straight(program: Program, lanes: int = 1, prefetched: Prefetched = ()) -> str:
    """Return LLVM IR of ``i32 @<name>(ptr ports)``; ports are the addresses of inputs and outputs.

    All are addresses of doubles. With one lane the function returns 0, or k if the k-th guard,
    counted from one, is not positive. With several lanes the entry k of state j of a port stands
    at ``lanes * k + j``, and the status is that of :meth:`Body.status`. What is to be prefetched is
    spread over the operations; the addresses of the results stand behind those of ports and status.
    """
    body = Body(lanes)
    if lanes == 1 and len(program.nodes) > LONG:
        body.storing = "volatile "
    body.pointers(program)
    results, ahead, done = len(program.inputs) + len(program.outputs) + 1, iter(prefetched), 0
    every = max(APART, len(program.nodes) // max(len(prefetched), 1))
    stages = _stages(program)
    ordered = [node for nodes, _ in stages for node in nodes]
    body.keep(*waiting_places(ordered, [x for x, _ in program.guards], FAR))
    wanted: dict[int, list[tuple[Port, int]]] = {}
    body.store_numbers(program)
    for port, values in zip(program.outputs, program.values, strict=True):
        for k, x in enumerate(values):
            if isinstance(x, Symbol):
                wanted.setdefault(x.id, []).append((port, k))
    for nodes, trig in stages:
        for node in nodes:
            body.node(node)
            done += 1
            if done % every == 0 and (line := next(ahead, None)):
                body.prefetch(results + line[0], line[1])
            for port, k in wanted.get(node.id, ()):
                body.store(port, k, node)
        if trig:
            body.sines_and_cosines(trig)
        for node in trig:
            for port, k in wanted.get(node.id, ()):
                body.store(port, k, node)
    status = body.status(program.guards, len(program.inputs) + len(program.outputs))
    lines = "\n".join(body.lines)
    return (
        f"define i32 @{program.name}(ptr %ports) nounwind {{\n{lines}\n  ret i32 {status}\n}}\n"
        + body.declarations()
    )


def _stages(program: Program) -> list[tuple[list[Symbol | Condition], list[Symbol | Condition]]]:
    """Return all nodes in stages: what angles need, then the sines and cosines of these angles.

    Angles of one stage depend on no sine or cosine but those of the stages before. The last stage
    is what no angle needs.
    """
    size = 1 + max((node.id for node in program.nodes), default=-1)
    depth = [0] * size
    for node in program.nodes:
        if node.op is not g.INPUT:
            before = 0
            for x in node.args:
                if type(x) is not float and depth[x.id] > before:
                    before = depth[x.id]
            depth[node.id] = before + (node.op in TRIG)
    last = max(depth, default=0)
    needed = [last] * size
    for node in reversed(program.nodes):
        if node.op is not g.INPUT:
            by = depth[node.id] - 1 if node.op in TRIG else needed[node.id]
            if by < last:
                for x in node.args:
                    if type(x) is not float and by < needed[x.id]:
                        needed[x.id] = by
    stages: list[tuple[list[Symbol | Condition], list[Symbol | Condition]]]
    stages = [([], []) for _ in range(last + 1)]
    for node in program.nodes:
        if node.op in TRIG:
            stages[depth[node.id] - 1][1].append(node)
        else:
            stages[needed[node.id]][0].append(node)
    return stages
