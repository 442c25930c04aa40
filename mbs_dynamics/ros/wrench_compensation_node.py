# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Publishes the wrench of a wrist sensor without bias and weight of the tool.

Behaviour: docs/reference/nodes. Nothing is decided here: callbacks convert, call and publish.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticStatus
from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.environment import Environment, LinkGravity, LinkLoad, with_load
from mbs_dynamics.control.force_calibration import Calibration
from mbs_dynamics.control.force_sensor import STALE_TIMEOUT, ForceSensor
from mbs_dynamics.control.joint_input import JointInput
from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.errors import ArgumentError, MbsError, ModelError, quoted
from mbs_dynamics.output_files import check_writable, expanded
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.described_node import DescribedNode
from mbs_dynamics.ros.process import run
from mbs_dynamics.ros.robot_description import model_of, remarks_about
from mbs_dynamics.ros.wrench_compensation.interface import (
    WRENCH_COMPENSATION_NODE,
    WrenchCompensationSettings,
)


class WrenchCompensationNode(DescribedNode):
    """The wrench compensation node; see docs/reference/nodes.

    Raises ArgumentError for a ``calibration_file`` that is damaged or cannot be written.
    """

    interface = WRENCH_COMPENSATION_NODE
    readings = "wrench"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        settings: WrenchCompensationSettings = self._settings
        self._sensor: ForceSensor | None = None
        self._environment = Environment(LinkGravity("", settings.gravity))
        self._text, self._refused = "", ""
        self._path = Path(settings.calibration_file) if settings.calibration_file else None
        self._calibration: Calibration | None = None
        """The calibration of the file, until there is a sensor."""
        if self._path is not None and expanded(self._path).exists():
            self._calibration = Calibration.read(self._path, settings.sensor_frame)
        elif self._path is not None:
            check_writable("calibration_file", self._path)  # ~/fit will write it
        self._outgoing = [self.advertise(topic) for topic in ("~/wrench", "~/tool_wrench")]
        self._enter("unconfigured")
        self._serve("~/take_pose", ForceSensor.take_pose)
        self._serve("~/fit", self._fit)
        self._serve("~/restart", self._restart)
        self._serve("~/zero", self._zero)

    def _serve(self, service: str, action: Callable[[ForceSensor, float], str]) -> None:
        self.answer(service, lambda _: action(self._described(), time.monotonic()))

    # -- lifecycle ---------------------------------------------------------------------------------

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
        if self._sensor is not None:
            self._calibration = self._sensor.calibration
        self._sensor, self._input, self._refused = None, None, ""
        self._environment = Environment(LinkGravity("", self._settings.gravity))
        self._enter("unconfigured")

    @property
    def _has_robot(self) -> bool:
        return self._sensor is not None

    # -- the robot ---------------------------------------------------------------------------------

    def _describe(self, text: str) -> bool:
        self._refused = ""
        if self._sensor is not None and text == self._text:
            return True
        settings = self._settings
        links, limits = (settings.sensor_frame, settings.tool_frame), settings.wrench_limits
        try:
            model = model_of(text)
            sensor = ForceSensor(model, *links, limits=limits)
            environment, remarks = self._environment.fitted(
                model, settings.gravity, lambda some: sensor.set_model(some.applied_to(model), 0.0)
            )
            sensor.set_model(environment.applied_to(model), 0.0)
            joints = JointInput.of_model(model, fixed=settings.fixed)
        except MbsError as error:
            self._refused = str(error)
            self.warn("description", f"robot_description refused: {error}", error=True)
            return False
        sensor.calibration = self._sensor.calibration if self._sensor else self._calibration
        self._sensor, self._input, self._text = sensor, joints, text
        self._environment = environment
        self._enter(self._lifecycle)
        line = f"model {quoted(model.name)}: sensor {sensor.link!r}, tool {sensor.tool!r}"
        self._log_model(line, [*remarks, *remarks_about(model)])
        return True

    def _described(self) -> ForceSensor:
        if self._sensor is None:
            raise ModelError("there is no robot_description yet")
        return self._sensor

    def _set_gravity(self, gravity: LinkGravity) -> None:
        self._set_environment(self._environment._replace(gravity=gravity))

    def _set_load(self, load: LinkLoad) -> None:
        with_load(self._described().model, load)  # or an error, of a load that is removed as well
        self._set_environment(self._environment.with_load(load))

    def _set_environment(self, environment: Environment) -> None:
        sensor = self._described()
        sensor.set_model(environment.applied_to(sensor.model), time.monotonic())
        self._environment = environment

    def _apply(self, before: WrenchCompensationSettings, given: Sequence[str]) -> None:
        if "gravity" in given:  # also if its value is the same
            gravity = LinkGravity("", self._settings.gravity)
            if self._sensor is not None:
                self._set_gravity(gravity)
            self._environment = self._environment._replace(gravity=gravity)

    # -- readings ----------------------------------------------------------------------------------

    def _on_joint_states(self, message: JointState) -> None:
        now = time.monotonic()
        reading = self._read(message, now)
        if self._sensor is not None and reading is not None:
            self._sensor.move(reading.q, reading.stamp, now)

    def _on_wrench(self, message: Any) -> None:
        begin, sensor, header = time.monotonic(), self._sensor, message.header
        if sensor is None:
            return
        sign, stamp = -1.0 if self._settings.reversed else 1.0, messages.stamp_of(header.stamp)
        link = messages.link_of(header.frame_id, self._settings.frame_prefix)
        W: FloatArray | Rejection
        try:
            given = sensor.to_sensor(link, sign * messages.wrench_of(message))
            W = sensor.read(given, stamp, begin)
        except MbsError as error:
            W = Rejection("frame", f"header.frame_id is {quoted(header.frame_id)}: {error}")
        if isinstance(W, Rejection):
            if W.kind == "uncalibrated":
                self._statistics.skipped(begin)
            elif W.kind != "repeated":
                self._statistics.rejected(W)
                self.warn(W.kind, f"wrench rejected: {W.reason}")
            return
        when = header.stamp if stamp else self.stamp_now()
        each = (sensor.link, W), (sensor.tool, sensor.to_tool(W))
        for publisher, (name, wrench) in zip(self._outgoing, each, strict=True):
            frame = self._settings.frame_prefix + name
            publisher.publish(messages.wrench_message(when, frame, wrench))
        self._statistics.answered(begin, time.monotonic())

    # -- services and diagnostics ------------------------------------------------------------------

    def _fit(self, sensor: ForceSensor, now: float) -> str:
        found = sensor.fit(now)
        if self._path is None:
            return str(found)
        try:
            found.calibration.write(self._path, sensor.link)
        except ArgumentError as error:
            raise ArgumentError(f"{found}. In use, but lost at the next start: {error}") from error
        return f"{found}; written to {str(self._path)!r}"

    def _restart(self, sensor: ForceSensor, now: float) -> str:
        sensor.poses.clear()
        return "all poses are discarded"

    def _zero(self, sensor: ForceSensor, now: float) -> str:
        tx, ty, tz, fx, fy, fz = sensor.zero(now)
        return f"removed: ({fx:.2f}, {fy:.2f}, {fz:.2f}) N, ({tx:.3f}, {ty:.3f}, {tz:.3f}) N m"

    def _publish_diagnostics(self) -> None:
        now = time.monotonic()
        self._remind("waiting", self._waiting_for(self._refused))
        self._remind_of_clock()
        report = self._statistics.report(now)
        stale_for = self._statistics.stale_for(now, STALE_TIMEOUT)
        stale = self._input.stale(now) if self._input is not None else []
        status = messages.input_status(self._lifecycle, report, stale_for, stale, "wrenches")
        name = self._sensor.model.name if self._sensor is not None else ""
        self._report([status, self._sensor_status()], name)

    def _sensor_status(self) -> DiagnosticStatus:
        values, summary, unknown = {}, "", "bias and weight of the tool are not known"
        if self._sensor is not None:
            values = messages.environment_values(self._sensor.gravity, self._environment.loads)
            values["poses"] = len(self._sensor.poses)
        if self._sensor is not None and self._sensor.calibration is not None:
            bias, mass, com = self._sensor.calibration
            summary, unknown = f"tool of {mass:.3f} kg" if mass else "no tool", ""
            values["bias force [N]"] = np.array2string(bias[3:], precision=3)
            values["bias torque [N m]"] = np.array2string(bias[:3], precision=4)
            values |= {"mass [kg]": f"{mass:.4f}", "com [m]": np.array2string(com, precision=4)}
        error = self._refused and f"robot_description refused: {self._refused}"
        return messages.status(
            "sensor", summary, values, warning=unknown, error=error, refusals=self._refusals
        )

    def _waiting_for(self, refused: str) -> str:
        missing = super()._waiting_for(refused)
        if not missing and self._described().calibration is None:
            return "waiting for bias and weight of the tool: call ~/take_pose in still poses, ~/fit"
        return missing


main = partial(run, WrenchCompensationNode)

if __name__ == "__main__":
    sys.exit(main())
