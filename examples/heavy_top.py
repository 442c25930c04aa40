# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A heavy top on SO(3): its nutation, and the drift of energy and vertical momentum by step size.

python examples/heavy_top.py [FILE]     writes a figure, heavy_top.png by default
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
from mbs_dynamics.lie import so3
from mbs_dynamics.model.joints import Connection, joint

INERTIA = mbs.spatial_inertia(1.0, (0.0, 0.0, 0.5), np.diag([0.05, 0.05, 0.1]))
TOP = mbs.Model.from_joints(
    [Connection(name="pivot", joint=joint("spherical"), body="top", M_body=INERTIA)]
)
START = so3.quaternion_exp(np.array([0.6, 0.0, 0.0]))  # leaning by 0.6 rad
OMEGA = np.array([0.0, 0.0, 40.0])
SCHEMES = {"semi_implicit_euler": 1, "rk4": 4, "implicit_midpoint": 2}
"""Methods and their orders."""
COLOURS = dict(zip(integrate.METHODS, CURVES, strict=False))
"""Those of the methods in all figures."""


def spun(step: float, duration: float = 4.0, method: str = "rk4") -> Motion:
    """Return a motion of the top."""
    return simulate(TOP, START, OMEGA, duration=duration, step=step, method=method)


def drifts(steps: list[float]) -> dict[str, list[tuple[float, float]]]:
    """Return the largest errors of energy and vertical momentum, by scheme and step."""
    return {name: [drift(spun(step, method=name)) for step in steps] for name in SCHEMES}


def drift(motion: Motion) -> tuple[float, float]:
    """Return the largest errors of energy and vertical momentum."""
    vertical = motion.momentum[:, 2]
    errors = motion.energy - motion.energy[0], vertical - vertical[0]
    return float(np.abs(errors[0]).max()), float(np.abs(errors[1]).max())


def main() -> None:
    """Write the figure."""
    figure, axes = plt.subplots(1, 3, figsize=(13, 4), layout="constrained")
    axis = mbs.forward_kinematics(TOP, spun(1e-3).q)[:, 0, :3, 2]
    axes[0].plot(axis[:, 0], axis[:, 1], lw=0.8)
    axes[0].set(title="path of the tip, from above", aspect="equal", xlabel="x", ylabel="y")
    steps = [0.016, 0.008, 0.004, 0.002, 0.001]
    for name, found in drifts(steps).items():
        energy, momentum = zip(*found, strict=True)
        order = np.log2(energy[-2] / energy[-1])
        label, style = f"{name}: {order:.1f}", {"color": COLOURS[name], "ms": 3}
        axes[1].loglog(steps, energy, "o-", label=label, **style)
        axes[2].loglog(steps, np.array(momentum) + 1e-17, "o-", **style)
    axes[1].set(title="largest error of the energy in 4 s, J, and its order", xlabel="step, s")
    axes[2].set(title="largest error of the vertical momentum, N m s", xlabel="step, s")
    axes[1].legend(fontsize=7)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "heavy_top.png", dpi=100)


if __name__ == "__main__":
    main()
