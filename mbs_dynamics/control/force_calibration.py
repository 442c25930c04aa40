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

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import LARGEST_LOAD
from mbs_dynamics.control.motor_table import check_keys
from mbs_dynamics.errors import ArgumentError, MbsError, quoted
from mbs_dynamics.lie import so3
from mbs_dynamics.output_files import expanded, missing_file, write_at_once

POSES = 4
"""Least number of poses."""

SPREAD = 0.1
"""Least root mean square in a direction by which unit vectors of gravity differ from their mean."""

SIGNIFICANT = 90.0
"""Ratio by which three more parameters must improve a fit, relative to the variance that is left.
It is three times F = 30."""

LIGHTEST, ERRORS = 0.001, 5.0
"""A lighter tool in kg is none; so is one within this number of standard errors of zero."""

UNEXPLAINED = 0.05
"""Largest share of the variance of forces or moments that gravity may leave unexplained."""

FORCE_NOISE, MOMENT_NOISE = 0.5, 0.05
"""Deviations in N and N m, as root mean squares, that are never an error of the poses."""

FARTHEST, HEAVIEST = 2.0, 100.0
"""Largest distance in m of a centre of mass from the sensor, and largest mass of a tool in kg."""

TURNED = 0.25
"""Largest share of the squared forces that a turned sensor may leave unexplained."""

GRAVITIES = (1.5, 30.0)
"""Range of lengths of gravity in m/s^2 that are accepted; unit vectors are refused."""

LARGEST, LARGEST_FILE = 1e9, 2**16
"""Size beyond which a reading is not a measurement, and bytes of the largest file that is read."""


class Calibration(NamedTuple):
    """Bias of a sensor, and mass and centre of mass of its tool in the sensor's frame."""

    bias: FloatArray
    """(6,) moment first, in N m and N."""
    mass: float
    """In kg; zero without a tool."""
    com: FloatArray
    """(3,) in m."""

    def write(self, path: Path, frame: str) -> None:
        """Write a JSON file; a file there is replaced at once, or kept as it is.

        Raises ArgumentError for a file that cannot be written or is not a calibration.
        """
        if expanded(path).exists():
            try:
                self.read(path)
            except ArgumentError as error:
                raise ArgumentError(
                    f"will not replace what is not a calibration: {error}"
                ) from error
        moment, force = np.split(self.bias, 2)
        fields = {"frame": frame, "mass": self.mass, "com": self.com.tolist()}
        fields |= {"bias_force": force.tolist(), "bias_torque": moment.tolist()}
        write_at_once("the calibration", path, json.dumps(fields, indent=2) + "\n")

    @classmethod
    def read(cls, path: Path, frame: str = "") -> Calibration:
        """Return the calibration in a file that :meth:`write` or a user has written.

        Raises ArgumentError, with the reason, for one that is missing or damaged, or is
        that of another ``frame``.
        """
        try:
            source = expanded(path)
            if not source.is_file():  # nor a pipe, which would block
                raise ArgumentError(missing_file(source))
            with source.open("rb") as file:
                fields = json.loads(file.read(LARGEST_FILE))
            check_keys("the file", fields, ("frame", "mass", "com", "bias_force", "bias_torque"))
            if frame and fields["frame"] != frame:
                raise ArgumentError(f"it is of frame {quoted(fields['frame'])}; must be {frame!r}")
            force, moment, com = (
                checks.numbers(key, fields[key], (3,))
                for key in ("bias_force", "bias_torque", "com")
            )
            mass = checks.number("mass", fields["mass"])
            if mass < 0.0:
                raise ArgumentError(f"mass must not be negative; got {mass:g}")
            largest = max(mass, *np.abs([force, moment, com]).flat)
            if largest > LARGEST_LOAD:
                raise ArgumentError(f"{largest:g} is too large; must be at most {LARGEST_LOAD:g}")
        except (MbsError, OSError, ValueError, RecursionError) as error:
            raise ArgumentError(f"{str(path)!r} is not a valid calibration: {error}") from error
        return cls(np.concatenate([moment, force]), mass, com)


class Fit(NamedTuple):
    """A calibration out of N poses, with standard errors."""

    calibration: Calibration
    bias_error: FloatArray
    """(6,) moment first, in N m and N."""
    mass_error: float
    com_error: FloatArray
    """(3,)"""
    residuals: FloatArray
    """(N, 6) readings less those of the calibration, moment first."""

    def __str__(self) -> str:
        (moment, force), (dm, df) = np.split(self.calibration.bias, 2), np.split(self.bias_error, 2)
        moments, forces = (np.linalg.norm(x, axis=1) for x in np.split(self.residuals, 2, axis=1))
        tool = (
            f"{self.calibration.mass:.3f} +- {self.mass_error:.3f} kg, centre of mass "
            f"{_shown(self.calibration.com)} +- {self.com_error.max():.3f} m"
        )
        return (
            f"{tool if self.calibration.mass else 'no tool (its mass is zero)'}; bias "
            f"{_shown(force, 2)} +- {df.max():.2f} N, {_shown(moment)} +- {dm.max():.3f} N m; "
            f"residual of {len(forces)} poses up to {forces.max():.2f} N (pose "
            f"{forces.argmax() + 1}), {moments.max():.3f} N m (pose {moments.argmax() + 1})"
        )


