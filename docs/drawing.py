# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of the pages, drawn while the site is built.

They are drawn by the programs in examples/, and by the pages whose code ends in
``figure.savefig(...)``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sphinx.application import Sphinx

from mbs_dynamics.cli import main
from mbs_dynamics.colours import CURVES

DOCS = Path(__file__).parent
FIGURES = DOCS / "figures"
PROGRAMS = ("counts_over_n", "falling_chain", "four_representations", "heavy_top", "spinning_body")
"""The programs in examples/ that write one figure each, named after them."""
PUMA = ("puma_torques", "puma_errors", "puma_eigenvalues", "puma_power")
"""The figures of examples/puma_study.py."""
PALETTE = ["".join(f"{round(255 * part):02x}" for part in colour) for colour in CURVES]
"""Colours of the curves where no program chooses one, as in the plots of the package."""


def escape(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Escape what docstrings mean literally and reStructuredText does not: |x| and (n, *shape).

    Fields of named tuples without a docstring have none here either.
    """
    lines[:] = [re.sub(r"\||(?<=[ (])\*(?=\w+[,)])", r"\\\g<0>", line) for line in lines]
    if lines[:1] and lines[0].startswith("Alias for field number"):
        lines.clear()


def draw(app: Sphinx) -> None:
    """Write the figures that are missing or older than their source."""
    if not app.config.draw_figures:
        return
    examples = DOCS.parent / "examples"
    sources = {examples / f"{name}.py": (name,) for name in PROGRAMS}
    sources[examples / "puma_study.py"] = PUMA
    for page in DOCS.rglob("*.md"):
        sources[page] = tuple(re.findall(r"savefig\(\"(\w+)\.png\"\)", page.read_text("utf-8")))
    late = [source for source, names in sources.items() if any(_late(source, n) for n in names)]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda source: _run(source, sources[source]), late))


SCENE = "arm7 --q 0.3 0.5 -0.2 1.1 0 0.7 0.1 --qd 0.4 -0.2 0.6 0.1 0.3 -0.5 0.2 --layers twist"
"""The interactive scene of the page on frames, as arguments of mbs-dynamics view."""


def write_scene(app: Sphinx, error: Exception | None) -> None:
    """Write the interactive scene to the folder of the pages."""
    target = app.outdir / "twist.html"
    if app.config.draw_figures and app.builder.format == "html" and not target.exists():
        main(["view", *SCENE.split(), "--write", str(target)])


def _late(source: Path, figure: str) -> bool:
    path = FIGURES / f"{figure}.png"
    return not path.exists() or path.stat().st_mtime < source.stat().st_mtime


def _run(source: Path, figures: Iterable[str]) -> None:
    command: list[str | Path] = ["-m", "doctest", source]
    if source.suffix == ".py":
        command = [source, "." if source.stem == "puma_study" else f"{source.stem}.png"]
    with TemporaryDirectory() as folder:
        style = Path(folder) / "matplotlibrc"
        style.write_text(f"axes.prop_cycle: cycler('color', {PALETTE})\n", "utf-8")
        without_screen = {**os.environ, "MPLBACKEND": "Agg", "MATPLOTLIBRC": str(style)}
        done = subprocess.run(
            [sys.executable, *command],
            cwd=FIGURES,
            capture_output=True,
            text=True,
            env=without_screen,
        )
    if done.returncode:
        for figure in figures:  # drawn in part
            (FIGURES / f"{figure}.png").unlink(missing_ok=True)
        raise RuntimeError(f"{source} draws no figure: {done.stdout}{done.stderr}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what is drawn and written."""
    app.add_config_value("draw_figures", True, "")
    app.connect("autodoc-process-docstring", escape)
    app.connect("builder-inited", draw)
    app.connect("build-finished", write_scene)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
