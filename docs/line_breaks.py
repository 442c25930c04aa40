# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Long names break after underscores, slashes and dots, and nowhere else."""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

NAMES = re.compile(r"<(table|code|dt|nav)\b.*?</\1>|<li class=\"toctree.*?</a>", re.DOTALL)
"""What holds names: cells of tables, code within text, signatures, and lists of pages."""
TEXT = re.compile(r">[^<]+")


def breakable(html: str) -> str:
    """Return HTML whose names may break after underscores, slashes and dots."""

    def marked(text: re.Match[str]) -> str:
        return re.sub(
            r"(?<=\w{3})([_/])(?=\w{3})|(?<=[a-z]{3})(\.)(?=[A-Za-z]\w)", r"\g<0><wbr>", text[0]
        )

    return NAMES.sub(lambda names: TEXT.sub(marked, names[0]), html)


def change(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Mark the names of a page and of its navigation."""
    for part in ("body", "toc", "furo_navigation_tree"):
        if part in context:
            context[part] = breakable(context[part])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what changes pages, after the theme has made their navigation."""
    app.connect("html-page-context", change, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