def fit(gravities: ArrayLike, wrenches: ArrayLike) -> Fit:
    """Return bias of a sensor and mass and centre of mass of its tool by linear least squares.

    ``gravities`` (N, 3) are free-fall accelerations in m/s^2 in the sensor's axes, ``wrenches``
    (N, 6) the readings in these still poses, moment first, in N m and N.

    Raises ArgumentError for invalid numbers; for poses that do not show the parameters, with what
    is missing; for readings that do not follow gravity; for a bias that changes between the poses,
    with the pose; for a sensor that is turned in its frame or reports the opposite wrench, with the
    rotation; and for weights that the sensor's controller has subtracted wrongly.
    """
    g = checks.real("gravities", gravities)
    N = len(g) if g.ndim else 0
    g, W = checks.numbers("gravities", g, (N, 3)), checks.numbers("wrenches", wrenches, (N, 6))
    missing = unseen(g)
    if missing:
        raise ArgumentError(missing)
    if np.abs(W).max() >= LARGEST:
        raise ArgumentError(f"wrenches have numbers up to {np.abs(W).max():g}, which are too large")
    moment, force = W[:, :3], W[:, 3:]
    forces = _checked("forces", "N", FORCE_NOISE, g.reshape(-1, 1), force, _turned(g, force))
    m, m_error = float(forces.x[0]), float(forces.errors[0])
    if m < -max(LIGHTEST, ERRORS * m_error):
        raise ArgumentError(
            f"the readings show a tool of {m:.3g} kg. Either the sensor's controller subtracts a "
            f"payload that is stated {-m:.3g} kg too heavy: correct it there, or set it to zero. "
            f"Or it is a sensor that {OPPOSITE}. To tell, push the tool along +z of the sensor's "
            "frame: the force along z must increase; reverse the readings only if it decreases"
        )
    if m > HEAVIEST:
        raise ArgumentError(
            f"the forces show a tool of {m:.4g} kg; must be at most {HEAVIEST:g} kg. Are they in N?"
        )
    moments = _checked("moments", "N m", MOMENT_NOISE, -so3.hat(g).reshape(-1, 3), moment)
    com, com_error = np.zeros(3), np.zeros(3)
    if m < max(LIGHTEST, ERRORS * m_error):
        _check_no_tool(moments, float(np.linalg.norm(g, axis=1).mean()))
        m, bias_only = 0.0, _with_bias(np.zeros((3 * N, 0)), np.ones(N))
        forces, moments = _solved(bias_only, force), _solved(bias_only, moment)
    else:
        com = moments.x[:3] / m
        com_error = np.sqrt(moments.errors[:3] ** 2 + (com * m_error) ** 2) / m
        if np.linalg.norm(com) > FARTHEST:
            raise ArgumentError(
                f"the moments show a centre of mass at {_shown(com)} m; must be at most "
                f"{FARTHEST:g} m from the sensor. Are the moments in N m, and does the sensor's "
                "controller subtract a payload with a wrong centre of mass?"
            )
    bias, bias_error = (
        np.concatenate([x[-3:], y[-3:]])
        for x, y in ((moments.x, forces.x), (moments.errors, forces.errors))
    )
    residuals = np.hstack([moments.residuals, forces.residuals])
    return Fit(Calibration(bias, m, com), bias_error, m_error, com_error, residuals)


def unseen(gravities: FloatArray) -> str:
    """Return which parameters gravities (N, 3) in a sensor's axes do not show; empty if none."""
    N = len(gravities)
    length = np.linalg.norm(gravities, axis=1, keepdims=True)
    wrong = (length < GRAVITIES[0]) | (length > GRAVITIES[1])
    if wrong.any():
        raise ArgumentError(
            f"gravities have lengths such as {length[wrong][0]:g}; must be {GRAVITIES[0]:g} to "
            f"{GRAVITIES[1]:g} m/s^2"
        )
    if N < POSES:
        return (
            f"{N} pose(s); at least {POSES} are needed, with different directions of gravity in "
            "the sensor's frame"
        )
    directions = gravities / length
    _, spread, axes = np.linalg.svd(_centred(directions), full_matrices=True)
    seen = int((spread / math.sqrt(N) >= SPREAD).sum())
    if seen == 0:
        return (
            f"in all {N} poses gravity has the same direction in the sensor's frame: they show "
            "neither mass, bias nor centre of mass; tilt the sensor between poses"
        )
    if seen == 1:
        other = -axes[1] if directions.mean(axis=0) @ axes[1] > 0.0 else axes[1]
        return (
            f"gravity differs between the poses along {_shown(axes[0], 2)} alone: they do not show "
            "the centre of mass along this axis, nor the bias of the moment across it; add a pose "
            f"in which gravity points to {_shown(other, 2)} in the sensor's frame"
        )
    return ""


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


