# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Export of a page without a screen: PNG, GIF, and a self-contained HTML file."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.errors import ArgumentError, BackendError
from mbs_dynamics.view.page import Page, Source
from mbs_dynamics.view.playback import Playback

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
"""Commands of browsers, in the order in which they are tried."""

WITHOUT_SCREEN = (
    "--headless=new",
    "--no-sandbox",
    "--use-gl=angle",
    "--use-angle=swiftshader",
    "--enable-unsafe-swiftshader",
    "--hide-scrollbars",
    "--no-first-run",
)

DRAWN_MS = 8000
"""Virtual time of the browser in ms after which a scene is complete."""

_BARE = "<style>.mantine-Notifications-root{display:none}</style>"
"""Hides the notification of viser about software rendering."""

PICTURES = (".png", ".gif", ".html")
"""Suffixes of the files that can be written."""

FRAMES_PER_SECOND = 10

TIMEOUT = 60.0
"""Time limit in s for a browser to load the page, and to draw it."""


def browser() -> str:
    """Return the path of a browser; BackendError if none is installed."""
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        raise BackendError(f"pictures need a browser: none of {', '.join(BROWSERS)} is installed")
    return found


def _command(width: int, height: int, profile: str) -> list[str]:
    size = f"--window-size={width},{height}"
    return [browser(), *WITHOUT_SCREEN, size, f"--user-data-dir={profile}"]


@contextmanager
def without_screen(page: Page, width: int, height: int) -> Iterator[Any]:
    """Open the page in a headless browser, and yield viser's handle of the client."""
    connected = threading.Event()
    page.server.on_client_connect(lambda _: connected.set())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = subprocess.Popen(
            [*_command(width, height, profile), page.address],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            if not connected.wait(TIMEOUT):
                raise BackendError(f"the browser did not open the page within {TIMEOUT:g} s")
            yield next(iter(page.server.get_clients().values()))
        finally:
            process.terminate()
            process.wait()


def write_png(page: Page, source: Source, path: Path) -> None:
    """Write a picture of the current scene. Raises BackendError without a browser."""
    page.refresh(source)
    path.unlink(missing_ok=True)
    scene = page.server.scene.as_html().replace("<head>", f"<head>{_BARE}", 1)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        html, profile = Path(folder, "scene.html"), Path(folder, "profile")
        html.write_text(scene, encoding="utf-8")
        command = _command(1280, 800, str(profile))
        command += [f"--screenshot={path.absolute()}", f"--virtual-time-budget={DRAWN_MS}"]
        try:
            done = subprocess.run([*command, html.as_uri()], capture_output=True, timeout=TIMEOUT)
        except subprocess.TimeoutExpired as error:
            raise BackendError(f"the browser drew nothing within {TIMEOUT:g} s") from error
    if not path.is_file():
        raise BackendError(f"the browser drew nothing: {done.stderr.decode(errors='replace')}")


def write_gif(page: Page, playback: Playback, path: Path) -> None:
    """Write an animation in real time. Raises BackendError without a browser."""
    import imageio.v3

    width, height = 640, 480
    frames, times = [], _times(playback)
    page.refresh(playback)
    with without_screen(page, width, height) as client:

        def drawn() -> Any:
            found = client.get_render(height, width, transport_format="png", timeout=TIMEOUT)
            opacity = found[..., 3:] / 255.0
            return np.uint8(found[..., :3] * opacity + 255.0 * (1.0 - opacity))

        before, first = None, drawn()
        while before is None or not np.array_equal(before, first):  # meshes and camera arrive
            before, first = first, drawn()
        for k, t in enumerate(times, 1):
            playback.seek(t)
            page.refresh(playback)
            frames.append(drawn())
            if k % 10 == 0:
                page.report(f"drew {k} of {len(times)} frames")
    imageio.v3.imwrite(path, np.stack(frames), duration=1000.0 / FRAMES_PER_SECOND, loop=0)


def write_html(page: Page, source: Source, path: Path) -> None:
    """Write the scene, or the whole motion, as one HTML file without references to others."""
    page.refresh(source)
    serializer = page.server.get_scene_serializer()
    if isinstance(source, Playback):
        for t in _times(source):
            source.seek(t)
            page.refresh(source)
            serializer.insert_sleep(1.0 / FRAMES_PER_SECOND)
    path.write_text(serializer.as_html(), encoding="utf-8")


def _times(playback: Playback) -> list[float]:
    count = max(int(playback.end * FRAMES_PER_SECOND), 1) + 1
    return [float(t) for t in np.linspace(0.0, playback.end, count)]


def write_picture(page: Page, source: Source, path: Path) -> None:
    """Write a file in the format of its suffix; see :func:`check_picture`."""
    page.panel = False
    if path.suffix == ".html":
        write_html(page, source, path)
    elif isinstance(source, Playback) and path.suffix == ".gif":
        write_gif(page, source, path)
    else:
        write_png(page, source, path)


def check_picture(path: Path, moves: bool) -> None:
    """Raise ArgumentError for an unknown suffix or folder, and an animation without a motion."""
    if path.suffix not in PICTURES:
        raise ArgumentError(f"--write must end in {', '.join(PICTURES)}; got {str(path)!r}")
    if not path.parent.is_dir():
        raise ArgumentError(f"--write names the folder {str(path.parent)!r}, which does not exist")
    if path.suffix == ".gif" and not moves:
        raise ArgumentError("--write FILE.gif needs a motion: --motion FILE")
