# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Motions on the page: time line, traces, a second motion, and plots; and pages as files."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.algorithms import forward_kinematics
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import CURVES, GREY, ORANGE, Colour
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.output_files import check_writable, expanded
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.view.canvas import Bodies, Meshes
from mbs_dynamics.view.drawings import Lines, same
from mbs_dynamics.view.figures import panels_of
from mbs_dynamics.view.meshes import shaded
from mbs_dynamics.view.page import CLEAR, NUMBERS_EVERY, Page, Source
from mbs_dynamics.view.scene import Scene
from mbs_dynamics.view.states import states_at, states_of

SPEEDS = ("0.1", "0.25", "0.5", "1", "2", "4")

TORQUES = ("holding torque", "motor torque")
"""Torques that the discs show: for the posture at rest, and of the motion."""

FRAMES_PER_SECOND = 10
"""Scenes per second of a motion in a file."""

MOST_POINTS, MOST_PLOTTED = 1000, 400
"""Largest numbers of points of a trace and of a curve in a plot."""


class Playback:
    """A motion played on a page, as a source of scenes."""

    def __init__(self, page: Page, motion: TimeSeries, ghost: TimeSeries | None = None) -> None:
        """Add the motion to the page, and a second one as a transparent robot.

        Raises ArgumentError for a motion without joints of the robot.
        """
        self._page, self._drawn = page, page.drawn
        model = page.drawn.model
        self.motion = states_of(motion, model)
        self.ghost = None if ghost is None else states_of(ghost, model)
        motions = [each for each in (self.motion, self.ghost) if each is not None]
        self.end = max(float(each.t[-1]) for each in motions)
        self._started: float | None = None
        self._start, self._rate = 0.0, 1.0
        self._traced: object = None
        self._marked = 0.0
        if self.ghost is not None:
            self.second = Bodies(page.server.scene, "ghost")
            ghosts = Meshes(
                page.server.scene, self.second, "mesh", lambda: shaded(page.parts, CLEAR)
            )
            ghosts.show(True)
        with page.main:
            self._controls(page.server.gui)
        q = np.concatenate([each.q[_thinned(len(each), 100)] for each in motions])
        page.initial_poses = forward_kinematics(model, q)

    def _controls(self, gui: Any) -> None:
        self._play = gui.add_button("play or pause")
        self._line = gui.add_slider("time, s", 0.0, max(self.end, 1e-3), 1e-3, 0.0)
        self._speed = gui.add_dropdown("speed", SPEEDS, initial_value="1")
        self._again = gui.add_checkbox("repeat", initial_value=True)
        self._trace = gui.add_checkbox("trace of body", initial_value=True)
        self._torques = gui.add_dropdown("torques shown", TORQUES)
        self._plots: list[Plot] = []
        for label, names, values in panels_of(self.motion)[2:]:  # without positions and rates
            known = np.flatnonzero(~np.isnan(values).all(axis=0)).tolist()
            for k in range(0, len(known), len(CURVES)):  # each curve of a plot has its own colour
                curves = [(names[i], values[:, i]) for i in known[k : k + len(CURVES)]]
                self._plots.append(Plot(gui, label, self.motion.t, curves))
        self._play.on_click(lambda _: self.play() if self._started is None else self.pause())
        self._line.on_update(self._sought)
        self._speed.on_update(self._change_speed)
        for control in (self._trace, self._torques):
            control.on_update(self._page.touch)

    # -- user input --------------------------------------------------------------------------------

    def play(self) -> None:
        """Play from the current time, or from the start if the current time is the end."""
        now = self.time()
        self._start = 0.0 if now >= self.end else now
        self._started, self._rate = time.monotonic(), float(self._speed.value)
        self._page.touch()

    def pause(self) -> None:
        """Pause at the current time."""
        self._start, self._started = self.time(), None
        self._page.touch()

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
        if t <= self.end:
            return t
        if self._again.value:
            return t % max(self.end, 1e-3)
        self._start, self._started = self.end, None
        return self.end

    def due(self) -> bool:
        """Return whether the motion is playing."""
        return self._started is not None

    def scene(self, body: str, representation: str) -> Scene:
        """Return the scene at the current time."""
        t = self.time()
        self._line.value = round(t, 3)
        q, qd, tau = self._at(self.motion, t)
        if self.ghost is not None:
            ghost = self._at(self.ghost, t)[0]
            self.second.move(forward_kinematics(self._drawn.model, ghost))
        self._draw_trace(body)
        self._mark(t)
        measured = tau if self._torques.value == TORQUES[1] and np.isfinite(tau).all() else None
        return Scene(self._drawn, q, qd, body, representation, measured=measured)

    def _at(self, motion: TimeSeries, t: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        q, qd, tau = states_at(self._drawn.model, motion, np.array([t]))
        return q[0], qd[0], tau[0]

    def _mark(self, t: float) -> None:
        """Move the cursors of the plots, at a limited rate while the motion plays."""
        now = time.monotonic()
        if self._started is None or now - self._marked > NUMBERS_EVERY:
            self._marked = now
            for plot in self._plots:
                plot.mark(t)

    def _draw_trace(self, body: str) -> None:
        asked = body if self._trace.value else ""
        if asked == self._traced:
            return
        self._traced = asked
        drawings = []
        if asked:
            for motion, colour in ((self.motion, ORANGE), (self.ghost, GREY)):
                if motion is not None and len(motion) > 1:
                    drawings.append(self._path(motion, body, colour))
        self._page.canvas.draw("trace", drawings)

    def _path(self, motion: TimeSeries, body: str, colour: Colour) -> Lines:
        q = motion.q[_thinned(len(motion))]
        points = forward_kinematics(self._drawn.model, q, bodies=[body])[:, 0, :3, 3]
        return Lines(np.stack([points[:-1], points[1:]], axis=1), same(colour, len(points) - 1))


def _thinned(count: int, most: int = MOST_POINTS) -> Any:
    """Return at most ``most`` evenly spaced indices of ``count`` rows."""
    return np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int))


class Plot:
    """A plot over time, with a vertical line at the current time."""

    def __init__(
        self, gui: Any, title: str, t: FloatArray, curves: Sequence[tuple[str, FloatArray]]
    ) -> None:
        rows = _thinned(len(t), MOST_PLOTTED)
        series: list[dict[str, Any]] = [{"label": "time, s"}]
        for (name, _), colour in zip(curves, CURVES, strict=False):
            r, g, b = (round(255 * part) for part in colour)
            series.append({"label": name, "stroke": f"rgb({r},{g},{b})", "width": 1.5})
        series.append({"label": "now", "stroke": "#888", "width": 1, "points": {"show": False}})
        values = [y[rows] for _, y in curves]
        low, high = float(np.min(values)), float(np.max(values))
        margin = max(0.05 * (high - low), 1e-9)
        self._ends = low - margin, high + margin
        self._data = (t[rows], *values)
        self._plot = gui.add_uplot(
            (*self._data, np.full(len(rows), np.nan)),
            tuple(series),
            title=title,
            scales={"x": {"time": False}, "y": {"range": self._ends}},
            aspect=1.8,
        )

    def mark(self, t: float) -> None:
        """Move the vertical line to a time in s."""
        line = np.full(len(self._data[0]), np.nan)
        row = min(int(np.searchsorted(self._data[0], t)), len(line) - 2)
        if row >= 0:
            line[row : row + 2] = self._ends
            self._plot.data = (*self._data, line)


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
