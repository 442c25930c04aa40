# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Long names break after underscores, slashes and dots, and nowhere else.

Punctuation stays on the line of the formula before it.
"""

from __future__ import annotations

import re
from typing import Any

from sphinx.application import Sphinx

NAMES = re.compile(r"<(table|code|dt|nav)\b.*?</\1>|<li class=\"toctree.*?</a>", re.DOTALL)
"""What holds names: cells of tables, code within text, signatures, and lists of pages."""
TEXT = re.compile(r">[^<]+")
PUNCTUATED = re.compile(
    r'\(*<math [^>]*display="inline">(?:(?!</math>).)*</math>[.,;:)]+', re.DOTALL
)
"""A formula and the punctuation that follows it."""


def breakable(html: str) -> str:
    """Return HTML whose names may break after underscores, slashes and dots."""

    def marked(text: re.Match[str]) -> str:
        return re.sub(
            r"(?<=\w{3})([_/])(?=\w{3})|(?<=[a-z]{3})(\.)(?=[A-Za-z]\w)", r"\g<0><wbr>", text[0]
        )

    return NAMES.sub(lambda names: TEXT.sub(marked, names[0]), html)


def unbroken(html: str) -> str:
    """Return HTML whose formulas stay on one line with the punctuation that follows them."""
    return PUNCTUATED.sub(r'<span class="formula">\g<0></span>', html)


def change(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Mark the names of a page and of its navigation."""
    for part in ("body", "toc", "furo_navigation_tree"):
        if part in context:
            context[part] = unbroken(breakable(context[part]))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what changes pages, after the theme has made their navigation."""
    app.connect("html-page-context", change, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
