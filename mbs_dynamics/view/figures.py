# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Figures and animations of motion data, by matplotlib, of the extra ``plot``."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mbs_dynamics.algorithms import forward_kinematics
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import BLUE, CURVES
from mbs_dynamics.errors import ArgumentError, missing_extra
from mbs_dynamics.integrate import Event
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import leaves
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.view.states import states_at, states_of

FIGURES = (".png", ".svg", ".pdf")
"""Kinds of files of figures."""

ANIMATIONS = (".gif",)
"""Kinds of files of animations."""

FRAMES_PER_SECOND = 25


def _pyplot() -> Any:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise missing_extra("figures need matplotlib", "plot", error) from error
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _checked(path: str | Path, kinds: tuple[str, ...]) -> Path:
    if Path(path).suffix not in kinds:
        raise ArgumentError(f"path must end in {', '.join(kinds)}; got {str(path)!r}")
    return Path(path)


class Panel(NamedTuple):
    """Curves over time with a common unit."""

    label: str
    names: tuple[str, ...]
    values: FloatArray
    """(N, k); columns of NaN are not drawn."""


def panels_of(series: TimeSeries) -> list[Panel]:
    """Return the panels of what motion data contains: positions, rates, torques and energies."""
    panels = [Panel("position, rad or m", series.positions, series.q)]
    for label, values in (("rate, rad/s or m/s", series.qd), ("torque, N m or N", series.tau)):
        if values is not None and not np.isnan(values).all():
            panels.append(Panel(label, series.joints, values))
    kinetic, potential = (series.columns.get(name) for name in ("kinetic", "potential"))
    if kinetic is not None and potential is not None:
        energies = np.stack([kinetic, potential, kinetic + potential], axis=1)
        panels.append(Panel("energy, J", ("kinetic", "potential", "sum"), energies))
    return panels


def write_figure(
    series: TimeSeries, path: str | Path, title: str = "", events: Sequence[Event] = ()
) -> None:
    """Write a figure of positions, rates, torques and energies over time: .png, .svg or .pdf.

    What the data do not contain has no panel. Events are vertical
    lines. Raises ArgumentError for another kind of file, BackendError without matplotlib.
    """
    target, plt, panels = _checked(path, FIGURES), _pyplot(), panels_of(series)
    rows, columns = math.ceil(len(panels) / 2), min(len(panels), 2)
    figure, grid = plt.subplots(
        rows, columns, figsize=(11, 6.5), sharex=True, squeeze=False, layout="constrained"
    )
    styles = [{"color": c, "ls": ls} for ls in ("-", "--", ":", "-.") for c in CURVES]
    legends: dict[tuple[str, ...], list[Any]] = {}
    for axes, (label, names, values) in zip(grid.flat, panels, strict=False):
        pairs = zip(values.T, itertools.cycle(styles), strict=False)
        lines = [axes.plot(series.t, y, lw=1.0, **style)[0] for y, style in pairs]
        axes.set_ylabel(label)
        axes.set_xlabel("time, s")
        axes.tick_params(labelbottom=True)  # also above a place without a panel
        if names in (series.positions, series.joints):
            legends.setdefault(names, lines)
        else:
            axes.legend(lines, names, fontsize=7)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    for (names, lines), what in zip(legends.items(), ("positions", "rates"), strict=False):
        head = what if len(legends) > 1 else None
        place = f"outside right {'lower' if what == 'rates' else 'upper'}"
        figure.legend(lines, names, loc=place, title=head, fontsize=7, ncols=1 + len(names) // 33)
    event_names = list(dict.fromkeys(event.name for event in events))
    marks = dict(zip(event_names, itertools.cycle(styles[len(CURVES) :]), strict=False))
    named: dict[str, Any] = {}
    for event in events:
        for axes in figure.axes:
            named[event.name] = axes.axvline(event.t, lw=0.7, **marks[event.name])
    if named:
        marked = list(named.values())
        figure.legend(marked, list(named), loc="outside lower center", fontsize=7, ncols=4)
    figure.suptitle(", ".join(filter(None, (title, series.name))))
    figure.savefig(target, dpi=120)
    plt.close(figure)


def write_animation(model: Model, series: TimeSeries, path: str | Path) -> None:
    """Write an animation (.gif) of the bodies as lines from joint to joint, in real time.

    Between rows the robot moves on, whatever their number; see
    :func:`~mbs_dynamics.view.states.states_at`. Raises ArgumentError for another kind of file, or
    motion data without joints of the model; BackendError without matplotlib.
    """
    target, plt = _checked(path, ANIMATIONS), _pyplot()
    states = states_of(series, model)
    from matplotlib.animation import FuncAnimation, PillowWriter

    times = frame_times(float(states.t[-1]), FRAMES_PER_SECOND)
    segments = _segments(model, forward_kinematics(model, states_at(model, states, times)[0]))
    figure = plt.figure(figsize=(5, 5), layout="constrained")
    axes = figure.add_subplot(projection="3d")
    lines = [axes.plot([], [], [], "o-", lw=2.0, ms=3.0, color=BLUE)[0] for _ in segments[0]]
    low, high = segments.min(axis=(0, 1, 2)), segments.max(axis=(0, 1, 2))
    half, centre = 0.5 * max(float((high - low).max()), 1e-3), 0.5 * (low + high)
    for name, middle in zip("xyz", centre, strict=True):
        getattr(axes, f"set_{name}lim")(middle - half, middle + half)
        getattr(axes, f"set_{name}label")(f"{name}, m")

    def draw(k: int) -> list[Any]:
        for line, ends in zip(lines, segments[k], strict=True):
            line.set_data_3d(*ends.T)
        axes.set_title(f"{times[k]:.2f} s", fontsize=9)
        return lines

    animation = FuncAnimation(figure, draw, frames=len(times))
    animation.save(target, writer=PillowWriter(fps=FRAMES_PER_SECOND))
    plt.close(figure)


def frame_times(end: float, rate: float) -> FloatArray:
    """Return the times in s of the frames of an animation from 0 to ``end``, ``rate`` a second."""
    return np.minimum(np.arange(max(round(end * rate), 1) + 1) / rate, end)


def _segments(model: Model, C: FloatArray) -> FloatArray:
    """Return the lines (N, lines, 2, 3) from each body's origin to its parent's, and to frames.

    Frames are those of links that are merged into a body without children, such as a tool. No line
    is drawn to the body of a free joint.
    """
    names = [model.bodies[i].name for i in range(model.nb)]
    ends = [frame for frame in model.frames.values() if frame.name not in names]
    ends = [frame for frame in ends if frame.body != GROUND and names[frame.body] in leaves(model)]
    origins = C[..., :3, 3]
    ground = np.zeros((len(C), 3))
    lines = []
    for i, p in enumerate(model.parents):
        if model.bodies[i].joint.kind == "free":
            continue
        lines.append(np.stack([ground if p == GROUND else origins[:, p], origins[:, i]], axis=1))
    for frame in ends:
        tip = (C[:, frame.body] @ frame.placement)[:, :3, 3]
        lines.append(np.stack([origins[:, frame.body], tip], axis=1))
    return np.stack(lines or [np.stack([origins[:, 0]] * 2, axis=1)], axis=1)
