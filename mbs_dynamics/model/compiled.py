# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels of a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from mbs_dynamics.locks import Lock


class Compiled:
    """Kernels of a model; those compiled are shared by models that differ in gravity or loads."""

    def __init__(self, others: Compiled | None = None) -> None:
        self.kernels: dict[Any, Any] = {} if others is None else others.kernels
        """Compiled kernels, for any gravity and loads, and other results that need neither."""
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
