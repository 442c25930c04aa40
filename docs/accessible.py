# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Pages for keyboards and screen readers: what Sphinx and the theme leave out."""

import re
from typing import Any

from sphinx.application import Sphinx

REPLACED = (
    # what scrolls is reached by Tab
    (r"<pre(?=[ >])", '<pre tabindex="0"'),
    (r'<div class="(?=(table|math)-wrapper)', '<div tabindex="0" class="'),
    (r'<p>(?=<img [^>]*class="only-light" src="(?![^"]*view_))', '<p tabindex="0">'),
    # numbers do not wrap
    (r"<td>(?=<p>[-+<>~±]?\d[^<]{0,24}</p></td>)", '<td class="number">'),
    # an empty corner of a table is not a header
    (r'<th class="head( stub)?"><p></p></th>', '<td class="head"></td>'),
    (r'<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
)
NAME = re.compile(r'(?<=<span class="pre">)[^<]+')
"""A word of code."""
CELL = re.compile(r"<td>.*?</td>", re.DOTALL)
PARAMETERS = re.compile(r'<dl>\n(?:<dd><em class="sig-param">.*</dd>\n)+</dl>')
LANDMARKS = (
    ('<aside class="sidebar-drawer"', '<aside class="sidebar-drawer" aria-label="Site"'),
    ('<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer'),
)


def accessible(html: str) -> str:
    """Return the content of a page with all that it needs."""
    for pattern, replacement in REPLACED:
        html = re.sub(pattern, replacement, html)
    html = CELL.sub(lambda cell: re.sub(r"(?<=_msgs/)(?=\w)", "<wbr>", cell[0]), html)  # of types
    html = NAME.sub(lambda name: re.sub(r"(?<=\w[_./])(?=\w)", "<wbr>", name[0]), html)
    return PARAMETERS.sub(_as_list, html)


def _as_list(parameters: re.Match[str]) -> str:
    """Return the parameters of a signature as a list; Sphinx has definitions without terms."""
    items = parameters[0].replace("<dl>", '<ul class="parameters">').replace("</dl>", "</ul>")
    return items.replace("<dd>", "<li>").replace("</dd>", "</li>")


def named_landmarks(html: str) -> str:
    """Return a page with names of its landmarks."""
    for old, new in LANDMARKS:
        html = html.replace(old, new)
    return html


def change(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Change the content of a page and its navigation."""
    context["named_landmarks"] = named_landmarks
    for part in ("body", "furo_navigation_tree"):
        if part in context:
            context[part] = accessible(context[part])


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what changes pages, after the theme has made their navigation."""
    app.connect("html-page-context", change, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
