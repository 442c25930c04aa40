# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The efforts that are commanded to a simulated robot. Knows no ROS.

A message is taken as a whole or refused as a whole; what was in force then stays in force.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import UnknownJointError
from mbs_dynamics.ros.joint_input import Rejection

LARGEST = 1e9
"""An effort above this, in N m or N, is refused."""


class EffortCommands:
    """The commands in force, by joint; zero until the first one comes.

    ``joints`` (empty: all) gives the order of commands without names. ``timeout`` in s of simulated
    time: after that long without a valid command there is none; 0 holds the last one for ever.

    Raises UnknownJointError if ``joints`` has a name that is not among ``joint_names``.
    """

    def __init__(
        self, joint_names: Sequence[str], joints: Sequence[str] = (), timeout: float = 0.0
    ) -> None:
        self.joint_names = tuple(joint_names)
        self.joints = tuple(joints) or self.joint_names
        self.timeout = timeout
        self.accepted = 0
        self.rejected = 0
        self.latest: float | None = None
        """Simulated time in s of the latest valid command; None if there was none."""
        self._places = {name: k for k, name in enumerate(self.joint_names)}
        for name in self.joints:
            if name not in self._places:
                raise UnknownJointError(name, self.joint_names)
        self._efforts = np.zeros(len(self.joint_names))

    def reset(self) -> None:
        """Forget all commands."""
        self._efforts = np.zeros(len(self.joint_names))
        self.latest = None

    def set(self, efforts: Sequence[float], now: float) -> Rejection | None:
        """Take efforts in the order of ``joints``, or return why they are refused."""
        if len(efforts) != len(self.joints):
            return self._refuse(
                "length",
                f"{len(efforts)} efforts for {len(self.joints)} joints: {', '.join(self.joints)}",
            )
        return self._take(self.joints, efforts, now)

    def set_by_name(
        self, names: Sequence[str], efforts: Sequence[float], now: float
    ) -> Rejection | None:
        """Take efforts by name; joints that are not named keep theirs. Or return why not."""
        if len(efforts) != len(names) or not names:
            return self._refuse("length", f"{len(names)} joint names but {len(efforts)} efforts")
        unknown = [name for name in names if name not in self._places]
        if unknown:
            return self._refuse(
                "unknown_joints",
                f"no joints {', '.join(unknown)}; the joints are: {', '.join(self.joint_names)}",
            )
        twice = sorted({name for name in names if list(names).count(name) > 1})
        if twice:
            return self._refuse("duplicate_joints", f"named more than once: {', '.join(twice)}")
        return self._take(names, efforts, now)

    def at(self, now: float) -> FloatArray:
        """Return the efforts (n,) in force at a simulated time in s."""
        if self.expired(now):
            return np.zeros(len(self.joint_names))
        return self._efforts

    def expired(self, now: float) -> bool:
        """Return whether the commands have lapsed."""
        return self.latest is not None and 0.0 < self.timeout < now - self.latest

    def _take(self, names: Sequence[str], efforts: Sequence[float], now: float) -> Rejection | None:
        for name, effort in zip(names, efforts, strict=True):
            if not math.isfinite(effort):
                return self._refuse("not_finite", f"effort is not finite: {name} = {effort}")
            if abs(effort) > LARGEST:
                return self._refuse("too_large", f"effort is too large: {name} = {effort:g}")
        if self.expired(now):
            self._efforts = np.zeros(len(self.joint_names))
        for name, effort in zip(names, efforts, strict=True):
            self._efforts[self._places[name]] = effort
        self.accepted += 1
        self.latest = now
        return None

    def _refuse(self, kind: str, reason: str) -> Rejection:
        self.rejected += 1
        return Rejection(kind, reason)
