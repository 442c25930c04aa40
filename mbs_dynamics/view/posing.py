# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Controls that pose a robot: joints, gravity, payload, wrench, and a handle on a body."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from viser.transforms import SE3, SO3

from mbs_dynamics.algorithms import difference, displaced, inverse_kinematics
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.model.coordinates import velocity_names
from mbs_dynamics.model.model import Model
from mbs_dynamics.view.canvas import wxyz
from mbs_dynamics.view.page import Page
from mbs_dynamics.view.scene import DrawnModel, Scene

DRAG_PAUSE = 0.5
"""Time in s after the last drag of the handle before it is moved back onto the body."""

REACHED = 1e-4
"""Tolerance in rad and m of inverse kinematics, less than a pixel."""

FARTHEST_LIMIT = 1000.0
"""Position limits in rad or m above this count as no limit."""

LARGEST_RATE = 3.0
"""Half the range in rad/s or m/s of the slider of a rate without limit."""

DIGITS = 3
"""Decimals of sliders that fit into their fields."""

LARGEST_PAYLOAD = 2.0
"""Range of the slider of the payload, relative to the mass of the robot."""


class Posing:
    """The controls of a page that pose a robot, as a source of scenes."""

    def __init__(
        self, page: Page, q: FloatArray | None = None, qd: FloatArray | None = None
    ) -> None:
        """Add the controls to the page. The initial state is q (nq,) and qd (n,), by default rest.

        Sliders show the displacements (n,) from the neutral positions, see
        :func:`mbs_dynamics.displaced`; these are the positions of joints with one degree of
        freedom.
        """
        self._page, self._drawn, self._model = page, page.drawn, page.drawn.model
        model = self._model
        self.q = model.neutral(within_limits=True) if q is None else np.asarray(q, float)
        self.qd = np.zeros(model.n) if qd is None else np.asarray(qd, float)
        lower, upper = slider_ranges(model)
        start = self._displacements()
        self._lower, self._upper = np.minimum(lower, start), np.maximum(upper, start)
        self._loads: tuple[Any, ...] = ()
        self._target: FloatArray | None = None
        self._dragged_at = -DRAG_PAUSE
        with page.main:
            self._controls(page.server.gui)
        scale = 0.25 * self._drawn.size
        self._handle = page.server.scene.add_transform_controls(
            "/drag/body", scale=scale, visible=False
        )
        self._handle.on_update(self._dragged)

    def _controls(self, gui: Any) -> None:
        model = self._model
        with gui.add_folder("Joints, rad or m"):
            self._positions = self._sliders(
                gui, self._lower, self._upper, self._displacements(), self._pose
            )
            self._follow = gui.add_checkbox("drag body", initial_value=False)
        limit = np.where(np.isfinite(model.velocity_limits), model.velocity_limits, LARGEST_RATE)
        rate = np.maximum(limit, np.abs(self.qd))
        with gui.add_folder("Rates, rad/s or m/s", expand_by_default=False):
            self._rates = self._sliders(gui, -rate, rate, self.qd, self._drive)
        heaviest = max(float(np.ceil(LARGEST_PAYLOAD * model.total_mass)), 1.0)
        with gui.add_folder("Loads"):
            self._gravity = gui.add_vector3("gravity, m/s²", tuple(model.gravity), step=0.01)
            self._mass = gui.add_slider("payload, kg", 0.0, heaviest, 0.01, 0.0)
            self._force = gui.add_vector3("force, N", (0.0, 0.0, 0.0), step=0.5)
            self._moment = gui.add_vector3("moment, N m", (0.0, 0.0, 0.0), step=0.1)
        for control in (self._gravity, self._mass, self._force, self._moment):
            control.on_update(self._page.touch)
        self._follow.on_update(self._switch_handle)

    def _displacements(self) -> FloatArray:
        return np.asarray(difference(self._model, self._model.neutral(), self.q))

    def _sliders(
        self, gui: Any, low: FloatArray, high: FloatArray, start: FloatArray, changed: Any
    ) -> list[Any]:
        sliders = []
        for k, name in enumerate(velocity_names(self._model.joints)):
            ends, value = slider_ends(low[k], high[k]), round(float(start[k]), DIGITS)
            sliders.append(gui.add_slider(name, *ends, 10.0**-DIGITS, value))
            sliders[k].on_update(changed)
        return sliders

    # -- user input --------------------------------------------------------------------------------

    def _pose(self, event: Any) -> None:
        if event.client is not None:  # set on the page, not by move()
            v, k = self._displacements(), self._positions.index(event.target)
            v[k] = event.target.value
            v = np.clip(v, self._lower, self._upper)  # since the ends of sliders are rounded
            self.q = np.asarray(displaced(self._model, self._model.neutral(), v))
            self._page.touch()

    def _drive(self, event: Any) -> None:
        self.qd = np.array([slider.value for slider in self._rates])
        self._page.touch()

    def _switch_handle(self, _: object) -> None:
        self._handle.visible = self._follow.value
        self._page.touch()

    def _dragged(self, _: object) -> None:
        self._dragged_at = time.monotonic()
        handle = SE3.from_rotation_and_translation(SO3(self._handle.wxyz), self._handle.position)
        self._target = np.asarray(handle.as_matrix())
        self._page.touch()

    def move(self, q: Sequence[float] | FloatArray) -> None:
        """Move the robot and its sliders."""
        self.q = np.asarray(q, dtype=float)
        values = self._displacements().round(DIGITS).tolist()
        for slider, value in zip(self._positions, values, strict=True):
            slider.value = value
        self._page.touch()

    # -- source of scenes --------------------------------------------------------------------------

    def due(self) -> bool:
        """Return False: all changes are input on the page."""
        return False

    def scene(self, body: str, representation: str) -> Scene:
        """Return the scene that the controls set."""
        self._load(body)
        target, self._target = self._target, None
        if target is not None:
            self._reach(target, body)
        wrench = np.array([*self._moment.value, *self._force.value])
        scene = Scene(self._drawn, self.q, self.qd, body, representation, wrench)
        if time.monotonic() - self._dragged_at > DRAG_PAUSE:
            self._handle.wxyz = wxyz(scene.pose[:3, :3])
            self._handle.position = scene.pose[:3, 3]
        return scene

    def _load(self, body: str) -> None:
        """Update the gravity and the payload of the model if they have changed."""
        gravity, mass = tuple(self._gravity.value), float(self._mass.value)
        if (gravity, mass, body) != self._loads:
            model = self._model.with_gravity(gravity)
            if mass > 0.0:
                model = model.with_payload(body, mass)
            self._drawn, self._loads = DrawnModel.of(model), (gravity, mass, body)

    def _reach(self, target: FloatArray, body: str) -> None:
        solution = inverse_kinematics(
            self._model,
            target,
            body,
            q0=self.q,
            starts=1,
            max_iterations=30,
            angular_tolerance=REACHED,
            linear_tolerance=REACHED,
        )
        self.move(solution.q)
        failure = f"{body} does not reach the target: {solution.reason}"
        self._page.set_message("reach", "" if solution.success else failure)


def slider_ends(lower: float, upper: float) -> tuple[float, float]:
    """Return the ends of a slider: the range rounded outwards to the displayed decimals."""
    unit = 10.0**-DIGITS
    low, high = round(float(lower), DIGITS), round(float(upper), DIGITS)
    return (
        low if low <= lower else round(low - unit, DIGITS),
        high if high >= upper else round(high + unit, DIGITS),
    )


def slider_ranges(model: Model) -> tuple[FloatArray, FloatArray]:
    """Return the lower and upper ends (n,) of the sliders, in rad or m.

    Without limits, the range is half a turn or one metre to either side.
    """
    half = np.array(
        [
            1.0 if slides else np.pi
            for joint in model.joints
            for slides in np.all(joint.screws[:3].T == 0.0, axis=1)
        ]
    )
    return (
        np.where(np.abs(model.lower) < FARTHEST_LIMIT, model.lower, -half),
        np.where(np.abs(model.upper) < FARTHEST_LIMIT, model.upper, half),
    )
