# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Formulas as MathML, which browsers display without scripts; their font is in _static."""

import re
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator

DOTS = re.compile("(?<=<mo)(?=>&#x0(?:02D9|00A8);)")
"""Where the operators of time derivatives begin, which browsers draw very small."""

MORE_DOTS = {"&#x020DB;": "...", "&#x020DC;": "...."}
"""Three and four dots are combining characters, which browsers draw beside the symbol."""

UPRIGHT = re.compile(r"(?<=<mi)(?=>&#x000[4-7][0-9A-F];</mi>)")
"""Where a single upright letter begins, which browsers draw in italics."""


def mathml(latex: str, display: str) -> str:
    """Return a formula as MathML."""
    formula = convert(latex, display=display)
    for combining, dots in MORE_DOTS.items():
        formula = formula.replace(f"<mo>{combining}", f'<mo mathsize="100%">{dots}')
    formula = UPRIGHT.sub(' mathvariant="normal"', formula)
    return DOTS.sub(' mathsize="120%"', formula)


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
