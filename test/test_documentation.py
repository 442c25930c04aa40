# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Examples and programs of the documentation run, and all that it names exists.

Commands are not run, which would need robots and recordings, but every option, argument, topic,
type, service and parameter in them must exist.
"""

import ast
import doctest
import importlib
import re
import shlex
from importlib.metadata import metadata
from itertools import pairwise
from pathlib import Path

import pytest
import yaml

from docs import tables
from mbs_dynamics.cli import command_line
from mbs_dynamics.ros.entry_points import INTERFACES, interface_of

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.rglob("*.md"), *ROOT.glob("benchmarks/*.md")])
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
    ["", ".bridges.casadi", ".bridges.sympy", ".calibration", ".closed_form", ".control",
     ".identification", ".integrate", ".timeseries", ".view"],
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


# -- commands, files and programs ------------------------------------------------------------------

LAUNCH = (DOCS / "reference" / "launch.md").read_text("utf-8")
EXTRAS = metadata("mbs_dynamics").get_all("Provides-Extra")
FOREIGN = (
    *("/rosout", "/diagnostics", "/joint_states"),
    *("/forward_effort_controller", "/forward_position_controller"),
    *("/joint_trajectory_controller", "/guarded_controller"),
)
"""Topics of others, and of the generated controller."""


def blocks(page, *languages):
    """Return the fenced blocks of a page in one of some languages."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S)
    return [text for language, text in found if language in languages]


def commands(page):
    """Yield the words of every command on a page."""
    for text in blocks(page, "", "bash"):
        for line in text.replace("\\\n", " ").splitlines():
            for part in re.split(r" && |; ", line.strip()):
                words = shlex.split(part, comments=True) if part.count("'") % 2 == 0 else []
                if "mbs-dynamics" in words[:4] or (words and words[0] in ("ros2", "make", "pip")):
                    yield words


COMMANDS = [words for page in PAGES for words in commands(page)]


def shown(*first):
    """Return the words of the commands that begin so, each once."""
    found = {tuple(words) for words in COMMANDS if tuple(words[: len(first)]) == first}
    assert found
    return sorted(found)


def entries():
    """Return the declared topics and services of all nodes, by full name, and their types."""
    named = {}
    for node in INTERFACES:
        declared = interface_of(node)
        for one in (*declared.subscribed, *declared.published, *declared.services):
            named[one.name.replace("~", f"/{node}")] = one.type
    return named


def check_command_line(words):
    if not {"--help", "COMMAND"} & set(words):
        command_line().parse_args(words[1:])  # ends the process otherwise


def check_launch_arguments(words):
    package, file, *arguments = words[2:]
    if package == "mbs_dynamics":
        assert (ROOT / "launch" / file).is_file()
        known = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (.*?) \|", LAUNCH, re.M))))
        known |= {one.name for one in interface_of("command_watchdog_node").parameters}
        for argument in arguments:
            if ":=" not in argument:
                continue
            name = argument.partition(":=")[0]
            assert name in known
            if name.endswith("params"):
                given = set(yaml.safe_load(argument.partition(":=")[2]))
                parameters = [p for node in INTERFACES for p in interface_of(node).parameters]
                assert given <= {p.name for p in parameters}


def check_parameters_of_run(words):
    package, executable, *arguments = words[2:]
    if package == "mbs_dynamics" and executable != "mbs-dynamics":
        known = {one.full_name for one in interface_of(executable).parameters}
        given = {b.partition(":=")[0] for a, b in pairwise(arguments) if a == "-p"}
        assert given <= known


def check_topic(words):
    names = [word for word in words[3:] if word.startswith("/")]
    declared, known = entries(), {name.partition("<")[0] for name in entries()}
    for name in names:
        owner = f"{name.rpartition('/')[0]}/"
        assert name.startswith(FOREIGN) or name in declared or owner in known
    if words[2] == "pub":
        kind, text = words[-2:]
        assert declared.get(names[0], kind) == kind
        if text.startswith("$(cat "):  # tested with the command that writes it
            return
        messages = pytest.importorskip(f"{kind.split('/')[0]}.msg")
        fill(getattr(messages, kind.rpartition("/")[2])(), yaml.safe_load(text))


