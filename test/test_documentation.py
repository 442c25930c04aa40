# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Examples of the documentation run, and its links have targets."""

import doctest
import importlib
import re
from pathlib import Path

import pytest

from docs import tables
from mbs_dynamics.ros.entry_points import INTERFACES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("benchmarks/*.md")])
NEEDED = {"learn_masses.md": "torch"}
"""Packages of examples that CI does without; `make test-bridges` installs them."""
PROGRAMS = "".join(path.read_text() for path in [*ROOT.glob("examples/*.py"), *PAGES])


@pytest.mark.long
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if ">>> " in page.read_text("utf-8")],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_examples_of_a_page_print_what_it_says(page, tmp_path, monkeypatch):
    if page.name in NEEDED:
        pytest.importorskip(NEEDED[page.name])
    monkeypatch.chdir(tmp_path)  # some write figures
    failed, _ = doctest.testfile(str(page), module_relative=False)
    assert failed == 0


def test_links_of_pages_lead_to_files():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
            path = (page.parent / target).resolve()
            drawn = path.parent.name == "figures" and f'"{path.name}"' in PROGRAMS
            assert path.exists() or drawn, f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "module",
    ["", ".bridges.casadi", ".bridges.sympy", ".closed_form", ".control", ".identification",
     ".integrate", ".timeseries", ".view"],
)  # fmt: skip
def test_every_public_name_is_in_the_reference(module):
    module = f"mbs_dynamics{module}"
    documented = set()
    for page in (DOCS / "reference" / "api").glob("*.md"):
        current = ""
        for line in page.read_text().splitlines():
            kind, _, name = line.removeprefix(".. ").partition(":: ")
            current = name if kind == "currentmodule" else current
            if kind.startswith("auto") or kind == "data":
                documented |= {(current, name), (name.rpartition(".")[0], name.rpartition(".")[2])}
    public = importlib.import_module(module).__all__
    homes = {"dh": "mbs_dynamics.model", "joints": "mbs_dynamics.model"}
    assert not [name for name in public if (homes.get(name, module), name) not in documented]


def test_tables_of_the_pages_are_those_of_the_code():
    pages = {page: page.read_text("utf-8") for page in PAGES}
    kinds = {found[2] for text in pages.values() for found in tables.MARKED.finditer(text)}
    of_nodes = {f"{kind} {node}" for kind in ("topics", "parameters") for node in INTERFACES}
    assert kinds == {"checks", "commands", "settings", *of_nodes}
    stale = [str(page) for page, text in pages.items() if tables.filled(text) != text]
    assert not stale, "run python docs/tables.py"
