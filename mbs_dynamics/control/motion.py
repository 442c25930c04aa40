# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Requested motions of an arm: checked targets and trajectories, as numbers for the period."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import fixed_links
from mbs_dynamics.control.period import laws, references
from mbs_dynamics.control.period.records import Request, Settings, State
from mbs_dynamics.control.references import JointTarget, PoseTarget
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.errors import ArgumentError, UnknownBodyError, listed, quoted
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model


def moving_link(model: Model, name: str) -> str:
    """Return a link that joints move. Raises UnknownBodyError for others."""
    frames = model.frames
    if name not in frames or frames[name].body == GROUND:
        moving = [one for one, frame in frames.items() if frame.body != GROUND]
        raise UnknownBodyError(name, moving)
    return name


class Motion:
    """The law and the motion that are requested of an arm.

    Parameters: ``joints`` (m,) are the coordinates of the commanded joints, and ``names`` (m,)
    their names. Fields are those of :class:`~mbs_dynamics.control.period.records.Request`.
    """

    def __init__(self, model: Model, joints: Sequence[int], names: Sequence[str]) -> None:
        self._model, self.columns, self.names = model, list(joints), list(names)
        low, high = model.lower[self.columns], model.upper[self.columns]
        self._low = np.where(low < high, low, -np.inf)
        self._high = np.where(low < high, high, np.inf)
        self.law, self.link = laws.FLOAT, ""
        self.motion = self.prefers = 0.0
        self.follows = references.STOP
        self.target = np.zeros(model.n)
        self.target_qd = np.zeros(model.n)
        self.target_pose = np.eye(4)[:3]
        self.segment = np.zeros((6, model.n))
        self.segment_at = self.duration = self.delay = 0.0
        self.pace = 1.0
        self.trajectory: Trajectory | None = None
        """The trajectory that is approached or played."""
        self.holder = (False, False)
        """Whether another controller is to hold the arm after a release, and holds it now."""

    def request(
        self, action: float, *, sends: bool = False, settle: bool = False, doubt: float = 0.0
    ) -> Request:
        """Return a request for one period."""
        exists, holds = self.holder
        return Request(
            action=action,
            sends=float(sends),
            settle=float(settle),
            doubt=doubt,
            holder=float(exists),
            holds=float(holds),
            law=self.law,
            motion=self.motion,
            follows=self.follows,
            prefers=self.prefers,
            target=self.target,
            target_qd=self.target_qd,
            target_pose=self.target_pose,
            segment=self.segment,
            segment_at=self.segment_at,
            duration=self.duration,
            delay=self.delay,
            pace=self.pace,
        )

    def use(self, law: float, link: str = "") -> None:
        """Request another law; a motion for a law of another kind or link is ended."""
        if (law in laws.OF_LINKS, link) != (self.law in laws.OF_LINKS, self.link):
            self.stop()
        self.law, self.link = law, link

    def stop(self) -> None:
        """Come to rest."""
        self.follows, self.prefers, self.trajectory = references.STOP, 0.0, None
        self.motion, self.pace = self.motion + 1.0, 1.0

    def aim(self, target: Any, s: State, p: Settings) -> None:
        """Go to a target, or play a trajectory, from a state; None: come to rest.

        Raises MbsError for a target that is invalid; nothing changes then.
        """
        of_link = self.law in laws.OF_LINKS
        if self.law == laws.FLOAT:
            raise ArgumentError("the arm floats; references need a law that follows them")
        if target is None:
            self.stop()
        elif isinstance(target, JointTarget):
            self._aim_joints(target, s, p)
        elif isinstance(target, PoseTarget) and of_link:
            self.follows, self.target_pose = references.TARGET, self._checked(target)[:3]
            self.motion += 1.0
        elif isinstance(target, Trajectory) and not of_link:
            self._aim_trajectory(target)
        else:
            valid = (
                "moves a link (mode 'cartesian' in ROS): PoseTarget, or JointTarget for its posture"
                if of_link
                else "moves joints (mode 'joint' in ROS): JointTarget or Trajectory"
            )
            kind = type(target).__name__
            raise ArgumentError(f"the reference is a {kind}; valid for a law that {valid}")

    def _aim_joints(self, target: JointTarget, s: State, p: Settings) -> None:
        names, positions, velocities = target
        rows = [self._row(name) for name in names]
        if not rows or len(set(rows)) != len(rows):
            raise ArgumentError(f"the target names joints {listed(names)}; must name each once")
        at = checks.numbers("positions of the target", positions, (len(rows),))
        rates = np.zeros(len(rows))
        if len(velocities):
            rates = checks.numbers("velocities of the target", velocities, (len(rows),))
        for k, x, v in zip(rows, at, rates, strict=True):
            name, most = self.names[k], float(self._model.velocity_limits[self.columns[k]])
            if not self._low[k] - 1e-9 <= x <= self._high[k] + 1e-9:
                raise ArgumentError(
                    f"the target of {name!r} is out of reach at {x:.6g}; must be "
                    f"{self._low[k]:.6g} to {self._high[k]:.6g}"
                )
            if abs(v) > most:
                raise ArgumentError(
                    f"the target of {name!r} moves at {v:.6g}; its velocity limit is {most:.6g}"
                )
        others = self._aimed(s, p)
        self.target, self.target_qd = others, np.zeros(len(others))
        columns = np.array(self.columns)[rows]
        self.target[columns], self.target_qd[columns] = at, rates
        if self.law in laws.OF_LINKS:
            self.prefers = 1.0
        else:
            self.follows, self.trajectory, self.pace = references.TARGET, None, 1.0
        self.motion += 1.0

    def _aimed(self, s: State, p: Settings) -> FloatArray:
        """Return the present target positions (n,) of the joints."""
        follows = self.prefers if self.law in laws.OF_LINKS else self.follows
        if follows == references.TARGET and s.obeys:
            age = min(float(s.now - s.motion_at), float(p.reference_timeout))
            return np.asarray(
                np.clip(self.target + self.target_qd * age, p.spring_low, p.spring_high)
            )
        v = np.asarray(s.reference_qd)
        stopped = s.reference + v * abs(v) / (2.0 * p.reference_acceleration)
        return np.asarray(np.clip(stopped, p.spring_low, p.spring_high))

    def _row(self, name: str) -> int:
        if name not in self.names:
            raise ArgumentError(
                f"the target names joint {quoted(name)}; valid: {listed(self.names)}"
            )
        return self.names.index(name)

    def _aim_trajectory(self, target: Trajectory) -> None:
        trajectory = target.ordered(self.names)
        trajectory.check(self._model)
        self.stop()
        self.trajectory = trajectory
        self.follows = references.TRAJECTORY
        self.target, self.target_qd = np.zeros((2, self._model.n))
        self.target[self.columns] = trajectory.positions[0]
        self.duration, self.delay = trajectory.duration, max(0.0, float(trajectory.times[0]))
        self.feed(0.0)

    def feed(self, t: float) -> None:
        """Provide the segment of the trajectory at time t in s after its first point."""
        assert self.trajectory is not None
        self.segment_at, coefficients = self.trajectory.segment(t)
        self.segment = np.zeros_like(self.segment)
        self.segment[:, self.columns] = coefficients

    def end(self) -> None:
        """Hold the last point of the trajectory."""
        assert self.trajectory is not None
        self.target = self.target.copy()
        self.target[self.columns] = self.trajectory.positions[-1]
        self.follows, self.trajectory, self.pace = references.TARGET, None, 1.0
        self.motion += 1.0

    def _checked(self, target: PoseTarget) -> FloatArray:
        """Return the pose (4, 4) of a target in the root frame."""
        pose = checks.pose("pose of the target", target.pose)
        if target.frame:
            fixed = fixed_links(self._model)
            if target.frame not in fixed:
                raise UnknownBodyError(target.frame, fixed)
            pose = self._model.frames[target.frame].placement @ pose
        return pose
