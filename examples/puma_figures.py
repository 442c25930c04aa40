# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of the PUMA study; see puma_study.py, which writes them. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import puma_study as study

import mbs_dynamics as mbs

COLORS = {"UDU^T": "C0", "Cholesky": "C3"}
INSTANTS = (4.520, 5.445)
"""Where the mass matrix with the printed C_5 is singular."""


def _shade(axes: Any) -> None:
    axes.axvspan(*INSTANTS, color="0.5", alpha=0.2, zorder=0)


def torques(path: Path) -> None:
    """Figure 4 of the paper: the torques along eq. (38), with either constant."""
    t = np.linspace(0.0, study.DURATION, 501)
    _, axes = plt.subplots(2, 3, figsize=(9, 4.5), sharex=True, layout="constrained")
    for printed in (False, True):
        tau = mbs.inverse_dynamics(study.puma(printed=printed), *study.desired(t))
        for k, each in enumerate(axes.flat):
            each.plot(t, tau[:, k], "--" if printed else "-", lw=1.2)
            each.set_title(f"joint {k + 1}", fontsize=9)
    axes[0, 0].legend(["right C_5", "printed C_5"], fontsize=8)
    for each in axes[:, 0]:
        each.set_ylabel("torque in N m")
    for each in axes[1]:
        each.set_xlabel("t in s")
    plt.savefig(path / "puma_torques.png", dpi=110)


def errors(path: Path) -> None:
    """Figures 5 and 6: deviation of each joint, right constant left, printed one right."""
    _, axes = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
    for name, solver in study.SOLVERS.items():
        motion = study.forced(study.puma(), solver)
        error = np.abs(motion.q - study.desired(motion.t)[0])
        axes[0].semilogy(motion.t, error + 1e-16, color=COLORS[name], lw=0.8)
        t, states, _ = study.forced_unguarded(study.puma(printed=True), name)
        error = np.abs(states[:, 0] - study.desired(t)[0])
        axes[1].semilogy(t, error + 1e-16, color=COLORS[name], lw=0.8)
        axes[1].plot([], [], color=COLORS[name], label=name)
    _shade(axes[1])
    for each, title in zip(axes, ("right C_5", "printed C_5"), strict=True):
        each.set_title(f"{title}: error of the six angles", fontsize=9)
        each.set_xlabel("t in s")
        each.set_xlim(0.0, 7.0)
        each.axhline(study.UNACCEPTABLE, color="0.5", lw=0.6)
    axes[0].set_ylabel("rad")
    axes[0].set_ylim(1e-13, 10.0)
    axes[1].legend(fontsize=8)
    plt.savefig(path / "puma_errors.png", dpi=110)


def eigenvalues(path: Path) -> None:
    """The smallest eigenvalue of the mass matrix, and the growth rate of a deviation."""
    t = np.linspace(0.0, study.DURATION, 1001)
    _, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    for printed in (False, True):
        values = study.smallest_eigenvalues(study.puma(printed=printed), t)
        axes[0].plot(t, values, "--" if printed else "-")
    axes[0].axhline(0.0, color="0.5", lw=0.6)
    axes[0].set_yscale("symlog", linthresh=1e-4)
    axes[0].set_title("smallest eigenvalue of the mass matrix, kg m^2", fontsize=9)
    axes[0].legend(["right C_5", "printed C_5"], fontsize=8)
    _shade(axes[0])
    for gravity, style in ((9.81, "-"), (0.0, ":")):
        axes[1].plot(t, study.growth_rates(study.puma(gravity=gravity), t), style)
    axes[1].set_title("largest real part of an eigenvalue of the linear dynamics, 1/s", fontsize=9)
    axes[1].legend(["right C_5", "right C_5, no gravity"], fontsize=8)
    for each in axes:
        each.set_xlabel("t in s")
    plt.savefig(path / "puma_eigenvalues.png", dpi=110)


def accelerations_and_power(path: Path) -> None:
    """Figures 7 and 8: acceleration of joint 3, and simulated and desired power."""
    _, axes = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
    motion = study.forced(study.puma(), "udut", 6.5)
    axes[0].plot(motion.t, motion.qdd[:, 2], label="right C_5")
    t, states, _ = study.forced_unguarded(study.puma(printed=True), "UDU^T")
    middle = 0.5 * (t[1:] + t[:-1])
    axes[0].plot(middle, np.diff(states[:, 1, 2]) / np.diff(t), "--", label="printed C_5, UDU^T")
    axes[0].plot(motion.t, study.desired(motion.t)[2][:, 2], "k:", label="desired")
    axes[0].set_ylim(-3.0, 3.0)
    axes[0].set_title("acceleration of joint 3, rad/s^2", fontsize=9)
    wanted, found = study.powers(study.puma(), motion.t, motion.qd)
    axes[1].semilogy(motion.t, np.abs(found - wanted) + 1e-16, label="right C_5")
    wanted, found = study.powers(study.puma(printed=True), t, states[:, 1])
    axes[1].semilogy(t, np.abs(found - wanted) + 1e-16, "--", label="printed C_5, UDU^T")
    axes[1].set_ylim(1e-12, 1e3)
    axes[1].set_title("|simulated - desired power|, W", fontsize=9)
    for each in axes:
        each.set_xlabel("t in s")
        each.legend(fontsize=8)
        _shade(each)
    plt.savefig(path / "puma_power.png", dpi=110)


def write_figures(folder: Path) -> None:
    """Write all figures into a folder, which is created if necessary."""
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (torques, errors, eigenvalues, accelerations_and_power):
        draw(folder)
        plt.close("all")
