# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A spinning free body on SO(3): conserved quantities and orders of the integrators.

The schemes on the group are compared with Runge-Kutta of order 4 on the nine entries of the
rotation matrix, which leaves SO(3).

    python examples/spinning_body.py [FILE]     writes a figure, spinning_body.png by default
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

from mbs_dynamics.integrate import BodyMotion, pivoted_body, simulate_body
from mbs_dynamics.integrate.runge_kutta import TABLEAUS, runge_kutta_step
from mbs_dynamics.lie import so3

BODY = pivoted_body(np.diag([0.1, 0.2, 0.3]))
OMEGA = np.array([0.2, 3.0, 0.3])  # close to the middle axis: it tumbles
SCHEMES: dict[str, dict[str, Any]] = {
    "Munthe-Kaas 1": {"method": "munthe_kaas_1"},
    "Munthe-Kaas 2": {"method": "munthe_kaas_2"},
    "Munthe-Kaas 3": {"method": "munthe_kaas_3"},
    "Munthe-Kaas 4": {"method": "munthe_kaas_4"},
    "Munthe-Kaas 4, momenta": {"method": "munthe_kaas_4", "momenta": True},
    "midpoint, momenta": {"method": "momentum_midpoint"},
    "generalized-alpha": {"method": "generalized_alpha"},
}


def spun(duration: float, step: float, **options: Any) -> BodyMotion:
    """Return a motion of the body."""
    return simulate_body(BODY, np.eye(3), OMEGA, duration=duration, step=step, **options)


def on_entries(duration: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations and angular velocities by Runge-Kutta on the entries of the matrix."""
    states = [np.vstack([np.eye(3), OMEGA])]

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        return np.vstack([x[:3] @ so3.hat(x[3]), BODY.acceleration(x[:3], x[3])])

    for k in range(round(duration / step)):
        states.append(runge_kutta_step(TABLEAUS[4], rate, k * step, states[-1], step))
    found = np.array(states)
    return found[:, :3], found[:, 3]


def errors(steps: list[int], duration: float = 2.0) -> dict[str, list[float]]:
    """Return the error of the rotation at the end, by scheme, for these numbers of steps."""
    exact = spun(duration, duration / 16384).C[-1]
    return {
        name: [
            float(np.abs(spun(duration, duration / n, **given).C[-1] - exact).max()) for n in steps
        ]
        for name, given in SCHEMES.items()
    }


def main() -> None:
    """Write the figure."""
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    steps = [32, 64, 128, 256, 512]
    for name, found in errors(steps).items():
        order = np.log2(found[-2] / found[-1])
        axes[0, 0].loglog([2.0 / n for n in steps], found, "o-", ms=3, label=f"{name}: {order:.2f}")
    axes[0, 0].set(title="error of the rotation after 2 s, and measured order", xlabel="step, s")
    motions = [(spun(50.0, 0.02, **given), "-", None) for given in SCHEMES.values()]
    C, V = on_entries(50.0, 0.02)
    momentum, kinetic = BODY.momentum(C, V), BODY.kinetic_energy(V)
    entries = BodyMotion(
        t=motions[0][0].t,
        C=C,
        V=V,
        momentum=momentum,
        kinetic=kinetic,
        potential=np.zeros_like(kinetic),
        wrench=np.zeros_like(V),
    )
    for motion, style, label in [*motions, (entries, "k--", "Runge-Kutta 4 on the entries")]:
        momentum = BODY.momentum(motion.C, motion.V)  # also where it is the state of the scheme
        lost = np.linalg.norm(momentum - momentum[0], axis=1)
        gained = np.abs(motion.energy - motion.energy[0])
        for each, error in zip(axes.flat[1:], (lost, gained, motion.orthogonality), strict=True):
            each.semilogy(motion.t, error + 1e-17, style, lw=0.8, label=label)
    for each, what in zip(axes.flat[1:], ("momentum", "energy", "orthogonality"), strict=True):
        each.set(title=f"error of the {what}, steps of 0.02 s", xlabel="time, s")
    for each in (axes[0, 0], axes[1, 1]):
        each.legend(fontsize=7)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "spinning_body.png", dpi=100)


if __name__ == "__main__":
    main()
