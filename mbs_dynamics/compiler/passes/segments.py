# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Large programs, rolled up again: cut into segments, of which many share their code.

Straight-line code of more than some thousand operations compiles slowly, because the allocation of
registers is superlinear, and runs slowly, because it passes the instruction cache once. So the
nodes of a large program are cut into segments where loops turned while tracing, and where outputs
are born. What crosses a boundary goes through a memory of frames, one frame a segment, which are
used again once all their values are dead.

Segments with the same operations and the same wiring share one :class:`Function`. What differs
between them stands in tables: a row of addresses and a row of numbers for each call. Addresses that
keep their distance in all calls of a function share one entry of the row, and numbers and addresses
that never differ are part of the code. A chain of joints so becomes a handful of functions,
whatever its length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Symbol
from mbs_dynamics.compiler.frontend.program import Program
from mbs_dynamics.compiler.passes.cuts import LONGEST, SHORTEST, IntArray, cut, joined
from mbs_dynamics.compiler.passes.plan import MEMORY, FloatArray, Function, Place, Plan, prologue

NONE, NUMBER = -1, -2
"""In place of the position of an operand's node: no operand; a number."""

INSIDE, OUTSIDE = -1, 1
"""Operands in the wiring of a segment count from here: nodes inside backwards, others forwards."""

OPERATIONS = (
    *(g.INPUT, g.ADD, g.SUB, g.MUL, g.DIV, g.NEG, g.SIN, g.COS, g.SQRT, g.ATAN2),
    *(g.LESS, g.LESS_EQUAL, g.SELECT),
)
CODE = {op: k for k, op in enumerate(OPERATIONS)}


def segmented(
    program: Program, *, together: int = 1, longest: int = LONGEST, shortest: int = SHORTEST
) -> Plan:
    """Return a program as calls of functions.

    The sines of so many angles as are ``together`` stand side by side in the memory, and their
    cosines after them.
    """
    return _Planner(program, together).plan(longest, shortest)


