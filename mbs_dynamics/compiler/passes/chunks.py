# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Outlining: a program too large for one function, cut into functions that are called in order.

The time that a compiler takes for a function grows faster than the function. So the nodes of a
large program are cut into chunks, consecutive and of equal size. A value that is used beyond its
chunk is spilled: the chunk that computes it stores it in a slot of a scratch memory, and each chunk
that uses it loads it from there. A slot is used again after the chunk of the last use, never within
it, so that no chunk stores to a slot that it loads from.

Sines and cosines whose angles depend on no other sine are left to the caller of the chunks, which
computes several at a time.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.program import Program

Node = Symbol | Condition

SIZE = 2000
"""Operations of a chunk.

Measured with LLVM (benchmarks/large_trees.py): chunks of 1,000 take 1.05 to 1.12 of the time of
those of 2,000 and 0.85 to 1 of the time to compile; chunks of 4,000 take as long to run, and 1.1
times as long to compile.
"""

Entries = dict[int, list[tuple[int, int]]]
"""Entries of outputs that are a node, as (output, index), by the id of the node."""


class Chunk(NamedTuple):
    """Consecutive nodes of a program. Slots are given by the id of the node whose value they hold.

    Inputs are no nodes of a chunk: each chunk loads those that it uses where they stand.
    """

    nodes: list[Node]
    loads: dict[int, int]
    """Slots of the values that other chunks, or the caller, have computed."""
    stores: dict[int, int]
    """Slots of the values that are used later."""
    outputs: Entries


class Outline(NamedTuple):
    """A program as what the caller of the chunks computes, and the chunks."""

    hoisted: list[Node]
    """What the angles of ``sines`` need, without inputs."""
    sines: list[Node]
    """Sines and cosines that are computed before the chunks, in groups: see :func:`outlined`."""
    chunks: list[Chunk]
    slots: dict[int, int]
    """Slots of what the caller computes, which it stores, and of guards, which it loads."""
    outputs: Entries
    """Entries of outputs that are an input, or that the caller computes."""
    size: int
    """Slots of the scratch memory."""


def outlined(program: Program, *, group: int = 1, size: int | None = None) -> Outline:
    """Return a program in chunks of at most ``size`` operations, by default :data:`SIZE`.

    The sines of ``group`` angles stand side by side in the memory, and their cosines after them.
    """
    hoisted, sines = hoistable(program)
    slots, top = _slots_of_sines(sines, group)
    before = {x.id for x in (*hoisted, *sines)}
    slots.update({x.id: top + k for k, x in enumerate(hoisted)})
    nodes = [x for x in program.nodes if x.op is not g.INPUT and x.id not in before]
    count = -(-len(nodes) // (size or SIZE))
    edges = [len(nodes) * k // max(count, 1) for k in range(count + 1)]
    parts = [nodes[a:b] for a, b in itertools.pairwise(edges)]
    home = {x.id: k for k, part in enumerate(parts) for x in part}
    taken = [_taken(part, home, k, slots) for k, part in enumerate(parts)]
    last = {x: k for k, ids in enumerate(taken) for x in ids}
    last.update({x.id: count for x, _ in program.guards})
    entries = _entries(program)
    memory = _Memory(slots, top + len(hoisted))
    chunks = []
    for k, part in enumerate(parts):
        loads = {x: memory.slots[x] for x in taken[k]}
        stores = {x.id: memory.new(x.id, last[x.id]) for x in part if last.get(x.id, k) > k}
        outputs = {x.id: entries.pop(x.id) for x in part if x.id in entries}
        chunks.append(Chunk(part, loads, stores, outputs))
        memory.release(k)
    kept = before | {x.id for x, _ in program.guards if x.op is not g.INPUT}
    slots = {x: memory.slots[x] for x in kept}
    return Outline(hoisted, sines, chunks, slots, entries, memory.size)


def hoistable(program: Program) -> tuple[list[Node], list[Node]]:
    """Return the nodes that angles need, and the sines and cosines of these angles.

    Angles that depend on a sine, a cosine or an arctangent are left out.
    """
    candidates = [x for x in program.nodes if x.op in (g.SIN, g.COS)]
    late: set[int] = set()
    for node in _leading_to(x.args[0] for x in candidates):
        if node.op in (g.SIN, g.COS, g.ATAN2) or any(x.id in late for x in operands(node)):
            late.add(node.id)
    sines = [x for x in candidates if x.args[0].id not in late]
    return _leading_to(x.args[0] for x in sines), sines


def operands(node: Node) -> list[Node]:
    """Return the nodes among the operands of one that is no input."""
    return [x for x in node.args if type(x) is not float]


def _leading_to(nodes: Iterable[Node]) -> list[Node]:
    """Return these nodes and all that they need, without inputs, operands before their users."""
    found: dict[int, Node] = {}
    left = list(nodes)
    while left:
        node = left.pop()
        if node.op is not g.INPUT and node.id not in found:
            found[node.id] = node
            left += operands(node)
    return [found[k] for k in sorted(found)]


def _slots_of_sines(sines: Sequence[Node], group: int) -> tuple[dict[int, int], int]:
    """Return the slots of sines and cosines, and how many slots they take."""
    angles: dict[int, int] = {}
    slots = {}
    for x in sines:
        number, place = divmod(angles.setdefault(x.args[0].id, len(angles)), group)
        slots[x.id] = (2 * number + (x.op == g.COS)) * group + place
    return slots, 2 * group * -(-len(angles) // group)


def _taken(part: Sequence[Node], home: dict[int, int], k: int, before: dict[int, int]) -> list[int]:
    """Return the ids of the values that chunk k takes from others or from their caller."""
    found = dict.fromkeys(x.id for node in part for x in operands(node))
    return [x for x in found if x in before or home.get(x, k) != k]


def _entries(program: Program) -> Entries:
    """Return where each node is an entry of an output."""
    found: Entries = {}
    for output, values in enumerate(program.values):
        for k, x in enumerate(values):
            if isinstance(x, Symbol):
                found.setdefault(x.id, []).append((output, k))
    return found


class _Memory:
    """The slots of a scratch memory, of which the first ones are taken for good."""

    def __init__(self, slots: dict[int, int], size: int) -> None:
        self.slots, self.size = slots, size
        self._free: list[int] = []
        self._ending: dict[int, list[int]] = {}

    def new(self, node: int, last: int) -> int:
        """Return the slot of a node that is used in chunk ``last`` for the last time."""
        if not self._free:
            self._free.append(self.size)
            self.size += 1
        slot = self.slots[node] = self._free.pop()
        self._ending.setdefault(last, []).append(slot)
        return slot

    def release(self, k: int) -> None:
        """Take back the slots of what no chunk after chunk k uses."""
        self._free += self._ending.pop(k, ())
