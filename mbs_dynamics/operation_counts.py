# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Operation counts: of this package's graphs, and as the literature states them.

Mohan and Saha, Table 1, counts multiplications and additions of forward dynamics for a serial robot
of n revolute joints. The counts of this package's own programs are for serial robots with the same
kind of links, bent slender rods, and for any other model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.algorithms import ALGORITHMS, algorithm_of, forward_dynamics
from mbs_dynamics.algorithms.forward_dynamics import METHODS
from mbs_dynamics.compiler import Operations
from mbs_dynamics.errors import MbsError
from mbs_dynamics.model.dh import DHRow
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import leaves
from mbs_dynamics.representation import REPRESENTATIONS


class Count(NamedTuple):
    """Multiplications, divisions among them, and additions."""

    multiplications: int
    additions: int

    @classmethod
    def of(cls, operations: Operations) -> Count:
        """Return the two numbers of a program."""
        return cls(operations.multiplications + operations.divisions, operations.additions)

    def __str__(self) -> str:
        return f"{self.multiplications} / {self.additions}"


PUBLISHED: dict[str, Callable[[int], Count]] = {
    "Mohan and Saha, slender rods": lambda n: Count(173 * n - 128, 150 * n - 133),
    "Saha": lambda n: Count(191 * n - 284, 187 * n - 325),
    "Featherstone": lambda n: Count(199 * n - 198, 174 * n - 173),
    "Valasek": lambda n: Count(226 * n - 343, 206 * n - 345),
    "Brandl et al.": lambda n: Count(250 * n - 222, 220 * n - 198),
    "Walker and Orin, O(n^3)": lambda n: Count(
        round(n**3 / 6 + 23 * n**2 / 2 + 115 * n / 3 - 47),
        round(n**3 / 6 + 7 * n**2 + 233 * n / 6 - 46),
    ),
}
"""Forward dynamics of n revolute joints: Mohan and Saha, Table 1.

The formulas are right as printed; the text of the paper is not: at n = 6 Saha's algorithm needs
fewer operations than the one proposed, and Walker and Orin's the fewest of all.
"""


def slender_chain(n: int) -> Model:
    """Return a serial robot of n revolute joints and bent slender rods, with no special angles."""
    row = DHRow(0.3, 0.2, 0.7, mass=1.0)
    hub = Inertia.from_com(0.0, np.zeros(3), np.diag([0.0, 0.0, 0.05]))  # about the joint axis
    chain = Model.from_dh([row] * n)
    bodies = (replace(body, inertia=body.inertia + hub) for body in chain.bodies)
    return replace(chain, bodies=tuple(bodies))


def forward_dynamics_counts(sizes: Sequence[int]) -> dict[str, list[Count]]:
    """Return for each algorithm, published or ours, the counts for robots of these sizes."""
    counts = {name: [formula(n) for n in sizes] for name, formula in PUBLISHED.items()}
    chains = [slender_chain(n) for n in sizes]
    ours = algorithm_of(forward_dynamics)
    for method in METHODS:
        counts[f"{method}, ours"] = [
            Count.of(ours.operations(chain, {"method": method, "representation": "body_fixed"}))
            for chain in chains
        ]
    return counts


class Row(NamedTuple):
    """The operations of one algorithm for a model, by representation."""

    title: str
    operations: dict[str, Operations]
    """One entry, under the key ``""``, for an algorithm without representations; none if it does
    not apply to the model."""
    reason: str = ""
    """Why it does not apply."""


def algorithm_counts(
    model: Model, functions: Sequence[Callable[..., Any]] = ALGORITHMS
) -> list[Row]:
    """Return the operations of algorithms, by default all, for a model in each representation.

    Those of a body are for the first leaf, those by a joint for the middle one of the joints with
    one degree of freedom, if there are any.
    """
    tip = (*leaves(model), *model.frames)[0]
    single = [joint.name for joint in model.joints if joint.nv == 1]
    middle = single[len(single) // 2 :][:1]
    chosen: dict[str, tuple[Any, str]] = {
        "body": (tip, f" of {tip}"),
        "joints": (tuple(middle), "".join(f" by {joint}" for joint in middle)),
        "order": (3, " of order 3"),
    }
    rows = []
    for function in functions:
        algorithm = algorithm_of(function)
        asked = [name for name in chosen if name in algorithm.options]
        options = {name: chosen[name][0] for name in asked}
        title = algorithm.name + "".join(chosen[name][1] for name in asked)
        by_name = "representation" in algorithm.options
        variants = {name: {**options, "representation": name} for name in REPRESENTATIONS}
        try:
            operations = {
                name: algorithm.operations(model, variant)
                for name, variant in (variants if by_name else {"": options}).items()
            }
        except MbsError as error:  # no solution at any state, or joints that it does not take
            rows.append(Row(title, {}, str(error)))
            continue
        rows.append(Row(title, operations))
    return rows
