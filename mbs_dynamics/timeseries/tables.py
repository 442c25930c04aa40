# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Reading and writing of tables of text (.csv) and archives of arrays (.npz)."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import quoted, shortened
from mbs_dynamics.timeseries.columns import column_name, number, parsed
from mbs_dynamics.timeseries.series import KINDS, TimeSeries, TimeSeriesError

SEPARATORS = ",;\t"
"""Separators of cells besides spaces; all but the comma allow decimal commas."""

MISSING = ("", "nan", "na", "n/a", "null", "none")
"""Cells of missing values, in lower case."""

WRITTEN = (".csv", ".npz")
"""Endings of the files of motion data that can be written."""


class Columns:
    """The columns of a file by name: numbers (N,), or cells of text."""

    def __init__(self, name: str, values: dict[str, Any]) -> None:
        self.name = name
        self.values = values
        self.lines: list[int] = []
        """Line of the file for each row of cells; empty for arrays of numbers."""
        self.notes: list[str] = []
        """Notes on data that were left out."""
        self.unstated: dict[str, str] = {}
        """Quantities without a stated unit, with their names in the file."""

    def __len__(self) -> int:
        return len(next(iter(self.values.values()), ()))

    def numbers(self, name: str) -> FloatArray:
        """Return a column (N,) of numbers, NaN for missing values, or raise TimeSeriesError."""
        column = self.values[name]
        if isinstance(column, np.ndarray):
            return column.astype(np.float64)
        numbers = [number(cell) for cell in column]
        for line, text, value in zip(self.lines, column, numbers, strict=True):
            if value is None and text.strip().lower() not in MISSING:
                raise TimeSeriesError(
                    f"{self.name}, line {line}: {quoted(name)} is {quoted(text)}; valid: numbers"
                )
        return np.array(numbers, dtype=np.float64)  # NaN for None


