# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A heavy top on SO(3): its nutation, and the drift of energy and vertical momentum by step size.

python examples/heavy_top.py [FILE]     writes a figure, heavy_top.png by default
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from mbs_dynamics.integrate import BodyMotion, pivoted_body, simulate_body
from mbs_dynamics.lie import so3

TOP = pivoted_body(np.diag([0.3, 0.3, 0.1]), (0.0, 0.0, 0.5), (0.0, 0.0, -9.81))
START = so3.exp(np.array([0.6, 0.0, 0.0]))  # leaning by 0.6 rad
OMEGA = np.array([0.0, 0.0, 40.0])
SCHEMES: dict[str, dict[str, Any]] = {
    "Munthe-Kaas 2": {"method": "munthe_kaas_2"},
    "Munthe-Kaas 4": {"method": "munthe_kaas_4"},
    "Munthe-Kaas 4, momenta": {"method": "munthe_kaas_4", "momenta": True},
    "midpoint, momenta": {"method": "momentum_midpoint"},
    "generalized-alpha": {"method": "generalized_alpha"},
}


def spun(step: float, duration: float = 4.0, **options: Any) -> BodyMotion:
    """Return a motion of the top."""
    return simulate_body(TOP, START, OMEGA, duration=duration, step=step, **options)


def drifts(steps: list[float]) -> dict[str, list[tuple[float, float]]]:
    """Return the largest errors of energy and vertical momentum, by scheme and step."""
    return {
        name: [drift(spun(step, **options)) for step in steps] for name, options in SCHEMES.items()
    }


def drift(motion: BodyMotion) -> tuple[float, float]:
    """Return the largest errors of energy and vertical momentum, the latter from C and V."""
    vertical = TOP.momentum(motion.C, motion.V)[:, 2]
    errors = motion.energy - motion.energy[0], vertical - vertical[0]
    return float(np.abs(errors[0]).max()), float(np.abs(errors[1]).max())


def main() -> None:
    """Write the figure."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    axis = spun(1e-3).C[:, :, 2]
    axes[0].plot(axis[:, 0], axis[:, 1], lw=0.8)
    axes[0].set(title="path of the tip, from above", aspect="equal", xlabel="x", ylabel="y")
    steps = [0.016, 0.008, 0.004, 0.002, 0.001]
    for name, found in drifts(steps).items():
        energy, momentum = zip(*found, strict=True)
        order = np.log2(energy[-2] / energy[-1])
        axes[1].loglog(steps, energy, "o-", ms=3, label=f"{name}: {order:.1f}")
        axes[2].loglog(steps, np.array(momentum) + 1e-17, "o-", ms=3)
    axes[1].set(title="largest error of the energy in 4 s, J, and its order", xlabel="step, s")
    axes[2].set(title="largest error of the vertical momentum, N m s", xlabel="step, s")
    axes[1].legend(fontsize=7)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "heavy_top.png", dpi=100)


if __name__ == "__main__":
    main()
