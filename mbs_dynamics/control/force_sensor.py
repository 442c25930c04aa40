# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Removes the bias and the weight of the tool from the readings of a wrist force-torque sensor.

The result is the wrench of the surroundings on the tool. Wrenches (6,) have the moment first, in
N m and N. Times are of one steady clock, in s, and stamps in ns, 0 for none.
"""

from __future__ import annotations

import math
from collections import deque

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import algorithms
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.force_calibration import Calibration, Fit, fit
from mbs_dynamics.control.joint_states import LARGEST, Rejection
from mbs_dynamics.errors import ArgumentError, ModelError
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model

__all__ = ["Calibration", "Fit", "ForceSensor", "Rejection", "fit"]

STALE_TIMEOUT, STAMP_DIFFERENCE = 0.5, 0.1
"""Time in s without valid messages after which input is stale: many periods of any driver. Largest
difference in s of the stamps of wrenches and joint positions: an arm moves little in it."""

ZERO_TIME = 1.0
"""Time in s over which a change of bias or tool takes effect on the output."""

STILL, COVERED, STILL_POSE = 0.5, 0.4, 0.003
"""Time in s over which the readings of a still arm are averaged, the part of it that they must
cover, and the range in m, or rad, in which the sensor then is."""


class ForceSensor:
    """Removes bias and weight of the tool from the readings of a sensor on an arm.

    ``sensor`` is its link. When bias or tool change, the output moves linearly to its new value
    over ZERO_TIME. Raises UnknownBodyError, and ModelError for a link that does not move.
    """

    def __init__(self, model: Model, sensor: str) -> None:
        if model.frames[sensor].body == GROUND:
            raise ModelError(f"the sensor's link {sensor!r} does not move: its bias is not seen")
        self.model, self.link = model, sensor
        self.gravity = model.gravity
        """Free-fall acceleration (3,) in m/s^2 in the root's axes."""
        self.calibration: Calibration | None = None
        self.poses: list[tuple[FloatArray, FloatArray]] = []
        """Gravity (3,) in the sensor's axes and reading (6,) of each pose."""
        self._pose, self._moved, self._moved_at = np.eye(4), 0, -math.inf
        self._stamp, self._read_at = 0, -math.inf
        """The latest pose of the sensor with stamp and time, and those of the latest reading."""
        self._still: deque[tuple[float, FloatArray, FloatArray]] = deque()
        """Times, readings and poses of the latest STILL s, the newest last."""
        self._fade, self._faded_from = np.zeros(6), -math.inf

    def move(self, q: ArrayLike, stamp: int, now: float) -> None:
        """Store positions (n,) of the joints in rad or m."""
        self._pose = algorithms.forward_kinematics(self.model, q, bodies=[self.link])[0]
        self._moved, self._moved_at = stamp, now

    # -- readings ----------------------------------------------------------------------------------

    def read(self, W: ArrayLike, stamp: int, now: float) -> FloatArray | Rejection:
        """Return the wrench (6,) on the tool by a reading W (6,), or the reason for its absence."""
        W = np.asarray(W, dtype=float)
        if stamp and stamp <= self._stamp and now - self._read_at < STALE_TIMEOUT:
            return Rejection("old_stamp", "the stamp is not after that of the latest reading")
        wrong = self._rejection(W, stamp, now)
        if wrong is not None:
            self._still.clear()
            return wrong
        self._stamp, self._read_at = stamp, now
        self._still.append((now, W, self._pose))
        while now - self._still[0][0] > STILL:
            self._still.popleft()
        if self.calibration is None:
            return Rejection("uncalibrated", "bias and weight of the tool are not known")
        return np.asarray(W - self.calibration.reading(self._seen(self._pose)) + self._fading(now))

    def _rejection(self, W: FloatArray, stamp: int, now: float) -> Rejection | None:
        """Return why a reading (6,) cannot be used; None if it can."""
        if not (np.abs(W) < LARGEST).all():
            return Rejection("not_finite", f"the reading is not finite, or absurd: {W.tolist()}")
        if now - self._moved_at > STALE_TIMEOUT:
            return Rejection("no_pose", f"no joint positions within {STALE_TIMEOUT:g} s")
        apart = 1e-9 * (stamp - self._moved)
        if stamp and self._moved and abs(apart) > STAMP_DIFFERENCE:
            return Rejection("stamps_apart", f"the stamp is {apart:.3f} s after that of the arm")
        return None

    def _seen(self, pose: FloatArray) -> FloatArray:
        """Return gravity (3,) in the axes of the sensor at a pose (4, 4)."""
        return np.asarray(pose[:3, :3].T @ self.gravity)

    def _fading(self, now: float) -> FloatArray:
        done = (now - self._faded_from) / ZERO_TIME
        return np.asarray(self._fade * (1.0 - min(max(done, 0.0), 1.0)))

    # -- bias and tool -----------------------------------------------------------------------------

    def calibrate(self, calibration: Calibration, now: float) -> None:
        """Use a calibration from now on, without a jump of the output."""
        if self.calibration is not None:
            gravity = self._seen(self._pose)
            change = calibration.reading(gravity) - self.calibration.reading(gravity)
            self._fade, self._faded_from = self._fading(now) + change, now
        self.calibration = calibration

    def zero(self, now: float) -> FloatArray:
        """Make the present mean output zero; return the wrench (6,) that is added to the bias.

        The output goes there over ZERO_TIME. Raises ArgumentError for an arm that moves, or a
        sensor that is not calibrated.
        """
        if self.calibration is None:
            raise ArgumentError("bias and weight of the tool are not known yet: fit them first")
        gravity, W = self._at_rest(now)
        extra = W - self.calibration.reading(gravity)
        self.calibrate(self.calibration._replace(bias=self.calibration.bias + extra), now)
        return extra

    def _at_rest(self, now: float) -> tuple[FloatArray, FloatArray]:
        """Return mean gravity (3,) and reading (6,); ArgumentError unless the arm is still."""
        latest = [one for one in self._still if now - one[0] <= STILL]
        covered = latest[-1][0] - latest[0][0] if latest else 0.0
        if covered < COVERED:
            raise ArgumentError(
                f"valid readings cover {covered:.2g} s of {STILL:g} s; must be {COVERED:g} s"
            )
        _, readings, poses = zip(*latest, strict=True)
        moved = np.ptp(poses, axis=0).max()
        if moved > STILL_POSE:
            raise ArgumentError(
                f"the arm moves: the sensor by {moved:.3g} m, or rad; must be below {STILL_POSE:g}"
            )
        return self._seen(np.mean(poses, axis=0)), np.mean(readings, axis=0)

    def take_pose(self, now: float) -> str:
        """Add a pose, the mean reading of the still arm; return the estimate in words.

        Raises ArgumentError for an arm that moves, or has not been read long enough.
        """
        self.poses.append(self._at_rest(now))
        try:
            return f"{len(self.poses)} pose(s) taken: {self.fit()}"
        except ArgumentError as error:
            return f"{len(self.poses)} pose(s) taken, but {error}"

    def fit(self) -> Fit:
        """Return the fit to all poses. Raises what :func:`fit` raises."""
        gravities, readings = ([one[k] for one in self.poses] for k in range(2))
        return fit(np.reshape(gravities, (-1, 3)), np.reshape(readings, (-1, 6)))
