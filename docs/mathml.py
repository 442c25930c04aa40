# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Formulas as MathML, which browsers display without scripts, fonts or network."""

from __future__ import annotations

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

DOTS = re.compile("(?<=<mo)(?=>&#x0(?:02D9|00A8|20DB|20DC);)")
"""Where the operators of time derivatives begin, which browsers draw very small."""


def mathml(latex: str, display: str) -> str:
    """Return a formula as MathML."""
    return DOTS.sub(' mathsize="150%"', convert(latex, display=display))


def inline(writer: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula within a line."""
    writer.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def block(writer: HTML5Translator, node: nodes.Element) -> None:
    """Write a formula of its own."""
    writer.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>\n')
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Register the writers."""
    app.add_html_math_renderer("mathml", (inline, None), (block, None))
    return {"parallel_read_safe": True, "parallel_write_safe": True}
