# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A page of the browser that shows a robot; it is served to this machine only."""

from __future__ import annotations

import contextlib
import io
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any, Protocol

import numpy as np

from mbs_dynamics.colours import Colour
from mbs_dynamics.errors import ArgumentError, BackendError, MbsError
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation import REPRESENTATIONS
from mbs_dynamics.view.canvas import Canvas, Robot
from mbs_dynamics.view.layers import LAYERS, Layer, Scene
from mbs_dynamics.view.meshes import Appearance
from mbs_dynamics.view.numbers import as_html, as_python

try:
    import viser
except ImportError as error:
    raise BackendError(
        "the viewer needs viser and trimesh: install the extra 'view' of this package"
    ) from error

HOST = "127.0.0.1"
"""Where the page is served: to nobody but this machine."""

PORTS = range(8080, 8100)
"""Ports that are tried where none is named."""

# Browsers open connections in advance and close them unused, which is no error here.
logging.getLogger("websockets.server").setLevel(logging.CRITICAL)

NUMBERS_EVERY = 0.1
"""Seconds between two changes of the numbers; a change in between is shown at the end of it."""

REFRESH = 1.0 / 30.0
"""Least time in s from one drawing to the next one."""


class Source(Protocol):
    """What the state of the robot comes from: a person, a motion, or topics."""

    def scene(self, body: str, representation: str) -> Scene | None:
        """Return what is to be shown; None if there is nothing yet."""

    def due(self) -> bool:
        """Return whether there is something new although nobody changed anything on the page."""


class Page:
    """A page that shows one robot, in states that a source knows."""

    def __init__(
        self,
        model: Model,
        look: Appearance,
        size: float,
        *,
        made: str = "",
        port: int | None = None,
        dark: bool = False,
    ) -> None:
        """Serve the page.

        ``made`` is the Python that makes the model; without it there is none to copy. Raises
        ArgumentError if ``port`` is taken; without one the first that is free is taken.
        """
        self.name = model.name
        self.changed = threading.Event()
        self.server = _serve(port, model.name)
        self.address = f"http://{HOST}:{self.server.get_port()}"
        self.tell: Callable[[str], None] = lambda text: None
        """What is done with words for the terminal."""
        self._made, self._size = made, size
        self._drawn_at = self._numbers_at = 0.0
        self._numbers_due = self._aimed = False
        self._words: dict[str, str] = {}
        self.canvas = Canvas(self.server.scene, size)
        with self.server.atomic():
            self.server.scene.add_grid("/grid", width=4 * size, height=4 * size, cell_size=0.1)
            self.robot = Robot(self.server.scene, "robot", look.parts)
            self._lights()
            self._panels(model, look, dark)
        self.server.on_client_connect(self._came)
        self.server.on_client_disconnect(self._left)

    # -- what stands on the page -------------------------------------------------------------------

    def _lights(self) -> None:
        """Light that leaves colours as the legend has them, and casts no (slow) shadows."""
        scene = self.server.scene
        scene.configure_default_lights(False)
        scene.configure_environment_map(None)
        scene.add_light_ambient("/light/everywhere", intensity=1.6)
        scene.add_light_directional("/light/above", intensity=1.8, position=(2.0, -3.0, 5.0))

    def _aim(self, scene: Scene) -> None:
        """Let the camera begin where it sees the whole robot."""
        points = np.concatenate([np.zeros((1, 3)), scene.poses[:, :3, 3]])
        low, high = points.min(axis=0), points.max(axis=0)
        centre = 0.5 * (low + high)
        away = max(float(np.linalg.norm(high - low)), 0.5 * self._size)
        camera = self.server.initial_camera
        camera.look_at = centre
        camera.position = centre + away * np.array([0.9, -0.9, 0.6])
        self._aimed = True

    def _panels(self, model: Model, look: Appearance, dark: bool) -> None:
        gui = self.server.gui
        gui.configure_theme(
            dark_mode=dark, show_logo=False, show_share_button=False, control_width="large"
        )
        self._status = gui.add_html("", visible=False)
        tabs = gui.add_tab_group()
        self.tabs = tabs
        moving = [frame.name for frame in model.frames.values() if frame.body != GROUND]
        self.main = tabs.add_tab("Robot")
        with self.main:
            self.body = gui.add_dropdown("body", moving, initial_value=_outermost(model))
            self.representation = gui.add_dropdown(
                "representation", tuple(REPRESENTATIONS), initial_value="body_fixed"
            )
        self._layers: list[tuple[Layer, Any]] = []
        with tabs.add_tab("Layers"):
            meshes = gui.add_checkbox("meshes", initial_value=True)
            meshes.on_update(lambda _: self.robot.show(meshes.value))
            for layer in LAYERS:
                box = gui.add_checkbox(layer.name, initial_value=layer.shown)
                gui.add_html(_legend(layer.legend))
                self._layers.append((layer, box))
            night = gui.add_checkbox("dark", initial_value=dark)
            night.on_update(
                lambda _: gui.configure_theme(
                    dark_mode=night.value,
                    show_logo=False,
                    show_share_button=False,
                    control_width="large",
                )
            )
        with tabs.add_tab("Numbers"):
            self._numbers = gui.add_html("")
        if self._made:
            with tabs.add_tab("Python"):
                self._python = gui.add_text("to copy", "", multiline=True)
        for control in (self.body, self.representation, *(box for _, box in self._layers)):
            control.on_update(self.touch)
        for number, problem in enumerate(look.problems):
            self.say(f"mesh {number}", problem)

    def choose(self, names: Sequence[str] | None) -> None:
        """Show these layers and no others, or ``["all"]``; None leaves those of the beginning.

        Raises ArgumentError for a layer that there is not.
        """
        if names is None:
            return
        valid = [layer.name for layer in LAYERS]
        unknown = [name for name in names if name not in (*valid, "all")]
        if unknown:
            raise ArgumentError(f"there is no layer {unknown[0]!r}; valid are {', '.join(valid)}")
        for layer, box in self._layers:
            box.value = layer.name in names or "all" in names

    def say(self, about: str, words: str) -> None:
        """Show words at the top of the page, in place of what was said about the same."""
        if self._words.get(about, "") == words:
            return
        self._words[about] = words
        said = [f"<div>&#9888; {escape(text)}</div>" for text in self._words.values() if text]
        self._status.content = f'<div class="mbs-messages" style="{_MESSAGE}">{"".join(said)}</div>'
        self._status.visible = bool(said)

    def touch(self, _: object = None) -> None:
        """Have the scene drawn again."""
        self.changed.set()

    def _came(self, client: viser.ClientHandle) -> None:
        self.touch()

    def _left(self, client: viser.ClientHandle) -> None:
        if not self.server.get_clients():
            self.tell(f"the page was closed; it is still at {self.address}, until Ctrl+C")

    # -- drawing -----------------------------------------------------------------------------------

    def run(self, source: Source, until: Callable[[], bool] = lambda: False) -> None:
        """Draw what the source says whenever it changes, until told to stop.

        What changes by itself is drawn only as long as somebody looks.
        """
        self.touch()
        while not until():
            touched = self.changed.wait(REFRESH)
            if touched or (self.server.get_clients() and (source.due() or self._numbers_due)):
                self.changed.clear()
                self.refresh(source)

    def refresh(self, source: Source) -> None:
        """Draw what the source says now. An error of this package is shown on the page."""
        try:
            scene = source.scene(self.body.value, self.representation.value)
            if scene is not None:
                self.show(scene)
        except MbsError as error:
            self.say("error", str(error))
        else:
            self.say("error", "")

    def show(self, scene: Scene) -> None:
        """Draw a scene, in the layers that are switched on."""
        if not self._aimed:
            self._aim(scene)
        drawn = [
            (layer.name, layer.draw(scene) if box.value else []) for layer, box in self._layers
        ]
        with self.server.atomic():
            self.robot.move(scene.poses)
            for name, drawings in drawn:
                self.canvas.draw(f"layers/{name}", drawings)
            now = time.monotonic()
            self._numbers_due = now - self._numbers_at < NUMBERS_EVERY
            if not self._numbers_due:
                self._numbers_at = now
                self._numbers.content = as_html(scene)
                if self._made:
                    self._python.value = as_python(scene, self._made)

    def close(self) -> None:
        """Serve it no longer."""
        with _quietly():
            self.server.stop()


