# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The factors of a mass matrix within loops, where joints share coordinates or the method asks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from mbs_dynamics.compiler.frontend.containers import Matrix, Values
from mbs_dynamics.compiler.frontend.loop_ports import Result
from mbs_dynamics.compiler.frontend.loop_system import MATRIX, UNITS, VECTOR, solution, system
from mbs_dynamics.compiler.frontend.loops import Unsuitable

if TYPE_CHECKING:
    from mbs_dynamics.model.generic import GenericModel


def elimination(coordinates: Sequence[int]) -> list[int]:
    """Return the coordinates of joints, each once, in the order in which they last come.

    Those that come last are eliminated first, so that of several pivots that are not positive the
    one is said that is found first when rows are looked at inwards.
    """
    last = {k: i for i, k in enumerate(coordinates)}
    return sorted(last, key=lambda k: last[k])


class GenericFactors:
    """M = U D U^T; see :class:`mbs_dynamics.algorithms.inverse_mass_matrix.Factors`."""

    def __init__(
        self, model: GenericModel, M: Any, messages: Sequence[str], least: Sequence[float]
    ) -> None:
        M = np.asarray(M, dtype=object)[()]
        if not isinstance(M, Result) or not isinstance(M.of, Matrix):
            raise Unsuitable
        self.model, self.coordinates = model, list(model.coordinates)
        self.order = elimination(self.coordinates)
        self.system = system(
            model.loops,
            M.of.number,
            [self.order.index(k) for k in self.coordinates],
            model.ratios,
            [least[k] for k in self.coordinates],
            [messages[k] for k in self.coordinates],
        )

    def accelerations(self, tau: Any, h: Any) -> Any:
        """Return M^-1 (tau - h) by coordinate, of torques tau (n,) and those h of the bodies."""
        model, loops = self.model, self.model.loops
        torques = Values(loops, whole=True)
        first = [float(k not in self.coordinates[:i]) for i, k in enumerate(self.coordinates)]
        for i, _ in model.outward():
            own = loops.table(first, i) * model.entry(tau, i)
            torques[i] = own - loops.table(model.ratios, i) * h[i]
        to = solution(loops, self.system, VECTOR, torques.slots()[0])
        return model.by_coordinate(Values.at(loops, to))

    def response(self, dtau: Matrix) -> Any:
        """Return -M^-1 dtau (n, n), of a matrix dtau (nb, nb) of the bodies."""
        return self._solution(MATRIX, dtau.number)

    def inverse(self) -> Any:
        """Return M^-1 (n, n), symmetric."""
        return self._solution(UNITS, 0, symmetric=True)

    def _solution(self, sort: str, right: int, *, symmetric: bool = False) -> Result:
        loops, n = self.model.loops, self.model.n
        solved = Matrix.at(loops, solution(loops, self.system, sort, right))
        return Result(solved, "unknown", (n, n), strides=(n, 1, 1), symmetric=symmetric)
