# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of models: values that are compared by content, and can be copied."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np


class Value:
    """A frozen dataclass that is compared by content.

    Copies, also by pickle, have read-only arrays.
    """

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = self.__getstate__(), other.__getstate__()
        return all(same(mine[name], theirs[name]) for name in mine)

    def __hash__(self) -> int:
        plain = [x for x in self.__getstate__().values() if isinstance(x, (str, int, float))]
        return hash((type(self), *plain))

    def __getstate__(self) -> dict[str, Any]:
        """Return the defining fields by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.init}  # type: ignore[arg-type]

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        """Restore the defining fields."""
        for name, value in state.items():
            object.__setattr__(self, name, frozen(value))


def same(a: Any, b: Any) -> bool:
    """Return whether two fields of values have the same contents."""
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.array_equal(a, b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, tuple) and isinstance(b, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    return bool(a == b)


def frozen(value: Any) -> Any:
    """Return a field of a value, with all its arrays made read-only."""
    if isinstance(value, np.ndarray):
        value.flags.writeable = False
    elif isinstance(value, (tuple, Mapping)):
        for x in value.values() if isinstance(value, Mapping) else value:
            frozen(x)
    return value