class _Planner:
    """The nodes of a program as rows of arrays; inputs and what comes early at the end."""

    def __init__(self, program: Program, together: int) -> None:
        self.program = program
        self.together = together
        self.early, self.trig = prologue(program)
        before = {node.id for node in (*self.early, *self.trig)}
        self.nodes = [x for x in program.nodes if x.op != g.INPUT and x.id not in before]
        self.outside = [x for x in program.nodes if x.op == g.INPUT or x.id in before]
        self.count = len(self.nodes)
        self.ids = np.array([x.id for x in (*self.nodes, *self.outside)], dtype=np.int64)
        self.position = np.zeros(1 + self.ids.max(initial=0), dtype=np.int64)
        self.position[self.ids] = np.arange(len(self.ids))
        self._read_operands()
        self._read_outputs()
        self._place_outside()

    def _read_operands(self) -> None:
        """Make operands (count, 3), positions of nodes, NUMBER or NONE, and the numbers."""
        flat: list[int] = []
        numbers: list[float] = []
        padding = ((), (NONE, NONE), (NONE,), ())
        for node in self.nodes:
            for x in node.args:
                if type(x) is float:
                    flat.append(NUMBER)
                    numbers.append(x)
                else:
                    flat.append(x.id)
            flat += padding[len(node.args)]
        operands: IntArray = np.array(flat, dtype=np.int64)
        known = operands >= 0
        operands[known] = self.position[operands[known]]
        self.operands = operands
        self.numbers = np.array(numbers, dtype=np.float64)
        self.operations = np.array([CODE[x.op] for x in self.nodes], dtype=np.int8)

    def _read_outputs(self) -> None:
        """Make arrays of the outputs that are nodes: position, port, and index, by position."""
        rows = []
        for port, values in enumerate(self.program.values, len(self.program.inputs)):
            ids = np.array([x.id if isinstance(x, Symbol) else -1 for x in values], dtype=np.int64)
            index = np.flatnonzero(ids >= 0)
            rows.append(np.array([self.position[ids[index]], np.full(len(index), port), index]))
        born = np.concatenate(rows, axis=1) if rows else np.empty((3, 0), dtype=np.int64)
        born = born[:, born[0] < self.count]
        self.born: IntArray = born[:, np.argsort(born[0], kind="stable")]

    # -- the steps -------------------------------------------------------------------------------

    def plan(self, longest: int, shortest: int) -> Plan:
        """Return the plan."""
        turns = np.unique(np.searchsorted(self.ids[: self.count], self.program.turns))
        soft = np.unique(self.born[0]) + 1
        groups = self._segments(cut(self.operations, turns, soft, longest, shortest))
        alone = np.array([group[0] for group in groups if len(group) == 1], dtype=np.int64)
        single = np.isin(np.arange(len(self.starts)), alone)
        starts = joined(self.starts, self.count, single)
        if len(starts) < len(self.starts):
            groups = self._segments(starts)
        self._place()
        functions, rows, constants = [], [], []
        for instances in groups:
            function, row, number = self._function(instances)
            functions.append(function)
            rows.append(row)
            constants.append(number)
        members = [np.array(instances) for instances in groups]
        calls = np.empty(len(self.starts), dtype=np.int64)
        for k, sharing in enumerate(members):
            calls[sharing] = k
        kept = [x for x in self.outside if x.op != g.INPUT]
        kept += [x for x, _ in self.program.guards if x.op != g.INPUT]
        return Plan(
            self.early,
            self.trig,
            tuple(functions),
            tuple(calls.tolist()),
            _in_order(calls, members, rows).astype(np.int32),
            _in_order(calls, members, constants),
            {x.id: int(self.address[self.position[x.id]]) for x in kept},
            self.memory,
        )

    def _segments(self, starts: IntArray) -> list[list[int]]:
        """Cut the nodes there; return which segments share code."""
        self.starts = starts
        self.ends = np.append(self.starts, self.count)[1:]
        segments = len(self.starts)
        self.segment = np.full(len(self.ids), segments, dtype=np.int64)
        self.segment[: self.count] = np.repeat(np.arange(segments), self.ends - self.starts)
        self._wire()
        return self._groups()

    def _wire(self) -> None:
        """Number what each segment takes from outside, and encode its wiring."""
        flat = self.operands
        owner = np.repeat(self.segment[: self.count], 3)
        inside = np.repeat(np.arange(self.count), 3) - flat  # how far back
        is_node = flat >= 0
        taken = np.flatnonzero(is_node & (self.segment[np.maximum(flat, 0)] != owner))
        pairs, first, inverse = np.unique(
            owner[taken] * len(self.ids) + flat[taken], return_index=True, return_inverse=True
        )
        order = np.argsort(first, kind="stable")  # by segment, then by first use
        self.taken = pairs[order] % len(self.ids)
        """Position of each value that a segment takes from outside."""
        self.taker = pairs[order] // len(self.ids)
        """The segment that takes it."""
        self.taken_from = np.searchsorted(self.taker, np.arange(len(self.starts) + 1))
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order)) - self.taken_from[self.taker]
        wiring = np.where(is_node, INSIDE - inside, flat * 0)
        wiring[flat == NUMBER] = np.iinfo(np.int32).min
        wiring[taken] = OUTSIDE + rank[inverse.reshape(-1)]
        self.wiring = wiring.astype(np.int32)
        self.number_from = np.searchsorted(
            np.flatnonzero(flat == NUMBER), 3 * np.append(self.starts, self.count)
        )
        self.born_from = np.searchsorted(self.born[0], np.append(self.starts, self.count))
        self.last = np.full(len(self.ids), -1, dtype=np.int64)
        """The last segment that takes a value; -1 if none does."""
        np.maximum.at(self.last, self.taken, self.taker)
        for x, _ in self.program.guards:
            self.last[self.position[x.id]] = len(self.starts)
        self.crosses = self.last[: self.count] >= 0

    def _place(self) -> None:
        """Give everything that crosses a boundary its address."""
        segments, last = len(self.starts), self.last
        crossing = np.flatnonzero(self.crosses)
        frame = self.segment[crossing]
        sizes = np.bincount(frame, minlength=segments)
        until = np.full(segments, -1, dtype=np.int64)
        np.maximum.at(until, frame, last[crossing])
        bases, self.memory = _frames(sizes.tolist(), until.tolist(), self.free)
        self.frame = bases
        offset = np.arange(len(crossing)) - (np.cumsum(sizes) - sizes)[frame]
        self.address[crossing] = bases[frame] + offset

    def _place_outside(self) -> None:
        """Place inputs in their ports, and sines, cosines and early nodes in the memory."""
        self.address = np.zeros(len(self.ids), dtype=np.int64)
        self.port = np.full(len(self.ids), MEMORY, dtype=np.int64)
        ports = {port.name: k for k, port in enumerate(self.program.inputs)}
        angles: dict[int, int] = {}
        for x in self.trig:
            angles.setdefault(x.args[0].id, len(angles))
        side = self.together
        top = 2 * side * -(-len(angles) // side)
        for k, x in enumerate(self.outside, self.count):
            if x.op == g.INPUT:
                self.port[k], self.address[k] = ports[x.args[0]], x.args[1]
            elif x.op in (g.SIN, g.COS):
                group, lane = divmod(angles[x.args[0].id], side)
                self.address[k] = (2 * group + (x.op == g.COS)) * side + lane
            else:
                self.address[k] = top
                top += 1
        self.free = top
        """Where the memory for frames begins."""

    def _groups(self) -> list[list[int]]:
        """Return the segments by the code that they share."""
        groups: dict[tuple[bytes, ...], list[int]] = {}
        at_birth = self.born[0] - self.starts[self.segment[self.born[0]]]
        taken_port = self.port[self.taken]
        starts, ends = self.starts.tolist(), self.ends.tolist()
        for s, (a, b) in enumerate(zip(starts, ends, strict=True)):
            born = slice(self.born_from[s], self.born_from[s + 1])
            key = (
                self.operations[a:b].tobytes(),
                self.wiring[3 * a : 3 * b].tobytes(),
                self.crosses[a:b].tobytes(),
                taken_port[self.taken_from[s] : self.taken_from[s + 1]].tobytes(),
                at_birth[born].tobytes(),
                self.born[1, born].tobytes(),
            )
            groups.setdefault(key, []).append(s)
        return list(groups.values())

    def _function(self, instances: list[int]) -> tuple[Function, IntArray, FloatArray]:
        """Return the function of these segments, and a row of addresses and numbers for each."""
        first = instances[0]
        a, b = int(self.starts[first]), int(self.ends[first])
        every = np.array(instances)
        taken = slice(self.taken_from[first], self.taken_from[first + 1])
        born = slice(self.born_from[first], self.born_from[first + 1])
        table = np.concatenate(
            [
                self.address[self.taken[_rows(self.taken_from, every)]],
                self.frame[every][:, None],
                self.born[2][_rows(self.born_from, every)],
            ],
            axis=1,
        )
        columns, rows = _compressed(table)
        loads = {
            int(self.ids[k]): Place(int(self.port[k]), *column)
            for k, column in zip(self.taken[taken], columns, strict=False)
        }
        stores: dict[int, list[Place]] = {}
        base = columns[len(loads)]
        for offset, k in enumerate(a + np.flatnonzero(self.crosses[a:b])):
            stores[int(self.ids[k])] = [Place(MEMORY, base[0], base[1] + offset)]
        for k, port, column in zip(
            *self.born[:2, born].tolist(), columns[len(loads) + 1 :], strict=True
        ):
            stores.setdefault(int(self.ids[k]), []).append(Place(port, *column))
        numbers, constants = _varying(self.numbers[_rows(self.number_from, every)])
        nodes = tuple(self.nodes[a:b])
        sizes = rows.shape[1], constants.shape[1]
        return Function(nodes, loads, stores, numbers, *sizes), rows, constants


def _frames(sizes: Sequence[int], until: Sequence[int], top: int) -> tuple[IntArray, int]:
    """Return where the frame of each segment begins, and where memory ends.

    A frame lives from its segment to the one given by ``until``, which may be none of them.
    """
    bases = np.zeros(len(sizes), dtype=np.int64)
    free: dict[int, list[int]] = {}
    ending: list[list[int]] = [[] for _ in range(len(sizes) + 1)]
    for s, size in enumerate(sizes):
        if size:
            room = -(-size // 8) * 8
            spare = free.get(room)
            if spare:
                bases[s] = spare.pop()
            else:
                bases[s], top = top, top + room
            ending[until[s]].append(s)
        for dead in ending[s]:
            free.setdefault(-(-sizes[dead] // 8) * 8, []).append(int(bases[dead]))
    return bases, top


def _rows(begin: IntArray, segments: IntArray) -> IntArray:
    """Return the indices of entries of segments that have equally many, one row a segment."""
    length = begin[segments[0] + 1] - begin[segments[0]]
    return np.asarray(begin[segments][:, None] + np.arange(length))


def _compressed(table: IntArray) -> tuple[list[tuple[int | None, int]], IntArray]:
    """Return for each column of addresses its base and its distance from it, and the bases.

    A column that never differs has no base.
    """
    moves = np.ascontiguousarray((table - table[0]).T)
    bases: dict[bytes, int] = {}
    kept: list[int] = []
    columns: list[tuple[int | None, int]] = []
    still = np.any(moves, axis=1)
    for k, first in enumerate(table[0].tolist()):
        if not still[k]:
            columns.append((None, first))
            continue
        key = moves[k].tobytes()
        if key not in bases:
            bases[key] = len(kept)
            kept.append(k)
        base = bases[key]
        columns.append((base, first - int(table[0, kept[base]])))
    return columns, table[:, kept]


def _varying(table: FloatArray) -> tuple[tuple[float | int, ...], FloatArray]:
    """Return for each column of numbers the one it holds, or its index among those that vary."""
    known: dict[bytes, int] = {}
    kept: list[int] = []
    columns: list[float | int] = []
    transposed = np.ascontiguousarray(table.T)
    for k, column in enumerate(transposed):
        if np.all(column == column[0]):
            columns.append(float(column[0]))
            continue
        key = column.tobytes()
        if key not in known:
            known[key] = len(kept)
            kept.append(k)
        columns.append(known[key])
    return tuple(columns), table[:, kept]


def _in_order(
    calls: IntArray, members: Iterable[IntArray], tables: Sequence[NDArray[Any]]
) -> NDArray[Any]:
    """Return the rows of all functions, one after the other in the order of the calls."""
    lengths = np.array([table.shape[1] for table in tables], dtype=np.int64)[calls]
    begin = np.cumsum(lengths) - lengths
    flat = np.zeros(int(lengths.sum()), dtype=tables[0].dtype if tables else np.float64)
    for instances, table in zip(members, tables, strict=True):
        flat[begin[instances][:, None] + np.arange(table.shape[1])] = table
    return flat
