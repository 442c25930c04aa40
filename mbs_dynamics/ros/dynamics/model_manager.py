# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Keeps one robot in force while descriptions, settings, gravity and loads come and go.

Knows no ROS. What is bad is refused by an exception, and what was in force stays in force.
"""

from __future__ import annotations

from mbs_dynamics.errors import MbsError
from mbs_dynamics.model.diagnostics import warnings_about
from mbs_dynamics.ros.dynamics.robot import Robot
from mbs_dynamics.ros.dynamics.settings import DynamicsSettings
from mbs_dynamics.ros.robot_description import (
    Gravity,
    Load,
    check_load,
    loads_of,
    model_of,
    replaced,
    under_gravity,
    under_load,
)
from mbs_dynamics.ros.settings import check_gravity


class ModelManager:
    """The robot in force, and everything that must survive a change of it.

    Every method either does all that it is asked for, or raises MbsError and changes nothing.
    """

    def __init__(self, settings: DynamicsSettings) -> None:
        self.settings = settings
        self.robot: Robot | None = None
        self.refused = ""
        """Why the latest description was refused; empty if it was not."""
        self.remarks: list[str] = []
        """Warnings about the robot in use, and what could not be carried over to it."""
        self.gravity = Gravity("", settings.gravity)
        self.loads: list[Load] = []
        self._text: str | None = None

    def describe(self, text: str) -> bool:
        """Put the robot of a URDF in force. False if the text is the same as the one before."""
        if text == self._text:
            return False
        self._text = text
        self._build(text)
        return True

    def retry(self) -> bool:
        """Try a refused description again, under settings that may suit it; False if none is."""
        if not self.refused or self._text is None:
            return False
        self._build(self._text)
        return True

    def check(self, settings: DynamicsSettings) -> None:
        """Raise MbsError if these settings do not fit the robot in force."""
        if self.robot is not None:
            Robot(self.robot.model, settings)

    def configure(self, settings: DynamicsSettings) -> None:
        """Put other settings in force, except for gravity."""
        if self.robot is not None:
            self.robot = Robot(self.robot.model, settings)
        self.settings = settings

    def set_gravity(self, gravity: Gravity) -> None:
        """Put another gravity in force. Nothing is compiled again.

        Without a robot it waits for one.
        """
        check_gravity("gravity", gravity.vector)
        if self.robot is not None:
            self.robot = self.robot.under(under_gravity(self.robot.model, gravity))
        self.gravity = gravity

    def set_load(self, load: Load) -> None:
        """Put a load in force, in place of the present one of the same link.

        The first load at a body compiles once, another one there does not. Without a robot it waits
        for one.
        """
        check_load(load)
        if self.robot is not None:
            self.robot = self.robot.under(under_load(self.robot.model, load))
        self.loads = replaced(self.loads, load)

    def _build(self, text: str) -> None:
        try:
            settings = self.settings
            model = model_of(text, settings.root, settings.tip, loads_of(settings.loads))
            remarks = warnings_about(model)
            gravity, loads = self.gravity, []
            try:
                model = under_gravity(model, gravity)
            except MbsError as error:
                remarks.append(f"the gravity in force before is dropped: {error}")
                gravity = Gravity("", self.settings.gravity)
                model = under_gravity(model, gravity)
            for load in self.loads:
                try:
                    model = under_load(model, load)
                    loads.append(load)
                except MbsError as error:
                    remarks.append(f"the payload at {load.link!r} is dropped: {error}")
            robot = Robot(model, self.settings)
        except MbsError as error:
            self.refused = str(error)
            raise
        self.refused = ""
        self.robot, self.remarks = robot, remarks
        self.gravity, self.loads = gravity, loads
