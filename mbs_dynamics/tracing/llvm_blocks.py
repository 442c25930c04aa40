# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""LLVM IR of a loop over pairs of one state, in square blocks of rows and columns.

A block shares what is loaded for its columns among its rows. What belongs below the diagonal is
turned over in registers: stores down a column take ten times as long as those along a row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.tracing.graph import Condition, Symbol
from mbs_dynamics.tracing.llvm_memory import emit_ahead
from mbs_dynamics.tracing.llvm_batch import transposed
from mbs_dynamics.tracing.llvm_body import WIDTH
from mbs_dynamics.tracing.llvm_room import Room
from mbs_dynamics.tracing.llvm_turns import VALUES, TurnBody
from mbs_dynamics.tracing.loop_program import LoopProgram, Store, Turn
from mbs_dynamics.tracing.loops import CELL, LOAD, OUTER, OWN, PAIRS, STATE, TABLE, Forest, Place

EMPTY = 2
"""Blocks may take so many times the vectors that rows take one by one."""

FIELDS = 4
"""64-bit integers of a block: its first row, its first column, the masks of its rows, a byte each,
and the masks of its columns."""

PARAMETERS = "ptr %memory, ptr %ports, ptr %blocks, i64 %first, i64 %last"


def comes_in_blocks(program: LoopProgram, turn: Turn) -> bool:
    """Whether a loop over pairs can be taken block by block, of which not too many are empty."""
    for node in turn.nodes:
        if node.op == LOAD:
            place = node.args[0]
            if place.space not in (STATE, TABLE) or place.role not in (OWN, OUTER):
                return False
            if place.space == STATE and place.name in program.slot_homes:
                return False
    for place, *_ in turn.stores:
        if place.space != CELL or {place.role, place.other} != {OWN, OUTER}:
            return False
        if program.matrices[place.name][1] != 1:
            return False
    forest = program.forest
    alone = sum(-(-(end - i - 1) // WIDTH) for i, end in enumerate(forest.ends))
    return WIDTH * len(blocks_of(forest)[0]) <= EMPTY * alone


def blocks_of(forest: Forest) -> tuple[NDArray[np.int64], int]:
    """Return the blocks that have pairs, (..., FIELDS), and how many there are of pairs only.

    These come first.
    """
    count = forest.count
    padded = -(-count // WIDTH) * WIDTH
    numbers, ends = np.arange(padded), np.zeros(padded, dtype=np.int64)
    ends[:count] = forest.ends
    pairs = (numbers > numbers[:, None]) & (numbers < ends[:, None])
    found: tuple[list[list[int]], list[list[int]]] = ([], [])
    for i in range(0, padded, WIDTH):
        for k in range(i, padded, WIDTH):
            block = pairs[i : i + WIDTH, k : k + WIDTH]
            if block.any():
                masks = [_packed(block), _packed(block.T)]
                found[int(block.all())].append([i, k, *masks])
    part, whole = found
    return np.array(whole + part, dtype=np.int64).reshape(-1, FIELDS), len(whole)


def _packed(block: NDArray[np.bool_]) -> int:
    """Return the rows of a block as bytes of an integer."""
    return int(np.packbits(block, axis=1, bitorder="little").reshape(-1).view("<i8")[0])


class BlockBody(TurnBody):
    """The body of a function of blocks, from the ``first`` to the one before the ``last``.

    ``ahead`` names the outputs of which those of the next state are announced.
    """

    def __init__(
        self, program: LoopProgram, room: Room, ahead: Sequence[str], *, masked: bool
    ) -> None:
        super().__init__(program, room, PAIRS, 1)
        self.ahead, self.masked = ahead, masked
        self._count = len(blocks_of(program.forest)[0])
        self._outer: set[int] = set()
        self._suffix = ""

    def emit(self, name: str, turn: Turn) -> str:
        """Return the IR of the function."""
        self._begin()
        for node in turn.nodes:
            if self._is_of_rows(node):
                self._outer.add(node.id)
            else:
                self._node(node)
        results: list[list[str]] = []
        for row in range(WIDTH):
            self._suffix = f".{row}"
            for node in turn.nodes:
                if node.id in self._outer:
                    self._node_of_row(node, row)
            results.append([self._stored(store, row) for store in turn.stores])
        self._suffix = ""
        for store, values in zip(turn.stores, zip(*results, strict=True), strict=True):
            if store.place.role == OWN:
                self._turned_over(store.place, list(values))
        for output in self.ahead:
            size, pointer = self.program.next_of(output)
            emit_ahead(self, self._port(pointer), size, "%b", self._count)
        head, body = "\n".join(self.head), "\n".join(self.lines)
        parameters = f"{PARAMETERS}, {VALUES}" if self.room.apart else PARAMETERS
        return (
            f"define internal void {name}({parameters}) nounwind {{\nhead:\n{head}\n"
            "  br label %block\nblock:\n"
            f"  %b = phi i64 [ %first, %head ], [ %b.next, %block ]\n{body}\n"
            "  %b.next = add i64 %b, 1\n"
            "  %more = icmp slt i64 %b.next, %last\n"
            "  br i1 %more, label %block, label %done\ndone:\n  ret void\n}\n"
        )

    def set(self, name: str, expression: str) -> str:
        """Emit the definition of a value; those of each row of the block have their own names."""
        return super().set(name + self._suffix if name.startswith("%t") else name, expression)

    def _begin(self) -> None:
        """Emit where the block is."""
        at = self.new(f"getelementptr [{FIELDS} x i64], ptr %blocks, i64 %b")
        self.set("%i", f"load i64, ptr {at}")
        self.set("%k", f"load i64, ptr {self.new(f'getelementptr i64, ptr {at}, i64 1')}")
        self.set("%masks", f"getelementptr i64, ptr {at}, i64 2")
        tables = f'@"{self.program.name}.{self.states}.tables"'
        for row in ("i", "k"):
            self.set(f"%values.{row}", f"getelementptr double, ptr {self.room.base}, i64 %{row}")
            self.set(f"%tables.{row}", f"getelementptr double, ptr {tables}, i64 %{row}")

    def _is_of_rows(self, node: Symbol | Condition) -> bool:
        if node.op == LOAD:
            return bool(node.args[0].role == OUTER)
        return any(type(x) is not float and x.id in self._outer for x in node.args)

    def _node(self, node: Symbol | Condition) -> None:
        if node.op == LOAD:
            at = self._value(node.args[0], "k")
            self.text[node.id] = self.new(f"load {self.real}, ptr {at}, align 8")
        else:
            self.node(node)

    def _node_of_row(self, node: Symbol | Condition, row: int) -> None:
        if node.op == LOAD:
            at = self.new(f"getelementptr double, ptr {self._value(node.args[0], 'i')}, i64 {row}")
            self.text[node.id] = self._in_all_lanes(self.new(f"load double, ptr {at}, align 8"))
        else:
            self.node(node)

    def _value(self, place: Place, row: str) -> str:
        """Emit the address of a value of the first row, or of the first column."""
        state = place.space == STATE
        first = self.room.values[place.name] if state else place.name * self.room.stride
        base = "values" if state else "tables"
        return self.new(f"getelementptr double, ptr %{base}.{row}, i64 {first}")

    def _stored(self, store: Store, row: int) -> str:
        """Emit the store along a row, and return what is stored."""
        value = self.ref(store.value)
        if store.place.role == OUTER:
            self._along(self._corner(store.place, "%i", "%k"), store.place, row, value)
        return value

    def _turned_over(self, place: Place, values: list[str]) -> None:
        at = self._corner(place, "%k", "%i")
        for column, value in enumerate(transposed(self, values)):
            self._along(at, place, column, value)

    def _corner(self, place: Place, row: str, column: str) -> str:
        """Emit the address of the first entry of the block, or of its reflection."""
        by_row, _, by_entry, _ = self.program.matrices[place.name]
        port = self.room.outputs.get((place.name,))
        base = "%memory" if port is None else self._output(port)
        first = (self.room.matrices[place.name] if port is None else 0) + place.k * by_entry
        at = self._at(self._at(base, first), self._times(row, by_row))
        return self._at(at, column)

    def _along(self, corner: str, place: Place, row: int, value: str) -> None:
        at = self._at(corner, row * self.program.matrices[place.name][0])
        if not self.masked:
            self.lines.append(f"  store {self.real} {value}, ptr {at}, align 8")
            return
        byte = row + (WIDTH if place.role == OWN else 0)
        mask = self.new(f"load i8, ptr {self.new(f'getelementptr i8, ptr %masks, i64 {byte}')}")
        mask = self.new(f"bitcast i8 {mask} to {self.bit}")
        self.lines.append(
            f"  call void @llvm.masked.store.v{WIDTH}f64.p0({self.real} {value}, ptr {at}, "
            f"i32 8, {self.bit} {mask})"
        )
