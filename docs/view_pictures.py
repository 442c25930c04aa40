# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The page of `mbs-dynamics view` in a headless browser: the pictures of docs/how_to/view.md.

python -m docs.view_pictures [FOLDER]     writes view_*.png and view_film.gif there, by default in
                                          docs/figures, and in dark mode in its folder dark

Needs the extras `view` and `test` (playwright, example-robot-data), and Chromium or Chrome.
"""

import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from typing import Any

import imageio.v3
import numpy as np

import mbs_dynamics as mbs
from docs.browser import chromium
from mbs_dynamics.integrate import simulate
from mbs_dynamics.resources import robot_path
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.view.options import PageOptions
from mbs_dynamics.view.page import Page, Source
from mbs_dynamics.view.playback import Playback, frame_times
from mbs_dynamics.view.posing import Posing

SIZE = {"width": 1200, "height": 750}
FRAMES_PER_SECOND = 10
TIMEOUT_MS = 180_000
DRAWN_MS = 4000
"""Time in ms that software rendering may take for a scene."""

POSTURE = np.array([0.0, 0.6, 0.0, 1.4, 0.0, 0.8, 0.0])
GUIDED = np.array([4.0, -2.0, 1.0, 3.0, 0.0, 2.0, 0.0])
"""Amplitudes of the accelerations of a guided arm, in rad/s^2."""
UR5 = "ur_description/urdf/ur5_robot.urdf"
G1 = "g1_description/urdf/g1_29dof_rev_1_0.urdf"


def example_robot(name: str) -> Path:
    """Return the URDF of a robot of example-robot-data."""
    files = distribution("example-robot-data")
    found = [file for file in files.files or () if str(file).endswith(f"robots/{name}")]
    return Path(str(files.locate_file(found[0])))


@contextmanager
def shown(served: Page, source: Source) -> Iterator[Any]:
    """Draw the scenes of a source in a thread, and yield the page in a browser."""
    over = threading.Event()
    thread = threading.Thread(target=served.run, args=(source, over.is_set))
    thread.start()
    with chromium() as browser:
        page = browser.new_page(viewport=SIZE)
        page.set_default_timeout(TIMEOUT_MS)
        page.goto(served.address)
        page.get_by_role("tab", name="Robot").wait_for()
        page.add_style_tag(content=".mantine-Notifications-root{display:none}")
        page.wait_for_timeout(DRAWN_MS)
        yield page
    over.set()
    thread.join()
    served.close()


def pose(
    urdf: Path,
    q: Sequence[float],
    qd: Sequence[float],
    layers: list[str] | None,
    dark: bool,
) -> tuple[Page, Posing]:
    """Return a page with controls."""
    options = PageOptions(urdf, layers=layers, dark=dark)
    served = Page(mbs.Model.from_urdf(urdf), options)
    return served, Posing(served, np.array(q), np.array(qd))


def swing() -> TimeSeries:
    """Return a motion of arm7 that starts at rest and holds 0.4 of gravity, with damping."""
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    hold = mbs.compile(mbs.gravity_torques, arm)
    law = lambda t, q, qd: 0.4 * hold(q) - 0.2 * qd  # noqa: E731
    return simulate(arm, POSTURE, duration=1.5, control=law).series


def guided() -> TimeSeries:
    """Return a motion of arm7 that is guided there and back, so that it ends as it began."""
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    law = lambda t, q, qd: mbs.inverse_dynamics(  # noqa: E731
        arm, q, qd, GUIDED * np.cos(np.pi * t)
    )
    return simulate(arm, POSTURE, duration=2.0, control=law).series


def robot(picture: Callable[..., None], dark: bool) -> None:
    """The arm7 with torques, payload and a handle."""
    served, posing = pose(robot_path("arm7"), POSTURE, np.zeros(7), None, dark)
    with shown(served, posing) as page:
        page.get_by_label("drag body", exact=True).click()
        picture(page, "view_robot")


def twist(picture: Callable[..., None], dark: bool) -> None:
    """The twist of a UR5 in its four representations."""
    layers = ["torques", "joint axes", "twist"]
    q, qd = [0.0, -1.2, 1.5, -0.8, 0.0, 0.0], [1.0, 0.0, 0.7, 0.0, 0.5, 0.0]
    served, posing = pose(example_robot(UR5), q, qd, layers, dark)
    with shown(served, posing) as page:
        page.get_by_role("tab", name="Numbers", exact=True).click()
        picture(page, "view_twist")


def humanoid(picture: Callable[..., None], dark: bool) -> None:
    """A humanoid without its meshes, and the legend of the layers."""
    layers = ["body frames", "centres of mass", "inertia ellipsoids", "torques"]
    served, posing = pose(example_robot(G1), np.zeros(29), np.zeros(29), layers, dark)
    with shown(served, posing) as page:
        page.get_by_role("tab", name="Layers", exact=True).click()
        page.get_by_label("meshes", exact=True).click()
        picture(page, "view_layers")


def motion(picture: Callable[..., None], dark: bool) -> None:
    """A motion with the trace of the tool."""
    urdf = robot_path("arm7")
    served = Page(mbs.Model.from_urdf(urdf), PageOptions(urdf, dark=dark))
    playback = Playback(served, swing())
    playback.seek(0.45)
    with shown(served, playback) as page:
        picture(page, "view_motion")


def film(path: Path, dark: bool) -> None:
    """The arm7 is guided there and back, with the trace of its tool."""
    urdf = robot_path("arm7")
    served = Page(mbs.Model.from_urdf(urdf), PageOptions(urdf, port=0, dark=dark))
    served.cameras.panel, frames = False, []
    playback = Playback(served, guided())
    with shown(served, playback):
        client = next(iter(served.server.get_clients().values()))
        for t in frame_times(playback.end, FRAMES_PER_SECOND).tolist():
            playback.seek(t)
            served.refresh(playback)
            frames.append(rendered(served, client, 480, 640))
    imageio.v3.imwrite(path, np.stack(frames), duration=1000.0 / FRAMES_PER_SECOND, loop=0)


GALLERY = {
    "ur5": (UR5, ["torques"], {1: -1.2, 2: 1.5, 3: -0.8}),
    "panda": (
        "panda_description/urdf/panda.urdf",
        ["torques", "joint axes"],
        {1: 0.6, 3: -1.6, 5: 2.2},
    ),
    "g1": (G1, ["torques"], {}),
    "go2": ("go2_description/urdf/go2.urdf", ["torques"], {}),
    "allegro": ("allegro_hand_description/urdf/allegro_left_hand.urdf", ["body frames"], {}),
    "talos": (
        "talos_data/robots/talos_reduced.urdf",
        ["inertia ellipsoids", "centres of mass"],
        {},
    ),
}
"""Robots of the front page, the layers that are drawn, and positions in rad by coordinate."""


def gallery(folder: Path, dark: bool) -> None:
    """Six robots without the panel."""
    for name, (file, layers, positions) in GALLERY.items():
        urdf = example_robot(file)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mbs.ModelWarning)
            model = mbs.Model.from_urdf(urdf)
        served = Page(model, PageOptions(urdf, layers=layers, port=0, dark=dark))
        served.cameras.panel = False
        q = model.neutral(within_limits=True)
        q[list(positions)] = list(positions.values())
        with shown(served, Posing(served, q)):
            client = next(iter(served.server.get_clients().values()))
            imageio.v3.imwrite(folder / f"view_{name}.png", rendered(served, client, 400, 640))
        print(f"wrote {folder / name}")


def rendered(served: Page, client: Any, height: int, width: int) -> Any:
    """Return a picture (height, width, 3) of the scene, without the panel."""
    rgba = client.get_render(height, width, transport_format="png")
    opacity = rgba[..., 3:] / 255.0
    blended = rgba[..., :3] * opacity + served.background * (1.0 - opacity)
    return blended.astype(np.uint8)


def main() -> None:
    """Write all pictures."""
    light = Path(sys.argv[1] if len(sys.argv) > 1 else "docs/figures")
    for folder, dark in ((light, False), (light / "dark", True)):
        folder.mkdir(exist_ok=True)

        def picture(page: Any, name: str, folder: Path = folder) -> None:
            page.wait_for_timeout(DRAWN_MS)
            page.screenshot(path=folder / f"{name}.png")
            print(f"wrote {folder / name}.png")

        for draw in (robot, twist, humanoid, motion):
            draw(picture, dark)
        film(folder / "view_film.gif", dark)
        gallery(folder, dark)


if __name__ == "__main__":
    main()
