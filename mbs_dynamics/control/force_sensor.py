# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Removes the bias and the weight of the tool from the readings of a wrist force-torque sensor.

The result is the wrench of the surroundings on the tool. Wrenches (6,) have the moment first, in
N m and N. Times are of one steady clock, in s, and stamps in ns, 0 for none.
"""

from __future__ import annotations

import math
from collections import deque
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import algorithms, checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.force_calibration import LARGEST, Calibration, Fit, fit, unseen
from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.control.turns import nearest, turning
from mbs_dynamics.errors import ArgumentError, ModelError, listed
from mbs_dynamics.lie import se3
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.model import Model

__all__ = [
    "Calibration",
    "Fit",
    "ForceSensor",
    "Mounting",
    "Rejection",
    "SensorPose",
    "fit",
    "moved",
]

STALE_TIMEOUT = 0.5
"""Time in s without valid messages after which input is stale: many periods of any driver."""

STAMP_DIFFERENCE = 0.1
"""Largest difference in s of the stamps of wrenches and joint positions: an arm moves little in it.
"""

ZERO_TIME = 1.0
"""Time in s over which a change of bias, tool or load takes effect on the output."""

STILL, STILL_SHARE, STILL_POSITION = 0.5, 0.8, 0.003
"""Time in s over which the readings of a still arm are averaged, the share of it that they must
cover, and the range of positions in rad or m within which an arm is still."""


class SensorPose(NamedTuple):
    """The pose of a sensor at the positions of an arm."""

    gravity: FloatArray
    """(3,) in m/s^2, in the axes of the sensor."""
    C: FloatArray
    """(4, 4) in the frame of the root."""
    q: FloatArray
    """(n,) positions of the arm in rad or m."""
    stamp: int

    def reading(self, load: Inertia) -> FloatArray:
        """Return the wrench (6,) on the sensor of what it bears at rest."""
        force = load.mass * self.gravity
        return np.concatenate([np.cross(load.moment, self.gravity), force])


class Mounting:
    """The place of a sensor on an arm, and its pose by joint positions.

    ``sensor`` and ``tool`` are links fixed to one another; ``gravity`` (3,) in m/s^2 in the axes of
    the root.

    Raises UnknownBodyError; ModelError for links that do not move, or move against the sensor.
    """

    def __init__(
        self,
        model: Model,
        sensor: str,
        tool: str = "",
        *,
        gravity: ArrayLike = (0.0, 0.0, -9.81),
    ) -> None:
        self.model, self.sensor, self.tool = model, sensor, tool or sensor
        self.gravity = checks.numbers("gravity", gravity, (3,))
        self._body = model.frames[sensor].body
        if self._body == GROUND:
            raise ModelError(f"the sensor's link {sensor!r} does not move: its bias is not seen")
        self._turning = turning(model)
        self._to_tool = se3.inverse(self._in_sensor(self.tool))
        self._pose: SensorPose | None = None
        self._moved_at = -math.inf

    def _in_sensor(self, link: str) -> FloatArray:
        """Return the pose (4, 4) of a link in the frame of the sensor, to which it is fixed."""
        frame, sensor = self.model.frames[link], self.model.frames[self.sensor]
        if frame.body != self._body:
            valid = [each.name for each in self.model.frames.values() if each.body == self._body]
            raise ModelError(
                f"link {link!r} is not fixed to the sensor's link {self.sensor!r}; valid: "
                f"{listed(valid)}"
            )
        return np.asarray(se3.inverse(sensor.placement) @ frame.placement)

    def to_sensor(self, link: str, W: FloatArray) -> FloatArray:
        """Return a wrench (6,) on the sensor, given in the frame of a link that is fixed to it.

        Raises UnknownBodyError, ModelError.
        """
        return W if link == self.sensor else moved(W, self._in_sensor(link))

    def to_tool(self, W: FloatArray) -> FloatArray:
        """Return a wrench (6,) at the origin and in the axes of the tool's link."""
        return moved(W, self._to_tool)

    def load(self, link: str, load: Inertia) -> Inertia:
        """Return a load on a link as the sensor bears it, in its frame.

        It is zero on links that the sensor does not carry. Raises UnknownBodyError; ModelError for
        a link that moves against the sensor and is carried by it.
        """
        body = self.model.frames[link].body
        while body not in (GROUND, self._body):
            body = self.model.parents[body]
        return load.transformed(self._in_sensor(link)) if body != GROUND else Inertia.zero()

    def move(self, q: ArrayLike, stamp: int, now: float) -> None:
        """Take positions (n,) of the joints in rad or m.

        Angles of joints without limits are unwrapped. Raises ArgumentError for a wrong shape, and
        for numbers that are not finite.
        """
        q = checks.numbers("q", q, (self.model.n,))
        if self._pose is not None:
            q = nearest(q, self._pose.q, self._turning)
        C = algorithms.forward_kinematics(self.model, q, bodies=[self.sensor])[0]
        self._pose = SensorPose(C[:3, :3].T @ self.gravity, C, q, stamp)
        self._moved_at = now

    def pose(self, now: float) -> SensorPose | Rejection:
        """Return the present pose, or the reason why it is unknown."""
        if self._pose is None or now - self._moved_at > STALE_TIMEOUT:
            return Rejection("no_pose", f"no joint positions within {STALE_TIMEOUT:g} s")
        return self._pose


