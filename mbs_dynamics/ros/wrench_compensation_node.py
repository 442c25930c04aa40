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

from rclpy.lifecycle import LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState

from mbs_dynamics.control.environment import LinkGravity, root_gravity
from mbs_dynamics.control.force_calibration import Calibration
from mbs_dynamics.control.force_sensor import STALE_TIMEOUT, ForceSensor
from mbs_dynamics.control.joint_input import JointInput
from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.errors import ModelError, quoted
from mbs_dynamics.output_files import expanded
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

    Raises ArgumentError for a ``calibration_file`` that is damaged.
    """

    interface = WRENCH_COMPENSATION_NODE
    readings = "wrench"

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        settings: WrenchCompensationSettings = self._settings
        self._sensor: ForceSensor | None = None
        self._path = Path(settings.calibration_file) if settings.calibration_file else None
        self._calibration: Calibration | None = None
        """The calibration of the file, or of the latest fit."""
        if self._path is not None and expanded(self._path).exists():
            self._calibration = Calibration.read(self._path, settings.sensor_frame)
        self._wrench = self.advertise("~/wrench")
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
        self._sensor, self._input = None, None
        self._enter("unconfigured")

    @property
    def _has_robot(self) -> bool:
        return self._sensor is not None

    # -- the robot ---------------------------------------------------------------------------------

    def _describe(self, text: str) -> bool:
        return self._try("robot_description", lambda: self._use(text))

    def _use(self, text: str) -> None:
        """Use the robot of a URDF. Raises MbsError if it is refused."""
        settings, before = self._settings, self._sensor
        model = model_of(text)
        sensor = ForceSensor(model, settings.sensor_frame)
        sensor.gravity = root_gravity(model, LinkGravity("", settings.gravity))
        sensor.calibration = self._calibration
        if before is not None:  # they do not depend on the arm
            sensor.gravity, sensor.poses = before.gravity, before.poses
            sensor.calibration = before.calibration
        self._input = JointInput.of_model(model, fixed=settings.fixed)
        self._sensor = sensor
        self._enter(self._lifecycle)
        self._log_model(f"model {quoted(model.name)}: sensor {sensor.link!r}", remarks_about(model))

    def _described(self) -> ForceSensor:
        if self._sensor is None:
            raise ModelError("there is no robot_description yet")
        return self._sensor

    def _set_gravity(self, gravity: LinkGravity) -> None:
        sensor = self._described()
        sensor.gravity = root_gravity(sensor.model, gravity)

    def _apply(self, before: WrenchCompensationSettings, given: Sequence[str]) -> None:
        if "gravity" in given and self._sensor is not None:  # also if its value is the same
            self._set_gravity(LinkGravity("", self._settings.gravity))

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
        frame, link = quoted(header.frame_id), sensor.link
        if messages.link_of(header.frame_id, self._settings.frame_prefix) == link:
            W = sensor.read(sign * messages.wrench_of(message), stamp, begin)
        else:
            W = Rejection("frame", f"header.frame_id is {frame}; must be {link!r}")
        if isinstance(W, Rejection):
            self._statistics.rejected(W)
            self.warn(W.kind, f"wrench rejected: {W.reason}")
            return
        when = header.stamp if stamp else self.stamp_now()
        self._wrench.publish(messages.wrench_message(when, header.frame_id, W))
        self._statistics.answered(begin, time.monotonic())

    # -- services and diagnostics ------------------------------------------------------------------

    def _fit(self, sensor: ForceSensor, now: float) -> str:
        found = sensor.fit()
        if self._path is not None:
            found.calibration.write(self._path, sensor.link)
        self._calibration = found.calibration
        sensor.calibrate(found.calibration, now)
        return f"{found}; written to {str(self._path)!r}" if self._path else str(found)

    def _restart(self, sensor: ForceSensor, now: float) -> str:
        sensor.poses.clear()
        return "all poses are discarded"

    def _zero(self, sensor: ForceSensor, now: float) -> str:
        return f"added to the bias, moment first, in N m and N: {sensor.zero(now).round(3)}"

    def _publish_diagnostics(self) -> None:
        now, sensor = time.monotonic(), self._sensor
        error = self._refusals.get("robot_description", "")
        self._remind("waiting", self._waiting_for(error))
        self._remind_of_clock()
        report = self._statistics.report(now)
        stale_for = self._statistics.stale_for(now, STALE_TIMEOUT)
        stale = self._input.stale(now) if self._input is not None else []
        status = messages.input_status(self._lifecycle, report, stale_for, stale, "wrenches")
        values: dict[str, object] = {}
        if sensor is not None:
            values = {"gravity [m/s^2]": sensor.gravity, "poses": len(sensor.poses)}
        if sensor is not None and sensor.calibration is not None:
            values |= sensor.calibration.fields()
        unknown = "" if "mass" in values else "bias and weight of the tool are not known"
        calibration = messages.status(
            "sensor", "calibrated", values, warning=unknown, error=error, refusals=self._refusals
        )
        self._report([status, calibration], sensor.model.name if sensor is not None else "")


main = partial(run, WrenchCompensationNode)

if __name__ == "__main__":
    sys.exit(main())
