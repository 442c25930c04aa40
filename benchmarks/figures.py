# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of measured ratios."""

from collections.abc import Mapping
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import ScalarFormatter

WIDTH, ROW = 8.0, 0.28
"""Inches: the width of a figure, and the height of one line in it."""


def draw_ratios(title: str, ratios: Mapping[str, Mapping[str, float]], path: Path) -> None:
    """Draw one line per algorithm with a mark per mechanism: ``ratios[mechanism][algorithm]``."""
    algorithms = list(
        dict.fromkeys(name for by_algorithm in ratios.values() for name in by_algorithm)
    )
    figure, axes = plt.subplots(figsize=(WIDTH, 1.2 + ROW * len(algorithms)), layout="constrained")
    for k, (mechanism, by_algorithm) in enumerate(ratios.items()):
        rows = [algorithms.index(name) for name in by_algorithm]
        marker = "osD^v<>Pph"[k % 10]
        axes.plot(list(by_algorithm.values()), rows, marker, ms=5, alpha=0.8, label=mechanism)
    axes.axvline(1.0, color="black", lw=0.8)
    axes.set_xscale("log")
    axes.xaxis.set_major_formatter(ScalarFormatter())
    axes.set_yticks(range(len(algorithms)), algorithms, fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="x", which="both", lw=0.3)
    axes.set_xlabel("time of the other divided by ours (to the right of 1: ours is faster)")
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=8, ncols=2)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
