# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""LLVM IR of one turn of a loop: for a row, or for the rows beyond it, or for its columns.

Values of rows lie side by side by their number, so that a loop over pairs or columns takes several
rows or columns of one state at once; in vector code for several states every entry is a vector with
one state per lane, and such a loop takes one at a time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from mbs_dynamics.compiler.codegen.llvm_body import WIDTH, Body
from mbs_dynamics.compiler.codegen.llvm_room import Room
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.loop_program import LoopProgram, Turn
from mbs_dynamics.compiler.frontend.loops import (
    CELL,
    COLUMNS,
    EACH,
    ENTRY,
    LAST,
    LOAD,
    OUTER,
    OWN,
    PAIRS,
    PARENT,
    ROW,
    ROWS,
    STATE,
    TABLE,
    UNIT,
    Place,
)

PARAMETERS = "ptr %memory, ptr %ports, i64 %i, i64 %p, i64 %begin, i64 %end"
"""Parameters of the function of a turn: the row, its parent, and the range of a loop within."""

VALUES = "ptr %values"
"""A further one, where values of the rows stand apart from the rest of the memory."""


class TurnBody(Body):
    """The body of the function of a turn.

    What does not depend on the lane stands before the loop within, if there is one. In loops over
    pairs that runs over the rows beyond a row, or if it is ``below`` over those that it is beyond.
    Where it writes into the caller's memory, what is so many rows ``beyond`` is prefetched.
    """

    def __init__(
        self,
        program: LoopProgram,
        room: Room,
        sort: str,
        lanes: int,
        *,
        below: bool = False,
        beyond: int = 0,
    ) -> None:
        self.inner = WIDTH if lanes == 1 and sort != ROWS else 1
        super().__init__(self.inner if lanes == 1 else lanes)
        self.states = lanes
        self.program, self.room, self.beyond = program, room, beyond
        self.lane = {ROWS: "", PAIRS: OUTER if below else OWN, COLUMNS: EACH}[sort]
        self.head: list[str] = []
        self.entry_type = "double" if lanes == 1 else self.real
        self._ahead = False
        self._uniform: dict[int, bool] = {}
        self._pointers: dict[Any, str] = {}

    def emit(self, name: str, turn: Turn) -> str:
        """Return the IR of the function."""
        stores = sorted(turn.stores, key=lambda store: store.after)
        nodes = list(turn.nodes)
        if self.lane:
            self._mask()
            nodes.sort(key=lambda node: node.op != LOAD)  # all before the first store
        for node in nodes:
            while not self.lane and stores and stores[0].after <= node.id:
                self._store(*stores.pop(0)[:2])
            self._node(node)
        for store in stores:
            self._store(*store[:2])
        head, body = "\n".join(self.head), "\n".join(self.lines)
        parameters = f"{PARAMETERS}, {VALUES}" if self.room.apart else PARAMETERS
        text = f"define internal void {name}({parameters}) nounwind {{\nhead:\n{head}\n"
        if not self.lane:
            return f"{text}{body}\n  ret void\n}}\n"
        first = "%begin"
        if self.inner > 1 and not self._scatters(turn):
            # vectors that straddle two lines of the cache take twice as long
            text += f"  %first = and i64 %begin, -{WIDTH}\n"
            first = "%first"
        return (
            f"{text}  br label %loop\nloop:\n"
            f"  %k = phi i64 [ {first}, %head ], [ %k.next, %loop ]\n{body}\n"
            f"  %k.next = add i64 %k, {self.inner}\n"
            "  %more = icmp slt i64 %k.next, %end\n"
            "  br i1 %more, label %loop, label %done\ndone:\n  ret void\n}\n"
        )

    def _scatters(self, turn: Turn) -> bool:
        """Whether lanes are stored apart, which takes longer than all else."""
        names = [x.place.name for x in turn.stores if x.place.space == CELL]
        return any(self.program.matrices[name][1] != 1 for name in names)

    # -- nodes -----------------------------------------------------------------------------------

    def _node(self, node: Symbol | Condition) -> None:
        uniform = self._is_uniform(node)
        self._uniform[node.id] = uniform
        with self._before() if uniform else contextlib.nullcontext():
            if node.op == LOAD:
                self.text[node.id] = self._load(node.args[0])
            else:
                self.node(node)

    def _is_uniform(self, node: Symbol | Condition) -> bool:
        """Whether a node is the same for all that the loop within runs over."""
        if node.op == LOAD:
            place = node.args[0]
            return not self.lane or self.lane not in (place.role, place.other)
        return all(type(x) is float or self._uniform[x.id] for x in node.args)

    def _load(self, place: Place) -> str:
        if place.space == UNIT:
            return self._unit()
        if place.space == TABLE:
            return self._constant_of_row(place)
        at, step = self._address(place)
        if self.inner == 1:
            return self.new(f"load {self.real}, ptr {at}, align 8")
        if step == 0:
            return self.in_all_lanes(self.new(f"load double, ptr {at}, align 8"))
        return self._vector(at, step, masked=place.space == CELL or place.name in self.room.outputs)

    def _vector(self, at: str, step: int, masked: bool) -> str:
        """Load entries that are so far apart."""
        vector, mask = self.real, f"{self.bit} %mask"
        if step == 1 and not masked:
            return self.new(f"load {vector}, ptr {at}, align 8")
        if step == 1:
            return self.new(
                f"call {vector} @llvm.masked.load.v{WIDTH}f64.p0(ptr {at}, i32 8, {mask}, "
                f"{vector} zeroinitializer)"
            )
        return self.new(
            f"call {vector} @llvm.masked.gather.v{WIDTH}f64.v{WIDTH}p0(<{WIDTH} x ptr> "
            f"{self._apart(at, step)}, i32 8, {mask}, {vector} zeroinitializer)"
        )

    def _apart(self, at: str, step: int) -> str:
        """Emit the addresses of entries that are so far apart."""
        steps = ", ".join(f"i64 {step * lane}" for lane in range(WIDTH))
        return self.new(f"getelementptr double, ptr {at}, <{WIDTH} x i64> <{steps}>")

    def _constant_of_row(self, place: Place) -> str:
        stride = self.room.stride
        table = f'@"{self.program.name}.{self.states}.tables"'
        at = self._row(place.role)
        entry = self.new(f"getelementptr double, ptr {table}, i64 {place.name * stride}")
        entry = self.new(f"getelementptr double, ptr {entry}, i64 {at}")
        if self.inner > 1 and place.role == self.lane:
            return self.new(f"load {self.real}, ptr {entry}, align 8")
        number = self.new(f"load double, ptr {entry}")
        return self.in_all_lanes(number)

    def _unit(self) -> str:
        """Emit one where the column is that of the row, else zero."""
        several = self.inner > 1
        k, i = ("%k.all", self._whole_in_all_lanes("%i")) if several else ("%k", "%i")
        same = self.new(f"icmp eq {self.word if several else 'i64'} {k}, {i}")
        values = f"{self.real} {self.constant(1.0)}, {self.real} {self.constant(0.0)}"
        return self.new(f"select {self.bit if several else 'i1'} {same}, {values}")

    def _whole_in_all_lanes(self, whole: str) -> str:
        one = self.new(f"insertelement {self.word} poison, i64 {whole}, i64 0")
        mask = f"<{self.lanes} x i32> zeroinitializer"
        return self.new(f"shufflevector {self.word} {one}, {self.word} poison, {mask}")

    def _mask(self) -> None:
        """Emit which lanes are within the range."""
        if self.inner == 1:
            return
        lanes = ", ".join(f"i64 {lane}" for lane in range(WIDTH))
        all_k = self._whole_in_all_lanes("%k")
        self.set("%k.all", f"add {self.word} {all_k}, <{lanes}>")
        with self._before():
            end = self._whole_in_all_lanes("%end")
            begin = self._whole_in_all_lanes("%begin")
        below = self.new(f"icmp slt {self.word} %k.all, {end}")
        above = self.new(f"icmp sge {self.word} %k.all, {begin}")
        if self.lane == OUTER and not self.program.forest.is_chain:
            table = f'@"{self.program.name}.{self.states}.ends"'
            at = self.new(f"getelementptr i64, ptr {table}, i64 %k")
            ends = self.new(f"load {self.word}, ptr {at}, align 8")
            with self._before():
                i = self._whole_in_all_lanes("%i")
            beyond = self.new(f"icmp sgt {self.word} {ends}, {i}")
            above = self.new(f"and {self.bit} {above}, {beyond}")
        self.set("%mask", f"and {self.bit} {below}, {above}")

    def _store(self, place: Place, value: Any) -> None:
        at, step = self._address(place, writing=True)
        value = self.ref(value)
        if self.inner == 1:
            self.lines.append(f"  store {self.real} {value}, ptr {at}, align 8")
        elif step == 1:
            if self.beyond and place.space == CELL and (place.name,) in self.room.outputs:
                by_row, *_ = self.program.matrices[place.name]
                far = self.new(f"getelementptr double, ptr {at}, i64 {by_row * self.beyond}")
                self.lines.append(f"  call void @llvm.prefetch.p0(ptr {far}, i32 1, i32 3, i32 1)")
            self.lines.append(
                f"  call void @llvm.masked.store.v{WIDTH}f64.p0({self.real} {value}, ptr {at}, "
                f"i32 8, {self.bit} %mask)"
            )
        else:
            self.lines.append(
                f"  call void @llvm.masked.scatter.v{WIDTH}f64.v{WIDTH}p0({self.real} {value}, "
                f"<{WIDTH} x ptr> {self._apart(at, step)}, i32 8, {self.bit} %mask)"
            )

    # -- addresses -------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _before(self) -> Iterator[None]:
        """Emit before the loop within."""
        if self._ahead or not self.lane:
            yield
            return
        self._ahead = True
        self.lines, self.head = self.head, self.lines
        yield
        self.lines, self.head = self.head, self.lines
        self._ahead = False

    def _row(self, role: str) -> str:
        """Return the number of the row in a role; of the first one of the lanes."""
        if role in (self.lane, EACH):
            return "%k"
        if role == LAST:
            return str(self.program.forest.count - 1)
        return "%p" if role == PARENT else "%i"

    def _at(self, pointer: str, k: str | int) -> str:
        return self.new(f"getelementptr {self.entry_type}, ptr {pointer}, i64 {k}")

    def _times(self, row: str, step: int) -> str:
        return row if step == 1 else self.new(f"mul i64 {row}, {step}")

    def _known(self, key: Any, emit: Callable[[], str]) -> str:
        """Return a pointer that is emitted once, before the loop within."""
        if key not in self._pointers:
            with self._before():
                self._pointers[key] = emit()
        return self._pointers[key]

    def _port(self, k: int) -> str:
        """Return the address of an input, or of an output after these."""

        def emit() -> str:
            at = self.new(f"getelementptr ptr, ptr %ports, i64 {k}")
            return self.new(f"load ptr, ptr {at}")

        return self._known(k, emit)

    def _output(self, name: str) -> str:
        k = [port.name for port in self.program.outputs].index(name)
        return self._port(len(self.program.inputs) + k)

    def _address(self, place: Place, *, writing: bool = False) -> tuple[str, int]:
        """Emit the address of a place, and say how far apart those of the lanes are."""
        step = int(bool(self.lane) and self.lane in (place.role, place.other))
        if place.space == STATE:
            port = self.room.outputs.get(place.name)
            at = self.room.base if port is None else self._output(port)
            row = self._row(place.role)
            pointer = at if row == "%k" else self._known((at, row), lambda: self._at(at, row))
            if port is None:
                pointer = self._at(pointer, self.room.values[place.name])
            return (self._at(pointer, row) if row == "%k" else pointer), step
        if place.space == ENTRY:
            k = [port.name for port in self.program.inputs].index(place.name)
            return self._at(self._port(k), place.k), 0
        if place.space == ROW:
            return self._at(self._entries(place), place.k), 0
        if place.space == CELL:
            return self._cell(place)
        return self._column(place, writing), step

    def _entries(self, place: Place) -> str:
        """Return the address of the entries of a row in an input."""
        k = [port.name for port in self.program.inputs].index(place.name)
        by, stride = self.program.rows[place.name]
        base = self._port(k)

        def emit() -> str:
            row = self._row(place.role)
            if not self.program.in_order(by):
                table = f'@"{self.program.name}.{self.states}.{by}"'
                row = self.new(
                    f"load i64, ptr {self.new(f'getelementptr i64, ptr {table}, i64 {row}')}"
                )
            return self._at(base, self._times(row, stride))

        return self._known((place.name, place.role), emit)

    def _cell(self, place: Place) -> tuple[str, int]:
        *strides, by_entry, _ = self.program.matrices[place.name]
        port = self.room.outputs.get((place.name,))
        first = place.k * by_entry + (self.room.matrices[place.name] if port is None else 0)
        base = "%memory" if port is None else self._output(port)
        lanes = list(zip((place.role, place.other), strides, strict=True))

        def emit() -> str:
            at = self._at(base, first)
            for role, by in lanes:
                if self._row(role) != "%k":
                    at = self._at(at, self._times(self._row(role), by))
            return at

        at = self._known(place, emit)
        step = sum(by for role, by in lanes if self._row(role) == "%k")
        return (self._at(at, self._times("%k", step)) if step else at), step

    def _column(self, place: Place, writing: bool) -> str:
        _, size = self.program.blocks[place.name]
        which = 0 if place.role == OWN else 1 + writing
        table = f'@"{self.program.name}.{self.states}.columns{place.name}"'

        def emit() -> str:
            at = self.new(f"getelementptr [3 x i64], ptr {table}, i64 %i, i64 {which}")
            number = self.new(f"load i64, ptr {at}")
            base = self._at("%memory", self.room.blocks[place.name])
            return self._at(base, self._times(number, size * self.room.stride))

        first = self._known((place.name, which), emit)
        return self._at(self._at(first, place.k * self.room.stride), "%k")
