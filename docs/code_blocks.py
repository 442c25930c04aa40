# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Code on pages, as a site shows it.

A code block after ``<!-- clone: TARGET -->`` begins with the command that clones the repository to
TARGET, where the address of the repository is known.
"""

import re
from pathlib import Path
from typing import Any

from sphinx.application import Sphinx


def displayed(text: str, repository: str) -> str:
    """Return a page with commands that clone, and without empty lines at the ends of code."""
    command = rf"```\ngit clone {repository} \1\n" if repository else "```\n"
    text = re.sub(r"<!-- clone: (.+) -->\n```\n", command, text)
    return re.sub(r"\n\n```$", "\n```", text, flags=re.MULTILINE)


def change_page(app: Sphinx, docname: str, source: list[str]) -> None:
    """Change the code blocks of a page."""
    source[0] = displayed(source[0], app.config.repository)


def change_included(app: Sphinx, path: Path, docname: str, source: list[str]) -> None:
    """Change the code blocks of a part of a page that another page includes."""
    change_page(app, docname, source)


def setup(app: Sphinx) -> dict[str, Any]:
    """Register what changes the pages."""
    app.add_config_value("repository", "", "env", str)
    app.connect("source-read", change_page)
    app.connect("include-read", change_included)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
