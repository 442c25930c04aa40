# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Records the motion of an arm that is guided by hand, and sends it as a trajectory.

Behaviour: docs/reference/nodes. It commands nothing: the follower of the trajectory holds the arm.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from sensor_msgs.msg import JointState
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import Environment, LinkGravity, with_gravity, with_load
from mbs_dynamics.control.teaching import Demonstration, Rig, check_scipy
from mbs_dynamics.control.trajectory import Trajectory
from mbs_dynamics.errors import ArgumentError, ModelError, listed, quoted
from mbs_dynamics.model.model import STANDARD_GRAVITY, Model
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.node_base import BaseNode
from mbs_dynamics.ros.process import run
from mbs_dynamics.ros.robot_description import loads_of, model_of, remarks_about
from mbs_dynamics.ros.teaching.interface import TEACHING_NODE, TeachingSettings
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.timeseries.reading import merged

MOST_SAMPLES = 500_000
"""States of a recording, after which it ends."""

SHORTEST_WAY = 1.0
"""Least time in s for the way to the first point."""

UNLOADED = Environment(LinkGravity("", STANDARD_GRAVITY))
"""Gravity and loads until others are received."""

Sampled = tuple[float, dict[str, tuple[float, float, float]]]
"""A time in s, and positions, velocities and efforts of joints by name."""


