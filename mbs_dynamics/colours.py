# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The colour-blind safe palette of Okabe and Ito (2008), RGB from 0 to 1."""

from __future__ import annotations

Colour = tuple[float, float, float]

ORANGE: Colour = (0.90, 0.62, 0.0)
SKY: Colour = (0.34, 0.71, 0.91)
GREEN: Colour = (0.0, 0.62, 0.45)
YELLOW: Colour = (0.94, 0.89, 0.26)
BLUE: Colour = (0.0, 0.45, 0.70)
RED: Colour = (0.84, 0.37, 0.0)
PURPLE: Colour = (0.80, 0.47, 0.65)
GREY: Colour = (0.4, 0.4, 0.4)

AXES: tuple[Colour, Colour, Colour] = (RED, GREEN, BLUE)
"""Colours of the x, y and z axis of a frame."""

CURVES = (BLUE, ORANGE, GREEN, RED, PURPLE, SKY, GREY, YELLOW)
"""Colours of the curves of a plot, in order."""
