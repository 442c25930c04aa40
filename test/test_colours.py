# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Colours of one legend stay distinct in all kinds of dichromatic vision, on both backgrounds."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from mbs_dynamics.colours import CURVES
from mbs_dynamics.view.layers import LAYERS

pytestmark = pytest.mark.backend_independent

# Machado, Oliveira and Fernandes (2009), severity 1, on linear RGB
VISION = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
}
XYZ = np.array(
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
) / np.array([[0.9505], [1.0], [1.089]])
WHITE, DARK = (1.0, 1.0, 1.0), (0.08, 0.08, 0.08)
DISTINCT = 15.0
"""Difference in CIELAB that is seen at a glance; 2.3 is just noticeable."""


def lab(colour, vision):
    """Return the CIELAB coordinates of an sRGB colour as seen with a kind of vision."""
    c = np.asarray(colour)
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    t = XYZ @ np.clip(VISION[vision] @ linear, 0.0, 1.0)
    f = np.where(t > (6 / 29) ** 3, np.cbrt(t), t / (3 * (6 / 29) ** 2) + 4 / 29)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("vision", VISION)
def test_colours_of_a_layer_and_the_backgrounds_are_distinct(vision):
    for layer in LAYERS:
        colours = [WHITE, DARK, *(colour for colour, _ in layer.legend)]
        for a, b in combinations(colours, 2):
            assert np.linalg.norm(lab(a, vision) - lab(b, vision)) > DISTINCT, layer.name


@pytest.mark.parametrize("vision", VISION)
def test_curves_of_a_plot_are_distinct(vision):
    for a, b in combinations([WHITE, DARK, *CURVES], 2):
        assert np.linalg.norm(lab(a, vision) - lab(b, vision)) > DISTINCT
