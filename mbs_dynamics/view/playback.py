# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Motions on the page: time line and trace; and pages as files."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.algorithms import forward_kinematics
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import ORANGE
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.output_files import check_writable, expanded
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.view.drawings import Lines, same
from mbs_dynamics.view.page import Page, Source
from mbs_dynamics.view.scene import Scene
from mbs_dynamics.view.states import states_at, states_of

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")

FRAMES_PER_SECOND = 10
"""Scenes per second of a motion in a file."""

MOST_POINTS = 500
"""Largest number of points of the trace."""


class Playback:
    """A motion played on a page again and again, as a source of scenes."""

    def __init__(self, page: Page, motion: TimeSeries) -> None:
        """Add the motion to the page.

        Raises ArgumentError for a motion without joints of the robot.
        """
        self._page, self._drawn = page, page.drawn
        self.motion = states_of(motion, page.drawn.model)
        self.end = float(self.motion.t[-1])
        self._started: float | None = None
        self._start, self._rate, self._traced = 0.0, 1.0, ""
        count = min(len(self.motion), MOST_POINTS)
        self._some = self.motion.q[np.linspace(0, len(self.motion) - 1, count).astype(int)]
        with page.main:
            self._controls(page.server.gui)
        page.initial_poses = forward_kinematics(page.drawn.model, self._some)

    def _controls(self, gui: Any) -> None:
        self._play = gui.add_button("play or pause")
        self._line = gui.add_slider("time, s", 0.0, max(self.end, 1e-3), 1e-3, 0.0)
        self._speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
        self._play.on_click(lambda _: self.play() if self._started is None else self.pause())
        self._line.on_update(self._sought)
        self._speed.on_update(self._change_speed)

    # -- user input --------------------------------------------------------------------------------

    def play(self) -> None:
        """Play from the current time."""
        self._start = self.time()
        self._started, self._rate = time.monotonic(), float(self._speed.value)
        self._page.touch()

    def pause(self) -> None:
        """Pause at the current time."""
        self.seek(self.time())

    def seek(self, t: float) -> None:
        """Pause at a time in s."""
        self._start, self._started = float(np.clip(t, 0.0, self.end)), None
        self._page.touch()

    def _sought(self, event: Any) -> None:
        if event.client is not None:  # set on the page, not by scene()
            self.seek(self._line.value)

    def _change_speed(self, _: object) -> None:
        if self._started is not None:
            self.play()

    # -- source of scenes --------------------------------------------------------------------------

    def time(self) -> float:
        """Return the current time in s."""
        if self._started is None:
            return self._start
        t = self._start + self._rate * (time.monotonic() - self._started)
        return t if t <= self.end else t % max(self.end, 1e-3)

    def due(self) -> bool:
        """Return whether the motion is playing."""
        return self._started is not None

    def scene(self, body: str, representation: str) -> Scene:
        """Return the scene at the current time."""
        t = self.time()
        self._line.value = round(t, 3)
        self._trace(body)
        q, qd = states_at(self._drawn.model, self.motion, np.array([t]))
        return Scene(self._drawn, q[0], qd[0], body, representation)

    def _trace(self, body: str) -> None:
        """Draw the path of the body."""
        if body == self._traced or len(self._some) == 1:
            return
        self._traced = body
        points = forward_kinematics(self._drawn.model, self._some, bodies=[body])[:, 0, :3, 3]
        ends = np.stack([points[:-1], points[1:]], axis=1)
        self._page.canvas.draw("trace", [Lines(ends, same(ORANGE, len(ends)))])


def frame_times(end: float, rate: float) -> FloatArray:
    """Return the times in s of the frames of a motion from 0 to ``end``, ``rate`` per second."""
    return np.minimum(np.arange(max(round(end * rate), 1) + 1) / rate, end)


def write_html(page: Page, source: Source, path: Path) -> None:
    """Write the page as one self-contained file; a motion plays in real time.

    Raises ArgumentError for a file that does not end in .html, or cannot be written.
    """
    if path.suffix != ".html":
        raise ArgumentError(f"the file of a page must end in .html; got {str(path)!r}")
    check_writable("the page", path)
    page.cameras.panel = False  # a file has none
    page.cameras.start(page.server.initial_camera)
    page.refresh(source)
    serializer = page.server.get_scene_serializer()
    if isinstance(source, Playback):
        for t in frame_times(source.end, FRAMES_PER_SECOND).tolist():
            source.seek(t)
            page.refresh(source)
            serializer.insert_sleep(1.0 / FRAMES_PER_SECOND)
    expanded(path).write_text(serializer.as_html(dark_mode=page.dark), encoding="utf-8")
