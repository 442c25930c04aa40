# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Inputs and outputs of functions whose loops stay loops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.compiler.frontend.containers import Matrix, Values
from mbs_dynamics.compiler.frontend.loops import OUTWARD, Loops, Member, Unsuitable
from mbs_dynamics.compiler.frontend.series import derivative_of, series_of


@dataclass(frozen=True)
class Result:
    """A container that is an output: a vector of scalars for each row, or a matrix."""

    of: Values | Matrix
    by: str
    """Name of the numbers that say where each row stands in the output."""
    shape: tuple[int, ...]
    """Of the output."""
    strides: tuple[int, int, int]
    """How far apart rows, columns and entries stand in the output."""
    across: str = ""
    """Name of the numbers that say where its columns stand, if it is a matrix of which they differ
    from those of the rows."""

    def __len__(self) -> int:
        raise Unsuitable  # of what takes its rows one by one

    def derivative(self, k: int) -> Result:
        """Return the k-th time derivatives of series."""
        of = self.of
        if not isinstance(of, Values):
            raise Unsuitable
        derivatives = Values(of.loops, whole=True)
        for i, _ in of.loops.rows(OUTWARD):
            derivatives[i] = derivative_of(of[i], k)
        return replace(self, of=derivatives)


@dataclass(frozen=True, eq=False)
class Assembled:
    """An output made of blocks side by side: results that are matrices, and numbers."""

    parts: tuple[tuple[int, Result], ...]
    """Where each result begins, as an index into the flat output."""
    numbers: NDArray[np.float64]
    """The output with zeros in place of the results."""

    @classmethod
    def of(cls, rows: Sequence[Sequence[Any]]) -> Assembled:
        """Return the output made of these blocks, arrays of floats and square results."""
        blocks = [[_block(x) for x in row] for row in rows]
        width = sum(block.shape[1] for block in blocks[0])
        numbers = np.zeros((sum(row[0].shape[0] for row in blocks), width))
        parts: list[tuple[int, Result]] = []
        top = 0
        for row in blocks:
            left = 0
            for block in row:
                height, wide = block.shape
                if isinstance(block, Result):
                    own = replace(block, shape=numbers.shape, strides=(width, 1, 0))
                    parts.append((top * width + left, own))
                else:
                    numbers[top : top + height, left : left + wide] = block
                left += wide
            top += row[0].shape[0]
        return cls(tuple(parts), numbers)


def _block(x: Any) -> Any:
    """Return an array of numbers, or what an array without axes holds."""
    numbers = isinstance(x, np.ndarray) and x.dtype.kind == "f"
    return x if numbers else np.asarray(x, dtype=object)[()]


class Texts:
    """What to say of each row."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts


class Entries:
    """An input with entries for each row, or the part of it that begins at ``first``."""

    def __init__(self, loops: Loops, port: str, shape: tuple[int, ...], first: int = 0) -> None:
        self.loops, self.port, self.shape, self.first = loops, port, shape, first

    def __getitem__(self, i: Any) -> Any:
        if not isinstance(i, Member):
            raise Unsuitable
        if not self.shape:
            return self.loops.input(self.port, self.first, i)
        array = np.empty(int(np.prod(self.shape)), dtype=object)
        array[:] = [self.loops.input(self.port, k, i) for k in range(array.size)]
        return array.reshape(self.shape)

    def series(self, derivatives: Sequence[Entries]) -> EntriesOfSeries:
        """Return the series of which these are the derivatives, this one the first."""
        return EntriesOfSeries(self.loops, self.port, self.shape, tuple(derivatives))


class EntriesOfSeries(Entries):
    """Series of which the derivatives are inputs with entries for each row."""

    def __init__(self, *of: Any) -> None:
        *first, self.derivatives = of
        super().__init__(*first)

    def __getitem__(self, i: Any) -> Any:
        return series_of([x[i] for x in self.derivatives])[()]
