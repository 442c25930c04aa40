# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the documentation shows is true: its examples run, and its links lead somewhere."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("benchmarks/*.md")])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_examples_of_a_page_print_what_it_says(page):
    failed, _ = doctest.testfile(str(page), module_relative=False)
    assert failed == 0


def test_the_readme_has_examples():
    assert doctest.testfile(str(ROOT / "README.md"), module_relative=False).attempted >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_make_knows_the_commands_of_the_readme():
    makefile = (ROOT / "Makefile").read_text()
    commands = set(re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert commands == {"demo", "test"}
    assert all(re.search(rf"^{command}:", makefile, re.MULTILINE) for command in commands)
