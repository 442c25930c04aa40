# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Pages as HTML files."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.output_files import check_writable, expanded
from mbs_dynamics.view.page import Page, Source
from mbs_dynamics.view.playback import Playback

FRAMES_PER_SECOND = 10
"""Scenes per second of a motion in a file."""


def frame_times(end: float, rate: float) -> FloatArray:
    """Return the times in s of the frames of a motion from 0 to ``end``, ``rate`` a second."""
    return np.minimum(np.arange(max(round(end * rate), 1) + 1) / rate, end)


def write_html(page: Page, source: Source, path: Path) -> None:
    """Write the page as one self-contained file; a motion plays in real time.

    Raises ArgumentError for a file that does not end in .html, or cannot be written.
    """
    if path.suffix != ".html":
        raise ArgumentError(f"the file of a page must end in .html; got {str(path)!r}")
    check_writable("the page", path)
    page.hide_panel()
    page.refresh(source)
    serializer = page.server.get_scene_serializer()
    if isinstance(source, Playback):
        for t in frame_times(source.end, FRAMES_PER_SECOND).tolist():
            source.seek(t)
            page.refresh(source)
            serializer.insert_sleep(1.0 / FRAMES_PER_SECOND)
    expanded(path).write_text(serializer.as_html(dark_mode=page.dark), encoding="utf-8")
