# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tables, and the conditions under which they were measured."""

import importlib.metadata
import os
import platform
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import mbs_dynamics as mbs

RESULTS = Path(__file__).parent / "results"


@dataclass
class Table:
    """A titled table: a text column, then numbers or texts. None is left blank."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[Any]] = field(default_factory=list)
    note: str = ""

    def __str__(self) -> str:
        cells = [[str(column) for column in self.columns]]
        cells += [[_text(entry) for entry in row] for row in self.rows]
        width = [max(len(row[k]) for row in cells) for k in range(len(self.columns))]
        rule = ["-" * width[0], *("-" * (w - 1) + ":" for w in width[1:])]
        lines = []
        for row in (cells[0], rule, *cells[1:]):
            first = row[0].ljust(width[0])
            rest = [entry.rjust(w) for entry, w in zip(row[1:], width[1:], strict=True)]
            lines.append("| " + " | ".join([first, *rest]) + " |")
        note = f"\n{self.note}\n" if self.note else ""
        return f"### {self.title}\n\n" + "\n".join(lines) + "\n" + note


def _text(entry: Any) -> str:
    if entry is None:
        return ""
    if isinstance(entry, float):
        return f"{entry:.2e}" if 0.0 < abs(entry) < 1e-4 else f"{entry:#.3g}".rstrip(".")
    return str(entry)


def conditions() -> str:
    """Return processor, versions and load in one paragraph."""
    versions = [_version(name) for name in ("numpy", "llvmlite", "pin")]
    load = ", ".join(f"{x:.2f}" for x in os.getloadavg())
    return (
        f"{_processor()}, {os.cpu_count()} cores; {platform.system()} {platform.machine()}; "
        f"{platform.python_implementation()} {platform.python_version()}; "
        f"mbs_dynamics {mbs.__version__}, {', '.join(versions)}; load average {load}."
    )


def _version(package: str) -> str:
    try:
        return f"{package} {importlib.metadata.version(package)}"
    except importlib.metadata.PackageNotFoundError:
        return f"no {package}"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    entries = dict(line.split(":", 1) for line in lines if ":" in line)
    fields = {key.strip(): value.strip() for key, value in entries.items()}
    name = fields.get("model name", platform.processor())
    numbers = [f"{key} {fields[key]}" for key in ("cpu family", "model") if key in fields]
    return f"{name} ({', '.join(numbers)})" if numbers else name


def write(name: str, summary: str, conditions: str, tables: Iterable[Table]) -> None:
    """Write the tables to results/<name>.md; a note of several tables stands below the last one."""
    RESULTS.mkdir(exist_ok=True)
    tables = list(tables)
    notes = [table.note for table in tables]
    tables = [
        replace(table, note="" if table.note in notes[k + 1 :] else table.note)
        for k, table in enumerate(tables)
    ]
    text = f"# {name}\n\n{summary}\n\n{conditions}\n\n" + "\n".join(str(table) for table in tables)
    (RESULTS / f"{name}.md").write_text(text, encoding="utf-8")
