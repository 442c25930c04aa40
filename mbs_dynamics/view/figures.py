# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Figures and animations of motions, by matplotlib, which is installed with the extra ``plot``."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.algorithms import forward_kinematics
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import BLUE, CURVES, GREY
from mbs_dynamics.errors import ArgumentError, BackendError
from mbs_dynamics.integrate.results import Motion, checked_single
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.coordinates import velocity_names
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import leaves

FIGURES = (".png", ".svg", ".pdf")
"""Kinds of files of figures."""

ANIMATIONS = (".gif",)
"""Kinds of files of animations."""

FRAMES_PER_SECOND = 25

MOST = 99.5
"""Percentile of the values of a panel that its scale shows in any case, and their complement."""

SPIKE = 3.0
"""Values that make the scale of a panel larger than that by this factor are cut off."""


def check_joints(motion: Motion, joint_names: tuple[str, ...]) -> None:
    """Raise ArgumentError unless a model with these names of velocities can have the motion."""
    if motion.joint_names != joint_names:
        raise ArgumentError(
            f"the motion has the joints {', '.join(motion.joint_names)}; the model has "
            f"{', '.join(joint_names)}"
        )


def _pyplot() -> Any:
    try:
        import matplotlib as mpl
    except ImportError as error:
        raise BackendError(
            "figures need matplotlib: install the extra 'plot' of this package, or matplotlib"
        ) from error
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def _checked(motion: Motion, path: str | Path, kinds: tuple[str, ...]) -> Path:
    target = Path(path)
    if target.suffix not in kinds:
        raise ArgumentError(f"path must end in {', '.join(kinds)}; got {str(path)!r}")
    checked_single(motion, "a figure shows")
    return target


def write_figure(motion: Motion, path: str | Path, title: str = "") -> None:
    """Write a figure of positions, rates, torques and energies over time: .png, .svg or .pdf.

    ``title`` is that of the figure, before the method. Short peaks are cut off and stated.
    Raises ArgumentError for another kind of file or a batch; BackendError without matplotlib.
    """
    target, plt = _checked(motion, path, FIGURES), _pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(11, 6.5), sharex=True, layout="constrained")
    styles = [{"color": c, "ls": ls} for ls in ("-", "--", ":", "-.") for c in CURVES]
    panels = [
        (motion.q, "position, rad or m", motion.position_names),
        (motion.qd, "rate, rad/s or m/s", motion.joint_names),
        (motion.tau, "motor torque, N m or N", motion.joint_names),
    ]
    legends: dict[tuple[str, ...], list[Any]] = {}
    for each, (values, label, names) in zip(axes.flat, panels, strict=False):
        pairs = zip(values.T, itertools.cycle(styles), strict=False)
        lines = [each.plot(motion.t, y, lw=1.0, **style)[0] for y, style in pairs]
        each.set_ylabel(label)
        legends.setdefault(names, lines)
    for (names, lines), title_of in zip(legends.items(), ("positions", "rates"), strict=False):
        head = title_of if len(legends) > 1 else None
        place = f"outside right {'lower' if title_of == 'rates' else 'upper'}"
        columns = 1 + len(names) // 33
        figure.legend(lines, names, loc=place, title=head, fontsize=7, ncols=columns)
    energies = {"kinetic": motion.kinetic, "potential": motion.potential, "sum": motion.energy}
    for (name, values), colour in zip(energies.items(), CURVES, strict=False):
        axes[1, 1].plot(motion.t, values, lw=1.0, label=name, color=colour)
    axes[1, 1].set_ylabel("energy, J")
    axes[1, 1].legend(fontsize=7)
    axes[1, 1].set_visible(bool(np.isfinite(motion.energy).any()))  # not of a recording
    for each in axes.flat:
        _cut(each)
    event_names = list(dict.fromkeys(event.name for event in motion.events))
    marks = dict(zip(event_names, itertools.cycle(styles[len(CURVES) :]), strict=False))
    named: dict[str, Any] = {}
    for event in motion.events:
        for each in axes.flat:
            named[event.name] = each.axvline(event.t, lw=0.7, **marks[event.name])
    if named:
        events = list(named.values())
        figure.legend(events, list(named), loc="outside lower center", fontsize=7, ncols=4)
    for each in axes[1]:
        each.set_xlabel("time, s")
    figure.suptitle(", ".join(filter(None, (title, motion.method))))
    figure.savefig(target, dpi=120)
    plt.close(figure)


def _cut(axes: Any) -> None:
    """Cut off peaks that would set the scale of a panel, and state the largest."""
    values = np.concatenate([np.asarray(line.get_ydata(), dtype=float) for line in axes.lines])
    values = values[np.isfinite(values)]
    if not len(values):
        return
    low, high = np.percentile(values, [100.0 - MOST, MOST])
    span, extreme = high - low, values[np.argmax(np.abs(values))]
    if span > 0.0 and np.ptp(values) > SPIKE * span:
        axes.set_ylim(low - 0.2 * span, high + 0.2 * span)
        axes.set_title(f"cut off: peaks to {extreme:.4g}", fontsize=7, color=GREY)


def write_animation(model: Model, motion: Motion, path: str | Path) -> None:
    """Write an animation (.gif) of the bodies as lines from joint to joint, in real time.

    Raises ArgumentError for another kind of file, a batch, or a motion of other joints;
    BackendError without matplotlib.
    """
    target, plt = _checked(motion, path, ANIMATIONS), _pyplot()
    check_joints(motion, velocity_names(model.joints))
    from matplotlib.animation import FuncAnimation, PillowWriter

    t = motion.t - motion.t[0]
    times = frame_times(float(t[-1]), FRAMES_PER_SECOND)
    rows = nearest(t, times)
    segments = _segments(model, forward_kinematics(model, motion.q[rows]))
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

    animation = FuncAnimation(figure, draw, frames=len(rows))
    animation.save(target, writer=PillowWriter(fps=FRAMES_PER_SECOND))
    plt.close(figure)


def frame_times(end: float, rate: float) -> FloatArray:
    """Return the times in s of the frames of an animation from 0 to ``end``, ``rate`` a second."""
    return np.minimum(np.arange(max(round(end * rate), 1) + 1) / rate, end)


def nearest(t: FloatArray, times: FloatArray) -> NDArray[np.intp]:
    """Return the indices of the instants t (N,), which increase, that are nearest to times."""
    return np.searchsorted(0.5 * (t[1:] + t[:-1]), times)


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
