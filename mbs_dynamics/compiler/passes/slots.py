# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Places in scratch memory that values share whose lives do not overlap."""

from __future__ import annotations


class Slots:
    """The places of a scratch memory, and which are free."""

    def __init__(self) -> None:
        self.size = 0
        """How many there have to be."""
        self._free: list[int] = []
        self._ending: dict[int, list[int]] = {}

    def taken(self, until: int) -> int:
        """Return a place that is taken until it is released at that time."""
        if not self._free:
            self._free.append(self.size)
            self.size += 1
        slot = self._free.pop()
        self._ending.setdefault(until, []).append(slot)
        return slot

    def release(self, now: int) -> None:
        """Take back what was taken until now."""
        self._free += self._ending.pop(now, ())
