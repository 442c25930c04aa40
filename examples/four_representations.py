# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The four representations of one twist: where it is measured, and in which axes it is resolved.

python examples/four_representations.py [FILE]     writes four_representations.png by default
"""

from __future__ import annotations

import sys
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.colours import BLUE, GREY, RED

ANGLE = np.radians(30.0)
C = np.eye(4)
C[:2, :2] = [[np.cos(ANGLE), -np.sin(ANGLE)], [np.sin(ANGLE), np.cos(ANGLE)]]
C[:2, 3] = 2.0, 1.0
V_BODY = np.array([0.0, 0.0, 0.8, 0.9, -0.7, 0.0])
PANELS = {
    "body_fixed": "measured at the body's origin,\nresolved in the body's axes",
    "spatial": "measured at the inertial origin,\nresolved in the inertial axes",
    "hybrid": "measured at the body's origin,\nresolved in the inertial axes",
    "mixed": "measured at the body's origin,\nω in the body's axes, v in the inertial axes",
}


def axes_at(plot: Any, pose: Any, name: str, shown: bool) -> None:
    """Draw the x and y axes of a frame, in colour where the twist is resolved in them."""
    origin, colour = pose[:2, 3], BLUE if shown else GREY
    for k, label in enumerate("xy"):
        tip = origin + 0.75 * pose[:2, k]
        style = {"arrowstyle": "-|>", "color": colour, "lw": 2.2 if shown else 1.0}
        plot.annotate("", tip, origin, arrowprops=style)
        plot.text(*(origin + 0.92 * pose[:2, k]), label, color=colour, ha="center", va="center")
    plot.text(*(origin - 0.2), name, color=colour, ha="right", va="top")


def draw(plot: Any, representation: str) -> None:
    """Draw one representation."""
    V = mbs.convert_twist(V_BODY, C, source="body_fixed", target=representation)
    corners = np.array([[-0.6, -0.4], [1.0, -0.4], [1.0, 0.4], [-0.6, 0.4]])
    plot.fill(*(corners @ C[:2, :2].T + C[:2, 3]).T, fc=(*GREY, 0.12), ec=GREY)
    axes_at(plot, np.eye(4), "inertial", representation != "body_fixed")
    axes_at(plot, C, "body", representation in ("body_fixed", "mixed"))
    point = np.zeros(2) if representation == "spatial" else C[:2, 3]
    if representation == "spatial":
        plot.plot(*np.array([[0.0, 0.0], C[:2, 3]]).T, ":", color=GREY)
    axes = C[:2, :2] if representation == "body_fixed" else np.eye(2)
    style = {"arrowstyle": "-|>", "color": RED, "lw": 3}
    plot.annotate("", point + axes @ V[3:5], point, arrowprops=style)
    plot.plot(*point, "o", color=RED, ms=6, zorder=5)
    numbers = f"ω = (0, 0, {V[2]:.1f}) rad/s    v = ({V[3]:.2f}, {V[4]:.2f}, 0) m/s"
    plot.set_title(f"{representation}: {PANELS[representation]}", fontsize=10)
    plot.set_xlabel(numbers.replace("-", "\N{MINUS SIGN}"), color=RED, fontsize=10)
    plot.set(xlim=(-1.0, 3.9), ylim=(-2.0, 2.2), aspect="equal", xticks=[], yticks=[])


def main() -> None:
    """Write the figure."""
    figure, plots = plt.subplots(2, 2, figsize=(9, 8.8))
    figure.subplots_adjust(0.02, 0.04, 0.98, 0.94, wspace=0.05, hspace=0.28)
    for plot, representation in zip(plots.flat, PANELS, strict=True):
        draw(plot, representation)
    figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "four_representations.png", dpi=100)


if __name__ == "__main__":
    main()
