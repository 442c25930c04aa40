# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A falling chain in joint coordinates: orders of the integrators, and the drift of its energy.

python examples/falling_chain.py [FILE]     writes a figure, falling_chain.png by default
"""

from __future__ import annotations

import sys

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics import integrate
from mbs_dynamics.colours import CURVES
from mbs_dynamics.integrate import Motion, simulate

METHODS = {
    "semi_implicit_euler": 1,
    "implicit_midpoint": 2,
    "rk4": 4,
}
"""The integrators with a fixed step, and their orders."""
COLOURS = dict(zip(integrate.METHODS, CURVES, strict=False))
"""Those of the methods in all figures."""


def chain(links: int = 4) -> mbs.Model:
    """Return a serial chain of rods of 1 kg and 0.5 m, straight at q = 0."""
    rod = mbs.spatial_inertia(1.0, (0.0, 0.0, -0.25), np.diag([0.0208, 0.0208, 1e-4]))
    homes = np.tile(np.eye(4), (links, 1, 1))
    homes[1:, 2, 3] = -0.5
    axes = [[1, 0, 0, 0, 0, 0] if k % 2 else [0, 1, 0, 0, 0, 0] for k in range(links)]
    return mbs.Model.from_screws(
        range(-1, links - 1), homes, axes, np.tile(rod, (links, 1, 1)), frame="body_fixed"
    )


def fall(model: mbs.Model, method: str, step: float, duration: float) -> Motion:
    """Return the motion from a posture of rest."""
    return simulate(
        model,
        np.full(model.n, 0.8),
        duration=duration,
        step=step,
        method=method,
        rtol=1e-12,
        atol=1e-12,
    )


def errors(model: mbs.Model, steps: list[int], duration: float = 0.5) -> dict[str, list[float]]:
    """Return the error of the posture at the end, by integrator, for these numbers of steps."""
    exact = fall(model, "dormand_prince", duration / 10, duration).q[-1]
    return {
        method: [
            float(np.abs(fall(model, method, duration / n, duration).q[-1] - exact).max())
            for n in steps
        ]
        for method in METHODS
    }


def main() -> None:
    """Write the figure."""
    model = chain()
    figure, axes = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
    steps = [50, 100, 200, 400]
    for method, found in errors(model, steps).items():
        order = np.log2(found[-2] / found[-1])
        label, style = f"{method}: {order:.2f}", {"color": COLOURS[method], "ms": 3}
        axes[0].loglog([0.5 / n for n in steps], found, "o-", label=label, **style)
    axes[0].set(title="error of the posture after 0.5 s, and measured order", xlabel="step, s")
    axes[0].legend(fontsize=8)
    for method in METHODS:
        motion = fall(model, method, 2e-3, 20.0)
        drift = np.abs(motion.energy - motion.energy[0])
        axes[1].semilogy(motion.t, drift + 1e-12, color=COLOURS[method], lw=0.7, label=method)
    axes[1].set(title="error of the energy, J, steps of 2 ms", xlabel="time, s", ylim=(1e-9, 1e3))
    axes[1].legend(fontsize=8)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "falling_chain.png", dpi=100)


if __name__ == "__main__":
    main()
