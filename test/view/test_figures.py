# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Figures: they show what the motion holds, read from the axes that are drawn."""

import numpy as np
import pytest
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.integrate import simulate
from mbs_dynamics.resources import robot_path
from mbs_dynamics.view import figures

Figure = pytest.importorskip("matplotlib.figure").Figure


def curves(axes):
    """Return the values of the curves in axes."""
    return np.array([line.get_ydata() for line in axes.lines]).T


@pytest.mark.long
def test_figure_of_joints_shows_positions_rates_torques_and_energies(tmp_path, monkeypatch):
    drawn = []
    monkeypatch.setattr(Figure, "savefig", lambda figure, *_, **__: drawn.append(figure))
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    motion = simulate(arm, np.full(7, 1.9), duration=0.5, step=0.01)
    figures.write_figure(motion.series, tmp_path / "m.png")
    (figure,) = drawn
    place, rate, torque, energy = figure.axes
    assert_close(curves(place), motion.q)
    assert_close(curves(rate), motion.qd)
    assert_close(curves(torque), motion.tau)
    expected = np.stack([motion.kinetic, motion.potential, motion.energy], -1)
    assert_close(curves(energy), expected)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == list(arm.joint_names)
