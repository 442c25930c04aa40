# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The figures of the pages, drawn while the site is built, on light and on dark ground.

They are drawn by the programs in examples/, and by the pages whose code ends in
``figure.savefig(...)``. Diagrams are recoloured. Pages name the light ones.
"""

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
DARK = FIGURES / "dark"
PROGRAMS = ("counts_over_n", "falling_chain", "four_representations", "heavy_top", "spinning_body")
"""The programs in examples/ that write one figure each, named after them."""
PUMA = ("puma_torques", "puma_errors", "puma_eigenvalues", "puma_power")
"""The figures of examples/puma_study.py."""
PALETTE = ["".join(f"{round(255 * part):02x}" for part in colour) for colour in CURVES]
"""Colours of the curves where no program chooses one, as in the plots of the package."""
GROUND, INK = "131416", "cfd0d0"
"""Colours of a dark page of the theme, and of its text."""
GROUNDS = dict.fromkeys(("figure.facecolor", "axes.facecolor", "savefig.facecolor"), GROUND)
INKS = dict.fromkeys(
    ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color"), INK
)
STYLES = {FIGURES: {}, DARK: GROUNDS | INKS | {"grid.color": "444648"}}
"""Settings of matplotlib by folder."""
RECOLOURED = {
    "white": f"#{GROUND}", "#1a1a1a": f"#{INK}", "#f4f4f4": "#2b2d30", "#e6e6e6": "#3a3c40",
    "#cbe1f6": "#1d3d5c", "#d3ecd0": "#1f4427", "#fbe3c4": "#523c17", "#e5d6f3": "#402c56",
    "#f7d4cf": "#5c2a22",
}  # fmt: skip
"""Colours of diagrams on dark ground."""


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
    DARK.mkdir(exist_ok=True)
    for diagram in FIGURES.glob("*.svg"):
        text = diagram.read_text("utf-8")
        colours = "|".join(RECOLOURED)
        text = re.sub(f'(?<=")({colours})(?=")', lambda found: RECOLOURED[found[0]], text)
        (DARK / diagram.name).write_text(text, "utf-8")
    late = [
        (source, folder, names)
        for source, names in sources.items()
        for folder in STYLES
        if any(_late(source, folder / f"{name}.png") for name in names)
    ]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda one: _run(*one), late))


def pair(app: Sphinx, page: str, source: list[str]) -> None:
    """Let a page show the figure on light or on dark ground, where it names the first."""

    def both(image: re.Match[str]) -> str:
        text, folder, name = image.groups()
        if not (DARK / name).exists():
            return image[0]
        ends = (f"{folder}/{name}){{.only-light}}", f"{folder}/dark/{name}){{.only-dark}}")
        return "\n".join(f"![{text}]({end}" for end in ends)

    source[0] = re.sub(r"!\[([^]]*)\]\((\S*figures)/(\w+\.\w+)\)", both, source[0])


SCENE = "arm7 --q 0.3 0.5 -0.2 1.1 0 0.7 0.1 --qd 0.4 -0.2 0.6 0.1 0.3 -0.5 0.2 --layers twist"
"""The interactive scene of the page on frames, as arguments of mbs-dynamics view."""


def write_scene(app: Sphinx, error: Exception | None) -> None:
    """Write the interactive scene to the folder of the pages, on light and on dark ground."""
    if not app.config.draw_figures or app.builder.format != "html":
        return
    for name, more in (("twist.html", []), ("twist_dark.html", ["--dark"])):
        if not (target := app.outdir / name).exists():
            main(["view", *SCENE.split(), *more, "--write", str(target)])


def _late(source: Path, figure: Path) -> bool:
    return not figure.exists() or figure.stat().st_mtime < source.stat().st_mtime


def _run(source: Path, folder: Path, figures: Iterable[str]) -> None:
    command: list[str | Path] = ["-m", "doctest", source]
    if source.suffix == ".py":
        command = [source, "." if source.stem == "puma_study" else f"{source.stem}.png"]
    lines = [f"{name}: {value}\n" for name, value in STYLES[folder].items()]
    with TemporaryDirectory() as scratch:
        style = Path(scratch) / "matplotlibrc"
        style.write_text(f"axes.prop_cycle: cycler('color', {PALETTE})\n{''.join(lines)}", "utf-8")
        without_screen = {**os.environ, "MPLBACKEND": "Agg", "MATPLOTLIBRC": str(style)}
        done = subprocess.run(
            [sys.executable, *command],
            cwd=folder,
            capture_output=True,
            text=True,
            env=without_screen,
        )
    if done.returncode:
        for figure in figures:  # drawn in part
            (folder / f"{figure}.png").unlink(missing_ok=True)
        raise RuntimeError(f"{source} draws no figure: {done.stdout}{done.stderr}")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register what is drawn and written."""
    app.add_config_value("draw_figures", True, "")
    app.connect("autodoc-process-docstring", escape)
    app.connect("builder-inited", draw)
    app.connect("source-read", pair)
    app.connect("build-finished", write_scene)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