class TeachingNode(BaseNode):
    """The teaching node; see docs/reference/nodes. Raises MbsError without SciPy."""

    interface = TEACHING_NODE

    def __init__(self, **options: Any) -> None:
        check_scipy()  # and not only when a recording has ended
        super().__init__(**options)
        settings: TeachingSettings = self._settings
        self._model: Model | None = None
        self._environment = UNLOADED
        self._positions: dict[str, float] = {}
        self._samples: list[Sampled] = []
        self._recording, self._names = False, set[str]()
        self._latest_answer = "nothing recorded, nothing sent"
        others = settings.others
        self._topics = {
            name: (self.advertise("<trajectory_topic>", name), others.get(name, ()))
            for name in (settings.trajectory_topic, *others)
        }
        self.subscribe("robot_description", lambda message: self._describe(message.data))
        self.subscribe("joint_states", self._on_joint_states)
        self.subscribe("~/gravity", self._on_gravity)
        self.subscribe("~/payload", self._on_payload)
        self.answer("~/record", lambda request: self._record(request.data))
        self.answer("~/play", lambda request: self._play())

    # -- the robot ---------------------------------------------------------------------------------

    def _describe(self, text: str) -> None:
        def take() -> None:
            model = model_of(text, loads=loads_of(self._settings.loads))
            self._rig(model)
            self._model, self._environment = model, UNLOADED
            self._log_model(f"model {quoted(model.name)}: {model.n} joints", remarks_about(model))

        self._try("robot_description", take)

    def _rig(self, model: Model | None = None) -> Rig:
        """Return the joints to be taught, of a model or of that in force."""
        if model is None:
            model = self._in_force()
        settings = self._settings
        return Rig(
            model,
            settings.joints,
            fixed={k: x for k, x in self._positions.items() if k in model.joint_names},
            velocity=settings.velocity,
            acceleration=settings.acceleration,
            torque=settings.torque,
        )

    @property
    def _described(self) -> Model:
        if self._model is None:
            raise ModelError("there is no robot_description yet")
        return self._model

    def _in_force(self) -> Model:
        """Return the model under the requested gravity and with the requested loads."""
        return self._environment.applied_to(self._described)

    def _on_gravity(self, message: Any) -> None:
        gravity = messages.gravity_of(message, self._settings.frame_prefix)

        def take() -> None:
            with_gravity(self._described, gravity)
            self._environment = self._environment._replace(gravity=gravity)

        self._try("gravity", take)

    def _on_payload(self, message: Any) -> None:
        load = messages.load_of(message, self._settings.frame_prefix)

        def take() -> None:
            with_load(self._described, load)
            self._environment = self._environment.with_load(load)

        self._try("payload", take)

    # -- recording and playing ---------------------------------------------------------------------

    def _on_joint_states(self, message: JointState) -> None:
        if len(message.position) != len(message.name):
            return
        positions = dict(zip(message.name, message.position, strict=True))
        self._positions |= positions
        taught = {k: (x, math.nan, math.nan) for k, x in positions.items() if k in self._names}
        if not (self._recording and taught):
            return
        stamp = messages.stamp_of(message.header.stamp) or self.get_clock().now().nanoseconds
        self._samples.append((1e-9 * stamp, taught))
        if len(self._samples) == MOST_SAMPLES:
            self._recording = False
            self.warn("recording", f"the recording has ended: it has {MOST_SAMPLES} states")

    def _record(self, begin: bool) -> str:
        rig = self._rig()
        if begin:
            self._samples, self._names, self._recording = [], set(rig.names), True
            return f"recording {len(rig.names)} joints"
        samples, self._samples, self._recording = self._samples, [], False
        if not samples:
            raise ArgumentError("no joint_states have come since ~/record was called with true")
        recording = merged("the recording", samples)
        recording = replace(recording, t=recording.t - recording.t[0])
        taught, path = self._taught(rig, recording), Path(self._settings.file).expanduser()
        recording.write(path)
        largest, what = taught.largest_speed
        return (
            f"{np.ptp(recording.t):.2f} s of {len(rig.names)} joints in {str(path)!r}; valid at up "
            f"to {largest:.3g} times the taught speed, by {what}"
        )

    def _taught(self, rig: Rig, recording: TimeSeries) -> Demonstration:
        return Demonstration(rig, recording, tolerance=self._settings.tolerance)

    def _play(self) -> str:
        if self._recording:
            raise ArgumentError("a recording is going on; call ~/play when it has ended")
        rig, speed = self._rig(), self._settings.speed
        recording = TimeSeries.read(self._settings.file).of(rig.model)
        taught = self._taught(rig, recording)
        motion = taught.as_taught(speed) if speed > 0.0 else taught.fastest()
        unknown = [name for name in rig.names if name not in self._positions]
        if unknown:
            raise ArgumentError(f"no joint_states of {listed(unknown)} have come")
        q = np.array([self._positions[name] for name in rig.names])
        way = motion.positions[0] - q
        turns = np.where(rig.turning, math.tau * np.round(way / math.tau), 0.0)
        # the peak of a polynomial of fifth order from rest to rest
        lead = 1.875 * float(np.abs(way - turns).max()) / self._settings.approach_velocity
        lead = max(lead, SHORTEST_WAY)
        unheard = [
            name for name, (one, _) in self._topics.items() if not one.get_subscription_count()
        ]
        if unheard:
            raise ArgumentError(f"no node subscribes to {listed(unheard)}: nothing is sent")
        taken = {name for names in self._settings.others.values() for name in names}
        for publisher, names in self._topics.values():
            own = names or [name for name in rig.names if name not in taken]
            publisher.publish(_message(motion, rig, own, turns, lead))
        return f"the first point is due in {lead:.2f} s, the last {motion.duration:.2f} s later"

    # -- services and diagnostics ------------------------------------------------------------------

    def _publish_diagnostics(self) -> None:
        self._remind_of_clock()
        model, values = self._model, {"file": self._settings.file, "latest": self._latest_answer}
        values |= {"states recorded": len(self._samples), "joints reported": len(self._positions)}
        if model is not None:
            model = self._in_force()
            values |= messages.environment_values(model.gravity, self._environment.loads)
        missing = "waiting for a robot_description" if model is None else ""
        self._remind("waiting", missing)
        state = "recording" if self._recording else "idle"
        status = messages.status(
            "teaching", state, values, warning=missing, refusals=self._refusals
        )
        self._report([status], "" if model is None else model.name)


def _message(
    motion: Trajectory, rig: Rig, names: Sequence[str], turns: FloatArray, lead: float
) -> JointTrajectory:
    """Return a trajectory of some joints, by whole ``turns`` (m,) off, that begins after a time."""
    columns = [rig.names.index(name) for name in names]
    message = JointTrajectory(joint_names=list(names))
    for t in motion.times:
        q, qd, qdd = motion.at(t)
        point = JointTrajectoryPoint(
            positions=(q - turns)[columns].tolist(),
            velocities=qd[columns].tolist(),
            accelerations=qdd[columns].tolist(),
        )
        due = divmod(round(1e9 * (t - motion.times[0] + lead)), 10**9)
        point.time_from_start.sec, point.time_from_start.nanosec = due
        message.points.append(point)
    return message


main = partial(run, TeachingNode)

if __name__ == "__main__":
    sys.exit(main())
