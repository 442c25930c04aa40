# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What an evaluation of a kernel costs, for the diagnostics. No ROS here."""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from mbs_dynamics.compiler import Kernel

RUNS = 5
"""The time is the shortest of so many evaluations: what others on the machine add is not in it."""


class Cost(NamedTuple):
    """The operations and the time of one evaluation."""

    operations: str
    seconds: float

    @classmethod
    def of(cls, kernel: Kernel, *arguments: Any) -> Cost:
        """Measure a kernel with arguments that it takes."""
        shortest = float("inf")
        for _ in range(RUNS):
            begin = time.perf_counter()
            kernel.call(*arguments)
            shortest = min(shortest, time.perf_counter() - begin)
        return cls(str(kernel.operations), shortest)

    def values(self) -> dict[str, object]:
        """Return what diagnostics show, by name."""
        return {
            "operations": self.operations,
            "evaluation time [us]": f"{1e6 * self.seconds:.2f}",
        }
