# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Description of a mechanism: the result of the builders and the input of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.body import Body, Frame
from mbs_dynamics.model.diagnostics import Diagnostic

STANDARD_GRAVITY = (0.0, 0.0, -9.81)
"""Free-fall acceleration in m/s^2, z upwards."""


class Description(NamedTuple):
    """A mechanism, with the first fields of :class:`mbs_dynamics.Model`."""

    name: str
    bodies: tuple[Body, ...]
    gravity: FloatArray
    """(3,) free-fall acceleration in the inertial frame, m/s^2."""
    frames: Mapping[str, Frame] = {}
    """Frames of links merged into bodies, and others, by name."""
    diagnostics: tuple[Diagnostic, ...] = ()
