# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels of a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from mbs_dynamics.locks import Lock
from mbs_dynamics.model.values import FifoCache

MOST_KERNELS = 500
"""Largest number of kernels and other results that are stored for a model."""


class Compiled:
    """Kernels of a model; those compiled are shared by models that differ in gravity or loads."""

    def __init__(self, others: Compiled | None = None) -> None:
        self.kernels: FifoCache = FifoCache(MOST_KERNELS) if others is None else others.kernels
        """Compiled kernels, for any gravity and loads, and other results that need neither."""
        self.lock: Any = Lock() if others is None else others.lock
        """Held during compilation, so that no two threads compile the same."""
        self.own: FifoCache = FifoCache(MOST_KERNELS)
        """Kernels with gravity and loads of this very model as defaults, by the same keys."""

    def get_or_create(self, key: Hashable, create: Callable[[], Any]) -> Any:
        """Return the shared value of a key, which is created once."""
        with self.lock:
            value = self.kernels.get(key)
            if value is None:
                value = self.kernels[key] = create()
            return value


def compiled(model: Any) -> Compiled:
    """Return the compiled kernels of a model."""
    return model._compiled  # type: ignore[no-any-return]
