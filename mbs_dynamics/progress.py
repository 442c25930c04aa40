# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Progress of long computations on a terminal."""

from __future__ import annotations

import sys
import time
from typing import TextIO

SHOWN_AFTER = 2.0
"""Seconds before progress is shown."""

INTERVAL = 0.2
"""Seconds between two updates."""


class Progress:
    """Progress of a computation on a terminal.

    ``total`` is its end, a simulated time in s, or a number of ``unit``; ``what`` precedes the
    line. ``shown`` forces or suppresses it; None shows it on terminals only, after two seconds.
    """

    def __init__(
        self,
        total: float,
        shown: bool | None = None,
        stream: TextIO | None = None,
        *,
        what: str = "",
        unit: str = "s",
    ) -> None:
        self.what, self.unit = what, unit
        self.stream = sys.stderr if stream is None else stream
        self.shown = self.stream.isatty() if shown is None else shown
        self.total, self.begun = total, time.monotonic()
        self._next = self.begun + (0.0 if shown else SHOWN_AFTER)
        self._wrote = False

    def update(self, done: float) -> None:
        """Show that ``done`` of ``total`` is done."""
        now = time.monotonic()
        if not self.shown or now < self._next:
            return
        self._next, self._wrote = now + INTERVAL, True
        share = min(done / self.total, 1.0)
        elapsed = now - self.begun
        left = elapsed / share - elapsed if share else 0.0
        bar = "#" * int(30 * share)
        text = f"{done:.3g} of {self.total:.3g} {self.unit}, {left:.0f} s left "
        self.stream.write(f"\r{self.what}[{bar:30}] {text}")
        self.stream.flush()

    def close(self) -> None:
        """End the line."""
        if self._wrote:
            self.stream.write("\n")
            self.stream.flush()
