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
from mbs_dynamics.control.environment import LARGEST_LOAD
from mbs_dynamics.control.joint_states import LARGEST
from mbs_dynamics.control.motor_table import UnknownKeyError, check_keys
from mbs_dynamics.errors import ArgumentError, quoted
from mbs_dynamics.lie import so3
from mbs_dynamics.output_files import expanded, write_at_once
from mbs_dynamics.yaml_files import parsed_yaml, yaml_text

POSES, SPREAD = 4, 0.1
"""Least number of poses, and least root mean square in a direction by which unit vectors of gravity
differ from their mean."""

SIGNIFICANT = 90.0
"""Improvement of a fit by three more parameters, relative to the residual variance, that is
significant: three times F = 30."""

LIGHTEST, ERRORS = 0.001, 5.0
"""Smallest mass of a tool in kg, and number of standard errors by which it must exceed zero."""

UNEXPLAINED = 0.05
"""Largest share of the variance of forces or moments that gravity may not explain."""

FORCE_NOISE, MOMENT_NOISE = 0.5, 0.05
"""Root mean square deviations in N and N m that are always accepted."""

FARTHEST, HEAVIEST = 2.0, 100.0
"""Largest distance in m of a centre of mass from the sensor, and largest mass of a tool in kg."""

GRAVITIES = (1.5, 30.0)
"""Range of lengths of gravity in m/s^2 that are accepted; unit vectors are refused."""

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

    def write(self, path: Path, frame: str) -> None:
        """Replace a YAML file by this calibration. Raises ArgumentError if it cannot be written.

        A file that is not a calibration is never replaced.
        """
        if expanded(path).exists():
            self.read(path)  # or an error
        moment, force = self.bias[:3].tolist(), self.bias[3:].tolist()
        fields = {"frame": frame, "mass": self.mass, "com": self.com.tolist()}
        fields |= {"bias_force": force, "bias_torque": moment}
        write_at_once("the calibration", path, yaml_text(fields))

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
            if mass < 0.0:
                raise ArgumentError(f"mass must not be negative; got {mass:g}")
            largest = max(mass, *np.abs([force, moment, com]).flat)
            if largest > LARGEST_LOAD:
                raise ArgumentError(f"{largest:g} is too large; must be at most {LARGEST_LOAD:g}")
            return cls(np.concatenate([moment, force]), mass, com)

        try:
            return parsed_yaml(path, checked)
        except UnknownKeyError as error:
            raise ArgumentError(f"{path}: {error}") from error


class Fit(NamedTuple):
    """A calibration from N poses."""

    calibration: Calibration
    mass_error: float
    """Standard error of the mass in kg."""
    residuals: FloatArray
    """(N, 6) readings less those of the calibration, moment first."""

    def __str__(self) -> str:
        (moment, force), (mass, com) = np.split(self.calibration.bias, 2), self.calibration[1:]
        moments, forces = (np.linalg.norm(x, axis=1) for x in np.split(self.residuals, 2, axis=1))
        tool = f"{mass:.3f} +- {self.mass_error:.3f} kg, centre of mass {_shown(com)} m"
        return (
            f"{tool if mass else 'no tool (its mass is zero)'}; bias {_shown(force, 2)} N, "
            f"{_shown(moment)} N m; residual of {len(forces)} poses up to {forces.max():.2f} N "
            f"(pose {forces.argmax() + 1}), {moments.max():.3f} N m (pose {moments.argmax() + 1})"
        )


