# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Formulas of docstrings, which are plain text there and typeset on the site.

No markup is needed. A formula is a run of numbers, operators and names of quantities with a
relation, a sum, an index, an exponent, a dot or an argument: ``M qdd + h = tau``, ``S_i^T W_i``,
``O(n d)``, ``Mdot - 2 C``. Units, shapes, code and runs next to other text than words stay as they
are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from sphinx.application import Sphinx

GREEK = "alpha|beta|gamma|delta|zeta|eta|theta|lambda|mu|rho|tau|phi|psi|omega|xi|sigma|pi"
GREEK += "|Gamma|Lambda|Omega|Theta|Pi|Phi|Sigma"
OPERATORS = "Ad|ad|dexp|diag|trace|rank|exp|log|sin|cos|det|sqrt"
SCRIPTS = r"(?:[_^](?:\{[^{}\n]*\}|-?[A-Za-z0-9]+(?:,[a-z0-9](?![a-z]))?))*"
TOKEN = re.compile(
    rf"(?P<name>(?<![\w.])(?:(?P<operator>{OPERATORS}|sum)|(?P<d>d(?=(?:[A-Zfgqtuvwx]|qd+|tau|pi)(?![a-z])))?"
    rf"(?P<base>{GREEK}|q(?P<rates>d{{1,4}})|[a-z]{{3,}}(?=\^\d)|[A-Za-z])(?P<dots>d?dot|bar)?)"
    rf"(?P<scripts>(?:(?<=[a-z])\d)?{SCRIPTS})(?![\w'~^]|\.\w|-[A-Za-z]))"
    rf"|(?P<number>(?<![\w.])\d+(?:\.\d+)?(?![\w.]*\w))"
    rf"|(?P<open>[(\[])|(?P<close>[)\]])(?P<after>{SCRIPTS})"
    r"|(?P<relation>=|(?<= )[<>]=?(?= ))|(?P<binary>[-+/])|(?P<comma>,)"
)
GAP = re.compile(r" *(?:\n *(?![-\d]))?")
KEPT = re.compile(
    r"``.*?``|^ *:\w+ [\w, ]+:|:[\w:]+:`.*?`|`.*?`_*|^\s*>>>.*(?:\n.+)*|^[ =]*={3}(?:.*\n)+?\s*$"
    r"|\b(?:kg|rad|m|N|J|W)(?: (?:m|s)\b)?(?:\^\d)?(?:/(?:s|m|rad|A)(?:\^\d)?)(?!\w)|\bkg m\^2"
    r"|\b(?:kg|m|s)\^-?\d(?:/\d)?|\bN (?:m|s)\b(?: s\b)?",
    re.DOTALL | re.MULTILINE,
)
"""Code, names of fields, examples, tables and units."""
SHAPE = re.compile(r"\((?:\d+|n|nq|nb|m|k|N)(?:,|(?:, (?:\d+|n|nq|nb|m|k|N))+)\)")
WORDS = {"a", "A"}
"""Names that are articles unless an operator is beside them, or a name that is no word."""


def typeset(text: str) -> str:
    """Return a docstring in reStructuredText with its formulas as ``:math:``."""
    parts, end = [], 0
    for kept in [*KEPT.finditer(text), None]:
        parts.append(_formulas(text[end : kept.start() if kept else None]))
        if kept:
            parts.append(kept[0])
            end = kept.end()
    return "".join(parts)


def _formulas(text: str) -> str:
    parts, position = [], 0
    while position < len(text):
        tokens = _trimmed(list(_run(text, position)))
        if tokens and _is_formula(tokens) and _stands_alone(text, tokens):
            start, end = tokens[0].start(), tokens[-1].end()
            parts.append(f"{text[position:start]}:math:`{latex(tokens)}`")
            position = end
        else:
            end = tokens[-1].end() if tokens else position + 1
            parts.append(text[position:end])
            position = end
    return "".join(parts)


def _run(text: str, position: int) -> Iterator[re.Match[str]]:
    """Yield the tokens of the run that begins at a position, up to a comma outside of brackets."""
    depth, before = 0, None
    while token := TOKEN.match(text, position):
        depth += bool(token["open"]) - bool(token["close"])
        if depth < 0 or (token["comma"] and not depth) or SHAPE.match(text, position):
            return
        position = GAP.match(text, token.end()).end()  # type: ignore[union-attr]
        if token[0] in WORDS:
            after = TOKEN.match(text, position)
            near = [t for t in (before, after) if t is not None]
            marks = "relation", "binary", "rates", "dots", "scripts"
            if not any(t[mark] for t in near for mark in marks):
                return
        dash = token[0] == "-" and position > token.end()  # that of a list
        begins = token[0] == "-" or token["name"] or token["number"] or token["open"]
        if before is None and (dash or not begins):
            return
        yield token
        before = token