def moved(W: FloatArray, C: FloatArray) -> FloatArray:
    """Return a wrench (6,) in another frame, in which the present one has the pose C (4, 4)."""
    return np.asarray(se3.Ad(se3.inverse(C)).T @ W)


class ForceSensor:
    """Removes bias and weight of the tool from the readings of one sensor, and checks these.

    ``limits`` (6,), moment first, are the ranges beyond which a component is saturated; inf for
    none. Whenever bias, tool, load or zero change, the output goes on where it was, and takes its
    new value linearly over ZERO_TIME. Raises ArgumentError for limits that are no such numbers.
    """

    def __init__(self, *, limits: ArrayLike = (math.inf,) * 6) -> None:
        self.limits = checks.real("limits", limits)
        if self.limits.shape != (6,) or not (self.limits > 0.0).all():
            raise ArgumentError(f"limits must be 6 positive numbers; got {self.limits.tolist()}")
        self.calibration: Calibration | None = None
        self.offset = np.zeros(6)
        """Removed by :meth:`zero` in addition to the bias, in N m and N."""
        self.poses: list[tuple[FloatArray, FloatArray]] = []
        """Gravity (3,) in the sensor's axes and reading (6,) without known loads of each pose."""
        self._load = self._borne = Inertia.zero()
        """Known loads in the sensor's frame, and these with the tool."""
        self._latest: tuple[FloatArray, SensorPose] | None = None
        self._still: deque[tuple[float, FloatArray, SensorPose]] = deque()
        """The latest times, readings and poses, the newest last."""
        self._stamp, self._received = 0, -math.inf
        self._fade, self._faded_from = np.zeros(6), -math.inf

    def read(
        self, W: ArrayLike, stamp: int, now: float, pose: SensorPose | Rejection
    ) -> FloatArray | Rejection:
        """Return the wrench (6,) of the surroundings on the tool, or the reason for its absence.

        ``W`` (6,) is a reading, and ``pose`` that of the sensor. Raises ArgumentError for a wrong
        shape or type.
        """
        W = checks.real("W", W)
        if W.shape != (6,):
            raise ArgumentError(f"W has shape {W.shape}; must be (6,)")
        fresh = now - self._received <= STALE_TIMEOUT
        if stamp and fresh and stamp <= self._stamp:
            if stamp == self._stamp:
                return Rejection("repeated", f"the stamp {1e-9 * stamp:.6f} s again")
            late = f"{1e-9 * (self._stamp - stamp):.6f} s"
            return Rejection("time_backwards", f"the stamp is {late} before that of the latest")
        wrong = self._wrong(W)
        if isinstance(pose, Rejection):
            self._still.clear()
            return wrong or pose
        wrong = wrong or stamps_apart(stamp, pose.stamp)
        if wrong is not None:
            self._still.clear()
            return wrong
        if not fresh:
            self._still.clear()
        self._stamp, self._received = stamp, now
        self._latest = W, pose
        self._still.append((now, W, pose))
        while now - self._still[0][0] > STILL:
            self._still.popleft()
        if self.calibration is None:
            return Rejection("uncalibrated", "bias and weight of the tool are not known")
        return self._left(W, pose) + self._fading(now)

    def _wrong(self, W: FloatArray) -> Rejection | None:
        if not np.isfinite(W).all():
            return Rejection("not_finite", f"the reading is not finite: {W.tolist()}")
        if np.abs(W).max() >= LARGEST:
            return Rejection("too_large", f"the reading is too large to be true: {W.tolist()}")
        over = np.abs(W) >= self.limits
        if over.any():
            k = int(over.argmax())
            name, unit = ("moment", "N m") if k < 3 else ("force", "N")
            reached = f"{W[k]:.4g} {unit}, at its limit {self.limits[k]:.4g}"
            return Rejection("saturated", f"{name} {'xyz'[k % 3]} is {reached}")
        return None

    def _left(self, W: FloatArray, pose: SensorPose) -> FloatArray:
        """Return what the calibration leaves of a reading (6,)."""
        assert self.calibration is not None
        return np.asarray(W - self.calibration.bias - self.offset - pose.reading(self._borne))

    def _fading(self, now: float) -> FloatArray:
        done = (now - self._faded_from) / ZERO_TIME
        return np.asarray(self._fade * (1.0 - min(max(done, 0.0), 1.0)))

    # -- changes, after which the output goes on where it was ------------------------------------

    def calibrate(self, calibration: Calibration | None, now: float) -> None:
        """Use a calibration from now on; the offset of :meth:`zero` ends."""
        self._change(now, calibration, np.zeros(6), self._load)

    def bear(self, load: Inertia, now: float) -> None:
        """Use loads, in the sensor's frame, from now on."""
        self._change(now, self.calibration, self.offset, load)

    def zero(self, now: float) -> FloatArray:
        """Make the present mean output zero; return the wrench (6,) that is removed from now on.

        The output then goes linearly to zero over ZERO_TIME. Raises ArgumentError for an arm that
        moves, or a sensor that is not calibrated.
        """
        if self.calibration is None:
            raise ArgumentError("bias and weight of the tool are not known yet: fit them first")
        extra = np.mean([self._left(*each) for each in self._at_rest(now)], axis=0)
        self._change(now, self.calibration, self.offset + extra, self._load)
        return np.asarray(extra)

    def _change(
        self, now: float, calibration: Calibration | None, offset: FloatArray, load: Inertia
    ) -> None:
        known = self.calibration and calibration and now - self._received <= STALE_TIMEOUT
        latest = self._latest if known else None
        before = self._left(*latest) if latest else np.zeros(6)
        self.calibration, self.offset, self._load = calibration, offset, load
        mass, com = (0.0, np.zeros(3)) if calibration is None else calibration[1:]
        self._borne = Inertia.from_com(mass, com, np.zeros((3, 3))) + load
        step = self._left(*latest) - before if latest else np.zeros(6)
        if step.any():
            self._fade, self._faded_from = self._fading(now) - step, now

    # -- still poses -------------------------------------------------------------------------------

    def _at_rest(self, now: float) -> list[tuple[FloatArray, SensorPose]]:
        """Return the readings of the still arm, or raise ArgumentError."""
        latest = [one for one in self._still if now - one[0] <= STILL]
        covered = latest[-1][0] - latest[0][0] if latest else 0.0
        if covered < STILL_SHARE * STILL:
            raise ArgumentError(
                f"valid readings cover {covered:.2g} s of the latest {STILL:g} s; needed are "
                f"{STILL_SHARE * STILL:g} s"
            )
        moved = np.ptp([pose.q for _, _, pose in latest], axis=0).max()
        if moved > STILL_POSITION:
            raise ArgumentError(
                f"the arm moves: a joint by {moved:.3g} within {STILL:g} s; must be at most "
                f"{STILL_POSITION:g} rad or m"
            )
        return [(W, pose) for _, W, pose in latest]

    def take_pose(self, now: float) -> str:
        """Take the mean over the latest readings of the still arm; return the estimate in words.

        Raises ArgumentError for an arm that moves, or has not been read long enough.
        """
        readings = self._at_rest(now)
        W = np.mean([W - pose.reading(self._load) for W, pose in readings], axis=0)
        gravity = np.mean([pose.gravity for _, pose in readings], axis=0)
        gravities, _ = self._taken()
        missing = unseen(np.vstack([gravities, gravity]))  # or an error
        self.poses.append((gravity, W))
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


def stamps_apart(stamp: int, other: int) -> Rejection | None:
    """Return that the stamps of a reading and of joint positions differ too much; None if not."""
    apart = 1e-9 * (stamp - other)
    if not stamp or not other or abs(apart) <= STAMP_DIFFERENCE:
        return None
    word = "after" if apart > 0.0 else "before"
    message = f"the stamp is {abs(apart):.3f} s {word} that of the joint positions"
    return Rejection("stamps_apart", f"{message}; must be within {STAMP_DIFFERENCE:g} s")
