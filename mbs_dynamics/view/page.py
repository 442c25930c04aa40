# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A page in the browser that shows a robot. It is served to this machine only."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.colours import Colour
from mbs_dynamics.errors import ArgumentError, MbsError, UnknownBodyError, missing_extra
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model, warnings_about
from mbs_dynamics.model.orders import tools
from mbs_dynamics.representation import REPRESENTATIONS
from mbs_dynamics.view.cameras import Cameras
from mbs_dynamics.view.canvas import Canvas
from mbs_dynamics.view.drawings import Label
from mbs_dynamics.view.layers import LAYERS, Layer
from mbs_dynamics.view.meshes import Part, appearance
from mbs_dynamics.view.mjcf_visuals import shapes_of
from mbs_dynamics.view.numbers import as_html
from mbs_dynamics.view.options import PageOptions
from mbs_dynamics.view.scene import DrawnModel, Scene
from mbs_dynamics.view.server import HOST, Server
from mbs_dynamics.view.urdf_visuals import Visuals

try:
    import trimesh
    import viser
except ImportError as error:
    raise missing_extra("the viewer needs viser and trimesh", "view", error) from error

STYLE = ".mantine-Slider-markLabel{font-size:0.7rem;color:inherit;opacity:0.9}"
"""CSS that makes the limits of sliders readable; viser has no option for it."""

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
        given = options or PageOptions()
        UnknownBodyError.check((each.link for each in given.geometry), model.frames)
        switched_on = _layers_on(given.layers)
        source, shown = given.description, Visuals((), ())
        if isinstance(source, str) and not source.lstrip().startswith("<"):
            source = Path(source)
        if source is not None:
            shown = shapes_of(source)
        self.name, self.drawn, self._model = model.name, DrawnModel.of(model), model
        self.parts, missing = appearance(
            model,
            (*shown.visuals, *given.geometry),
            self.drawn.size,
            source if isinstance(source, Path) else None,
            [Path(each) for each in given.packages],
        )
        self.problems = [*shown.problems, *missing]
        """Messages about shapes that are not shown."""
        self._served = Server(given.port, model.name)
        self.server, self.port = self._served.viser, self._served.port
        self.address = f"http://{HOST}:{self.port}"
        self.changed = threading.Event()
        self.initial_poses: FloatArray | None = None
        """Poses (N, nb, 4, 4) that the initial camera shows; None for those of the first scene."""
        self.dark, self.background = given.dark, 255
        """Whether the page is in dark mode, and the grey level of its background, 0 to 255."""
        self.cameras = Cameras(self.server, self.drawn.size)
        self._messages: dict[str, str] = {}
        self.canvas = Canvas(self.server.scene, self.drawn.size)
        with self.server.atomic():
            scene, wide = self.server.scene, 4.0 * self.drawn.size
            self._floor = scene.add_grid("/grid", width=wide, height=wide, cell_size=0.1)
            self.meshes = [self._add_mesh(part) for part in self.parts]
            self._add_lights()
            self._add_panels(model, switched_on)
        for number, problem in enumerate([*self.problems, *warnings_about(model)]):
            self.set_message(f"robot {number}", problem)
        self.server.on_client_connect(self._connected)

    # -- set-up ------------------------------------------------------------------------------------

    def _add_mesh(self, part: Part) -> Any:
        """Add a mesh to the scene, and return viser's handle of it."""
        name = f"{self.canvas.path(part.body)}/mesh/{part.name}"
        handle = self.server.scene.add_mesh_trimesh(name, part.mesh)
        handle.on_click(lambda _: self._pick(part))
        return handle

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
        extent = [np.zeros((1, 3)), poses[..., :3, 3].reshape(-1, 3)]
        for part in self.parts:
            at = np.eye(4)[None] if part.body == GROUND else poses[:, part.body]
            corners = trimesh.bounds.corners(part.mesh.bounds)
            placed = corners @ np.swapaxes(at[:, :3, :3], -1, -2) + at[:, None, :3, 3]
            extent.append(placed.reshape(-1, 3))
        points = np.concatenate(extent)
        self._floor.position = (0.0, 0.0, float(points[:, 2].min()))
        self.cameras.points = points

    def _fit(self, event: Any) -> None:
        """Show all of the robot from the direction of the camera, and put the floor below it."""
        if event.client is None or self.cameras.points is None:
            return
        self._measure(self._poses[None])
        camera = event.client.camera
        with event.client.atomic():
            self.cameras.view(camera, camera.position - camera.look_at)

    def _pick(self, part: Part) -> None:
        """Select the link of a part that was clicked, and show its name."""
        link = part.name.rpartition("/")[0]
        if link not in self._model.frames:  # a capsule, which is named after its ends
            link = "ground" if part.body == GROUND else self._model.bodies[part.body].name
        if link in self.body.options:
            self.body.value = link
        joint = "" if part.body == GROUND else f", {self._model.bodies[part.body].joint.name}"
        label = Label(part.mesh.bounds.mean(axis=0), link + joint, part.body)
        self.canvas.draw("picked", [label])
        self.touch()

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
            gui.add_button("fit the view").on_click(self._fit)
        self._layers: list[tuple[Layer, Any]] = []
        with tabs.add_tab("Layers"):
            self._meshes = gui.add_checkbox("meshes", initial_value=True)
            self._meshes.on_update(self._switch_meshes)
            for layer in LAYERS:
                box = gui.add_checkbox(layer.name, initial_value=layer.name in switched_on)
                gui.add_html(_legend(layer.legend))
                self._layers.append((layer, box))
            night = gui.add_checkbox("dark mode", initial_value=self.dark)
            night.on_update(lambda _: self._set_theme(night.value))
        with tabs.add_tab("Numbers"):
            self._numbers = gui.add_html("")
        for control in (self.body, self.representation, *(box for _, box in self._layers)):
            control.on_update(self.touch)

    def _switch_meshes(self, _: object) -> None:
        for mesh in self.meshes:
            mesh.visible = self._meshes.value

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
        self.cameras.start(client.camera)
        self.touch()

    # -- drawing -----------------------------------------------------------------------------------

    def run(self, source: Source, until: Callable[[], bool] = lambda: False) -> None:
        """Draw the scenes of the source until ``until`` returns True.

        Changes of the source are drawn only while a browser is connected.
        """
        self.touch()
        while not until():
            touched = self.changed.wait(REFRESH)
            if touched or (self.server.get_clients() and source.due()):
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
        with self.server.atomic():
            self.canvas.move(scene.poses)
            for layer, box in self._layers:
                drawings = layer.draw(scene) if box.value else []
                self.canvas.draw(f"layers/{layer.name}", drawings)
            self._numbers.content = as_html(scene)

    def close(self) -> None:
        """Stop the server."""
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