def read_csv(path: Path) -> Columns:
    """Return the columns of a table: a line of names, then lines of numbers.

    Cells are separated by commas, semicolons, tabs or spaces. Lines that begin with ``#`` are
    comments, but the last one before the numbers may be the header. Raises TimeSeriesError, with
    the number of the line.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise TimeSeriesError(f"{path}: cannot be read as text in UTF-8: {error}") from error
    lines = [(k, line.strip(" ")) for k, line in enumerate(text.splitlines(), 1) if line.strip()]
    places = [place for place, (_, line) in enumerate(lines) if not line.startswith("#")]
    if places and places[0] > 0 and number(re.split(r"[,;\s]", lines[places[0]][1])[0]) is not None:
        places.insert(0, places[0] - 1)
    lines = [lines[place] for place in places]
    if len(lines) < 2:
        raise TimeSeriesError(f"{path}: has no header, or no lines of numbers")
    header = lines[0][1].lstrip("# ")
    separator = max(SEPARATORS, key=header.count)
    separator = separator if separator in header else " "
    body = [line if separator == "," else line.replace(",", ".") for _, line in lines[1:]]
    names = [name.strip() for name in _cells(path, [header], separator)[0]]
    if names and not names[-1]:  # a separator ends each line
        names.pop()
    for name in names:
        if names.count(name) > 1:
            raise TimeSeriesError(f"{path}: the header has {quoted(name)} twice")
    if all(number(name) is not None for name in names):
        raise TimeSeriesError(f"{path}: has no header; its first line is {shortened(header)!r}")
    rows = _cells(path, body, separator)
    if len(rows) != len(body):
        raise TimeSeriesError(f"{path}: has cells with line breaks")
    table = Columns(str(path), {})
    table.lines = [k for k, _ in lines[1:]]
    for line, row in zip(table.lines, rows, strict=True):
        while len(row) > len(names) and not row[-1].strip():
            row.pop()
        if len(row) != len(names):
            raise TimeSeriesError(
                f"{path}, line {line}: {len(row)} cells; the header has {len(names)}"
            )
    table.values = dict(zip(names, zip(*rows, strict=True), strict=True))
    return table


def _cells(path: Path, lines: list[str], separator: str) -> list[list[str]]:
    try:
        return list(csv.reader(lines, delimiter=separator, skipinitialspace=True, strict=True))
    except csv.Error as error:
        raise TimeSeriesError(f"{path}: is not a table: {error}") from error


def check_names(source: str | Path, joints: Sequence[str]) -> None:
    """Raise TimeSeriesError if a name stands twice: which values are meant cannot be known."""
    if twice := [name for name in joints if joints.count(name) > 1]:
        raise TimeSeriesError(f"{source}: the names of joints have {quoted(twice[0])} twice")


def read_npz(path: Path) -> Columns:
    """Return the columns of an archive of arrays.

    Arrays (N,) are columns. An array (N, k) is k columns ``<name>_<joint>``, with names from the
    array ``joints`` or ``joint_names``, or else numbers from 1. Raises TimeSeriesError for a
    damaged file, for pickled objects, and for arrays of other shapes.
    """
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except Exception as error:  # zipfile, zlib and NumPy raise many on damaged bytes
        text = shortened(str(error))
        raise TimeSeriesError(f"{path}: is not a .npz file of arrays: {text}") from error
    given = [arrays.pop(name) for name in ("joints", "joint_names") if name in arrays]
    joints = [str(name) for name in np.ravel(given[0])] if given else []
    other = arrays.pop("positions", None)
    positions = joints
    if other is not None and other.dtype.kind == "U":
        positions = [str(name) for name in np.ravel(other)]
    elif other is not None:
        arrays["positions"] = other
    check_names(path, joints)
    check_names(path, positions)
    lengths = {parsed(name).kind: len(x) for name, x in arrays.items() if x.ndim}
    count = lengths.get("t", max(lengths.values(), default=0))
    values: dict[str, Any] = {}
    for name, array in arrays.items():
        if array.dtype.kind not in "fiu":
            continue
        if array.ndim == 1 and len(array) == count:
            values[name] = array
        elif array.ndim == 2 and len(array) == count:
            names = positions if name == "q" else joints
            if names and len(names) != array.shape[1] and parsed(name).kind:
                raise TimeSeriesError(
                    f"{path}: {name} has shape {array.shape}; there are {len(names)} joint names"
                )
            if len(names) != array.shape[1]:
                names = [str(k + 1) for k in range(array.shape[1])]
            values |= {column_name(name, joint): array[:, k] for k, joint in enumerate(names)}
        elif array.ndim and parsed(name).kind:
            raise TimeSeriesError(
                f"{path}: {name} has shape {array.shape}; must be ({count},) or ({count}, joints)"
            )
    return Columns(str(path), values)


def write(series: TimeSeries, path: str | Path) -> None:
    """Write a time series; see :meth:`TimeSeries.write`."""
    target = Path(path).expanduser()
    kinds = {kind: x for kind in KINDS if (x := getattr(series, kind)) is not None}
    try:
        if target.suffix == ".npz":
            arrays: dict[str, Any] = {"t": series.t, "joints": np.array(series.joints, dtype=str)}
            if series.positions != series.joints:
                arrays["positions"] = np.array(series.positions, dtype=str)
            arrays |= {**kinds, **series.columns}
            np.savez_compressed(target, **arrays)
        elif target.suffix == ".csv":
            with target.open("w", newline="", encoding="utf-8") as file:
                _write_csv(series, kinds, file)
        else:
            raise TimeSeriesError(f"{path}: must end in .csv or .npz")
    except OSError as error:
        raise TimeSeriesError(f"{path} cannot be written: {error}") from error


def _write_csv(series: TimeSeries, kinds: dict[str, FloatArray], file: Any) -> None:
    header, columns = ["t"], [series.t]
    for kind, array in kinds.items():
        names = series.positions if kind == "q" else series.joints
        for name, column in zip(names, array.T, strict=True):
            if len(column) == 0 or not np.isnan(column).all():
                header.append(column_name(kind, name))
                columns.append(column)
    header += series.columns
    columns += series.columns.values()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([repr(float(x)) for x in row] for row in np.column_stack(columns))
