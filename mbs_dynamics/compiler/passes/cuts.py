# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Where the nodes of a large program are cut into segments."""

from __future__ import annotations

import bisect
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

IntArray = NDArray[np.int64]

LONGEST = 256
"""A turn of a loop that has more operations than this is cut again."""

SHORTEST = 128
"""Turns of loops are joined until a segment has at least so many operations."""

PERIODS = 8, 1024
"""A stretch without turns is searched for periods between these, in operations."""

ALONE = 1024
"""Neighbours that share their code with nobody are joined up to so many operations."""


def cut(
    operations: NDArray[np.int8], turns: IntArray, born: IntArray, longest: int, shortest: int
) -> IntArray:
    """Return where segments begin: at turns of loops, and in long ones after an output.

    A loop inside a turn shows by the outputs of which it makes one or some each time. As many of
    its turns go together as a power of two, so that loops of any length consist of the same pieces.
    What has no outputs is cut at its period, if it has one.
    """
    count = len(operations)
    starts = [0] if count else []
    begin = 0
    for end in [*turns[(turns > 0) & (turns < count)].tolist(), count]:
        first, last = np.searchsorted(born, (begin + 1, end)).tolist()
        pieces: Iterable[int] = ()
        if last - first > 1 and end - begin > shortest:
            outputs = born[first:last].tolist()
            pieces = _at_outputs(operations, outputs, begin, end, longest, shortest)
        elif end - begin > longest:
            pieces = _at_period(operations[begin:end], begin, longest)
        whole = True
        for begin in pieces:
            starts.append(begin)
            whole = False
        if begin < end < count and (end - begin >= shortest or not whole):
            starts.append(end)
            begin = end
    return np.array(starts, dtype=np.int64)


def _at_outputs(
    operations: NDArray[np.int8],
    born: list[int],
    begin: int,
    end: int,
    longest: int,
    shortest: int,
) -> list[int]:
    """Return where to cut after outputs, and at the period of what is far from the next one."""
    cuts = []
    at = 0
    while end - begin > shortest and at < len(born):
        fit = bisect.bisect_right(born, begin + longest, lo=at) - at
        if fit:
            at += 1 << (fit.bit_length() - 1)
            begin = born[at - 1]
            cuts.append(begin)
        else:
            cuts += _at_period(operations[begin : born[at]], begin, longest)
            begin = cuts[-1]
    return [k for k in cuts if k < end]


def _at_period(operations: NDArray[np.int8], begin: int, longest: int) -> list[int]:
    """Return where to cut a stretch in which the same operations come again and again."""
    text, size = operations.tobytes(), len(operations)
    cuts = []
    at = 0
    while at < size:
        period = next((p for p in range(*PERIODS) if _repeats(text, at, p)), 0)
        if not period:
            at += longest
            cuts.append(at)
            continue
        differs = operations[at : size - period] != operations[at + period :]
        last = at + period + int(np.argmax(differs) if differs.any() else len(differs))
        found = period * min(max(longest // period, 1), (last - at) // period)
        step = -(-found // -(-found // longest))
        for first in range(at, last - found + 1, found):
            at = first + found
            cuts += [*range(first + step, at, step), at]
    return [begin + k for k in cuts if k < size]


def _repeats(text: bytes, at: int, period: int) -> bool:
    """Whether three periods begin there that are alike."""
    return (
        len(text) >= at + 3 * period
        and text[at : at + 2 * period] == text[at + period : at + 3 * period]
    )


def joined(starts: IntArray, count: int, alone: NDArray[np.bool_]) -> IntArray:
    """Return where segments begin when those that are alone are joined with such neighbours."""
    kept: list[int] = []
    ends = np.append(starts, count)[1:]
    after_alone = False
    for begin, end, single in zip(starts.tolist(), ends.tolist(), alone.tolist(), strict=True):
        if not (single and after_alone and end - kept[-1] <= ALONE):
            kept.append(begin)
        after_alone = single
    return np.array(kept, dtype=np.int64)
