# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Inputs of a simulation: motor torques and applied wrenches, given as arrays or control laws."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, SimulationError

Law = Callable[..., ArrayLike]
"""A control law: time and :data:`State` to torques or wrenches."""

State = tuple[FloatArray, ...]
"""Arguments of laws and events after the time: (q, qd), (C, V), or (C, V, q, qd)."""


class Drive:
    """Torques or wrenches over time: zero, a constant, one value per step, or a law."""

    def __init__(
        self,
        name: str,
        given: ArrayLike | Law | None,
        shape: tuple[int, ...],
        steps: int,
        seen: str = "q, qd",
    ) -> None:
        self.name, self.shape, self.seen = name, shape, seen
        self.law: Law | None = given if callable(given) else None
        self.rows: FloatArray | None = None
        if self.law is None:
            self.rows = self._checked(np.zeros(shape) if given is None else given, steps)

    def _checked(self, given: Any, steps: int) -> FloatArray:
        try:
            array = np.array(given, dtype=float)
        except (TypeError, ValueError) as error:
            raise ArgumentError(f"{self.name} is no array of numbers: {error}") from error
        core = array.ndim - len(self.shape)
        if array.shape[max(core, 0) :] != self.shape or core < 0:
            raise ArgumentError(
                f"{self.name} has shape {array.shape}; valid is {self.shape}, or one value for "
                f"each step, {(steps, *self.shape)}, or a function of t, {self.seen}"
            )
        if core and len(array) != steps:
            raise ArgumentError(
                f"{self.name} has {len(array)} rows; valid is one for each of the {steps} steps"
            )
        if not np.isfinite(array).all():
            row = int(np.argmax(~np.isfinite(array.reshape(len(array), -1)).all(axis=1)))
            raise ArgumentError(
                f"{self.name} must be finite" + (f"; row {row} is not" * bool(core))
            )
        return array if core else array[None]

    def rows_from(self, k: int, count: int) -> FloatArray:
        """Return the values of steps k to k + count: (count, ...), or (1, ...) for a constant."""
        assert self.rows is not None
        return self.rows if len(self.rows) == 1 else self.rows[k : k + count]

    def at(self, k: int, t: float, state: State, batch: tuple[int, ...]) -> FloatArray:
        """Return the value at time t in step k, for a state with the axes of a batch.

        Raises SimulationError if a law returns a value that is not finite, ArgumentError for a
        wrong shape.
        """
        if self.rows is not None:
            row: FloatArray = self.rows[min(k, len(self.rows) - 1)]
            return row
        assert self.law is not None
        returned = self.law(t, *state)
        try:
            value = np.asarray(returned, dtype=float)
        except (TypeError, ValueError) as error:
            raise ArgumentError(
                f"{self.name} returned no numbers at t = {t:g} s: {error}"
            ) from error
        wanted = (*batch, *self.shape)
        if value.shape not in (wanted, self.shape):
            raise ArgumentError(
                f"{self.name} returned the shape {value.shape} at t = {t:g} s; valid is {wanted}"
            )
        if not finite(value):
            raise SimulationError(f"{self.name} returned {value.tolist()} at t = {t:.9g} s", time=t)
        return value if value.shape == wanted else np.broadcast_to(value, wanted)


class Inputs(NamedTuple):
    """The drives of a simulation, in the order of the kernels' inputs."""

    drives: tuple[Drive, ...]

    @property
    def laws(self) -> bool:
        """Whether any drive is a function in Python."""
        return any(drive.law is not None for drive in self.drives)

    def rows_from(self, k: int, count: int) -> State:
        """Return :meth:`Drive.rows_from` of each drive."""
        return tuple(drive.rows_from(k, count) for drive in self.drives)

    def at(self, k: int, t: float, state: State, batch: tuple[int, ...]) -> State:
        """Return :meth:`Drive.at` of each drive."""
        return tuple([drive.at(k, t, state, batch) for drive in self.drives])


def finite(x: FloatArray) -> bool:
    """Return whether all entries are finite; faster than NumPy for few."""
    few = x.size < 256  # many would wake the threads of a BLAS
    return (few and math.isfinite(np.vdot(x, x))) or bool(np.isfinite(x).all())
