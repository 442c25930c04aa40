# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""LLVM IR of loops over columns in a chain, column by column in place of row by row.

Each column follows its own recursion along the chain. Taken row by row, what it hands from one row
to the next passes through memory, for all columns. Taken column by column it stays in registers: a
function takes as many columns as a vector has lanes through all rows of these loops.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mbs_dynamics.compiler.codegen.llvm_body import WIDTH
from mbs_dynamics.compiler.codegen.llvm_room import Room
from mbs_dynamics.compiler.codegen.llvm_turns import VALUES, TurnBody
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.loop_program import LoopProgram, Step, Turn
from mbs_dynamics.compiler.frontend.loops import (
    CELL,
    COLUMN,
    COLUMNS,
    EACH,
    INWARD,
    LOAD,
    OWN,
    PARENT,
    Place,
)
from mbs_dynamics.compiler.frontend.spans import ALL

Entry = tuple[Any, int]
"""A block of columns, and which of its entries for each of them."""

VECTORS = 4
"""So many vectors of columns are taken at a time. What one row hands to the next depends on what it
was handed: with fewer, the processor waits; more have no room in registers."""

PARAMETERS = "ptr %memory, ptr %ports, i64 %k"
"""Parameters of the function: the first of its columns is the last one."""


def goes_by_columns(program: LoopProgram, steps: Sequence[Step]) -> bool:
    """Whether loops over columns, which follow each other, can be taken column by column."""
    forest = program.forest
    if not forest.is_chain or any(step.sort != COLUMNS for step in steps):
        return False
    homes: dict[Any, Step] = {}
    for step in steps:
        for turn in step.turns.values():
            stored = {store.place: store.value for store in turn.stores}
            loaded = [node.args[0] for node in turn.nodes if node.op == LOAD]
            for place in (*stored, *loaded):
                if place.space == COLUMN and homes.setdefault(place.name, step) is not step:
                    return False
            if not all(_is_of_column(place) for place in loaded):
                return False
            if not all(_can_be_stored(program, step, place, stored) for place in stored):
                return False
    stores = [x.place for step in steps for turn in step.turns.values() for x in turn.stores]
    written = {place.name for place in stores if place.space == CELL}
    return not any(
        place.space == CELL and place.name in written - program.matrix_homes.keys()
        for step in program.steps
        if step not in steps
        for turn in step.turns.values()
        for place in (node.args[0] for node in turn.nodes if node.op == LOAD)
    )


def _is_of_column(place: Place) -> bool:
    """Whether a load takes nothing of another column."""
    if place.role == EACH:
        return False
    return place.role in ("", OWN) or (place.role == PARENT and place.space == COLUMN)


def _can_be_stored(program: LoopProgram, step: Step, place: Place, stored: Any) -> bool:
    """Whether a store of all lanes does no harm, of columns that come before the row as well.

    In symmetric matrices both sides of the diagonal get the same. In others the loops are for all
    columns, or nobody else reads what they store.
    """
    if place.space == COLUMN:
        return place.role == (PARENT if step.direction == INWARD else OWN)
    if place.space != CELL or {place.role, place.other} != {OWN, EACH}:
        return False
    if program.matrices[place.name][1] != 1:
        return False
    turned = stored.get(place._replace(role=place.other, other=place.role))
    symmetric = turned is stored[place] and turned is not None
    if place.role == EACH:
        return symmetric
    return symmetric or step.span == ALL or place.name not in program.matrix_homes