_MESSAGE = (
    "font-size:0.8em;padding:0.4em 0.8em;margin:0.4em;border-left:4px solid rgb(214,94,0);"
    "max-height:8em;overflow-y:auto"
)


def _outermost(model: Model) -> str:
    """Return the link at the end of the first branch: of those merged into its body the last."""
    leaf = model.frame(model.leaves[0]).body
    return [frame.name for frame in model.frames.values() if frame.body == leaf][-1]


def _legend(legend: tuple[tuple[Colour, str], ...]) -> str:
    """Return what colours mean, as HTML."""
    lines = []
    for colour, words in legend:
        r, g, b = (round(255 * part) for part in colour)
        square = (
            f'<span style="display:inline-block;width:0.8em;height:0.8em;margin-right:0.4em;'
            f'border:1px solid #8888;background:rgb({r},{g},{b})"></span>'
        )
        lines.append(f"<div>{square}{escape(words)}</div>")
    return f'<div style="font-size:0.75em;padding:0 0.5em 0.6em 2.4em">{"".join(lines)}</div>'


def _serve(port: int | None, label: str) -> viser.ViserServer:
    if port is None:
        free = (each for each in PORTS if _is_free(each))
        port = next(free, 0)
    elif port and not _is_free(port):
        raise ArgumentError(f"port {port} is taken; --port 0 chooses one that is free")
    with _quietly():
        return viser.ViserServer(host=HOST, port=port or _any_port(), label=label, verbose=False)


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except (OSError, OverflowError):
            return False
    return True


def _any_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without what viser prints; the command says it in words of its own."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
