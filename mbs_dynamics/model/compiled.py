# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The store of compiled kernels of a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from mbs_dynamics.locks import Lock
from mbs_dynamics.model.values import Recent

MOST_KERNELS = 500
"""Largest number of kernels, programs and other results that are stored for a model."""


class Compiled:
    """Programs and kernels of a model and of those that differ in gravity or loads alone."""

    def __init__(self, others: Compiled | None = None) -> None:
        self.kernels: Recent = Recent(MOST_KERNELS) if others is None else others.kernels
        """Programs and kernels by algorithm and options."""
        self.lock: Any = Lock() if others is None else others.lock
        """Held during compilation, so that no two threads compile the same."""
        self.calls: dict[Any, Any] = {}
        """Kernel and model inputs by algorithm and options, for calls with this very model."""

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """Return the value stored under a key, or make and store it."""
        with self.lock:
            found = self.kernels.get(key)
            if found is None:
                found = self.kernels[key] = make()
            return found


def compiled(model: Any) -> Compiled:
    """Return the kernels of a model, which those that differ in gravity or loads alone share."""
    return model._compiled  # type: ignore[no-any-return]
