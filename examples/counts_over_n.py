# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Operations of the recursive algorithms over the number of joints, in the four representations.

python examples/counts_over_n.py [FILE]     writes a figure, counts_over_n.png by default
"""

from __future__ import annotations

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt

import mbs_dynamics as mbs
from mbs_dynamics.operation_counts import slender_chain

ALGORITHMS = {
    "inverse dynamics": mbs.inverse_dynamics,
    "mass matrix": mbs.mass_matrix,
    "forward dynamics": mbs.forward_dynamics,
}


def counts(function: object, sizes: list[int]) -> dict[str, list[int]]:
    """Return the operations for chains of these lengths, by representation."""
    chains = [slender_chain(n) for n in sizes]
    return {
        name: [
            mbs.compile(function, chain, representation=name, backend="python").operations.total
            for chain in chains
        ]
        for name in mbs.REPRESENTATIONS
    }


def main() -> None:
    """Write the figure."""
    sizes = [1, 2, 4, 6, 8, 10, 12, 14]
    figure, axes = plt.subplots(1, len(ALGORITHMS), figsize=(12, 4), layout="constrained")
    for each, (title, function) in zip(axes, ALGORITHMS.items(), strict=True):
        for name, found in counts(function, sizes).items():
            each.plot(sizes, found, "o-", ms=3, label=name)
        each.set(title=f"{title}: operations", xlabel="revolute joints")
    axes[0].legend(fontsize=8)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "counts_over_n.png", dpi=100)


if __name__ == "__main__":
    main()