def fit(gravities: ArrayLike, wrenches: ArrayLike) -> Fit:
    """Return bias of a sensor and mass and centre of mass of its tool by linear least squares.

    ``gravities`` (N, 3) are free-fall accelerations in m/s^2 in the sensor's axes, ``wrenches``
    (N, 6) the readings in these still poses, moment first, in N m and N.

    Raises ArgumentError for invalid numbers; for poses that do not show the parameters, with what
    is missing; for readings that do not change, or do not follow gravity; for a bias that changes
    between the poses, with the pose; for a mass that is negative; and for a weight that the
    sensor's controller has subtracted at a wrong centre of mass.
    """
    g = checks.real("gravities", gravities)
    N = len(g) if g.ndim else 0
    g, W = checks.numbers("gravities", g, (N, 3)), checks.numbers("wrenches", wrenches, (N, 6))
    _check_poses(g)
    if np.abs(W).max() >= LARGEST:
        raise ArgumentError(f"wrenches have numbers up to {np.abs(W).max():g}, which are too large")
    for name, part in (("forces", W[:, 3:]), ("moments", W[:, :3])):
        if (np.ptp(part, axis=0) == 0.0).all():
            raise ArgumentError(
                f"the {name} are the same in all {N} poses, {_shown(part[0])}: the readings do not "
                "change, not even by noise. Does the sensor measure?"
            )
    forces = _checked("forces", "N", FORCE_NOISE, g.reshape(-1, 1), W[:, 3:])
    mass, error = float(forces.x[0]), float(forces.errors[0])
    if mass < -max(LIGHTEST, ERRORS * error):
        raise ArgumentError(
            f"the readings show a tool of {mass:.3g} kg. Either the sensor's controller subtracts "
            f"a payload that is stated {-mass:.3g} kg too heavy: correct it there, or set it to "
            "zero. Or it is a sensor that reports the opposite wrench (or gravity points the other "
            "way). To tell, push the tool along +z of the sensor's frame: the force along z must "
            "increase; reverse the readings only if it decreases"
        )
    if mass > HEAVIEST:
        raise ArgumentError(
            f"the forces show a tool of {mass:.4g} kg; must be at most {HEAVIEST:g} kg. Are they "
            "in N?"
        )
    moments = _checked("moments", "N m", MOMENT_NOISE, -so3.hat(g).reshape(-1, 3), W[:, :3])
    if mass < max(LIGHTEST, ERRORS * error):
        moment, noise = np.linalg.norm(moments.x[:3]), np.linalg.norm(moments.errors[:3])
        if moment > max(MOMENT_NOISE / np.linalg.norm(g, axis=1).mean(), ERRORS * noise):
            raise ArgumentError(
                "the forces show no tool, but the moments follow gravity like a mass times centre "
                f"of mass of {_shown(moments.x[:3])} kg m: the sensor's controller probably "
                "subtracts a payload of the right mass at a wrong centre of mass; correct the "
                "centre of mass there, or set that payload to zero"
            )
        bias = W.mean(axis=0)
        return Fit(Calibration(bias, 0.0, np.zeros(3)), error, W - bias)
    com = moments.x[:3] / mass
    if np.linalg.norm(com) > FARTHEST:
        raise ArgumentError(
            f"the moments show a centre of mass at {_shown(com)} m; must be at most {FARTHEST:g} m "
            "from the sensor. Are the moments in N m, and does the sensor's controller subtract a "
            "payload with a wrong centre of mass?"
        )
    bias = np.concatenate([moments.x[3:], forces.x[1:]])
    residuals = np.hstack([moments.residuals, forces.residuals])
    return Fit(Calibration(bias, mass, com), error, residuals)


def _check_poses(gravities: FloatArray) -> None:
    """Raise ArgumentError unless gravities (N, 3) in a sensor's axes show all parameters."""
    N = len(gravities)
    length = np.linalg.norm(gravities, axis=1, keepdims=True)
    wrong = (length < GRAVITIES[0]) | (length > GRAVITIES[1])
    if wrong.any():
        raise ArgumentError(
            f"gravities have lengths such as {length[wrong][0]:g}; must be {GRAVITIES[0]:g} to "
            f"{GRAVITIES[1]:g} m/s^2"
        )
    if N < POSES:
        raise ArgumentError(
            f"at least {POSES} poses with different directions of gravity in the sensor's frame "
            f"are needed; got {N}"
        )
    spread = np.linalg.svd(_centred(gravities / length), compute_uv=False) / math.sqrt(N)
    seen = int((spread >= SPREAD).sum())
    if seen == 0:
        raise ArgumentError(
            f"in all {N} poses gravity has the same direction in the sensor's frame: they show "
            "neither mass, bias nor centre of mass; tilt the sensor between poses"
        )
    if seen == 1:
        raise ArgumentError(
            "gravity differs between the poses along one axis of the sensor's frame alone: they "
            "do not show the centre of mass along this axis; tilt the sensor about another one"
        )


