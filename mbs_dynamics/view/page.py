# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A page in the browser that shows a robot. It is served to this machine only."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import GREY, ORANGE, Colour
from mbs_dynamics.errors import ArgumentError, MbsError, UnknownBodyError, missing_extra
from mbs_dynamics.integrate.standing import Contact
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model, warnings_about
from mbs_dynamics.model.orders import tools
from mbs_dynamics.representation import REPRESENTATIONS
from mbs_dynamics.view.cameras import VIEWS, Cameras
from mbs_dynamics.view.canvas import Bodies, Canvas, Meshes
from mbs_dynamics.view.drawings import Fixed, Label
from mbs_dynamics.view.labels import arranged
from mbs_dynamics.view.layers import LAYERS, Layer
from mbs_dynamics.view.meshes import Part, appearance, shaded
from mbs_dynamics.view.mjcf_visuals import shapes_of
from mbs_dynamics.view.numbers import as_html, as_python
from mbs_dynamics.view.options import PageOptions
from mbs_dynamics.view.scene import DrawnModel, Scene
from mbs_dynamics.view.server import HOST, Server
from mbs_dynamics.view.urdf_visuals import Visuals

try:
    import trimesh
    import viser
except ImportError as error:
    raise missing_extra("the viewer needs viser and trimesh", "view", error) from error

NUMBERS_EVERY = 0.1
"""Least time in s between two updates of the numbers."""

FIT = "fit"
"""The view that keeps the direction of the camera and shows the whole robot."""

CLEAR, HULL = (*GREY, 0.35), (*ORANGE, 0.4)
"""Colours of transparent meshes and of collision geometry."""

STYLE = ".mantine-Slider-markLabel{font-size:0.7rem;color:inherit;opacity:0.9}"
"""CSS that makes the limits of sliders readable; viser has no option for it."""

FLAT = 0.02
"""Points up to this height above the lowest one, relative to the size of the robot, touch the
floor."""

NO_COLLISIONS = "this robot has no collision geometry that can be shown"

REFRESH = 1.0 / 30.0
"""Least time in s between two updates of the scene."""


class Source(Protocol):
    """Source of the scenes of a page: sliders, a motion, or ROS topics."""

    def scene(self, body: str, representation: str) -> Scene | None:
        """Return the current scene; None before the first state."""

    def due(self) -> bool:
        """Return whether the scene has changed without input on the page."""


