# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Layouts of batches: arrays with the same entries that stand elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np


def part_of_wider(x: Any) -> Any:
    wide = np.full((len(x), 2, *x.shape[1:]), np.nan)
    wide[:, 1] = x
    return wide[:, 1]


def transposed(x: Any) -> Any:
    return np.moveaxis(np.ascontiguousarray(np.moveaxis(x, 0, -1)), -1, 0)


def every_other(x: Any) -> Any:
    return np.repeat(x, 2, axis=0)[::2]


def part_of_longer(x: Any) -> Any:
    return transposed(np.concatenate([x, x]))[: len(x)]


def backwards(x: Any) -> Any:
    return x[::-1].copy()[::-1]


def spread(x: Any) -> Any:
    return np.repeat(x, 2, axis=-1)[..., ::2]


def fortran(x: Any) -> Any:
    return np.asfortranarray(x)


SIDE_BY_SIDE = (part_of_wider, every_other)
"""The entries of a state stand side by side."""
OTHERS = (transposed, part_of_longer, backwards, spread, fortran)
LAYOUTS = (*SIDE_BY_SIDE, *OTHERS)