class ColumnsBody(TurnBody):
    """The body of the function of some columns, as so many vectors."""

    def __init__(self, program: LoopProgram, room: Room, vectors: int) -> None:
        super().__init__(program, room, COLUMNS, 1)
        self.count, self.vectors = program.forest.count, range(vectors)
        self._carried: list[dict[Entry, str]] = []
        """What comes from the row before, for each vector."""
        self._handed: list[dict[Entry, Any]] = []
        """What goes to the next one."""
        self._inward = False
        self._vector_now = 0

    def emit_columns(self, name: str, steps: Sequence[Step]) -> str:
        """Return the IR of the function."""
        lanes = ", ".join(f"i64 {lane}" for lane in range(WIDTH))
        self.lines.append("entry:")
        for u in self.vectors:
            k = self.set(f"%k{u}", f"add i64 %k, {WIDTH * u}")
            all_k = self._whole_in_all_lanes(k)
            self.set(f"%k{u}.all", f"add {self.word} {all_k}, <{lanes}>")
            self.set(f"%mask{u}", f"icmp slt {self.word} %k{u}.all, {self.whole(self.count)}")
        beyond = self.new(f"add i64 %k, {WIDTH * len(self.vectors)}")
        self.set("%since", f"call i64 @llvm.smin.i64(i64 {beyond}, i64 {self.count})")
        later = self._outputs_of(steps[1:]) if self.room.apart else []
        for number, step in enumerate(steps):
            self._step(f"s{number}", step, later if number == 0 else [])
        parameters = f"{PARAMETERS}, {VALUES}" if self.room.apart else PARAMETERS
        body = "\n".join(self.lines)
        return f"define internal void {name}({parameters}) nounwind {{\n{body}\n  ret void\n}}\n"

    def _outputs_of(self, steps: Sequence[Step]) -> list[Place]:
        """Return the places in the caller's memory that these loops fill, or what follows them."""
        stored = {x.place for step in steps for turn in step.turns.values() for x in turn.stores}
        return sorted(x for x in stored if x.space == CELL and (x.name,) in self.room.outputs)

    def _prefetch(self, s: str, place: Place) -> None:
        """Emit the prefetch of what will be filled, some of it in each iteration of a loop before.

        Of these columns what stands in the row of the iteration; and of the rows that get the same
        below the diagonal, a block of as many columns in as many iterations. Measured for inverse
        mass matrices of chains of 100 and 200 in batches: 0.25 to 0.3 of the time without.
        """
        *_, by_entry, _ = self.program.matrices[place.name]
        base = self._output(self.room.outputs[place.name,])
        count, vectors = self.count, len(self.vectors)
        if place.role == OWN:
            row, column, step, lines = f"%{s}.i", "%k", 8 * WIDTH, vectors + 1
        else:
            part = self.new(f"and i64 %{s}.i, {WIDTH - 1}")
            row = self.new(f"add i64 %k, {self.new(f'mul i64 {part}, {vectors}')}")
            column = self.new(f"and i64 %{s}.i, {-WIDTH}")
            step, lines = 8 * count, vectors
        entry = self.new(f"add i64 {self.new(f'mul i64 {row}, {count}')}, {column}")
        at = self.new(f"getelementptr double, ptr {base}, i64 {entry}")
        for k in range(lines):
            line = self.new(f"getelementptr i8, ptr {at}, i64 {8 * place.k * by_entry + step * k}")
            self.lines.append(f"  call void @llvm.prefetch.p0(ptr {line}, i32 0, i32 2, i32 1)")

    def _step(self, s: str, step: Step, prefetched: Sequence[Place]) -> None:
        """Emit the loop over the rows."""
        inward = self._inward = step.direction == INWARD
        rows = str(self.count) if step.span == ALL else "%since"
        last = self.new(f"sub i64 {rows}, 1")
        stored = [store.place for turn in step.turns.values() for store in turn.stores]
        state = sorted({(x.name, x.k) for x in stored if x.space == COLUMN})
        turns = {turn.signature: turn for turn in step.turns.values()}
        labels = {signature: f"{s}.turn{k}" for k, signature in enumerate(turns)}
        first, end = (last, "0") if inward else ("0", last)
        self.lines += [f"  br label %{s}.from", f"{s}.from:", f"  br label %{s}", f"{s}:"]
        self.lines.append(f"  %{s}.i = phi i64 [ {first}, %{s}.from ], [ %{s}.i.next, %{s}.next ]")
        self._carried = [{x: f"%{s}.x{j}.{u}" for j, x in enumerate(state)} for u in self.vectors]
        for carried in self._carried:
            for x in carried.values():
                self.set(x, f"phi {self.real} [ zeroinitializer, %{s}.from ], [ {x}.y, %{s}.next ]")
        for place in prefetched:
            self._prefetch(s, place)
        table = f'@"{self.program.name}.{self.states}.kinds"'
        kind = self.new(f"load i64, ptr {self.new(f'getelementptr i64, ptr {table}, i64 %{s}.i')}")
        cases = [f"i64 {k}, label %{labels[turn.signature]}" for k, turn in step.turns.items()]
        self.lines.append(f"  switch i64 {kind}, label %{s}.turn0 [ {' '.join(cases)} ]")
        handed = {
            labels[signature]: self._case(labels[signature], s, turn, state)
            for signature, turn in turns.items()
        }
        self.lines.append(f"{s}.next:")
        for u, carried in enumerate(self._carried):
            for j, x in enumerate(carried.values()):
                values = [f"[ {found[u][j]}, %{label} ]" for label, found in handed.items()]
                self.set(f"{x}.y", f"phi {self.real} {', '.join(values)}")
        self.lines += [
            f"  %{s}.i.next = add i64 %{s}.i, {-1 if inward else 1}",
            f"  %{s}.over = icmp eq i64 %{s}.i, {end}",
            f"  br i1 %{s}.over, label %{s}.end, label %{s}",
            f"{s}.end:",
        ]

    def _case(self, label: str, s: str, turn: Turn, state: Sequence[Entry]) -> list[list[str]]:
        """Emit what is done for a row of one kind; return what each vector hands to the next."""
        self._uniform, self._pointers = {}, {}
        self._handed = [{} for _ in self.vectors]
        texts: list[dict[int, str]] = [{} for _ in self.vectors]
        self.lines.append(f"{label}:")

        def named(text: str, u: int | None) -> str:
            text = re.sub(r"%i\b", f"%{s}.i", text)
            if u is None:
                return re.sub(r"%t(\d+)\b", rf"%{label}.t\1", text)
            text = re.sub(r"%t(\d+)\b", rf"%{label}.t\1.{u}", text)
            return re.sub(r"%(k|mask)\b", rf"%\g<1>{u}", text)

        def emit(work: Callable[[], None], u: int | None) -> None:
            begin, self._vector_now = len(self.lines), u or 0
            self.text = texts[u or 0]
            work()
            self.lines[begin:] = [named(line, u) for line in self.lines[begin:]]

        for node in sorted(turn.nodes, key=lambda node: node.op != LOAD):
            uniform = self._uniform[node.id] = self._is_uniform(node)
            for u in (None,) if uniform else self.vectors:
                emit(partial(self._compute, node), u)
            for text in texts if uniform else ():
                text[node.id] = named(texts[0][node.id], None)
        for store in sorted(turn.stores, key=lambda store: store.after):
            for u in self.vectors:
                emit(partial(self._store, *store[:2]), u)
        found = []
        for u, handed in enumerate(self._handed):
            self.text = texts[u]
            values = [handed.get(x, 0.0) for x in state]
            found.append([named(self.ref(x), u) for x in values])
        self.lines.append(f"  br label %{s}.next")
        return found

    def _compute(self, node: Symbol | Condition) -> None:
        if node.op == LOAD:
            self.text[node.id] = self._load(node.args[0])
        else:
            self.node(node)

    def _load(self, place: Place) -> str:
        if place.space != COLUMN:
            return super()._load(place)
        if (place.role == OWN) != self._inward:  # nothing but what comes along the chain
            return "zeroinitializer"
        return self._carried[self._vector_now].get((place.name, place.k), "zeroinitializer")

    def _store(self, place: Place, value: Any) -> None:
        if place.space == COLUMN:
            self._handed[self._vector_now][place.name, place.k] = value
        else:
            super()._store(place, value)

    def _known(self, key: Any, emit: Callable[[], str]) -> str:
        if key not in self._pointers:
            self._pointers[key] = emit()
        return self._pointers[key]
