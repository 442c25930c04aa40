# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Code on pages without the empty line that doctest needs after the last output."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx


def tidy(app: Sphinx, docname: str, source: list[str]) -> None:
    """Drop empty lines before the ends of code blocks."""
    source[0] = re.sub(r"\n\n```$", "\n```", source[0], flags=re.MULTILINE)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what changes the pages."""
    app.connect("source-read", tidy)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
