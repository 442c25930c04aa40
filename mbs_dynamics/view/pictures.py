# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Export of a page without a screen: PNG, GIF, and a self-contained HTML file."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.errors import ArgumentError, BackendError
from mbs_dynamics.view.figures import frame_times
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

PICTURES = (".png", ".gif", ".html")
"""Suffixes of the files that can be written."""

FRAMES_PER_SECOND = 10

SETTLING = 0.5
"""Time in s between two pictures that are equal once a scene is complete."""

TIMEOUT = 60.0
"""Time limit in s for a browser to load the page, and to draw it."""


def browser() -> str:
    """Return the path of a browser; BackendError if none is installed."""
    command = next(filter(None, map(shutil.which, BROWSERS)), None)
    if command is None:
        raise BackendError(f"pictures need a browser: none of {', '.join(BROWSERS)} is installed")
    return command


@contextmanager
def without_screen(page: Page, width: int, height: int) -> Iterator[Any]:
    """Open the page in a headless browser, and yield viser's handle of the client."""
    connected = threading.Event()
    page.server.on_client_connect(lambda _: connected.set())
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        size = f"--window-size={width},{height}"
        process = subprocess.Popen(
            [browser(), *WITHOUT_SCREEN, size, f"--user-data-dir={profile}", page.address],
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


@contextmanager
def _rendered(
    page: Page, source: Source, width: int, height: int
) -> Iterator[Callable[[], NDArray[np.uint8]]]:
    """Yield a function that draws the current scene as an image (height, width, 3)."""
    page.refresh(source)
    with without_screen(page, width, height) as client:

        def image() -> NDArray[np.uint8]:
            page.refresh(source)
            rgba = client.get_render(height, width, transport_format="png", timeout=TIMEOUT)
            opacity = rgba[..., 3:] / 255.0
            blended = rgba[..., :3] * opacity + page.background * (1.0 - opacity)
            return np.asarray(blended, dtype=np.uint8)

        before, last, end = None, image(), time.monotonic() + TIMEOUT
        while before is None or not np.array_equal(before, last):  # meshes and camera arrive
            if time.monotonic() > end:
                raise BackendError(f"the browser did not complete the scene in {TIMEOUT:g} s")
            time.sleep(SETTLING)
            before, last = last, image()
        yield image


def _played(playback: Playback) -> Iterator[tuple[int, int]]:
    """Show each frame of a motion in real time, and yield its number, from 1 on, of how many."""
    times = frame_times(playback.end, FRAMES_PER_SECOND)
    for k, t in enumerate(times.tolist(), 1):
        playback.seek(t)
        yield k, len(times)


def write_picture(page: Page, source: Source, path: Path) -> None:
    """Write a file in the format of its suffix; see :func:`check_picture`.

    HTML is one file without references to others. Of a motion, .html and .gif show all of it in
    real time. Raises BackendError for pictures without a browser.
    """
    page.panel = False
    if path.suffix == ".html":
        page.refresh(source)
        serializer = page.server.get_scene_serializer()
        for _ in _played(source) if isinstance(source, Playback) else ():
            page.refresh(source)
            serializer.insert_sleep(1.0 / FRAMES_PER_SECOND)
        path.write_text(serializer.as_html(), encoding="utf-8")
        return
    import imageio.v3

    if isinstance(source, Playback) and path.suffix == ".gif":
        frames = []
        with _rendered(page, source, 640, 480) as image:
            for k, count in _played(source):
                frames.append(image())
                if k % 10 == 0:
                    page.report(f"drew {k} of {count} frames")
        imageio.v3.imwrite(path, np.stack(frames), duration=1000.0 / FRAMES_PER_SECOND, loop=0)
    else:
        with _rendered(page, source, 1280, 800) as image:
            imageio.v3.imwrite(path, image())


def check_picture(path: Path, moves: bool) -> None:
    """Raise ArgumentError for an unknown suffix or folder, and an animation without a motion."""
    if path.suffix not in PICTURES:
        raise ArgumentError(f"--write must end in {', '.join(PICTURES)}; got {str(path)!r}")
    if not path.parent.is_dir():
        raise ArgumentError(f"--write names the folder {str(path.parent)!r}, which does not exist")
    if path.suffix == ".gif" and not moves:
        raise ArgumentError("--write FILE.gif needs a motion: --motion FILE")
