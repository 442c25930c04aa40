# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The table that the demonstration shows while it runs."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Protocol

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model import Model

SHOWN = 12
"""Joints that are shown; a humanoid has more than a screen has lines."""


class Seen(Protocol):
    """What the table shows."""

    model: Model
    q: FloatArray
    now: float
    commanded: FloatArray
    enabled: bool | None
    gravity: tuple[FloatArray, FloatArray] | None


class Table:
    """A table that is drawn over itself on a terminal, and once an act elsewhere."""

    def __init__(self) -> None:
        self._live = sys.stdout.isatty()
        self._height = 0

    def update(self, seen: Seen) -> None:
        """Draw the table anew, if there is a terminal."""
        if self._live:
            self.clear()
            self._height = self._draw(seen)

    def clear(self) -> None:
        """Take the table away, so that a line can be printed in its place."""
        if self._height:
            print(f"\x1b[{self._height}A\x1b[J", end="")
        self._height = 0

    def keep(self, seen: Seen) -> None:
        """Draw the table and leave it there."""
        self.clear()
        self._draw(seen)

    @staticmethod
    def _draw(seen: Seen) -> int:
        lines = list(_lines(seen))
        print("\n".join(lines), flush=True)
        return len(lines)


def _lines(seen: Seen) -> Iterable[str]:
    state = {None: "not there", True: "enabled", False: "disabled"}[seen.enabled]
    yield f"  compensation {state:9}      position       gravity torque   commanded"
    gravity = seen.gravity[0] if seen.gravity is not None else None
    for k, joint in enumerate(seen.model.joints[:SHOWN]):
        length, force = ("m  ", "N  ") if joint.kind == "prismatic" else ("rad", "N m")
        needed = f"{gravity[k]:10.3f} {force}" if gravity is not None else 14 * " "
        commanded = f"{seen.commanded[k]:10.3f} {force}" if seen.enabled else "      none"
        yield f"  {joint.name:24.24} {seen.q[k]:8.3f} {length}   {needed}  {commanded}"
    if seen.model.n > SHOWN:
        yield f"  and {seen.model.n - SHOWN} more"
