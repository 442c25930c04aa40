# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The tables of ``suite`` for humanoids and quadrupeds on a floating base, beside Pinocchio."""

from collections.abc import Iterator

import mbs_dynamics as mbs
from benchmarks.mechanisms import HUMANOIDS, QUADRUPEDS, robot
from benchmarks.report import Table
from benchmarks.rivals import Pinocchio
from benchmarks.suite import suite


def floating() -> Iterator[Table]:
    """Yield tables of one state, of batches, and of geometric means."""
    return suite("floating", _models, [Pinocchio])


def _models() -> Iterator[tuple[str, mbs.Model]]:
    for name in (*HUMANOIDS, *QUADRUPEDS):
        yield name, robot(name, floating_base=True)
