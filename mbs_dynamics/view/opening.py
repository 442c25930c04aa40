# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Opening the page of a robot that a URDF describes, and writing it as a file."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.urdf_visuals import visuals_of
from mbs_dynamics.output_files import check_writable, expanded
from mbs_dynamics.view.figures import frame_times
from mbs_dynamics.view.meshes import Appearance, appearance
from mbs_dynamics.view.page import Page, Source
from mbs_dynamics.view.playback import Playback
from mbs_dynamics.view.scene import DrawnModel

FRAMES_PER_SECOND = 10
"""Scenes per second of a motion in a file."""


class Opened(NamedTuple):
    """A page and its robot."""

    page: Page
    drawn: DrawnModel
    appearance: Appearance


def open_page(
    model: Model,
    urdf: Path | str,
    *,
    beside: Path | None = None,
    packages: Sequence[Path] = (),
    model_code: str = "",
    port: int | None = None,
    dark: bool = False,
    report: Callable[[str], None] = print,
) -> Opened:
    """Serve a page for the model of a URDF, given as a path or as XML text.

    Relative paths of meshes are searched ``beside`` a file, by default that of the URDF. ``report``
    receives messages about missing meshes and closed pages; the other arguments are
    those of :func:`~mbs_dynamics.view.meshes.appearance` and :class:`~mbs_dynamics.view.page.Page`.
    Raises ArgumentError if the port is taken.
    """
    drawn = DrawnModel.of(model)
    source = urdf if isinstance(urdf, Path) else beside
    look = appearance(model, visuals_of(urdf), drawn.size, source, packages)
    for problem in look.problems:
        report(problem)

    def collisions() -> Appearance:
        shapes = visuals_of(urdf, "collision")
        return appearance(model, shapes, drawn.size, source, packages, capsules=False)

    page = Page(
        model,
        look,
        drawn.size,
        collisions=collisions,
        model_code=model_code,
        port=port,
        dark=dark,
    )
    page.report = report
    return Opened(page, drawn, look)


def announce(page: Page, browse: bool) -> None:
    """Print the address of a page, and open it in the browser if ``browse``."""
    print(f"{page.name}: {page.address} (Ctrl+C ends)", flush=True)
    if browse:
        webbrowser.open(page.address)


@contextmanager
def until_interrupt() -> Iterator[None]:
    """End the block at Ctrl+C without an error."""
    try:
        yield
    except KeyboardInterrupt:
        print()


def check_html(option: str, path: Path) -> None:
    """Raise ArgumentError, naming the option, for a file that :func:`write_html` cannot write."""
    if path.suffix != ".html":
        raise ArgumentError(
            f"{option} must end in .html; got {str(path)!r}. The browser saves pictures of the page"
        )
    check_writable(option, path)


def write_html(page: Page, source: Source, path: Path) -> None:
    """Write the page as one file without references to others; a motion plays in real time."""
    page.panel = False
    page.refresh(source)
    serializer = page.server.get_scene_serializer()
    if isinstance(source, Playback):
        for t in frame_times(source.end, FRAMES_PER_SECOND).tolist():
            source.seek(t)
            page.refresh(source)
            serializer.insert_sleep(1.0 / FRAMES_PER_SECOND)
    expanded(path).write_text(serializer.as_html(), encoding="utf-8")