class Page:
    """A page that shows one robot in the states of a source."""

    def __init__(self, model: Model, options: PageOptions | None = None) -> None:
        """Serve the page, with the shapes of the description and those of the options.

        Raises UnknownBodyError for geometry on another link, ArgumentError for an unknown layer,
        and if the port is invalid or taken.
        """
        self._model, self._options = model, options or PageOptions()
        given = self._options
        UnknownBodyError.check((each.link for each in given.geometry), model.frames)
        switched_on = _layers_on(given.layers)
        self._description = given.description
        if isinstance(given.description, str) and not given.description.lstrip().startswith("<"):
            self._description = Path(given.description)
        shown = self._shapes()
        shown = shown._replace(visuals=(*shown.visuals, *given.geometry))
        self.name, self.drawn = model.name, DrawnModel.of(model)
        self.parts, problems = appearance(model, shown, self.drawn.size, *self._places())
        self.report = given.report
        for problem in problems:
            self.report(problem)
        self._served = Server(given.port, model.name)
        self.server, self.port = self._served.viser, self._served.port
        self.address = f"http://{HOST}:{self.port}"
        self.changed = threading.Event()
        self._numbers_at = 0.0
        self._numbers_due = self._running = False
        self.initial_poses: FloatArray | None = None
        """Poses (N, nb, 4, 4) that the initial camera shows; None for those of the first scene."""
        self.dark, self.background = given.dark, 255
        """Whether the page is in dark mode, and the grey level of its background, 0 to 255."""
        self.cameras = Cameras(self.server, self.drawn.size)
        self._messages: dict[str, str] = {}
        self.bodies = Bodies(self.server.scene, "robot")
        self.canvas = Canvas(self.server.scene, self.bodies, self.drawn.size)
        with self.server.atomic():
            scene, wide = self.server.scene, 4.0 * self.drawn.size
            self._floor = scene.add_grid("/grid", width=wide, height=wide, cell_size=0.1)
            robot, pick = (scene, self.bodies), self._pick
            self.meshes = Meshes(*robot, "mesh", lambda: self.parts, pick)
            self.meshes.show(True)
            self.clear = Meshes(*robot, "clear", lambda: shaded(self.parts, CLEAR), pick)
            self._hull = Meshes(*robot, "collision", lambda: shaded(self._collisions(), HULL), pick)
            self._add_lights()
            self._add_panels(model, switched_on)
        for number, problem in enumerate([given.message, *problems, *warnings_about(model)]):
            self.set_message(f"robot {number}", problem)
        self.server.on_client_connect(self._connected)
        self.server.on_client_disconnect(self._disconnected)

    # -- set-up ------------------------------------------------------------------------------------

    def _shapes(self, tag: str = "visual") -> Visuals:
        """Return the shapes of the description."""
        found = self._description
        return Visuals((), ()) if found is None else shapes_of(found, tag)

    def _places(self) -> tuple[Path | None, list[Path]]:
        """Return the file at which relative paths of meshes start, and the package folders."""
        source = self._options.beside or self._description
        packages = [Path(each) for each in self._options.packages]
        return source if isinstance(source, Path) else None, packages

    def _add_lights(self) -> None:
        """Add lights that reproduce the colours of the legend without shadows, which are slow."""
        scene = self.server.scene
        scene.configure_default_lights(False)
        scene.configure_environment_map(None)
        scene.add_light_ambient("/light/everywhere", intensity=1.6)
        scene.add_light_directional("/light/above", intensity=1.8, position=(2.0, -3.0, 5.0))

    def _measure(self, poses: FloatArray) -> None:
        """Aim cameras at bodies at poses (N, nb, 4, 4) from now on, and move the floor below them.

        The floor is at the lowest point of the robot, or at the origin if that is lower.
        """
        corners = (x.reshape(-1, 3) for _, x in self._corners(poses))
        points = np.concatenate([np.zeros((1, 3)), poses[..., :3, 3].reshape(-1, 3), *corners])
        self._floor.position = (0.0, 0.0, float(points[:, 2].min()))
        self.cameras.points = points

    def _look(self, event: Any) -> None:
        if event.client is None or self.cameras.points is None:
            return
        camera, name = event.client.camera, event.target.value
        if name == FIT:
            self._measure(self._poses[None])
        back = VIEWS.get(name, camera.position - camera.look_at)
        with event.client.atomic():
            self.cameras.view(camera, back)

    def _pick(self, part: Part) -> None:
        """Select the link of a part that was clicked, and show its name."""
        link = part.name.rpartition("/")[0]
        if link not in self._model.frames:  # a capsule, which is named after its ends
            link = "ground" if part.body == GROUND else self._model.bodies[part.body].name
        if link in self.body.options:
            self.body.value = link
        text = (
            link if part.body == GROUND else f"{link}, {self._model.bodies[part.body].joint.name}"
        )
        label = Label(part.mesh.bounds.mean(axis=0), text)
        self.canvas.draw("picked", [Fixed(part.body, label)])
        self.touch()

    def _collisions(self) -> list[Part]:
        found = self._shapes("collision")
        parts, problems = appearance(
            self._model, found, self.drawn.size, *self._places(), capsules=False
        )
        for number, problem in enumerate(problems if parts else [*problems, NO_COLLISIONS]):
            self.set_message(f"collision {number}", problem)
        return parts

    def contacts(self, poses: FloatArray) -> tuple[Contact, ...]:
        """Return the points at which a robot at poses (nb, 4, 4) touches the floor.

        They are corners of the bounding boxes of meshes at the height of the lowest one.
        """
        found = [
            Contact(body, point)
            for body, corners in self._corners(poses[None])
            for point in corners[0]
            if body != GROUND
        ]
        lowest = min((each.point[2] for each in found), default=0.0)
        return tuple(each for each in found if each.point[2] < lowest + FLAT * self.drawn.size)

    def _corners(self, poses: FloatArray) -> Iterator[tuple[int, FloatArray]]:
        """Yield body and corners (N, 8, 3) of each mesh at poses (N, nb, 4, 4)."""
        for part in self.parts:
            at = np.eye(4)[None] if part.body == GROUND else poses[:, part.body]
            corners = trimesh.bounds.corners(part.mesh.bounds)
            yield part.body, corners @ np.swapaxes(at[:, :3, :3], -1, -2) + at[:, None, :3, 3]

    def _add_panels(self, model: Model, switched_on: set[str]) -> None:
        gui = self.server.gui
        self._set_theme(self.dark)
        gui.add_html(f"<style>{STYLE}</style>")
        self._status = gui.add_html("", visible=False)
        tabs = gui.add_tab_group()
        moving = [frame.name for frame in model.frames.values() if frame.body != GROUND]
        links = moving or list(model.frames)
        self.main = tabs.add_tab("Robot")
        with self.main:
            self.body = gui.add_dropdown("body", links, initial_value=tools(model)[0])
            self.representation = gui.add_dropdown(
                "representation", tuple(REPRESENTATIONS), initial_value="body_fixed"
            )
            gui.add_button_group("view", (*VIEWS, FIT)).on_click(self._look)
        self._layers: list[tuple[Layer, Any]] = []
        with tabs.add_tab("Layers"):
            self._meshes = gui.add_checkbox("meshes", initial_value=True)
            self._transparent = gui.add_checkbox("transparent", initial_value=False)
            self._collision = gui.add_checkbox("collision geometry", initial_value=False)
            for box in (self._meshes, self._transparent, self._collision):
                box.on_update(self._switch_meshes)
            for layer in LAYERS:
                box = gui.add_checkbox(layer.name, initial_value=layer.name in switched_on)
                gui.add_html(_legend(layer.legend))
                self._layers.append((layer, box))
            night = gui.add_checkbox("dark mode", initial_value=self.dark)
            night.on_update(lambda _: self._set_theme(night.value))
        with tabs.add_tab("Numbers"):
            self._numbers = gui.add_html("")
        if self._options.model_code:
            with tabs.add_tab("Python"):
                self._python = gui.add_html("")
        for control in (self.body, self.representation, *(box for _, box in self._layers)):
            control.on_update(self.touch)

    def _switch_meshes(self, _: object) -> None:
        self.meshes.show(self._meshes.value and not self._transparent.value)
        self.clear.show(self._meshes.value and self._transparent.value)
        self._hull.show(self._collision.value)
        self.touch()

    def _set_theme(self, dark: bool) -> None:
        self.dark = dark
        self.background, lines, sections = (20, 60, 105) if dark else (255, 200, 140)
        self._floor.cell_color, self._floor.section_color = (lines,) * 3, (sections,) * 3
        self.server.gui.configure_theme(
            dark_mode=dark, show_logo=False, show_share_button=False, control_width="large"
        )

    def set_message(self, about: str, text: str) -> None:
        """Show a message at the top of the page; it replaces the previous one about the same."""
        if self._messages.get(about, "") == text:
            return
        self._messages[about] = text
        lines = [f"<div>&#9888; {escape(each)}</div>" for each in self._messages.values() if each]
        html = f'<div class="mbs-messages" style="{_MESSAGE}">{"".join(lines)}</div>'
        self._status.content = html
        self._status.visible = bool(lines)

    def touch(self, _: object = None) -> None:
        """Request an update of the scene."""
        self.changed.set()

    def _connected(self, client: viser.ClientHandle) -> None:
        client.camera.on_update(self.touch)  # labels depend on the camera
        self.cameras.start(client.camera)
        self.touch()

    def _disconnected(self, client: viser.ClientHandle) -> None:
        if self._running and not self.server.get_clients():
            self.report(f"the page was closed; {self.address} is served until Ctrl+C")

    # -- drawing -----------------------------------------------------------------------------------

    def run(self, source: Source, until: Callable[[], bool] = lambda: False) -> None:
        """Draw the scenes of the source until ``until`` returns True.

        Changes of the source are drawn only while a browser is connected.
        """
        self._running = True
        self.touch()
        while not until():
            touched = self.changed.wait(REFRESH)
            if touched or (self.server.get_clients() and (source.due() or self._numbers_due)):
                self.changed.clear()
                self.refresh(source)

    def refresh(self, source: Source) -> None:
        """Draw the current scene of the source. Errors of this package are shown on the page."""
        try:
            scene = source.scene(self.body.value, self.representation.value)
            if scene is not None:
                self.show(scene)
        except MbsError as error:
            self.set_message("error", str(error))
        else:
            self.set_message("error", "")

    def show(self, scene: Scene) -> None:
        """Draw a scene, in the selected layers."""
        if self.cameras.points is None:
            self._measure(scene.poses[None] if self.initial_poses is None else self.initial_poses)
            self.cameras.start_all()
        self._poses = scene.poses
        layers = [layer.draw(scene) if box.value else [] for layer, box in self._layers]
        layers = arranged(self.cameras.last(), layers, scene.poses)
        with self.server.atomic():
            self.bodies.move(scene.poses)
            for (layer, _), drawings in zip(self._layers, layers, strict=True):
                self.canvas.draw(f"layers/{layer.name}", drawings)
            now = time.monotonic()
            self._numbers_due = now - self._numbers_at < NUMBERS_EVERY
            if not self._numbers_due:
                self._numbers_at = now
                self._numbers.content = as_html(scene)
                if self._options.model_code:
                    self._python.content = _code(as_python(scene, self._options.model_code))

    def close(self) -> None:
        """Stop the server."""
        self.report = lambda text: None
        self._served.close()


