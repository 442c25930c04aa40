# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Examples of the documentation run, and its links have targets."""

from __future__ import annotations

import doctest
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from docs import code_blocks, formulas, line_breaks, mathml, tables
from mbs_dynamics import yaml_files
from mbs_dynamics.model import urdf_xml
from mbs_dynamics.ros.compensation.gravity_compensator import MOST_JOINTS
from mbs_dynamics.ros.entry_points import INTERFACES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *ROOT.glob("benchmarks/*.md")])
NEEDED = {"learn_masses.md": "torch"}
"""Packages of examples that CI does without; `make test-bridges` installs them."""
PROGRAMS = "".join(path.read_text() for path in [*ROOT.glob("examples/*.py"), *PAGES])


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_of_a_page_print_what_it_says(page, tmp_path, monkeypatch):
    if page.name in NEEDED:
        pytest.importorskip(NEEDED[page.name])
    monkeypatch.chdir(tmp_path)  # some write figures
    failed, _ = doctest.testfile(str(page), module_relative=False)
    assert failed == 0


def test_the_readme_has_examples():
    assert doctest.testfile(str(ROOT / "README.md"), module_relative=False).attempted >= 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_to_files(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        path = (page.parent / target).resolve()
        drawn = path.parent.name == "figures" and f'"{path.name}"' in PROGRAMS
        assert path.exists() or drawn, f"{page.name} links to {target}"


@pytest.mark.parametrize(
    "module",
    [
        "",
        ".bridges.casadi",
        ".bridges.sympy",
        ".closed_form",
        ".control",
        ".identification",
        ".integrate",
        ".timeseries",
        ".view",
    ],
)
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


def test_every_function_of_the_reference_has_an_example():
    modules, missing = ("", ".identification", ".integrate", ".view"), []
    for page in (DOCS / "reference" / "api").glob("*.md"):
        for part in page.read_text("utf-8").split(".. currentmodule:: ")[1:]:
            if part.split()[0].removeprefix("mbs_dynamics") in modules:
                functions = re.findall(r"^\.\. autofunction:: (\w+)\n(\n   >>> )?", part, re.M)
                missing += [name for name, example in functions if not example]
    assert not missing


def test_tables_of_the_pages_are_those_of_the_code():
    pages = {page: page.read_text("utf-8") for page in PAGES}
    kinds = {found[2] for text in pages.values() for found in tables.MARKED.finditer(text)}
    of_nodes = {f"{kind} {node}" for kind in ("topics", "parameters") for node in INTERFACES}
    assert kinds == {"checks", "commands", "settings", *of_nodes}
    stale = [str(page) for page, text in pages.items() if tables.filled(text) != text]
    assert not stale, "run python docs/tables.py"


def test_code_on_pages_fits_on_a_screen():
    wide = []
    for page in [ROOT / "README.md", *DOCS.rglob("*.md")]:
        for code in re.findall(
            r"^```(?:(?!\{)\w*\n(.*?)|.*?)^```$", page.read_text("utf-8"), re.M | re.S
        ):
            given = (">>>", "...") if ">>>" in code else ""
            wide += [(page.name, line) for line in code.splitlines() if line.startswith(given)]
    allowed = "inverse-dynamics-solver/ur10_inverse_dynamics_solver/bagfiles/"  # one path
    assert not [(name, line) for name, line in wide if len(line) > 76 and allowed not in line]


def test_installation_is_described_in_one_place():
    """The page on installation; others include its commands, and the README repeats them."""
    pages = {page: page.read_text("utf-8") for page in PAGES}
    lines = {
        page: set(re.findall(r"^pip install '?\..*", text, re.M)) for page, text in pages.items()
    }
    described = lines.pop(DOCS / "how_to" / "install.md")
    assert lines.pop(ROOT / "README.md") < described
    assert not any(lines.values())


def test_pages_clone_from_the_address_of_the_repository_if_it_is_known():
    page = (DOCS / "how_to" / "install.md").read_text("utf-8")
    assert "git clone" not in page + code_blocks.displayed(page, "")
    cloned = re.findall("^git clone (.*)", code_blocks.displayed(page, "https://a/b"), re.M)
    assert cloned == [
        f"https://a/b {target}" for target in re.findall("<!-- clone: (.*) -->", page)
    ]
    assert len(cloned) == 2


@pytest.mark.parametrize(
    ("text", "formula"),
    [
        ("so that M qdd + h = tau (..., n).", r"M \ddot{q} + h = \tau"),
        ("In O(n d): fast.", "O ( n d )"),
        ("- S_i^T W_i, the torque", "S_{i}^{T} W_{i}"),
        ("maps C_rel_i = A_parent B_i,", r"C_{rel,i} = A_{\mathrm{parent}} B_{i}"),
        ("The rate is A qdd +\n  Adot qd.", r"A \ddot{q} + \dot{A} \dot{q}"),
        ("(dtau/dq of it)", r"\partial \tau / \partial q"),
        ("is sqrt(det(J J^T)), or", r"\sqrt { \det ( J J^{T} ) }"),
        ("A link is at (e, p x e + h e).", r"( e , p \times e + h e )"),
    ],
)
def test_formulas_of_docstrings_are_typeset(text, formula):
    assert formulas.typeset(text).count(":math:") == 1
    assert f":math:`{formula}`" in formulas.typeset(text)


@pytest.mark.parametrize(
    "text",
    [
        "- ``q`` (..., nq): positions, rad or m",
        "a rate in rad/s^2 or kg m^2, N m/A",
        "at A, eq. (81), of a body (4, 4)",
        "the vector (0, 0, 1), an i-th joint, x-axis",
        ">>> a = b + c\n>>> q = 0\n",
        ":param M_body: (nb, 6, 6)",
        "of r<i>x and ``tau = M qdd``",
        "g, h = both(q, qd)",
        "=====  ===\nq = 0  S_i\n=====  ===\n\n",
    ],
)
def test_other_text_of_docstrings_stays(text):
    assert formulas.typeset(text) == text


def test_names_break_after_underscores_only():
    html = '<p>a_name</p><code class="one_two"><span>lie.some_name</span> rad/s 10.5</code>'
    broken = html.replace("lie.some_", "lie.<wbr>some_<wbr>")
    assert line_breaks.breakable(html) == broken


def test_punctuation_stays_with_the_formula_before_it():
    q, M = (f'<math display="inline"><mi>{name}</mi></math>' for name in "qM")
    html = f'of {q}, and ({M}) {q} <div><math display="block"></math>.</div>'
    kept = html.replace(f"{q},", f'<span class="formula">{q},</span>')
    kept = kept.replace(f"({M})", f'<span class="formula">({M})</span>')
    assert line_breaks.unbroken(html) == kept


def test_formulas_show_dots_beside_no_symbol_and_upright_letters():
    formula = mathml.mathml(r"\mathrm{d} \dddot q", "inline")
    assert '<mi mathvariant="normal">&#x00064;</mi>' in formula
    assert '<mi>q</mi><mo mathsize="100%">...</mo>' in formula


def test_the_site_builds_without_warnings(tmp_path):
    for needed in ("sphinx", "myst_parser", "furo"):
        pytest.importorskip(needed)
    command = [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-D", "draw_figures=0"]
    command += ["-D", "suppress_warnings=image.not_readable"]
    done = subprocess.run([*command, DOCS, tmp_path], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_limits_of_input_are_those_of_the_code():
    pytest.importorskip("trimesh")
    meshes = importlib.import_module("mbs_dynamics.view.meshes")
    page = (DOCS / "reference" / "security.md").read_text().partition("## Limits of input")[2]
    limits = {yaml_files.LARGEST_YAML, urdf_xml.LARGEST_SIZE}
    assert {int(text.replace(",", "")) for text in re.findall(r"\d[\d,]{4,}", page)} == limits
    assert f" {MOST_JOINTS} joints" in page
    for suffix in meshes.FORMATS:
        assert suffix in page


def test_make_knows_the_commands_of_the_readme():
    makefile = (ROOT / "Makefile").read_text()
    commands = set(re.findall(r"^make (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE))
    assert commands == {"demo", "test"}
    assert all(re.search(rf"^{command}:", makefile, re.MULTILINE) for command in commands)
