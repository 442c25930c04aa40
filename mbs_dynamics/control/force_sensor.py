# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Removes the bias and the weight of the tool from the readings of a wrist force-torque sensor.

The result is the wrench of the surroundings on the tool. Wrenches (6,) have the moment first, in
N m and N. Times are of one steady clock, in s, and stamps in ns, 0 for none.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.force_calibration import LARGEST, Calibration, Fit, fit, unseen
from mbs_dynamics.control.force_mounting import Mounting, SensorMotion, moved
from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.inertia import Inertia

__all__ = [
    "Calibration",
    "Fit",
    "ForceSensor",
    "Mounting",
    "Rejection",
    "SensorMotion",
    "fit",
    "moved",
]

STILL, STILL_SHARE, STILL_POSITION = 0.5, 0.8, 0.003
"""Time in s over which the readings of a still arm are averaged, the share of it that they must
cover, and the range of positions in rad or m within which an arm is still."""


class ForceSensor:
    """Removes bias and weight of the tool from the readings of one sensor, and checks these.

    ``limits`` (6,), moment first, are the ranges beyond which a component is saturated; inf for
    none. ``stale_timeout`` in s ends a sequence of readings, ``max_difference`` in s is the largest
    difference of the stamps of readings and joint positions, 0: not checked. ``cutoff`` is the
    corner frequency in Hz of a low-pass on the output, 0: none. Whenever bias, tool, load or zero
    change, the output goes on where it was, and takes its new value linearly over ``zero_time``
    in s. Raises ArgumentError for values that are no such numbers.
    """

    def __init__(
        self,
        *,
        limits: ArrayLike = (math.inf,) * 6,
        stale_timeout: float = 0.5,
        max_difference: float = 0.0,
        cutoff: float = 0.0,
        zero_time: float = 1.0,
        inertia_at_com: ArrayLike = ((0.0,) * 3,) * 3,
    ) -> None:
        self.limits = checks.real("limits", limits)
        if self.limits.shape != (6,) or not (self.limits > 0.0).all():
            raise ArgumentError(f"limits must be 6 positive numbers; got {self.limits.tolist()}")
        self.stale_timeout = checks.positive("stale_timeout", stale_timeout)
        self.max_difference = checks.number("max_difference", max_difference)
        self.cutoff = checks.number("cutoff", cutoff)
        self.zero_time = checks.number("zero_time", zero_time)
        self.inertia_at_com = checks.numbers("inertia_at_com", inertia_at_com, (3, 3))
        self.calibration: Calibration | None = None
        self.load = Inertia.zero()
        """Known loads that the sensor bears in addition to the tool, in its frame."""
        self.offset = np.zeros(6)
        """Removed by :meth:`zero` in addition to the bias, in N m and N."""
        self.poses: list[tuple[FloatArray, FloatArray]] = []
        """Free fall (3,) and reading (6,) without known loads of each pose."""
        self._borne = np.zeros((6, 6))
        self._still: deque[tuple[float, FloatArray, SensorMotion]] = deque()
        self._latest: tuple[FloatArray, SensorMotion] | None = None
        self._stamp, self._received, self._at = 0, -math.inf, 0.0
        self._smooth: FloatArray | None = None
        self._fade, self._faded_from = np.zeros(6), -math.inf

    def read(
        self, W: ArrayLike, stamp: int, now: float, motion: SensorMotion | Rejection
    ) -> FloatArray | Rejection:
        """Return the wrench (6,) of the surroundings on the tool, or the reason for its absence.

        ``W`` (6,) is a reading, and ``motion`` that of the sensor. Raises ArgumentError for a wrong
        shape or type.
        """
        W = checks.real("W", W)
        if W.shape != (6,):
            raise ArgumentError(f"W has shape {W.shape}; must be (6,)")
        fresh = now - self._received <= self.stale_timeout
        if stamp and fresh and stamp <= self._stamp:
            if stamp == self._stamp:
                return Rejection("repeated", f"the stamp {1e-9 * stamp:.6f} s again")
            late = f"{1e-9 * (self._stamp - stamp):.6f} s"
            return Rejection("time_backwards", f"the stamp is {late} before that of the latest")
        wrong = self._wrong(W, stamp, motion)
        if wrong is not None:
            self._still.clear()
            return wrong
        assert isinstance(motion, SensorMotion)
        if not fresh:
            self._still.clear()
            self._smooth = None
        at = 1e-9 * stamp if stamp else now
        elapsed, self._at = at - self._at, at
        self._stamp, self._received = stamp, now
        self._latest = W, motion
        self._still.append((now, *self._latest))
        while now - self._still[0][0] > STILL:
            self._still.popleft()
        if self.calibration is None:
            return Rejection("uncalibrated", "bias and weight of the tool are not known")
        left = self._left(W, motion)
        if self._smooth is None or self.cutoff == 0.0:
            self._smooth = left
        else:
            share = -math.expm1(-2.0 * math.pi * self.cutoff * max(elapsed, 0.0))
            self._smooth = self._smooth + share * (left - self._smooth)
        return self._smooth + self._fading(now)

    def _wrong(
        self, W: FloatArray, stamp: int, motion: SensorMotion | Rejection
    ) -> Rejection | None:
        if not np.isfinite(W).all():
            return Rejection("not_finite", f"the reading is not finite: {W.tolist()}")
        if np.abs(W).max() >= LARGEST:
            return Rejection("too_large", f"the reading is too large to be true: {W.tolist()}")
        over = np.abs(W) >= self.limits
        if over.any():
            k = int(over.argmax())
            name, unit = ("moment", "N m") if k < 3 else ("force", "N")
            message = (
                f"{name} {'xyz'[k % 3]} is {W[k]:.4g} {unit}, at its limit {self.limits[k]:.4g}"
            )
            return Rejection("saturated", message)
        if isinstance(motion, Rejection):
            return motion
        apart = 1e-9 * (stamp - motion.stamp)
        if self.max_difference and stamp and motion.stamp and abs(apart) > self.max_difference:
            word = "after" if apart > 0.0 else "before"
            message = f"the stamp is {abs(apart):.3f} s {word} that of the joint positions"
            return Rejection("stamps_apart", f"{message}; {self.max_difference:g} s is allowed")
        return None

    def _left(self, W: FloatArray, motion: SensorMotion) -> FloatArray:
        assert self.calibration is not None
        weight = motion.reading(self._borne)
        return np.asarray(W - self.calibration.bias - self.offset - weight)

    def _fading(self, now: float) -> FloatArray:
        done = (now - self._faded_from) / self.zero_time if self.zero_time else 1.0
        return np.asarray(self._fade * (1.0 - min(max(done, 0.0), 1.0)))

    def change(self, now: float, action: Callable[[], object]) -> None:
        """Apply a change of bias, tool, load or offset, and fade its effect on the output in."""
        known = self.calibration is not None and now - self._received <= self.stale_timeout
        latest = self._latest if known else None
        before = self._left(*latest) if latest else np.zeros(6)
        action()
        tool = Inertia.zero()
        if self.calibration is not None and self.calibration.mass > 0.0:
            _, mass, com = self.calibration
            tool = Inertia.from_com(mass, com, self.inertia_at_com)
        self._borne = np.asarray((tool + self.load).matrix())
        step = self._left(*latest) - before if latest and self.calibration else np.zeros(6)
        if self._smooth is not None and step.any():
            self._smooth = self._smooth + step
            self._fade, self._faded_from = self._fading(now) - step, now

    def calibrate(self, calibration: Calibration | None, now: float) -> None:
        """Use a calibration from now on; the offset of :meth:`zero` ends."""

        def use() -> None:
            self.calibration, self.offset = calibration, np.zeros(6)

        self.change(now, use)

    def bear(self, load: Inertia, now: float) -> None:
        """Use loads, in the sensor's frame, from now on."""
        self.change(now, lambda: setattr(self, "load", load))

    # -- still poses -------------------------------------------------------------------------------

    def _at_rest(self, now: float) -> list[tuple[FloatArray, SensorMotion]]:
        """Return the readings of the still arm, or raise ArgumentError."""
        latest = [one for one in self._still if now - one[0] <= STILL]
        covered = latest[-1][0] - latest[0][0] if latest else 0.0
        if covered < STILL_SHARE * STILL:
            raise ArgumentError(
                f"valid readings cover {covered:.2g} s of the latest {STILL:g} s; needed are "
                f"{STILL_SHARE * STILL:g} s"
            )
        moved = np.ptp([motion.q for _, _, motion in latest], axis=0).max()
        if moved > STILL_POSITION:
            raise ArgumentError(
                f"the arm moves: a joint by {moved:.3g} within {STILL:g} s; must be at most "
                f"{STILL_POSITION:g} rad or m"
            )
        return [(W, motion) for _, W, motion in latest]

    def take_pose(self, now: float) -> str:
        """Take the mean over the latest readings of the still arm; return the estimate in words.

        Raises ArgumentError for an arm that moves, or has not been read long enough.
        """
        readings = self._at_rest(now)
        load = np.asarray(self.load.matrix())
        W = np.mean([W - motion.reading(load) for W, motion in readings], axis=0)
        fall = np.mean([motion.fall for _, motion in readings], axis=0)
        missing = unseen(np.vstack([self._taken()[0], fall]))  # or an error
        self.poses.append((fall, W))
        message = f"{len(self.poses)} pose(s) taken"
        if missing:
            return f"{message}; {missing}"
        try:
            return f"{message}: {fit(*self._taken())}"
        except ArgumentError as error:
            return f"{message}, but {error}"

    def _taken(self) -> tuple[FloatArray, FloatArray]:
        rows = np.reshape([[*g, *W] for g, W in self.poses], (-1, 9))
        return rows[:, :3], rows[:, 3:]

    def fit(self, now: float) -> Fit:
        """Return the fit to all poses, and use its calibration from now on.

        Raises what :func:`fit` raises; the calibration before then stays.
        """
        result = fit(*self._taken())
        self.calibrate(result.calibration, now)
        return result

    def restart(self) -> None:
        """Forget all poses; the calibration stays."""
        self.poses.clear()

    def zero(self, now: float) -> FloatArray:
        """Make the present mean output zero; return the wrench (6,) that is removed from now on.

        The output then goes linearly to zero over ``zero_time``. Raises ArgumentError for an arm
        that moves, or a sensor that is not calibrated.
        """
        if self.calibration is None:
            raise ArgumentError("bias and weight of the tool are not known yet: fit them first")
        extra = np.mean([self._left(*each) for each in self._at_rest(now)], axis=0)
        self.change(now, lambda: setattr(self, "offset", self.offset + extra))
        return np.asarray(extra)
