# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What a model keeps for those that compile algorithms for it, so that they do so only once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from mbs_dynamics.model.values import Recent

MOST_KERNELS = 500
"""So many kernels, programs and other results are kept for a model and those made from it."""


class Compiled:
    """Programs and kernels of a model, which the models made from it by other loads share."""

    def __init__(self, others: Compiled | None = None) -> None:
        self.kernels: Recent = Recent(MOST_KERNELS) if others is None else others.kernels
        """Programs and kernels by algorithm and options."""
        self.lock: Any = threading.RLock() if others is None else others.lock
        """Held while something is compiled, so that no thread compiles what another one does."""
        self.calls: dict[Any, Any] = {}
        """By algorithm and options, as called on this very model: the kernel and model inputs."""

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return what is kept by a key, made now if nothing is."""
        with self.lock:
            found = self.kernels.get(key)
            if found is None:
                found = self.kernels[key] = make()
            return found