def _checked(
    name: str, unit: str, noise: float, A: FloatArray, readings: FloatArray, cause: str = ""
) -> _Solution:
    """Return the solution of readings (N, 3) with columns A (3 N, k) and a bias.

    Raises ArgumentError for readings whose bias changes, or that do not follow gravity otherwise;
    a ``cause`` of that is stated.
    """
    N = len(readings)
    A = _with_bias(A, np.ones(N))
    found = _solved(A, readings)
    changed = _bias_change(A, readings, found.missed, unit, noise)
    if changed:
        raise ArgumentError(changed)
    variance = found.missed / (readings.size - found.x.size)
    explicable = UNEXPLAINED * np.square(_centred(readings)).sum() / (3 * (N - 1))
    if variance > max(explicable, noise**2):
        worst = np.linalg.norm(found.residuals, axis=1)
        raise ArgumentError(
            f"the {name} do not follow gravity: residual up to {worst.max():.3g} {unit} (pose "
            f"{worst.argmax() + 1}); {cause}valid: readings in SI units of a tool that nothing "
            "touches, and the gravity in the same poses"
        )
    return found


def _bias_change(
    A: FloatArray, readings: FloatArray, missed: float, unit: str, noise: float
) -> str:
    """Return in which poses the bias of readings (N, 3) = A x differs; empty if in none.

    It may take another value from one pose on, or in one pose alone. That must explain the readings
    significantly better than one bias does, with a sum of squared residuals ``missed``.
    """
    N = len(readings)
    freedom = readings.size - A.shape[1] - 3
    if freedom <= 0:
        return ""
    pose = np.arange(N)
    changes = [pose >= k for k in range(1, N)] + [pose == k for k in range(1, N - 1)]
    fits = [_solved(_with_bias(A, change), readings) for change in changes]
    k = int(np.argmin([one.missed for one in fits]))
    step, left, change = fits[k].x[-3:], fits[k].missed, changes[k]
    rounding = 1e-12 * float(np.square(readings).sum())
    if missed - left <= SIGNIFICANT * left / freedom + rounding or np.linalg.norm(step) <= noise:
        return ""
    first = int(change.argmax())
    poses = f"the poses from {first + 1} on differ"
    if 1 in (change.sum(), first):
        poses = f"pose {first + 1 if change.sum() == 1 else 1} differs"
    return (
        f"{poses} from the others by {_shown(step, 2)} {unit}, and all follow gravity otherwise: "
        "the bias changed, or the tool was touched. Was the sensor zeroed between two poses? Take "
        "all poses again without that"
    )


def _check_no_tool(moments: _Solution, gravity: float) -> None:
    """Raise ArgumentError if moments follow a gravity in m/s^2 where the forces show no tool."""
    size, error = np.linalg.norm(moments.x[:3]), np.linalg.norm(moments.errors[:3])
    if size > max(MOMENT_NOISE / gravity, ERRORS * error):
        raise ArgumentError(
            "the forces show no tool, but the moments follow gravity like a mass times centre of "
            f"mass of {_shown(moments.x[:3])} kg m: the sensor's controller probably subtracts a "
            "payload of the right mass at a wrong centre of mass; correct the centre of mass "
            "there, or set that payload to zero"
        )


OPPOSITE = "reports the opposite wrench (or gravity points the other way)"


def _turned(g: FloatArray, force: FloatArray) -> str:
    """Return which rotation of the sensor explains forces best, for messages; empty if none does.

    It is that of Kabsch (1976), of forces and gravities less their means, for either sign.
    """
    g, force = _centred(g), _centred(force)
    U, s, Vt = np.linalg.svd(force.T @ g)
    sign = float(np.sign(np.linalg.det(U @ Vt)))  # the other one would lose the smallest part
    x = so3.log(sign * U @ Vt)
    mass = s.sum() / np.square(g).sum()
    k, angle = int(np.abs(x).argmax()), float(np.linalg.norm(x))
    missed = np.square(force - mass * g @ (U @ Vt).T).sum()
    if angle == 0.0 or missed > TURNED * np.square(force).sum():
        return ""
    axis = x * np.sign(x[k]) / angle  # the sign of a half turn is arbitrary
    degrees = math.degrees(angle) * (1.0 if angle > 3.1 else float(np.sign(x[k])))
    about = "xyz"[k] if axis[k] > math.cos(math.radians(15.0)) else _shown(axis, 2)
    opposite = f" and {OPPOSITE}" if sign < 0.0 else ""
    return f"they fit a sensor that is turned by {degrees:.0f} degrees about {about}{opposite}; "


def _centred(rows: FloatArray) -> FloatArray:
    return np.asarray(rows - rows.mean(axis=0))


def _shown(x: Sequence[float] | FloatArray, digits: int = 3) -> str:
    return f"({', '.join(f'{round(float(one), digits) + 0.0:.{digits}f}' for one in x)})"
