# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Publishes the wrench of a wrist sensor without bias and weight of the tool.

Behaviour: docs/reference/nodes. Nothing is decided here: callbacks convert, call and publish.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState

from mbs_dynamics.control.environment import (
    LinkGravity,
    LinkLoad,
    carried_over,
    check_load,
    fixed_links,
    replaced,
    root_gravity,
)
from mbs_dynamics.control.force_sensor import (
    STALE_TIMEOUT,
    Calibration,
    ForceSensor,
    Mounting,
    Rejection,
    SensorPose,
    moved,
)
from mbs_dynamics.control.joint_input import JointInput
from mbs_dynamics.errors import ArgumentError, MbsError, ModelError, quoted
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.output_files import check_writable
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.described_node import DescribedNode
from mbs_dynamics.ros.process import run
from mbs_dynamics.ros.robot_description import model_of, remarks_about
from mbs_dynamics.ros.wrench_compensation.interface import (
    WRENCH_COMPENSATION_NODE,
    WrenchCompensationSettings,
)


class WrenchCompensationNode(DescribedNode):
    """The wrench compensation node; see docs/reference/nodes."""

    interface = WRENCH_COMPENSATION_NODE
    readings = "wrench"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._watch_parameters()
        settings: WrenchCompensationSettings = self._settings
        self._mounting: Mounting | None = None
        self._input: JointInput | None = None
        self._gravity, self._loads = LinkGravity("", settings.gravity), list[LinkLoad]()
        self._text, self._refused, self._file_problem = "", "", ""
        self._sensor = ForceSensor(limits=settings.wrench_limits)
        self._path = Path(settings.calibration_file) if settings.calibration_file else None
        if self._path is not None:
            self._read(self._path)
        self._topics: list[tuple[Any, str]] = []
        self._outgoing = [self.advertise(topic.name) for topic in self.interface.published[:3]]
        self._enter("unconfigured")
        for name, action in {
            "take_pose": self._sensor.take_pose,
            "fit": self._fit,
            "restart": self._restart,
            "zero": self._zero,
        }.items():
            self.answer(f"~/{name}", partial(lambda act, _: act(time.monotonic()), action))
        self._steady_timer(1.0, self._publish_diagnostics)

    def _read(self, path: Path) -> None:
        try:
            if not path.expanduser().exists():
                check_writable("calibration_file", path)  # ~/fit will write it
                return
            calibration = Calibration.read(path, self._settings.sensor_frame)
        except ArgumentError as error:
            self._file_problem = str(error)
            self.get_logger().error(f"no bias and tool by calibration_file: {error}")
            return
        self._sensor.calibrate(calibration, time.monotonic())
        self.get_logger().info(f"bias and tool of {str(path)!r}: {calibration.mass:.3f} kg")

    # -- lifecycle -------------------------------------------------------------------------------

    def on_activate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Subscribe to the sensor and the robot's state."""
        self._activated = [
            self.subscribe("joint_states", self._on_joint_states),
            self.subscribe("wrench", self._on_wrench),
        ]
        self._enter("active")
        return TransitionCallbackReturn.SUCCESS

    def _forget(self) -> None:
        super()._forget()
        self._mounting, self._input, self._topics, self._refused = None, None, [], ""
        self._gravity, self._loads = LinkGravity("", self._settings.gravity), []
        self._sensor.poses.clear()
        self._enter("unconfigured")

    @property
    def _has_robot(self) -> bool:
        return self._mounting is not None

    # -- the robot ---------------------------------------------------------------------------------

    def _describe(self, text: str) -> bool:
        settings = self._settings
        if self._mounting is not None and text == self._text:
            self._refused = ""
            return True
        try:
            model = model_of(text)
            mounting = Mounting(model, settings.sensor_frame, settings.tool_frame)
            gravity, loads, remarks = carried_over(
                model,
                self._gravity,
                LinkGravity("", settings.gravity),
                self._loads,
                lambda loads: self._borne(mounting, loads),
            )
            mounting.gravity = root_gravity(model, gravity)
            borne = self._borne(mounting, loads)
            joints = JointInput.of_model(model, fixed=settings.fixed)
        except MbsError as error:
            self._refused = str(error)
            self.warn("description", f"robot_description refused: {error}", error=True)
            return False
        self._mounting, self._input, self._text, self._refused = mounting, joints, text, ""
        self._gravity, self._loads = gravity, loads
        self._sensor.poses.clear()
        self._sensor.bear(borne, time.monotonic())
        frames = (mounting.sensor, mounting.tool, fixed_links(model)[0])
        outgoing = [settings.frame_prefix + frame for frame in frames]
        self._topics = list(zip(self._outgoing, outgoing, strict=True))
        self._enter(self._lifecycle)
        line = f"model {quoted(model.name)}: sensor {mounting.sensor!r}, tool {mounting.tool!r}"
        self._log_model(line, [*remarks, *remarks_about(model)])
        return True

    def _borne(self, mounting: Mounting, loads: Sequence[LinkLoad]) -> Inertia:
        """Return the loads that the sensor bears."""
        total = Inertia.zero()
        for load in loads:
            check_load(load)
            inertia = Inertia.from_com(load.mass, load.com, load.inertia_at_com)
            total += mounting.load(load.link, inertia)
        return total

    def _described(self) -> Mounting:
        if self._mounting is None:
            raise ModelError("there is no robot_description yet")
        return self._mounting

    def _set_gravity(self, gravity: LinkGravity) -> None:
        mounting = self._described()
        mounting.gravity = root_gravity(mounting.model, gravity)
        self._gravity = gravity

    def _set_load(self, load: LinkLoad) -> None:
        loads = replaced(self._loads, load)
        mounting = self._described()
        mounting.load(load.link, Inertia.zero())  # or an error, of a link without load as well
        self._sensor.bear(self._borne(mounting, loads), time.monotonic())
        self._loads = loads

    # -- readings ----------------------------------------------------------------------------------

    def _on_joint_states(self, message: JointState) -> None:
        if self._input is None or self._mounting is None:
            return
        now, stamp = time.monotonic(), messages.stamp_of(message.header.stamp)
        reading = self._input.read(
            message.name, message.position, message.velocity, stamp=stamp, received=now
        )
        if isinstance(reading, Rejection):
            if reading.kind != "partial":
                self.warn(reading.kind, f"joint_states rejected: {reading.reason}")
        elif not reading.repeated:
            self._mounting.move(reading.q, reading.stamp, now)

    def _on_wrench(self, message: Any) -> None:
        begin, mounting = time.monotonic(), self._mounting
        if mounting is None:
            return
        stamp = messages.stamp_of(message.header.stamp)
        answer = self._compensated(mounting, message, stamp, begin)
        if isinstance(answer, Rejection):
            if answer.kind == "uncalibrated":
                self._statistics.skipped(begin)
            elif answer.kind != "repeated":
                self._statistics.rejected(answer)
                self.warn(answer.kind, f"wrench rejected: {answer.reason}")
            return
        W, pose = answer
        when = message.header.stamp if stamp else self.stamp_now()
        each = (W, mounting.to_tool(W), moved(W, pose.C))
        for (publisher, frame), wrench in zip(self._topics, each, strict=True):
            if publisher.get_subscription_count():
                publisher.publish(messages.wrench_message(when, frame, wrench))
        self._statistics.answered(begin, time.monotonic())

    def _compensated(
        self, mounting: Mounting, message: Any, stamp: int, now: float
    ) -> tuple[np.ndarray[Any, Any], SensorPose] | Rejection:
        frame = message.header.frame_id
        W = messages.wrench_of(message) * (-1.0 if self._settings.reversed else 1.0)
        try:
            W = mounting.to_sensor(messages.link_of(frame, self._settings.frame_prefix), W)
        except MbsError as error:
            return Rejection("frame", f"header.frame_id is {quoted(frame)}: {error}")
        pose = mounting.pose(now)
        answer = self._sensor.read(W, stamp, now, pose)
        if isinstance(answer, Rejection):
            return answer
        assert isinstance(pose, SensorPose)
        return answer, pose

    # -- services ----------------------------------------------------------------------------------

    def _fit(self, now: float) -> str:
        message = str(self._sensor.fit(now))
        if self._path is None:
            return message
        assert self._sensor.calibration is not None
        try:
            self._sensor.calibration.write(self._path, self._settings.sensor_frame)
        except ArgumentError as error:
            self._file_problem = str(error)
            return f"{message}. In use, but lost at the next start: {error}"
        self._file_problem = ""
        return f"{message}; written to {str(self._path)!r}"

    def _restart(self, now: float) -> str:
        self._sensor.poses.clear()
        return "all poses are discarded"

    def _zero(self, now: float) -> str:
        tx, ty, tz, fx, fy, fz = self._sensor.zero(now)
        return f"removed: ({fx:.2f}, {fy:.2f}, {fz:.2f}) N, ({tx:.3f}, {ty:.3f}, {tz:.3f}) N m"

    # -- diagnostics and parameters ----------------------------------------------------------------

    def _publish_diagnostics(self) -> None:
        now = time.monotonic()
        self._remind("waiting", self._waiting_for(self._refused))
        self._remind_of_clock()
        report = self._statistics.report(now)
        stale_for = self._statistics.stale_for(now, STALE_TIMEOUT)
        stale = self._input.stale(now) if self._input is not None else []
        status = messages.input_status(self._lifecycle, report, stale_for, stale, "wrenches")
        statuses = [status, self._sensor_status()]
        self._report(statuses, self._mounting.model.name if self._mounting is not None else "")

    def _sensor_status(self) -> DiagnosticStatus:
        sensor = self._sensor
        values: dict[str, object] = {"poses": len(sensor.poses)}
        summary, unknown = "", "bias and weight of the tool are not known"
        if sensor.calibration is not None:
            bias, mass, com = sensor.calibration
            summary, unknown = f"tool of {mass:.3f} kg" if mass else "no tool", ""
            for name, each in (("bias", bias), ("zeroed", sensor.offset)):
                values[f"{name} force [N]"] = np.array2string(each[3:], precision=3)
                values[f"{name} torque [N m]"] = np.array2string(each[:3], precision=4)
            values |= {"mass [kg]": f"{mass:.4f}", "com [m]": np.array2string(com, precision=4)}
        if self._mounting is not None:
            values |= messages.environment_values(self._mounting.gravity, self._loads)
        refused = self._refused and f"robot_description refused: {self._refused}"
        problems = [one for one in (refused, self._file_problem) if one]
        error = "; ".join([unknown or summary, *problems]) if problems else ""
        return messages.status(
            "sensor", summary, values, warning=unknown, error=error, refusals=self._refusals
        )

    def _waiting_for(self, refused: str) -> str:
        missing = super()._waiting_for(refused)
        if not missing and self._sensor.calibration is None:
            return "waiting for bias and weight of the tool: call ~/take_pose in still poses, ~/fit"
        return missing

    def _apply(self, before: WrenchCompensationSettings, given: Sequence[str]) -> None:
        self._sensor.limits = self._settings.wrench_limits
        if "gravity" in given:  # also if its value is the same
            self._gravity = LinkGravity("", self._settings.gravity)
            if self._mounting is not None:
                self._mounting.gravity = root_gravity(self._mounting.model, self._gravity)


main = partial(run, WrenchCompensationNode)

if __name__ == "__main__":
    sys.exit(main())
