# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Types in the signatures of the reference, by the names that readers know."""

import re
from typing import Any

from sphinx.application import Sphinx

ANY_ARRAY = (
    r"~?numpy\._typing\._array_like\._Buffer.*?"
    r"_NestedSequence\[(?:bool \| int \| float \| )?complex \| bytes \| str\]"
)
"""The union that NumPy calls ArrayLike."""

FLOATS = r"~?numpy\.ndarray\[[^][]*(?:\[[^][]*\])?, ~?numpy\.dtype\[~?numpy\.float64\]\]"

NAMES = (
    (r"TypeAliasForwardRef\('([\w.]+)'\)", r"\1"),
    (ANY_ARRAY, "ArrayLike"),
    (FLOATS, "FloatArray"),
    # what algorithms take is a model; a tree is how their equations see it
    (r"~?mbs_dynamics\.representation\.tree\.Tree", "~mbs_dynamics.Model"),
    (r"<factory>", "..."),
)


def readable(text: str) -> str:
    """Return a signature with the names that readers know."""
    for pattern, name in NAMES:
        text = re.sub(pattern, name, text)
    return text


def change(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: Any, returned: Any
) -> tuple[Any, Any]:
    """Change the signature of an object, and the type that it returns."""
    return tuple(None if text is None else readable(text) for text in (signature, returned))


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what changes signatures."""
    app.connect("autodoc-process-signature", change)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
