# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Configuration of the documentation site, built by `make docs`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

project = "mbs_dynamics"
author = "The mbs_dynamics authors"
copyright = "2026, The mbs_dynamics authors"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.autosummary", "drawing"]
exclude_patterns = ["_build"]
highlight_language = "bash"
myst_heading_anchors = 4
suppress_warnings = ["myst.header", "misc.highlighting_failure"]
nitpicky = True

html_theme = "furo"
html_title = "mbs_dynamics"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_sphinx = False
pygments_dark_style = "monokai"

autodoc_member_order = "bysource"
autodoc_typehints = "none"
python_display_short_literal_types = True
python_maximum_signature_line_length = 80
toc_object_entries_show_parents = "hide"

linkcheck_ignore = [r"^http://localhost"]
linkcheck_timeout = 20
