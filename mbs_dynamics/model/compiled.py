# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled kernels of a model."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
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


def compiled(model: Any) -> Compiled:
    """Return the compiled kernels of a model."""
    return model._compiled  # type: ignore[no-any-return]


def placed_links(model: Any) -> tuple[str, ...]:
    """Return the links whose placements are inputs of kernels, bodies first."""
    return model._placed  # type: ignore[no-any-return]


def placements(model: Any) -> FloatArray:
    """Return the upper rows (k, 3, 4) of the poses of :func:`placed_links`, inputs of kernels."""
    rows = [model.placement(link)[:3] for link in placed_links(model)]
    return np.array(rows).reshape(-1, 3, 4)


def variables(model: Any) -> tuple[tuple[int, ...], bool, tuple[str, ...]]:
    """Return the bodies with loads, whether there is armature, and :func:`placed_links`.

    Kernels are compiled for these, and have their values as inputs.
    """
    return model.payloads.bodies, bool(model.armature.any()), placed_links(model)
