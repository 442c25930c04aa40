# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Bias of a wrist force-torque sensor and weight of its tool, from still poses.

Wrenches (6,) have the moment first, in N m and N, at the origin and in the axes of the sensor's
frame. A reading is the wrench that the tool exerts on the sensor: a tool of mass m and centre of
mass c that hangs still under the free-fall acceleration g, resolved in these axes, reads

    force = m g + f0,    moment = c x m g + m0,

with the bias (m0, f0).
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.motor_table import check_keys
from mbs_dynamics.errors import ArgumentError, quoted
from mbs_dynamics.lie import so3
from mbs_dynamics.output_files import write_at_once
from mbs_dynamics.yaml_files import parsed_yaml, yaml_text

POSES, SPREAD = 4, 1.0
"""Least number of poses, and least root mean square in m/s^2 by which gravity varies along two axes
of the sensor."""

UNEXPLAINED = 0.1
"""Largest residual of a pose, as a share of the largest deviation of readings from their mean."""

MOMENT_NOISE, FORCE_NOISE = 0.05, 0.5
"""Residuals of a pose in N m and N that are always accepted."""

PARTS = ("moments", "N m", slice(3), MOMENT_NOISE), ("forces", "N", slice(3, 6), FORCE_NOISE)

LIGHTEST, HEAVIEST, FARTHEST = 0.02, 100.0, 2.0
"""Range of masses of a tool in kg, and largest distance in m of its centre of mass."""

KEYS = ("frame", "mass", "bias_force", "bias_torque", "com")
"""Keys of the file of a calibration."""


class Calibration(NamedTuple):
    """Bias of a sensor, and mass and centre of mass of its tool in the sensor's frame."""

    bias: FloatArray
    """(6,) moment first, in N m and N."""
    mass: float
    """In kg; zero without a tool."""
    com: FloatArray
    """(3,) in m."""

    def reading(self, gravity: FloatArray) -> FloatArray:
        """Return the reading (6,) at rest under gravity (3,) in m/s^2 in the sensor's axes."""
        force = self.mass * gravity
        return np.asarray(self.bias + np.concatenate([np.cross(self.com, force), force]))

    def fields(self) -> dict[str, Any]:
        """Return mass, centre of mass and bias by the keys of the file."""
        moment, force = self.bias[:3].tolist(), self.bias[3:].tolist()
        com = self.com.tolist()
        return {"mass": self.mass, "com": com, "bias_force": force, "bias_torque": moment}

    def write(self, path: Path, frame: str) -> None:
        """Replace a YAML file by this calibration. Raises ArgumentError if it cannot be written."""
        write_at_once("the calibration", path, yaml_text({"frame": frame, **self.fields()}))

    @classmethod
    def read(cls, path: Path, frame: str = "") -> Calibration:
        """Return the calibration in a file that :meth:`write` or a user has written.

        Raises ArgumentError for a file that is missing, damaged, or of another ``frame``.
        """

        def checked(table: Any) -> Calibration:
            check_keys("the calibration", table, KEYS)
            if frame and table["frame"] != frame:
                raise ArgumentError(f"it is of frame {quoted(table['frame'])}; must be {frame!r}")
            force, moment, com = (checks.numbers(key, table[key], (3,)) for key in KEYS[2:])
            mass = checks.number("mass", table["mass"])
            _check_tool(mass, com)
            return cls(np.concatenate([moment, force]), mass, com)

        return parsed_yaml(path, checked)


class Fit(NamedTuple):
    """A calibration from N poses."""

    calibration: Calibration
    residuals: FloatArray
    """(N, 6) readings less those of the calibration, moment first."""

    def __str__(self) -> str:
        bias, mass, com = self.calibration
        tool = f"{mass:.3f} kg, centre of mass {com.round(3) + 0.0} m" if mass else "no tool"
        moments, forces = (np.linalg.norm(x, axis=1) for x in np.split(self.residuals, 2, axis=1))
        return (
            f"{tool}; bias {bias[3:].round(2)} N, {bias[:3].round(3)} N m; residual of "
            f"{len(forces)} poses up to {forces.max():.2f} N, {moments.max():.3f} N m"
        )


