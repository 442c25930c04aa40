# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels of a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from mbs_dynamics.locks import Lock


class Compiled:
    """Kernels of a model, shared by models that differ only in gravity, loads and the like."""

    def __init__(self, others: Compiled | None = None) -> None:
        self.kernels: dict[Any, Any] = {} if others is None else others.kernels
        """Kernels, which take gravity and loads as inputs, and results that depend on neither."""
        self.lock: Any = Lock() if others is None else others.lock
        """Held during compilation, so that no two threads compile the same."""
        self.with_defaults: dict[Any, Any] = {}
        """Kernels whose gravity and loads default to those of this model, by the same keys."""

    def get_or_create(self, key: Hashable, create: Callable[[], Any]) -> Any:
        """Return the shared value of a key, which is created once."""
        with self.lock:
            value = self.kernels.get(key)
            if value is None:
                value = self.kernels[key] = create()
            return value
