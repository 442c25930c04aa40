# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Lifecycle nodes for a robot that a URDF describes, under gravity and loads."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import Any, ClassVar

from rclpy.lifecycle import LifecycleNode, LifecycleState, TransitionCallbackReturn
from sensor_msgs.msg import JointState

from mbs_dynamics.control.environment import LinkGravity, LinkLoad
from mbs_dynamics.control.joint_input import JointInput, Reading
from mbs_dynamics.control.joint_states import Rejection
from mbs_dynamics.errors import MbsError
from mbs_dynamics.ros import messages
from mbs_dynamics.ros.node_base import LOG_PERIOD, BaseNode
from mbs_dynamics.ros.performance import InputStatistics
from mbs_dynamics.ros.robot_description import text_of


class DescribedNode(BaseNode, LifecycleNode):
    """A lifecycle node for a robot that a URDF describes, under gravity and loads."""

    readings: ClassVar[str] = "joint_states"
    """The topic of the messages that are answered."""
    listening: ClassVar[tuple[str, ...]] = ("active",)
    """The states of the lifecycle in which they are received."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lifecycle = "unconfigured"
        self._statistics = InputStatistics(self.steady_time())
        """Statistics of the messages on the topic ``readings``."""
        self._input: JointInput | None = None
        """Merges joint states of the robot in force, for nodes that answer each state."""
        self._configured: list[Any] = []
        """Subscriptions in the states inactive and active."""
        self._activated: list[Any] = []
        """Subscriptions in the state active."""

    @abstractmethod
    def _describe(self, text: str) -> bool:
        """Build the robot of a URDF; False, and a log line, if it is refused."""

    @abstractmethod
    def _set_gravity(self, gravity: LinkGravity) -> None:
        """Apply a gravity. Raises MbsError if it is refused."""

    def _set_load(self, load: LinkLoad) -> None:
        """Apply a load, in nodes with ~/payload. Raises MbsError if it is refused."""
        raise NotImplementedError

    @property
    @abstractmethod
    def _has_robot(self) -> bool:
        """Whether a robot is in force."""

    def steady_time(self) -> float:
        """Return the time in s of a clock that is never set."""
        return time.monotonic()

    def _enter(self, state: str) -> None:
        self._lifecycle = state
        waiting = state in self.listening and self._has_robot
        self._statistics.wait(self.steady_time() if waiting else None)

    def _forget(self) -> None:
        """Return to the state before it was configured."""
        self._refusals.clear()
        while self._configured:
            self.destroy_subscription(self._configured.pop())

    def _unsubscribe(self) -> None:
        while self._activated:
            self.destroy_subscription(self._activated.pop())

    def start(self) -> bool:
        """Begin to receive messages, if ``autostart`` is true. False if that fails."""
        if not self._settings.autostart:
            return True
        done: bool = self.trigger_configure() == TransitionCallbackReturn.SUCCESS
        if done and "inactive" not in self.listening:
            done = self.trigger_activate() == TransitionCallbackReturn.SUCCESS
        return done

    def on_configure(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Use the description in the parameters, or subscribe to descriptions."""
        self._configured = [self.subscribe("~/gravity", self._on_gravity)]
        if any(topic.name == "~/payload" for topic in self.interface.subscribed):
            self._configured.append(self.subscribe("~/payload", self._on_payload))
        given = self._settings.robot_description
        if given:
            try:
                described = self._describe(text_of(given))
            except MbsError as error:
                self.get_logger().error(str(error))
                described = False
            if not described:
                self._forget()
                return TransitionCallbackReturn.FAILURE
        else:
            take = self.subscribe("robot_description", lambda one: self._describe(one.data))
            self._configured.append(take)
        self._enter("inactive")
        return TransitionCallbackReturn.SUCCESS

    def on_deactivate(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Unsubscribe from the robot's state; the model stays."""
        self._unsubscribe()
        self._enter("inactive")
        return TransitionCallbackReturn.SUCCESS

    def on_shutdown(self, state: LifecycleState) -> TransitionCallbackReturn:
        """End all activity."""
        self.on_deactivate(state)
        self._forget()
        self._enter("finalized")
        return TransitionCallbackReturn.SUCCESS

    def on_cleanup(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Forget the model, gravity and loads."""
        self._forget()
        return TransitionCallbackReturn.SUCCESS

    def on_error(self, state: LifecycleState) -> TransitionCallbackReturn:
        """Return to the state before it was configured after an error in a transition."""
        # rclpy does not log the error
        self.get_logger().error(f"an internal error in a transition from {state.label!r}")
        self.on_deactivate(state)
        return self.on_cleanup(state)

    def _read(self, message: JointState, now: float) -> Reading | None:
        """Return the state of the robot by a message; None if it is rejected or not new.

        Rejections are logged, and count where the node answers joint states.
        """
        if self._input is None:
            return None
        reading = self._input.read(
            message.name,
            message.position,
            message.velocity,
            message.effort,
            stamp=messages.stamp_of(message.header.stamp),
            received=now,
        )
        if isinstance(reading, Rejection):
            if reading.kind != "partial":  # joints that are fixed
                if self.readings == "joint_states":
                    self._statistics.rejected(reading)
                self.warn(reading.kind, f"joint_states rejected: {reading.reason}")
            return None
        return None if reading.repeated else reading

    def _on_gravity(self, message: Any) -> None:
        gravity = messages.gravity_of(message, self._settings.frame_prefix)
        if self._try("gravity", lambda: self._set_gravity(gravity)):
            self.get_logger().info(messages.gravity_line(gravity), throttle_duration_sec=LOG_PERIOD)

    def _on_payload(self, message: Any) -> None:
        load = messages.load_of(message, self._settings.frame_prefix)
        if self._try("payload", lambda: self._set_load(load)):
            self.get_logger().info(messages.payload_line(load), throttle_duration_sec=LOG_PERIOD)

    def _waiting_for(self, refused: str) -> str:
        """Return what the node waits for before it can publish; empty if nothing is missing.

        ``refused`` says why the latest description was refused.
        """
        if self._lifecycle != "active":
            return f"waiting for a lifecycle transition: the state is {self._lifecycle!r}"
        if not self._has_robot:
            return self._waiting_for_description(refused)
        if self._statistics.last_valid is not None:
            return ""
        rejected = self._statistics.last_rejection
        return f"waiting for {self.readings} on {self.resolve_topic_name(self.readings)}" + (
            f"; the latest was rejected: {rejected}" if rejected else ""
        )

    def _waiting_for_description(self, refused: str) -> str:
        """Return that the node waits for a description, and why the latest was refused."""
        topic = self.resolve_topic_name("robot_description")
        why = f"; the latest was refused: {refused}" if refused else ""
        return f"waiting for a robot_description on {topic}{why}"
