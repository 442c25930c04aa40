# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Where values of the rows, matrices and blocks of columns stand in the memory of a program."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from mbs_dynamics.compiler.codegen.llvm_body import WIDTH
from mbs_dynamics.compiler.frontend.loop_program import LoopProgram, columns_of
from mbs_dynamics.compiler.frontend.program import Program

CACHE = 1 << 20
"""Bytes of a cache that is still fast: several states at once have to fit. Measured for chains."""


class Room(NamedTuple):
    """Where things stand in the memory, in entries."""

    stride: int
    """From one value of the rows to the next."""
    values: dict[int, int]
    """Where values of the rows stand, by number."""
    top: int
    """Entries that all of them take."""
    outputs: dict[Any, str]
    """Names of the outputs that values, by number, and matrices, by (number,), are kept in."""
    matrices: dict[int, int]
    """Matrices that are kept in the memory, by number."""
    blocks: dict[int, int]
    size: int
    apart: bool
    """Whether values of the rows stand in a memory of their own."""

    @property
    def base(self) -> str:
        """Name of what values of the rows stand in."""
        return "%values" if self.apart else "%memory"


def room_of(
    program: LoopProgram,
    lanes: int,
    blocks: Mapping[int, int],
    apart: Iterable[int] | None = None,
) -> Room:
    """Return where things stand; ``blocks`` says how many rows each block of columns has.

    What becomes an output in another order than that of the rows is kept in the memory first.
    ``apart`` names the values of the rows that stand in a memory of their own, if they do.
    """
    count = program.forest.count
    outputs: dict[Any, str] = {}
    for slot, home in program.slot_homes.items():
        if program.value_in_place(slot):
            outputs[slot] = home.port
    for number, home in program.matrix_homes.items():
        if program.matrix_in_place(number):
            outputs[number,] = home.port
    stride = stride_of(count, lanes)
    slots = range(program.slots) if apart is None else apart
    values = {slot: k * stride for k, slot in enumerate(slots)}
    top = len(values) * stride
    first, top = top, 0 if apart is not None else top
    matrices = {}
    for number, (*_, size) in enumerate(program.matrices):
        if (number,) not in outputs:
            matrices[number] = top
            top += padded(size)
    places = {}
    for number, (_, size) in program.blocks.items():
        places[number] = top
        top += blocks[number] * size * stride
    size = top + WIDTH
    return Room(stride, values, first, outputs, matrices, places, size, apart is not None)


def stride_of(count: int, lanes: int) -> int:
    """Return how many entries lie between two values of a row, so that all sets of a cache serve.

    That takes an odd number of lines of the cache. Vectors of one state may go beyond the end.
    """
    return WIDTH * (padded(count) // WIDTH | 1) if lanes == 1 else count | 1


def padded(count: int) -> int:
    """Return a multiple of eight with room for a vector that begins at the last entry."""
    return -(-count // WIDTH) * WIDTH + WIDTH


def is_worth_lanes(program: Program, lanes: int) -> bool:
    """Whether several states at once take less time than one after the other.

    Loops over pairs and columns fill the lanes with one state, and need less memory for that.
    """
    if not isinstance(program, LoopProgram) or not program.has_wide_loops:
        return True
    room = sum(columns_of(way, program.forest.parents)[1] for way, _ in program.blocks.values())
    count = program.forest.count
    size = program.slots * count + sum(size for *_, size in program.matrices) + 6 * room * count
    return 8 * lanes * size <= CACHE
