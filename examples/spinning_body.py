# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A spinning free body on SO(3): conserved quantities and orders of the integrators.

The schemes on the group are compared with Runge-Kutta of order 4 on the nine entries of the
rotation matrix, which leaves SO(3).

    python examples/spinning_body.py [FILE]     writes a figure, spinning_body.png by default
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
from mbs_dynamics.integrate.runge_kutta import CLASSICAL, runge_kutta_step
from mbs_dynamics.lie import so3
from mbs_dynamics.model.joints import Connection, joint

THETA = np.diag([0.1, 0.2, 0.3])
INERTIA = mbs.spatial_inertia(1.0, (0.0, 0.0, 0.0), THETA)
BODY = mbs.Model.from_joints(
    [Connection(name="ball", joint=joint("spherical"), body="body", M_body=INERTIA)]
)
OMEGA = np.array([0.2, 3.0, 0.3])  # close to the middle axis: it tumbles
SCHEMES = {"semi_implicit_euler": 1, "implicit_midpoint": 2, "rk4": 4}
"""Methods and their orders."""
COLOURS = dict(zip(integrate.METHODS, CURVES, strict=False))
"""Those of the methods in all figures."""


def spun(duration: float, step: float, method: str = "rk4") -> Motion:
    """Return a motion of the body."""
    return simulate(BODY, BODY.neutral(), OMEGA, duration=duration, step=step, method=method)


def rotations(motion: Motion) -> np.ndarray:
    """Return the rotation matrices (N, 3, 3) of a motion."""
    return mbs.forward_kinematics(BODY, motion.q)[:, 0, :3, :3]


def on_entries(duration: float, step: float) -> tuple[np.ndarray, np.ndarray]:
    """Return rotations and angular velocities by Runge-Kutta on the entries of the matrix."""
    states = [np.vstack([np.eye(3), OMEGA])]

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        acceleration = np.linalg.solve(THETA, np.cross(THETA @ x[3], x[3]))
        return np.vstack([x[:3] @ so3.hat(x[3]), acceleration])

    for k in range(round(duration / step)):
        states.append(runge_kutta_step(CLASSICAL, rate, k * step, states[-1], step))
    found = np.array(states)
    return found[:, :3], found[:, 3]


def errors(steps: list[int], duration: float = 2.0) -> dict[str, list[float]]:
    """Return the error of the rotation at the end, by scheme, for these numbers of steps."""
    exact = rotations(spun(duration, duration / 4096))[-1]
    return {
        name: [
            float(np.abs(rotations(spun(duration, duration / n, name))[-1] - exact).max())
            for n in steps
        ]
        for name in SCHEMES
    }


def orthogonality(R: np.ndarray) -> np.ndarray:
    """Return the largest entry of R^T R - I of each of some matrices."""
    return np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-1, -2))


def main() -> None:
    """Write the figure."""
    figure, axes = plt.subplots(2, 2, figsize=(10, 7), layout="constrained")
    steps = [32, 64, 128, 256, 512]
    for name, found in errors(steps).items():
        order = np.log2(found[-2] / found[-1])
        label, style = f"{name}: {order:.2f}", {"color": COLOURS[name], "ms": 3}
        axes[0, 0].loglog([2.0 / n for n in steps], found, "o-", label=label, **style)
    axes[0, 0].set(title="error of the rotation after 2 s, and measured order", xlabel="step, s")
    R, omega = on_entries(50.0, 0.02)
    entries = {
        "label": "Runge-Kutta 4 on the entries",
        "color": plt.rcParams["text.color"],
        "ls": "--",
    }
    turned = [(entries, R, omega)]
    for name in ("implicit_midpoint", "rk4"):
        motion = spun(50.0, 0.02, name)
        turned.append(({"label": name, "color": COLOURS[name]}, rotations(motion), motion.qd))
    t = 0.02 * np.arange(len(R))
    for style, R, omega in turned:
        momentum = (R @ (omega @ THETA)[..., None])[..., 0]
        energy = 0.5 * np.einsum("ni,ij,nj->n", omega, THETA, omega)
        lost = np.linalg.norm(momentum - momentum[0], axis=1)
        gained = np.abs(energy - energy[0])
        for each, error in zip(axes.flat[1:], (lost, gained, orthogonality(R)), strict=True):
            each.semilogy(t, error + 1e-17, lw=0.8, **style)
    for each, what in zip(axes.flat[1:], ("momentum", "energy", "orthogonality"), strict=True):
        each.set(title=f"error of the {what}, steps of 0.02 s", xlabel="time, s")
    for each in (axes[0, 0], axes[1, 1]):
        each.legend(fontsize=7)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "spinning_body.png", dpi=100)


if __name__ == "__main__":
    main()
