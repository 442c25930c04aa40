# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A robot that a person moves on the page: joints, gravity, a load, a force, the tool by hand."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from mbs_dynamics.algorithms import inverse_kinematics
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import GREY
from mbs_dynamics.lie.se3 import pose as pose_of
from mbs_dynamics.model.model import Model
from mbs_dynamics.view.canvas import wxyz
from mbs_dynamics.view.drawings import Arrows, same
from mbs_dynamics.view.layers import Parts, Scene
from mbs_dynamics.view.page import Page
from mbs_dynamics.view.shapes import turn_to

HELD = 0.5
"""Seconds after the last movement of a handle in which the handle is not moved to its place."""

REACHED = 1e-4
"""Errors in rad and m at which inverse kinematics stops: less than a pixel."""

UNLIMITED_RANGE = {"revolute": np.pi, "prismatic": 1.0}
"""Half the range of the slider of a joint without limits, in rad or m."""

LARGEST_RATE = 3.0
"""Half the range in rad/s or m/s of the slider of a rate without limit."""


class Posing:
    """The controls of a page by which a person moves a robot, and the state that they state."""

    def __init__(
        self,
        page: Page,
        model: Model,
        q: FloatArray | None = None,
        qd: FloatArray | None = None,
    ) -> None:
        """Put the controls on the page; the robot begins in the state q, qd (n,), or at zero."""
        self._page, self._bare, self._parts = page, model, Parts.of(model)
        self._lower, self._upper = slider_ranges(model)
        self.q = np.clip(np.zeros(model.n) if q is None else q, self._lower, self._upper)
        self.qd = np.zeros(model.n) if qd is None else np.asarray(qd, dtype=float)
        self._loaded: tuple[Any, ...] = ()
        self._target: FloatArray | None = None
        self._moved_at = {"tool": -HELD, "gravity": -HELD}
        with page.main:
            self._controls(page.server.gui)
        self._handles(page.server.scene)

    def _controls(self, gui: Any) -> None:
        model = self._bare
        with gui.add_folder("Joints"):
            self._positions = self._sliders(gui, self._lower, self._upper, self.q, self._pose)
            zero = gui.add_button("all to zero")
        limit = np.where(np.isfinite(model.velocity_limits), model.velocity_limits, LARGEST_RATE)
        rate = np.maximum(limit, np.abs(self.qd))
        with gui.add_folder("Rates", expand_by_default=False):
            self._rates = self._sliders(gui, -rate, rate, self.qd, self._drive)
        with gui.add_folder("World"):
            self._gravity = gui.add_vector3("gravity, m/s²", tuple(model.gravity), step=0.01)
            self._turn_gravity = gui.add_checkbox("drag gravity", initial_value=False)
            self._mass = gui.add_slider("payload, kg", 0.0, 50.0, 0.1, 0.0)
            self._force = gui.add_vector3("force on the body, N", (0.0, 0.0, 0.0), step=0.5)
            self._moment = gui.add_vector3("moment on it, N m", (0.0, 0.0, 0.0), step=0.1)
            self._follow = gui.add_checkbox("drag the body", initial_value=False)
        for control in (self._gravity, self._mass, self._force, self._moment):
            control.on_update(self._page.touch)
        for control in (self._turn_gravity, self._follow):
            control.on_update(self._switch_handles)
        zero.on_click(lambda _: self.move(np.clip(np.zeros(model.n), self._lower, self._upper)))

    def _sliders(
        self, gui: Any, low: FloatArray, high: FloatArray, start: FloatArray, changed: Any
    ) -> list[Any]:
        sliders = []
        for k, name in enumerate(self._bare.joint_names):
            slider = gui.add_slider(name, float(low[k]), float(high[k]), 1e-3, float(start[k]))
            slider.on_update(changed)
            sliders.append(slider)
        return sliders

    def _handles(self, scene: Any) -> None:
        size = self._parts.size
        self._tool = scene.add_transform_controls("/drag/body", scale=0.25 * size, visible=False)
        self._place = np.array([-0.3 * size, -0.3 * size, 0.8 * size])
        self._down = scene.add_transform_controls(
            "/drag/gravity",
            scale=0.2 * size,
            disable_axes=True,
            disable_sliders=True,
            visible=False,
            position=self._place,
        )
        self._tool.on_update(lambda _: self._dragged("tool"))
        self._down.on_update(lambda _: self._dragged("gravity"))

    # -- what a person does ------------------------------------------------------------------------

    def _pose(self, event: Any) -> None:
        if event.client is not None:  # not by this program
            self.q = np.array([slider.value for slider in self._positions])
            self._page.touch()

    def _drive(self, event: Any) -> None:
        self.qd = np.array([slider.value for slider in self._rates])
        self._page.touch()

    def _switch_handles(self, _: object) -> None:
        self._tool.visible = self._follow.value
        self._down.visible = self._turn_gravity.value
        self._page.touch()

    def _dragged(self, handle: str) -> None:
        self._moved_at[handle] = time.monotonic()
        if handle == "tool":
            self._target = pose_of(_rotation(self._tool.wxyz), np.asarray(self._tool.position))
        else:
            strength = float(np.linalg.norm(self._gravity.value)) or 9.81
            down = -_rotation(self._down.wxyz)[:, 2]
            self._gravity.value = tuple(np.round(strength * down, 3).tolist())
        self._page.touch()

    def move(self, q: Sequence[float] | FloatArray) -> None:
        """Move the robot, and the sliders with it."""
        self.q = np.asarray(q, dtype=float)
        for slider, value in zip(self._positions, self.q.tolist(), strict=True):
            slider.value = value
        self._page.touch()

    # -- what the page asks ------------------------------------------------------------------------

    def due(self) -> bool:
        """Nothing moves by itself."""
        return False

    def scene(self, body: str, representation: str) -> Scene:
        """Return the state that the controls state."""
        self._world(body)
        target, self._target = self._target, None
        if target is not None:
            self._reach(target, body)
        wrench = np.array([*self._moment.value, *self._force.value])
        scene = Scene(self._parts, self.q, self.qd, body, representation, wrench)
        self._place_handles(scene)
        return scene

    def _world(self, body: str) -> None:
        """Put gravity and the load into the model, if they have changed."""
        gravity, mass = tuple(self._gravity.value), float(self._mass.value)
        if (gravity, mass, body) != self._loaded:
            model = self._bare.with_gravity(gravity)
            if mass > 0.0:
                model = model.with_payload(body, mass)
            self._parts, self._loaded = Parts.of(model), (gravity, mass, body)

    def _reach(self, target: FloatArray, body: str) -> None:
        found = inverse_kinematics(
            self._bare,
            target,
            body,
            q0=self.q,
            starts=1,
            max_iterations=30,
            angular_tolerance=REACHED,
            linear_tolerance=REACHED,
        )
        self.move(found.q)
        out_of_reach = f"{body} does not get there: {found.reason}"
        self._page.say("reach", "" if found.success else out_of_reach)

    def _place_handles(self, scene: Scene) -> None:
        now, gravity = time.monotonic(), np.asarray(self._gravity.value)
        if now - self._moved_at["tool"] > HELD:
            self._tool.wxyz = wxyz(scene.pose[:3, :3])
            self._tool.position = scene.pose[:3, 3]
        strength = float(np.linalg.norm(gravity))
        way = 0.3 * self._parts.size * gravity / max(strength, 1e-9)
        shown = [Arrows(np.stack([self._place, self._place + way])[None], same(GREY, 1))]
        self._page.canvas.draw("gravity", shown if strength > 0.0 else [])
        if strength > 0.0 and now - self._moved_at["gravity"] > HELD:
            self._down.wxyz = wxyz(turn_to(-gravity))


def slider_ranges(model: Model) -> tuple[FloatArray, FloatArray]:
    """Return the least and the largest positions (n,) that sliders have, in rad or m."""
    half = np.array([UNLIMITED_RANGE.get(joint.kind, np.pi) for joint in model.joints])
    return (
        np.where(np.isfinite(model.lower), model.lower, -half),
        np.where(np.isfinite(model.upper), model.upper, half),
    )


def _rotation(quaternion: FloatArray) -> FloatArray:
    """Return the rotation matrix of a unit quaternion, real part first."""
    w, x, y, z = np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )
