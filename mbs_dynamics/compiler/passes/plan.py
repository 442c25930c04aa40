# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What a large program is compiled from: functions, and the calls of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend import graph as g
from mbs_dynamics.compiler.frontend.graph import Condition, Symbol
from mbs_dynamics.compiler.frontend.program import Program

Node = Symbol | Condition
FloatArray = NDArray[np.float64]

MEMORY = -1
"""In place of the index of a port: the memory of frames."""


class Place(NamedTuple):
    """Where a value is loaded from or stored to, in every call of a function.

    Its address is the entry ``column`` of the call's row plus ``offset``; if the column is None, it
    is the offset itself. Addresses count entries of a port or of the memory.
    """

    port: int
    """Index among the inputs and outputs, or MEMORY."""
    column: int | None
    offset: int


@dataclass(frozen=True)
class Function:
    """Code that segments share, as the nodes of the first of them."""

    nodes: tuple[Node, ...]
    loads: dict[int, Place]
    """Where an operand that is born outside comes from, by the id of its node."""
    stores: dict[int, list[Place]]
    """Where a value goes that is wanted outside, by the id of its node."""
    numbers: tuple[float | int, ...]
    """For each number among the operands, in order: itself (float), or its column (int)."""
    addresses: int
    """Length of a call's row of addresses."""
    constants: int
    """Length of a call's row of numbers."""


@dataclass(frozen=True)
class Plan:
    """A program as calls of functions."""

    early: tuple[Node, ...]
    """Nodes that angles need, to be evaluated before any call."""
    trig: tuple[Node, ...]
    """Sines and cosines of these angles, to be evaluated then, before any call."""
    functions: tuple[Function, ...]
    calls: tuple[int, ...]
    """The index of the function of each call."""
    addresses: NDArray[np.int32]
    """The rows of addresses of all calls, one after the other."""
    constants: FloatArray
    """The rows of numbers of all calls, one after the other."""
    home: dict[int, int]
    """Addresses in the memory of early nodes, of sines and cosines and of guards, by id."""
    memory: int
    """How many entries the memory has."""


def prologue(program: Program) -> tuple[tuple[Node, ...], tuple[Node, ...]]:
    """Return the nodes that angles need and the sines and cosines of these angles.

    Angles that themselves depend on a sine, a cosine or an arctangent are left out.
    """
    candidates = [x for x in program.nodes if x.op in (g.SIN, g.COS)]
    late: set[int] = set()
    for node in _leading_to([x.args[0] for x in candidates]):
        if node.op in (g.SIN, g.COS, g.ATAN2) or any(
            type(x) is not float and x.id in late for x in node.args
        ):
            late.add(node.id)
    trig = [x for x in candidates if x.args[0].id not in late]
    return tuple(_leading_to([x.args[0] for x in trig])), tuple(trig)


def _leading_to(nodes: Sequence[Node]) -> list[Node]:
    """Return these nodes and all that they need, without inputs, arguments before their users."""
    found: dict[int, Node] = {}
    left = list(nodes)
    while left:
        node = left.pop()
        if node.op != g.INPUT and node.id not in found:
            found[node.id] = node
            left += [x for x in node.args if type(x) is not float]
    return sorted(found.values(), key=lambda x: x.id)