_MESSAGE = (
    "font-size:0.8em;padding:0.4em 0.8em;margin:0.4em;border-left:4px solid rgb(214,94,0);"
    "max-height:8em;overflow-y:auto"
)


def _layers_on(names: Sequence[str] | None) -> set[str]:
    """Return the names of the layers that are on. Raises ArgumentError for an unknown one."""
    if names is None:
        return {layer.name for layer in LAYERS if layer.shown}
    valid = [layer.name for layer in LAYERS]
    unknown = [name for name in names if name not in (*valid, "all")]
    if unknown:
        raise ArgumentError(f"no layer {unknown[0]!r}; valid: all, {', '.join(valid)}")
    return {*valid} if "all" in names else {*names}


def _legend(legend: tuple[tuple[Colour, str], ...]) -> str:
    """Return a legend of colours as HTML."""
    lines = []
    for colour, text in legend:
        r, g, b = (round(255 * part) for part in colour)
        square = (
            f'<span style="display:inline-block;width:0.8em;height:0.8em;margin-right:0.4em;'
            f'border:1px solid #8888;background:rgb({r},{g},{b})"></span>'
        )
        lines.append(f"<div>{square}{escape(text)}</div>")
    return f'<div style="font-size:0.75em;padding:0 0.5em 0.6em 2.4em">{"".join(lines)}</div>'


def _code(text: str) -> str:
    """Return code as HTML that one click selects."""
    return (
        '<div style="font-size:0.75em;padding:0 0.8em">Click selects the code, Ctrl+C copies it.'
        '<pre class="mbs-python" style="user-select:all;white-space:pre-wrap;'
        f'overflow-wrap:anywhere">{escape(text)}</pre></div>'
    )
