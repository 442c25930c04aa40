# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Loads that bodies carry in addition to their inertia."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.body import Body, add_inertia
from mbs_dynamics.model.inertia import Inertia


class Payload(NamedTuple):
    """A load fixed to a link, in addition to the inertia of the body."""

    link: str
    """Name of the frame to which it is fixed; a link carries at most one load."""
    body: int
    """Index of the body that moves with it."""
    parameters: FloatArray
    """(10,) :attr:`Inertia.parameters` in the frame of that body."""


class Payloads(tuple[Payload, ...]):
    """The loads of a model, at most one per link, sorted by the bodies that carry them."""

    @cached_property
    def bodies(self) -> tuple[int, ...]:
        """Indices of the k bodies that carry loads, in order; a new set requires new kernels."""
        return tuple(sorted({load.body for load in self}))

    @cached_property
    def parameters(self) -> FloatArray:
        """(k, 10) summed parameters of the loads of :attr:`bodies`: ``payload`` of kernels."""
        sums = {i: np.zeros(10) for i in self.bodies}
        for load in self:
            sums[load.body] += load.parameters
        rows = np.array(list(sums.values())).reshape(-1, 10)
        rows.flags.writeable = False
        return rows


def loaded(bodies: Sequence[Body], loads: Iterable[tuple[int, Any]]) -> tuple[Body, ...]:
    """Return the bodies with inertial parameters (10,), numbers or symbols, added to some."""
    carriers = list(bodies)
    for i, parameters in loads:
        add_inertia(carriers, i, Inertia.from_parameters(parameters))
    return tuple(carriers)
