# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Figures of motion data with matplotlib, which is in the extra ``plot``."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.colours import CURVES
from mbs_dynamics.errors import ArgumentError, missing_extra
from mbs_dynamics.timeseries import TimeSeries

FIGURES = (".png", ".svg", ".pdf")
"""File endings of figures."""


def write_figure(series: TimeSeries, path: str | Path) -> None:
    """Write a figure of positions, rates, torques and energies over time: .png, .svg or .pdf.

    Missing quantities have no panel. Raises ArgumentError for another file ending, BackendError
    without matplotlib.
    """
    target = Path(path)
    if target.suffix not in FIGURES:
        raise ArgumentError(f"path must end in {', '.join(FIGURES)}; got {str(path)!r}")
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("figures need matplotlib", "plot", error) from error
    panels = [("position, rad or m", series.positions, series.q)]
    for label, values in (("rate, rad/s or m/s", series.qd), ("torque, N m or N", series.tau)):
        if values is not None and not np.isnan(values).all():
            panels.append((label, series.joints, values))
    kinetic, potential = (series.columns.get(name) for name in ("kinetic", "potential"))
    if kinetic is not None and potential is not None:
        energies = np.stack([kinetic, potential, kinetic + potential], axis=1)
        panels.append(("energy, J", ("kinetic", "potential", "sum"), energies))
    rows, columns = math.ceil(len(panels) / 2), min(len(panels), 2)
    figure: Any = Figure(figsize=(11, 6.5), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=True, squeeze=False)
    styles = [{"color": c, "ls": ls} for ls in ("-", "--", ":", "-.") for c in CURVES]
    legends: dict[tuple[str, ...], list[Any]] = {}
    for axes, (label, names, values) in zip(grid.flat, panels, strict=False):
        pairs = zip(values.T, itertools.cycle(styles), strict=False)
        lines = [axes.plot(series.t, y, lw=1.0, **style)[0] for y, style in pairs]
        axes.set_ylabel(label)
        axes.set_xlabel("time, s")
        axes.tick_params(labelbottom=True)  # also where there is no panel below
        if names in (series.positions, series.joints):
            legends.setdefault(names, lines)
        else:
            axes.legend(lines, names, fontsize=7)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    for (names, lines), what in zip(legends.items(), ("positions", "rates"), strict=False):
        title_of = what if len(legends) > 1 else None
        place = f"outside right {'lower' if what == 'rates' else 'upper'}"
        columns = 1 + len(names) // 33
        figure.legend(lines, names, loc=place, title=title_of, fontsize=7, ncols=columns)
    figure.suptitle(series.name)
    figure.savefig(target, dpi=120)