def fit(gravities: ArrayLike, wrenches: ArrayLike) -> Fit:
    """Return bias of a sensor and mass and centre of mass of its tool by linear least squares.

    ``gravities`` (N, 3) are free-fall accelerations in m/s^2 in the sensor's axes, ``wrenches``
    (N, 6) the readings in these still poses, moment first, in N m and N.

    Raises ArgumentError for invalid numbers; for poses that do not show the parameters; for
    readings that do not change, or do not follow gravity with one bias, with the pose; for an
    impossible tool; and for a weight that the sensor's controller has subtracted at a wrong place.
    """
    N = len(np.atleast_1d(gravities))
    g = checks.numbers("gravities", gravities, (N, 3))
    W = checks.numbers("wrenches", wrenches, (N, 6))
    spreads = np.linalg.svd(g - g.mean(axis=0), compute_uv=False) if N >= POSES else None
    if spreads is None or spreads[1] < SPREAD * math.sqrt(N):
        raise ArgumentError(
            f"at least {POSES} poses are needed in which gravity (in m/s^2) points along different "
            f"axes of the sensor's frame; got {N} pose(s) that do not show mass, centre of mass "
            "and bias. Tilt the sensor about two axes"
        )
    A = np.zeros((N, 6, 10))  # of mass times centre of mass, mass, and bias
    A[:, :3, :3], A[:, 3:, 3], A[:, :, 4:] = -so3.hat(g), g, np.eye(6)
    x = np.asarray(np.linalg.lstsq(A.reshape(-1, 10), W.ravel(), rcond=None)[0], dtype=float)
    first_moment, mass, bias = x[:3], float(x[3]), x[4:]
    residuals, mean = W - A @ x, W.mean(axis=0)
    for name, unit, part, noise in PARTS:
        missed = np.linalg.norm(residuals[:, part], axis=1)
        most = max(noise, UNEXPLAINED * np.linalg.norm((W - mean)[:, part], axis=1).max())
        if (W[:, part] == W[0, part]).all():
            raise ArgumentError(
                f"the {name} are the same in all poses, {W[0, part]} {unit}: the readings "
                "do not change, not even by noise. Does the sensor measure?"
            )
        if missed.max() > most:
            raise ArgumentError(
                f"the {name} do not follow gravity: pose {missed.argmax() + 1} is off by "
                f"{missed.max():.3g} {unit}; must be at most {most:.3g}. Was the sensor zeroed "
                "between two poses, or the tool touched? Are the readings in SI units and in the "
                "axes of the sensor's link, and is gravity right?"
            )
    if mass < -LIGHTEST:
        raise ArgumentError(
            f"the readings show a tool of {mass:.3g} kg: the sensor's controller subtracts a "
            f"payload that is stated {-mass:.3g} kg too heavy, or it is a sensor that reports the "
            "opposite wrench. To tell, push the tool along +z of the sensor's frame: reverse the "
            "readings only if the force along z decreases"
        )
    if mass > LIGHTEST:
        _check_tool(mass, first_moment / mass)
        return Fit(Calibration(bias, mass, first_moment / mass), residuals)
    if np.linalg.norm(first_moment) * np.linalg.norm(g, axis=1).max() > MOMENT_NOISE:
        raise ArgumentError(
            "the forces show no tool, but the moments follow gravity: the sensor's controller "
            "probably subtracts a payload of the right mass at a wrong centre of mass; correct it "
            "there, or set that payload to zero"
        )
    return Fit(Calibration(mean, 0.0, np.zeros(3)), W - mean)


def _check_tool(mass: float, com: FloatArray) -> None:
    """Raise ArgumentError for a tool of an impossible mass, or too far from the sensor."""
    if not 0.0 <= mass <= HEAVIEST or np.linalg.norm(com) > FARTHEST:
        raise ArgumentError(
            f"the tool has {mass:.4g} kg and its centre of mass at {com.round(3)} m; must be 0 to "
            f"{HEAVIEST:g} kg, at most {FARTHEST:g} m away. Are readings in N and N m?"
        )