def _trimmed(tokens: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the tokens up to the last operand that leaves no bracket open."""
    depth, good = 0, 0
    for count, token in enumerate(tokens, 1):
        depth += bool(token["open"]) - bool(token["close"])
        if not depth and (token["name"] or token["number"] or token["close"]):
            good = count
    return tokens[:good]


def _is_formula(tokens: list[re.Match[str]]) -> bool:
    names = [token for token in tokens if token["name"]]
    applied = any(
        a["name"] and b["open"] == "(" and a.end() == b.start() for a, b in pairwise(tokens)
    )
    marked = any(t["scripts"] or t["dots"] for t in names) or any(t["after"] for t in tokens)
    product = len(names) > 1 and any(t["rates"] or t["base"] == "tau" for t in names)
    related = any(token["relation"] or token["binary"] for token in tokens)
    listed = any(token["comma"] for token in tokens) and tokens[0]["open"]
    return bool(names) and (marked or applied or related or (product and not listed))


def _stands_alone(text: str, tokens: list[re.Match[str]]) -> bool:
    """Return whether nothing else of a formula is beside the tokens."""
    before = text[: tokens[0].start()]
    after = text[tokens[-1].end() :]
    beside = before.rstrip()[-1:] + after.lstrip()[:1]
    touching = before[-1:] in (*" \n('", "") and after[:1] in (*" \n).,;:'", "")
    cut = re.search(r"\S +-\s*$|\b[AI]\s$", before) or re.match(r"\s*- ", after)
    return touching and not cut and not any(c in "=+*/^|~<>[]_" for c in beside)


def latex(tokens: list[re.Match[str]]) -> str:
    """Return a formula in LaTeX."""
    written: list[str] = []
    roots: list[int] = []
    depth = 0
    for k, token in enumerate(tokens):
        before, after = (tokens[j] if 0 <= j < len(tokens) else None for j in (k - 1, k + 1))
        if token["open"]:
            root = bool(before and before["operator"] == "sqrt")
            written.append("{" if root else token[0])
            depth += 1
            roots += [depth] * root
        elif token["close"]:
            root = depth in roots
            if root:
                roots.remove(depth)
            depth -= 1
            written.append(("}" if root else token["close"]) + _scripts(token["after"]))
        elif token["name"]:
            written.append(_name(token, before, after))
        elif token["relation"]:
            written.append({"<=": r"\le", ">=": r"\ge"}.get(token[0], token[0]))
        else:
            written.append(token[0])
    return " ".join(written)


def _name(token: re.Match[str], before: Any, after: Any) -> str:
    scripts = _scripts(token["scripts"])
    if operator := token["operator"]:
        known = operator in ("sum", "exp", "log", "sin", "cos", "det", "sqrt")
        return (rf"\{operator}" if known else rf"\mathrm{{{operator}}}") + scripts
    if token["base"] == "x" and before and after and before["name"] and after["name"]:
        return r"\times"
    base = token["base"]
    if rates := token["rates"]:
        dots = rf"\{'d' * len(rates)}ot" if len(rates) < 4 else r"\ddddot"
        base = f"{dots}{{q}}"
    elif len(base) > 1:
        base = rf"\{base}" if re.fullmatch(GREEK, base) else rf"\mathrm{{{base}}}"
    elif base == "d" and after and after[0] == "/":
        base = r"\mathrm{d}"
    if token["dots"]:
        base = rf"\{token['dots']}{{{base}}}"
    if token["d"]:
        ratio = "/" in (before and before[0], after and after[0])
        base = (r"\partial " if ratio and token["base"] != "t" else r"\mathrm{d} ") + base
    return base + scripts


def _scripts(scripts: str) -> str:
    """Return indices and exponents, of which there may be several each."""
    written = {"_": [], "^": []}  # type: dict[str, list[str]]
    first = re.match(r"\d", scripts)
    written["_"] += [first[0]] if first else []
    for sign, braced, plain in re.findall(
        r"([_^])(?:\{([^{}]*)\}|(-?[A-Za-z0-9]+(?:,[a-z0-9])?))", scripts
    ):
        script = braced or plain
        word = len(script) > 3 and script.isalpha()
        written[sign].append(rf"\mathrm{{{script}}}" if word else script)
    return "".join(f"{sign}{{{','.join(all_of)}}}" for sign, all_of in written.items() if all_of)


def change(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Typeset the formulas of a docstring."""
    lines[:] = typeset("\n".join(lines)).split("\n")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what changes docstrings, before what escapes their characters."""
    app.connect("autodoc-process-docstring", change, priority=400)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
