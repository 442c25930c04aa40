# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The platforms that are said to be supported, and the script that tests them, offline."""

from __future__ import annotations

import ast
import importlib
import io
import re
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.backend_independent

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools" / "platforms"))
debian, environments, run = map(importlib.import_module, ("debian", "environments", "run"))

HUMBLE, JAZZY = (3, 3), (7, 1)  # versions of rclpy


def setup() -> dict[str, Any]:
    """Return the arguments in setup.py that are constants."""
    calls = [
        x for x in ast.walk(ast.parse((ROOT / "setup.py").read_text())) if isinstance(x, ast.Call)
    ]
    (found,) = (x for x in calls if isinstance(x.func, ast.Name) and x.func.id == "setup")
    constants = {}
    for keyword in found.keywords:
        try:
            constants[str(keyword.arg)] = ast.literal_eval(keyword.value)
        except ValueError:
            continue
    return constants


def bound(requirements: list[str], name: str) -> str:
    """Return the lowest version of a distribution."""
    (found,) = (x.partition(">=")[2] for x in requirements if re.match(rf"{name}\b", x))
    return found


def oldest(name: str) -> str | None:
    """Return the lowest version of a package in package.xml."""
    manifest = ElementTree.parse(ROOT / "package.xml").getroot()
    (found,) = (tag for tag in manifest.iter("exec_depend") if tag.text == name)
    return found.get("version_gte")


def section() -> str:
    """Return the page on platforms."""
    return (ROOT / "docs" / "reference" / "platforms.md").read_text()


def test_setup_page_and_rows_name_the_same_lowest_versions() -> None:
    given = setup()
    python, numpy = (
        given["python_requires"].removeprefix(">="),
        bound(given["install_requires"], "numpy"),
    )
    llvmlite = bound(given["extras_require"]["fast"], "llvmlite")
    assert python == run.VERSIONS[0]
    assert [row.version for row in run.ROWS if row.lowest] == [python]
    assert f"{python} | {numpy} | {llvmlite} |" in section()
    assert f"Python {python} or newer" in (ROOT / "README.md").read_text()


def test_the_manifest_and_setup_name_the_same_numpy() -> None:
    assert oldest("python3-numpy") == bound(setup()["install_requires"], "numpy")


def test_the_manifest_admits_jazzy_and_no_humble() -> None:
    version = tuple(int(part) for part in (oldest("rclpy") or "0").split("."))
    assert HUMBLE < version <= JAZZY


def test_the_page_on_platforms_names_every_row() -> None:
    for row in run.ROWS:
        name = row.ros.capitalize() or "none"
        cells = [line.split("|") for line in section().splitlines() if line.startswith("| ")]
        spans = [re.findall(r"3\.(\d+)", cell[2]) for cell in cells if name in cell[1]]
        minor = int(row.version.partition(".")[2])
        assert any(int(s[0]) <= minor <= int(s[-1]) for s in spans if s), row.name


def package(**files: str) -> bytes:
    """Return a Debian package of files and, where the text starts with "->", links."""
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        for name, text in files.items():
            file = tarfile.TarInfo(name)
            if text.startswith("->"):
                file.type, file.linkname = tarfile.SYMTYPE, text[2:]
                archive.addfile(file)
            else:
                file.size = len(text)
                archive.addfile(file, io.BytesIO(text.encode()))
    parts = {"debian-binary": b"2.0\n", "data.tar.xz": data.getvalue()}
    return b"!<arch>\n" + b"".join(
        f"{name:16}{0:<12}{0:<6}{0:<6}{'100644':8}{len(part):<10}`\n".encode()
        + part
        + b"\n" * (len(part) % 2)
        for name, part in parts.items()
    )


def test_a_package_that_leaves_the_folder_is_refused(tmp_path: Path) -> None:
    inner = tmp_path / "root"
    with pytest.raises(debian.NotAvailableError, match=r"\.\./outside"):
        debian.unpack(package(**{"../outside": "x"}), inner)
    assert not (tmp_path / "outside").exists()


def test_contents_that_are_not_those_of_the_index_are_refused() -> None:
    with pytest.raises(debian.NotAvailableError, match=r"libc6.*SHA-256"):
        debian.verified(b"other", 64 * "0", "libc6")
