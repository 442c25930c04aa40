# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The period of the states of an arm, by which a stiffness is accepted or refused."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence

import numpy as np

KEPT, FEWEST = 100, 20
"""States whose stamps are stored, and the fewest from which a period is known."""


class StatePeriod:
    """The median time between the states of the slowest joint, by their stamps.

    Neither a pause nor the load of this machine changes it, so that what is accepted once is
    accepted again.
    """

    def __init__(self) -> None:
        self._stamps: deque[tuple[int, ...]] = deque(maxlen=KEPT)
        self._median: float | None = 0.0

    @property
    def known(self) -> bool:
        """Whether enough states have come."""
        return len(self._stamps) >= FEWEST

    def note(self, stamps: Sequence[int]) -> None:
        """Store the stamps (m,) of a state, in ns."""
        self._stamps.append(tuple(stamps))
        self._median = None

    @property
    def median(self) -> float:
        """In s; 0 while it is not known."""
        if self._median is None:
            self._median = self._found() if self.known else 0.0
        return self._median

    def _found(self) -> float:
        steps = np.diff(np.array(self._stamps), axis=0)
        advanced = [column[column > 0] for column in steps.T]
        return 1e-9 * max((float(np.median(x)) for x in advanced if x.size), default=0.0)
