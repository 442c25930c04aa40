# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Figures: they show what the motion holds, read from the axes that are drawn."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.integrate import simulate, stop_events
from mbs_dynamics.resources import robot_path
from mbs_dynamics.view import figures

pytest.importorskip("matplotlib")


@pytest.fixture
def drawn(monkeypatch):
    """Return the figures that are made, which stay open; each must be closed by its maker."""
    plt, made, closed = figures._pyplot(), [], []

    def kept(make):
        def call(*args, **named):
            result = make(*args, **named)
            made.append(result[0] if isinstance(result, tuple) else result)
            return result

        return call

    shown = SimpleNamespace(
        subplots=kept(plt.subplots), figure=kept(plt.figure), close=closed.append
    )
    monkeypatch.setattr(figures, "_pyplot", lambda: shown)
    yield made
    for figure in made:
        plt.close(figure)
    assert closed == made


def curves(axes):
    """Return the values of the curves in axes, without the vertical lines of events."""
    return np.array([line.get_ydata() for line in axes.lines if len(line.get_ydata()) > 2]).T


def words(figure):
    """Return the names in the legends of a figure; those of events in alphabetical order."""
    names = [[text.get_text() for text in legend.get_texts()] for legend in figure.legends]
    return [sorted(each) if "limit" in each[0] else each for each in names]


@pytest.mark.long
def test_figure_of_joints_shows_positions_rates_torques_and_energies(tmp_path, drawn):
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    motion = simulate(arm, np.full(7, 1.9), duration=0.5, step=0.01, events=stop_events(arm))
    assert motion.events
    figures.write_figure(motion.series, tmp_path / "m.png", "lab arm", motion.events)
    (figure,) = drawn
    assert figure.get_suptitle() == "lab arm, rk4"
    place, rate, torque, energy = figure.axes
    assert_close(curves(place), motion.q)
    assert_close(curves(rate), motion.qd)
    assert_close(curves(torque), motion.tau)
    expected = np.stack([motion.kinetic, motion.potential, motion.energy], -1)
    assert_close(curves(energy), expected)
    assert words(figure) == [list(arm.joint_names), sorted({e.name for e in motion.events})]
    shown = [text.get_text() for text in energy.get_legend().get_texts()]
    assert shown == ["kinetic", "potential", "sum"]
    for axes in figure.axes:
        lines = [line.get_xdata() for line in axes.lines if len(line.get_ydata()) == 2]
        assert_close(np.array(lines)[:, 0], [event.t for event in motion.events])
        assert all(len(line.get_xdata()) in (2, len(motion)) for line in axes.lines)
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "position, rad or m",
        "rate, rad/s or m/s",
        "torque, N m or N",
        "energy, J",
    ]
