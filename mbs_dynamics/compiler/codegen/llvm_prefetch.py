# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Software prefetch of memory that results go to.

Results of a tile of vector code are written after its body has run. Meanwhile the memory is idle,
and a part of the lines can be on their way.
"""

from __future__ import annotations

from collections.abc import Sequence

LINE = 64
"""Bytes of a line of the cache."""

LONG = 16
"""Rows of more vectors than these are long: eight of them take much of the first cache."""

DISTANCE = 2 * LINE
"""How far ahead in a long row the memory is prefetched that is written next.

Measured for matrices and poses of humanoids in batches of 1000 and 10,000: two lines take 0.93 to 1
of the time of none, one to four about the same, 16 and more as long as none.
"""

PART = 0.25
"""The part of a long row that is prefetched, its first lines. The rest is better prefetched while
rows are written, when the processor waits for the memory anyway.

Measured for matrices and derivatives of humanoids: a quarter to a half takes 0.8 to 0.97 of the
time of none, and all lines as long as none. They go to the second cache: what the body works on is
in the first.
"""

MOST = 1 << 18
"""Bytes of a tile of which a part is prefetched. For larger ones it takes as long as without."""

APART = 8
"""At least so many operations of the body from one prefetch to the next."""

Prefetched = Sequence[tuple[int, int]]
"""Outputs with distances in bytes from the first result of a tile."""


def prefetched(sizes: Sequence[int], lanes: int) -> Prefetched:
    """Return what a body prefetches of outputs with so many entries, in order.

    One line of each row after the other: processors write into several pages sooner than into one.
    """
    if 8 * lanes * sum(sizes) > MOST:
        return []
    return [
        (output, 8 * size * row + LINE * line)
        for output, size in enumerate(sizes)
        if size > LONG * lanes
        for line in range(int(PART * 8 * size / LINE))
        for row in range(lanes)
    ]
