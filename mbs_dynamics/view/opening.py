# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Opening the page of a robot that a file describes, and writing it as a file."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownBodyError
from mbs_dynamics.model.model import Model
from mbs_dynamics.output_files import check_writable, expanded
from mbs_dynamics.view.meshes import Appearance, appearance
from mbs_dynamics.view.mjcf_visuals import shapes_of
from mbs_dynamics.view.page import Page, Source
from mbs_dynamics.view.playback import Playback
from mbs_dynamics.view.scene import DrawnModel
from mbs_dynamics.view.urdf_visuals import Visual, Visuals

FRAMES_PER_SECOND = 10
"""Scenes per second of a motion in a file."""


class Opened(NamedTuple):
    """A page and its robot."""

    page: Page
    drawn: DrawnModel
    appearance: Appearance


def open_page(
    model: Model,
    description: str | Path | None,
    *,
    geometry: Sequence[Visual] = (),
    beside: Path | None = None,
    packages: Sequence[str | Path] = (),
    layers: Sequence[str] | None = None,
    message: str = "",
    model_code: str = "",
    port: int | None = None,
    dark: bool = False,
    report: Callable[[str], None] = lambda text: None,
) -> Opened:
    """Serve a page for a model, with the shapes of its description and those of ``geometry``.

    ``description`` is the path of a URDF or an MJCF, the text of a URDF, or None for no shapes.
    Relative paths of meshes are searched ``beside`` a file, by default that of the description.
    ``report`` receives messages about missing meshes and closed pages, which are on the page as
    well; ``model_code`` is described in :class:`~mbs_dynamics.view.page.Page`, the other arguments
    in :func:`~mbs_dynamics.view.show`. Raises UnknownBodyError for geometry on another link,
    ArgumentError for an unknown layer and if the port is taken.
    """
    UnknownBodyError.check((each.link for each in geometry), model.frames)
    drawn, folders = DrawnModel.of(model), [Path(each) for each in packages]
    if isinstance(description, str) and not description.lstrip().startswith("<"):
        description = Path(description)
    source = description if isinstance(description, Path) else beside
    shapes = Visuals((), ()) if description is None else shapes_of(description)
    shapes = shapes._replace(visuals=(*shapes.visuals, *geometry))
    look = appearance(model, shapes, drawn.size, source, folders)
    for problem in look.problems:
        report(problem)

    def collisions() -> Appearance:
        found = Visuals((), ()) if description is None else shapes_of(description, "collision")
        return appearance(model, found, drawn.size, source, folders, capsules=False)

    page = Page(
        model,
        look,
        drawn.size,
        layers=layers,
        collisions=collisions,
        model_code=model_code,
        port=port,
        dark=dark,
    )
    page.report = report
    page.set_message("message", message)
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


def frame_times(end: float, rate: float) -> FloatArray:
    """Return the times in s of the frames of a motion from 0 to ``end``, ``rate`` a second."""
    return np.minimum(np.arange(max(round(end * rate), 1) + 1) / rate, end)


def write_html(page: Page, source: Source, path: Path) -> None:
    """Write the page as one file without references to others; a motion plays in real time.

    Raises ArgumentError for a file that does not end in .html, or cannot be written.
    """
    if path.suffix != ".html":
        raise ArgumentError(f"a page is a file that ends in .html; got {str(path)!r}")
    check_writable("the page", path)
    page.hide_panel()
    page.refresh(source)
    serializer = page.server.get_scene_serializer()
    if isinstance(source, Playback):
        for t in frame_times(source.end, FRAMES_PER_SECOND).tolist():
            source.seek(t)
            page.refresh(source)
            serializer.insert_sleep(1.0 / FRAMES_PER_SECOND)
    expanded(path).write_text(serializer.as_html(), encoding="utf-8")
