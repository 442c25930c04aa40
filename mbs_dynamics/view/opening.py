# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Opens the page of a robot whose URDF is a file."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from mbs_dynamics.model.model import Model
from mbs_dynamics.model.urdf_visuals import visuals_of
from mbs_dynamics.view.layers import Parts
from mbs_dynamics.view.meshes import Appearance, appearance
from mbs_dynamics.view.page import Page, Source


class Opened(NamedTuple):
    """A page, and what it shows."""

    page: Page
    parts: Parts
    look: Appearance


def open_page(
    model: Model,
    urdf: Path | str,
    *,
    packages: Sequence[Path] = (),
    made: str = "",
    port: int | None = None,
    dark: bool = False,
    tell: Callable[[str], None] = print,
) -> Opened:
    """Serve a page for the model of a URDF, a path or XML text.

    ``tell`` is told of meshes that are missing, and when the page is closed. Raises ArgumentError
    if the port is taken.
    """
    parts = Parts.of(model)
    source = urdf if isinstance(urdf, Path) else None
    look = appearance(model, visuals_of(urdf), parts.size, source, packages)
    for problem in look.problems:
        tell(problem)
    page = Page(model, look, parts.size, made=made, port=port, dark=dark)
    page.tell = tell
    return Opened(page, parts, look)


def show(
    page: Page,
    source: Source,
    *,
    browse: bool = True,
    until: Callable[[], bool] = lambda: False,
) -> int:
    """Say where the page is, open it in the browser, and draw; return 0.

    It ends by Ctrl+C, or when it has become time.
    """
    try:
        page.refresh(source)
        if page.tell is not _say:  # at first
            _say(f"{page.name}: {page.address} (Ctrl+C ends)")
            page.tell = _say
        if browse:
            webbrowser.open(page.address)
        page.run(source, until)
    except KeyboardInterrupt:
        print()
    return 0


def _say(words: str) -> None:
    print(words, flush=True)
