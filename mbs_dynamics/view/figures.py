# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Figures and animations of motions, by matplotlib, which is installed with the extra ``plot``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.algorithms import forward_kinematics
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import BLUE, CURVES, GREY
from mbs_dynamics.errors import ArgumentError, BackendError
from mbs_dynamics.integrate.results import Motion, checked_single
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import leaves

FIGURES = (".png", ".svg", ".pdf")
"""Kinds of files of figures."""

ANIMATIONS = (".gif",)
"""Kinds of files of animations."""

FRAMES_PER_SECOND = 25


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


def write_figure(motion: Motion, path: str | Path) -> None:
    """Write a figure of positions, rates, torques and energies over time: .png, .svg or .pdf.

    Raises ArgumentError for another kind of file or a batch; BackendError without matplotlib.
    """
    target, plt = _checked(motion, path, FIGURES), _pyplot()
    figure, axes = plt.subplots(2, 2, figsize=(10, 6), sharex=True, layout="constrained")
    for each in axes.flat:
        each.set_prop_cycle(color=CURVES)
    panels: list[tuple[FloatArray, str, Sequence[str]]] = [
        (motion.q, "position, rad or m", motion.position_names),
        (motion.qd, "rate, rad/s or m/s", ()),
        (motion.tau, "torque, N m or N", ()),
    ]
    for each, (values, label, names) in zip(axes.flat, panels, strict=False):
        each.plot(motion.t, values, lw=1.0)
        each.set_ylabel(label)
        if names:
            each.legend(names, fontsize=7, ncols=1 + len(names) // 8)
    energies = {"kinetic": motion.kinetic, "potential": motion.potential, "sum": motion.energy}
    for name, values in energies.items():
        axes[1, 1].plot(motion.t, values, lw=1.0, label=name)
    axes[1, 1].set_ylabel("energy, J")
    axes[1, 1].legend(fontsize=7)
    axes[1, 1].set_visible(bool(np.isfinite(motion.energy).any()))  # not of a recording
    for event in motion.events:
        for each in axes.flat:
            each.axvline(event.t, color=GREY, lw=0.6)
    for each in axes[1]:
        each.set_xlabel("time, s")
    figure.suptitle(motion.method)
    figure.savefig(target, dpi=120)
    plt.close(figure)


def write_animation(model: Model, motion: Motion, path: str | Path) -> None:
    """Write an animation (.gif) of the bodies as lines from joint to joint, in real time.

    Raises ArgumentError for another kind of file, a batch, or a motion of other joints;
    BackendError without matplotlib.
    """
    target, plt = _checked(motion, path, ANIMATIONS), _pyplot()
    check_joints(motion, model.velocity_names)
    from matplotlib.animation import FuncAnimation, PillowWriter

    count = max(int(motion.t[-1] * FRAMES_PER_SECOND), 1) + 1
    rows = np.unique(np.linspace(0, len(motion) - 1, count).round().astype(int))
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
        axes.set_title(f"{motion.t[rows[k]]:.2f} s", fontsize=9)
        return lines

    animation = FuncAnimation(figure, draw, frames=len(rows))
    animation.save(target, writer=PillowWriter(fps=FRAMES_PER_SECOND))
    plt.close(figure)


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