def fill(message, values):
    """Set the fields of a message; raise if one does not exist or has another type."""
    for name, value in values.items():
        if isinstance(value, dict):
            fill(getattr(message, name), value)
        else:
            setattr(message, name, value)


def check_service(words):
    _, _, call, name, kind, *_ = words
    if name.startswith(FOREIGN):
        return
    assert (call, entries()[name]) == ("call", kind)


def check_parameter(words):
    _, _, order, node, name, value = words
    assert order == "set"
    if node == "/guarded_controller":
        file = ROOT / "mbs_dynamics" / "bridges" / "controller" / "src" / "parameters.yaml"
        (declared,) = yaml.safe_load(file.read_text("utf-8")).values()
        assert name in declared
        return
    (declared,) = (p for p in interface_of(node.strip("/")).parameters if p.name == name)
    declared.check(name, yaml.safe_load(value))


def check_target_of_make(words):
    assert re.search(rf"^{words[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE)


def check_extras(words):
    for extra in re.findall(r"\[([\w,]+)\]", words[-1]):
        assert {*extra.split(",")} <= {*EXTRAS}


CHECKS = {
    ("mbs-dynamics",): check_command_line,
    ("ros2", "launch"): check_launch_arguments,
    ("ros2", "run"): check_parameters_of_run,
    ("ros2", "topic"): check_topic,
    ("ros2", "service"): check_service,
    ("ros2", "param"): check_parameter,
    ("make",): check_target_of_make,
    ("pip", "install"): check_extras,
}
"""What checks commands, by their first words."""


@pytest.mark.parametrize("first", CHECKS, ids=" ".join)
def test_commands_on_pages_are_valid(first):
    for words in shown(*first):
        CHECKS[first](words)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "yaml")], ids=lambda p: p.stem)
def test_parameter_files_hold_parameters_of_the_nodes(page):
    for text in blocks(page, "yaml"):
        for section, group in yaml.safe_load(text).items():
            node = section.rpartition("/")[2]
            if node in INTERFACES or node == "**":
                nodes = [node] if node in INTERFACES else list(INTERFACES)
                known = {p.name: p for name in nodes for p in interface_of(name).parameters}
                for name, value in group["ros__parameters"].items():
                    assert name in known or name == "use_sim_time"
                    if name in known and not known[name].per and known[name].range:
                        known[name].check(name, value)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p, "python")], ids=lambda p: p.stem)
def test_programs_of_a_page_run(page):
    if page.name == "bridges.md":  # CI does without it; `make test-bridges` installs it
        pytest.importorskip("torch")
    for text in blocks(page, "python"):
        if ">>>" not in text:
            try:
                exec(compile(text, str(page), "exec"), {"__name__": page.stem})
            except ImportError as error:  # the folder launch/ hides a package that is missing
                if error.name not in ("launch", "launch_ros"):
                    raise
                pytest.skip(f"needs {error.name}")


def literals(path):
    """Yield the texts of a program, those with values in them with NUL in their places."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.JoinedStr):
            yield "".join(v.value if isinstance(v, ast.Constant) else "\0" for v in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.long
def test_log_lines_to_look_up_are_those_of_the_programs():
    texts = [text for path in (ROOT / "mbs_dynamics").rglob("*.py") for text in literals(path)]
    texts += [text.replace("\0", "joint_states", 1) for text in texts]  # of the source of states
    page = (DOCS / "how_to" / "troubleshooting.md").read_text("utf-8")
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    lines = [
        part.strip()
        for row in rows
        for line in re.findall("`(.+?)`", row)
        for part in line.split("...")
    ]
    assert len(lines) > 50
    assert [line for line in lines if not any(line in text for text in texts)] == []


def test_files_and_benchmarks_that_pages_name_exist():
    folders = "benchmarks|config|examples|launch|mbs_dynamics|test|urdf"
    for text in (page.read_text("utf-8") for page in PAGES):
        named = re.findall(rf"`((?:{folders})/[\w./]+)`", text)
        named += [f"benchmarks/{name}.py" for name in re.findall(r"-m benchmarks\.(\w+)", text)]
        assert [name for name in named if not (ROOT / name).exists()] == []
