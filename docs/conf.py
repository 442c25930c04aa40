# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Configuration of the documentation site, built by `make docs`."""

import os
import sys
from importlib import metadata
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "mbs_dynamics"
author = "The mbs_dynamics authors"
copyright = "2026, The mbs_dynamics authors"

version = release = metadata.version("mbs_dynamics")

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "accessible",
    "code_blocks",
    "drawing",
    "mathml",
    "signatures",
]
exclude_patterns = ["_build"]
templates_path = ["_templates"]
highlight_language = "bash"
myst_enable_extensions = ["attrs_inline", "colon_fence", "dollarmath", "substitution"]
myst_substitutions = {"release": release}
myst_heading_anchors = 4
html_math_renderer = "mathml"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
nitpicky = True
# Types in signatures that no page describes.
nitpick_ignore_regex = [
    (
        "py:.*",
        r"(FloatArray|IntArray|ArrayLike|Array|Shape|Rgba|Page|Path|Playback|Posing|Inertia|HasSeries)",
    ),
    ("py:.*", r"(collections|numpy|pathlib|os|casadi)\..*"),
    (
        "py:.*",
        r"mbs_dynamics\.(algorithms|bridges|calibration|compiler|control|identification|integrate|model|representation|view)"
        r"\.[\w.]*\.[A-Z]\w*",
    ),
]
smartquotes = False  # quotes in commands and tables are to be copied

html_theme = "furo"
html_title = f"mbs_dynamics {release}"
html_favicon = "_static/favicon.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_search_scorer = str(Path(__file__).parent / "search_scorer.js")
html_copy_source = False
html_show_sphinx = False
pygments_dark_style = "monokai"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_type_aliases = {"ArrayLike": "ArrayLike", "FloatArray": "FloatArray"}
autodoc_mock_imports = ["casadi", "jax", "sympy", "torch"]  # large, and needed for nothing else
python_display_short_literal_types = True
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"

linkcheck_ignore = [r"^http://localhost"]
linkcheck_timeout = 20

# The repository that pages are edited in, and cloned from, is the one that builds them.
repository = ""
if "GITHUB_REPOSITORY" in os.environ:
    repository = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}".format(**os.environ)
    html_theme_options = {
        "source_repository": f"{repository}/",
        "source_branch": os.environ["GITHUB_REF_NAME"],
        "source_directory": "docs/",
    }
