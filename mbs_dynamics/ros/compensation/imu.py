# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity of an arm whose base is tilted or moves, as an imu measures it. No ROS is needed."""

from __future__ import annotations

import math

import numpy as np

from mbs_dynamics.control.environment import LinkGravity, Vector, check_earthly, root_gravity
from mbs_dynamics.control.guard import Guard
from mbs_dynamics.control.settings import GRAVITY_TOLERANCE
from mbs_dynamics.errors import ArgumentError, MbsError

FILTER_TIME = 0.1
"""Time constant in s of the low-pass filter on the imu: above vibrations, below a reaction."""


class ImuGravity:
    """The filtered measurements of an imu on the base. Times are of one steady clock, in s."""

    def __init__(self, arm: Guard) -> None:
        self._arm = arm
        self.trouble = ""
        """Why the latest message was refused; empty if it was not."""
        self._smooth = np.zeros(3)
        self._measured, self._stamp = -math.inf, 0
        """Time and stamp of the latest measurement."""

    def read(
        self, link: str, acceleration: Vector, now: float, *, stamp: int, aged: str = ""
    ) -> LinkGravity | None:
        """Return gravity by a measurement; None if the same stamp comes again.

        ``acceleration`` (3,) in m/s^2 is the proper acceleration of the fixed ``link``. Its
        negative is the free fall as the base sees it: gravity less the acceleration of the base.
        ``stamp`` in ns is that of the measurement, 0 if it has none; ``aged`` is the problem with
        its age, if any. Raises MbsError for a measurement that is refused.
        """
        if stamp and stamp == self._stamp:
            return None
        try:
            gravity = self._filtered(link, acceleration, now, stamp, aged)
        except MbsError as error:
            self.trouble = f"imu refused: {error}"
            raise
        self._smooth, self.trouble = np.array(gravity.vector), ""
        self._measured, self._stamp = now, stamp
        return gravity

    def _filtered(
        self, link: str, acceleration: Vector, now: float, stamp: int, aged: str
    ) -> LinkGravity:
        """Return gravity after the low-pass filter. Raises as :meth:`read`."""
        elapsed, model = now - self._measured, self._arm.model
        if not stamp:
            raise ArgumentError("it has no time stamp")
        if stamp < self._stamp and elapsed < self._arm.settings.stale_timeout:
            late = 1e-9 * (self._stamp - stamp)
            raise ArgumentError(f"its stamp is {late:.6f} s before that of the message before")
        if aged:
            raise ArgumentError(aged)
        x, y, z = acceleration
        root_gravity(model, LinkGravity(link, (-x, -y, -z)))
        share = 1.0 if elapsed >= 20.0 * FILTER_TIME else 1.0 - math.exp(-elapsed / FILTER_TIME)
        smooth = self._smooth + share * (-np.array(acceleration) - self._smooth)
        check_earthly("linear_acceleration", smooth, GRAVITY_TOLERANCE)
        gravity = LinkGravity(link, tuple(smooth.tolist()))
        root_gravity(model, gravity)
        return gravity

    def stale(self, now: float) -> str:
        """Return the message that valid measurements are missing; empty if they are not."""
        age, timeout = now - self._measured, self._arm.settings.stale_timeout
        if age < timeout:
            return ""
        so_far = "so far" if age == math.inf else f"for {age:.3f} s; stale_timeout is {timeout:g}"
        return f"no valid imu {so_far}"