class _Solution(NamedTuple):
    """Least-squares solution of readings (N, 3) = A x."""

    x: FloatArray
    """(k,) the parameters, those of the bias last."""
    residuals: FloatArray
    """(N, 3)"""
    missed: float
    """Sum of the squared residuals."""
    errors: FloatArray
    """(k,) standard errors."""


def _solved(A: FloatArray, readings: FloatArray) -> _Solution:
    b = readings.ravel()
    x = np.asarray(np.linalg.lstsq(A, b, rcond=None)[0])
    left = b - A @ x
    missed = float(left @ left)
    variance = missed / max(1, b.size - x.size)
    errors = np.sqrt(variance * np.diag(np.linalg.pinv(A.T @ A)))
    return _Solution(x, left.reshape(-1, 3), missed, errors)


def _with_bias(A: FloatArray, poses: FloatArray) -> FloatArray:
    """Return columns A (3 N, k) and those of a bias in the poses (N,) that are 1."""
    return np.hstack([A, np.kron(poses[:, None], np.eye(3))])


def _checked(name: str, unit: str, noise: float, A: FloatArray, readings: FloatArray) -> _Solution:
    """Return the solution of readings (N, 3) with columns A (3 N, k) and a bias.

    Raises ArgumentError for readings whose bias changes, or that do not follow gravity otherwise.
    """
    A = _with_bias(A, np.ones(len(readings)))
    found = _solved(A, readings)
    _check_bias(A, readings, found.missed, unit, noise)
    variance = found.missed / (readings.size - found.x.size)
    explicable = UNEXPLAINED * np.square(_centred(readings)).sum() / (readings.size - 3)
    if variance > max(explicable, noise**2):
        worst = np.linalg.norm(found.residuals, axis=1)
        raise ArgumentError(
            f"the {name} do not follow gravity: residual up to {worst.max():.3g} {unit} (pose "
            f"{worst.argmax() + 1}); valid: readings in SI units and in the axes of the sensor's "
            "link, of a tool that nothing touches, and the gravity in the same poses"
        )
    return found


def _check_bias(
    A: FloatArray, readings: FloatArray, missed: float, unit: str, noise: float
) -> None:
    """Raise ArgumentError, naming the poses, if the bias of readings (N, 3) = A x changes.

    It may take another value from one pose on, or in one pose alone. That must explain the readings
    significantly better than one bias does, with a sum of squared residuals ``missed``.
    """
    N = len(readings)
    freedom = readings.size - A.shape[1] - 3
    if freedom <= 0:
        return
    pose = np.arange(N)
    changes = [pose >= k for k in range(1, N)] + [pose == k for k in range(1, N - 1)]
    fits = [_solved(_with_bias(A, change), readings) for change in changes]
    k = int(np.argmin([one.missed for one in fits]))
    step, left, change = fits[k].x[-3:], fits[k].missed, changes[k]
    rounding = 1e-12 * float(np.square(readings).sum())
    if missed - left <= SIGNIFICANT * left / freedom + rounding or np.linalg.norm(step) <= noise:
        return
    first = int(change.argmax())
    poses = f"the poses from {first + 1} on differ"
    if 1 in (change.sum(), first):
        poses = f"pose {first + 1 if change.sum() == 1 else 1} differs"
    raise ArgumentError(
        f"{poses} from the others by {_shown(step, 2)} {unit}, and all follow gravity otherwise: "
        "the bias changed, or the tool was touched. Was the sensor zeroed between two poses? Take "
        "all poses again without that"
    )


def _centred(rows: FloatArray) -> FloatArray:
    return np.asarray(rows - rows.mean(axis=0))


def _shown(x: FloatArray, digits: int = 3) -> str:
    return f"({', '.join(f'{round(float(one), digits) + 0.0:.{digits}f}' for one in x)})"
