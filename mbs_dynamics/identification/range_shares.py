# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Positions that were recorded as shares of the ranges of joints."""

from __future__ import annotations

import math
from typing import NamedTuple

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.identification.torque_model import TorqueModel
from mbs_dynamics.model.coordinates import bounded

DEGREE = math.pi / 180.0


class RangeShare(NamedTuple):
    """A possible meaning of positions: shares of the ranges of joints."""

    low: FloatArray
    high: FloatArray
    """(k,) the limits of the joints in rad or m."""
    first: float
    last: float
    """Shares at the lower and at the upper limit."""
    unit: float = 1.0
    """Value that was read for a share of 1; pi / 180 for per cent that were declared as degrees."""

    def fits(self, q: FloatArray) -> bool:
        """Return whether positions (N, k), as they were read, are within the ranges."""
        return bool(((self.unit * self.first <= q) & (q <= self.unit * self.last)).all())

    def positions(self, q: FloatArray) -> FloatArray:
        """Return positions (N, k) in rad or m from those that were read."""
        part: FloatArray = (q / self.unit - self.first) / (self.last - self.first)
        return self.low + (self.high - self.low) * part

    def __str__(self) -> str:
        kind = "shares of the ranges of the joints"
        if self.unit != 1.0:
            kind = "per cent of the ranges of the joints that were declared as degrees"
        part = f"p / {self.last:g}"
        if self.first:
            part = f"(p + {-self.first:g}) / {self.last - self.first:g}"
        return (
            f"{kind}, {self.first:g} to {self.last:g}: convert them to rad, as lower + "
            f"(upper - lower) {part}"
        )


def range_shares(torque_model: TorqueModel, q: FloatArray, *, stated: bool) -> list[RangeShare]:
    """Return the meanings that positions q (N, k) in rad or m may have as shares of ranges.

    There are none if joints have no ranges. Per cent are considered only if the unit of positions
    was ``stated``, as degrees: read as rad, they would be far beyond the limits.
    """
    places = torque_model.places
    low, high = torque_model.model.lower[places], torque_model.model.upper[places]
    if not bounded(low, high).all():
        return []
    shares = [RangeShare(low, high, first, 1.0) for first in (-1.0, 0.0)]
    if stated:
        shares += [RangeShare(low, high, x, 100.0, DEGREE) for x in (-100.0, 0.0)]
    return [share for share in shares if share.fits(q)]
