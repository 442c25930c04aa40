# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of text, YAML, archives of arrays, and where files are written, for all commands.

Foreign files may be damaged or hostile: every fault of them is an ArgumentError.
"""

from __future__ import annotations

import codecs
import csv
import math
import os
import re
import shutil
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics.errors import ArgumentError, BackendError, MbsError, quoted, shortened

T = TypeVar("T")

LARGEST, MOST_COMPRESSED = 2**30, 100
"""Bytes of the arrays that are read from any archive, or else as a multiple of the file's size."""

LARGEST_YAML = 2**18
"""Characters of the longest YAML that is read."""

LONGEST = 2**17
"""Largest length of a line of a table in characters."""

MISSING = ("", "nan", "na", "n/a", "null", "none")
"""Cells without a number, in lower case."""

BYTE_ORDER_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, with whose mark it begins
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
"""Byte order marks, and their encodings."""


def expanded(path: str | Path) -> Path:
    """Return a path in which ``~`` at the beginning is the home folder.

    No shell expands it after ``--out=``, nor in a parameter file.
    """
    return Path(os.path.expanduser(path))


def check_writable(option: str, path: Path) -> None:
    """Raise ArgumentError, naming the option of a command, if a file cannot be written there."""
    target = expanded(path)
    if not target.parent.is_dir():
        raise ArgumentError(
            f"{option} is {str(path)!r}, but there is no folder {str(path.parent)!r}"
        )
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise ArgumentError(
            f"{option} is {str(path)!r}; valid is a file in a folder that can be written to"
        )


def write_at_once(option: str, path: Path, text: str) -> None:
    """Replace the contents of a file atomically: it always holds the old text or the new one.

    Raises ArgumentError, naming the option, if it cannot be written there.
    """
    check_writable(option, path)
    target = expanded(path).resolve()  # symbolic links are kept
    try:
        with tempfile.TemporaryDirectory(prefix=".", dir=target.parent) as folder:
            temporary = Path(folder) / target.name
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
    except OSError as error:
        raise ArgumentError(f"{option} cannot be written to {str(path)!r}: {error}") from error


def decoded(where: object, data: bytes) -> str:
    """Return the text of bytes in UTF-8, UTF-16 or UTF-32, else in Windows' Latin-1.

    Raises ArgumentError for bytes that are no text.
    """
    for mark, encoding in BYTE_ORDER_MARKS:
        if data.startswith(mark):
            text = data[len(mark) :].decode(encoding, "replace")
            break
    else:
        begin = data[:400]
        zeros = [begin[k::2].count(0) for k in (0, 1)]
        if max(zeros) > len(begin) // 4 and min(zeros) == 0:  # UTF-16 of mostly ASCII
            text = data.decode("utf-16-be" if zeros[0] else "utf-16-le", "replace")
        else:
            try:
                text = data.decode("utf-8")
            except UnicodeDecodeError:
                text = data.decode("cp1252", "replace")
    if "\0" in text or "\ufffd" in text:
        raise ArgumentError(f"{where}: is no text in UTF-8, UTF-16, UTF-32 or Latin-1")
    return text


class Table(NamedTuple):
    """A header and cells of text."""

    path: Path
    names: list[str]
    rows: list[list[str]]
    lines: list[int]
    """Number of each row in the file, from 1 on."""
    comma: bool
    """Whether numbers have a decimal comma."""

    def column(self, k: int) -> NDArray[np.float64]:
        """Return the numbers (N,) of a column, NaN where there is none, or raise ArgumentError."""
        cells = [row[k].strip() for row in self.rows]
        if self.comma:
            cells = [cell.replace(",", ".") for cell in cells]
        try:
            return np.array(cells, dtype=np.float64)
        except ValueError:  # some are missing, or no numbers
            numbers = np.full(len(cells), np.nan)
        for i, cell in enumerate(cells):
            if cell.lower() in MISSING:
                continue
            try:
                numbers[i] = float(cell)
            except ValueError:
                raise ArgumentError(
                    f"{self.path}, line {self.lines[i]}: {self.names[k]!r} is {cell[:40]!r}; valid "
                    "are numbers"
                ) from None
        return numbers


def read_table(path: Path) -> Table:
    """Return the table in a file: a line of names, then lines of numbers.

    Separators are commas, semicolons, tabs or blanks; with semicolons, tabs or blanks, or in
    quotes, numbers may have decimal commas. Lines that begin with ``#`` are comments; the last one
    before the numbers is the header if there is no other. A second line of units is appended to the
    names, in brackets. Raises ArgumentError, naming the file and the line, for anything else;
    FileNotFoundError.
    """
    try:
        text = decoded(path, path.read_bytes())
    except FileNotFoundError:
        raise
    except OSError as error:
        raise ArgumentError(f"cannot read {path}: {error.strerror}") from error
    lines = [(k, x.strip("\ufeff ")) for k, x in enumerate(re.split("\r\n|\r|\n", text), 1)]
    lines = [(k, line) for k, line in lines if line.strip()]
    if any(len(line) > LONGEST for _, line in lines):
        raise ArgumentError(f"{path}: has a line of more than {LONGEST} characters")
    between = ""
    if lines and re.fullmatch(r'"?sep=[,;\t|]"?', lines[0][1], re.IGNORECASE):  # of Excel
        between = lines.pop(0)[1].strip('"')[-1]
    comments = [line.lstrip("# \t") for _, line in lines if line.startswith("#")]
    body = [(k, line) for k, line in lines if not line.startswith("#")]
    if not body:
        raise ArgumentError(f"{path}: has no lines of numbers")
    headless = bool(_numeric(body[0][1].replace(",", " ").replace(";", " ").split()))
    if headless and not comments:
        raise ArgumentError(f"{path}: has no header; its first line is {body[0][1][:60]!r}")
    first = comments[-1] if headless else body.pop(0)[1]
    between = between or _separator(first)
    split = _splitter(between)
    names = [word.strip() for word in split(first)]
    twice = [name for name, times in Counter(names).items() if name and times > 1]
    if twice:
        raise ArgumentError(
            f"{path}: the header has {quoted(twice[0])} twice; valid are different names of columns"
        )
    rows = [split(line) for _, line in body]
    numbers = [k for k, _ in body]
    if rows and len(rows[0]) == len(names) and not any(_numeric([cell]) for cell in rows[0]):
        units = rows.pop(0)
        numbers.pop(0)
        names = [
            f"{name} [{unit}]" if unit.strip() else name
            for name, unit in zip(names, units, strict=True)
        ]
    for number, row in zip(numbers, rows, strict=True):
        while len(row) > len(names) and not row[-1].strip():  # a separator ends the line
            row.pop()
        if len(row) != len(names):
            raise ArgumentError(
                f"{path}, line {number}: {len(row)} cells; the header has {len(names)}. Is the "
                "file cut, or are there decimal commas between commas?"
            )
    if not rows:
        raise ArgumentError(f"{path}: has no lines of numbers")
    plain = between == "," and '"' not in text
    return Table(path, names, rows, numbers, not plain and _decimal_comma(path, rows))


def _numeric(cells: list[str]) -> bool:
    """Return whether all cells are numbers; with decimal commas as well."""
    try:
        return all(
            cell.strip().lower() in MISSING or float(cell.replace(",", ".")) is not None
            for cell in cells
        )
    except ValueError:
        return False


def _separator(header: str) -> str:
    """Return the separator of a header; a blank if there is no other."""
    bare = re.sub(r"""\[[^\]]*\]|\([^)]*\)|"[^"]*\"""", "", header)  # not in units or quotes
    best = max(";\t,|", key=bare.count)
    return best if best in bare else " "


def _splitter(between: str) -> Callable[[str], list[str]]:
    """Return the function that divides a line into cells."""
    if between == " ":
        return str.split

    def split(line: str) -> list[str]:
        return next(csv.reader([line], delimiter=between, skipinitialspace=True))

    return split


def _decimal_comma(path: Path, rows: list[list[str]]) -> bool:
    """Return whether the numbers have decimal commas; ArgumentError if they have points as well."""
    pattern = re.compile(r"\s*[-+\d.,eE]+\s*")
    commas = [cell for row in rows for cell in row if "," in cell and pattern.fullmatch(cell)]
    if not commas:
        return False
    mixed = [cell for cell in commas if "." in cell or cell.count(",") > 1]
    points = any("." in cell and pattern.fullmatch(cell) for row in rows for cell in row)
    if mixed or points:
        shown = (mixed or commas)[0].strip()
        raise ArgumentError(
            f"{path}: {shown!r} has a comma, and others have decimal points; valid is one of both, "
            "and no separators of thousands"
        )
    return True


def read_arrays(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> dict[str, Any]:
    """Return arrays by name from an .npz file, those whose names are ``wanted``.

    Raises ArgumentError for a file that is damaged, holds objects, or is compressed too much;
    FileNotFoundError.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            members = [one for one in archive.infolist() if one.filename.endswith(".npy")]
            members = [one for one in members if wanted(one.filename[:-4])]
            twice = [
                one for one, times in Counter(x.filename for x in members).items() if times > 1
            ]
            if twice:
                raise ArgumentError(f"{path} has the array {quoted(twice[0][:-4])} twice")
            size = sum(one.file_size for one in members)
            most = max(LARGEST, MOST_COMPRESSED * path.stat().st_size)
            if size > most:
                raise ArgumentError(f"{path} holds {size} bytes; valid is at most {most}")
            return {one.filename[:-4]: _array(path, archive, one) for one in members}
    except (ArgumentError, FileNotFoundError):
        raise
    except Exception as error:  # whatever zipfile, zlib and NumPy raise on damaged bytes
        raise ArgumentError(f"{path} is no .npz file of NumPy: {shortened(str(error))}") from error


def _array(path: Path, archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> Any:
    """Return an array; its header must agree with the size of the member of the archive."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        read = (
            np.lib.format.read_array_header_1_0
            if version == (1, 0)
            else np.lib.format.read_array_header_2_0
        )
        shape, _, dtype = read(file)
        size, rest = dtype.itemsize, member.file_size - file.tell()
        for length in shape:
            size *= length
        if dtype.hasobject or size != rest:
            what = "objects" if dtype.hasobject else f"{rest} bytes for {dtype} {shape}"
            raise ArgumentError(
                f"{path}: {member.filename} holds {what}; valid are whole arrays of numbers or text"
            )
    with archive.open(member) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


@contextmanager
def mcap_written(option: str, out: Path) -> Iterator[tuple[Any, Any]]:
    """Yield a writer and the types of rosbags; afterwards ``out`` is a bag of rosbag2, in one file.

    Raises ArgumentError, naming the option, for a name that does not end in .mcap, or if it cannot
    be written there; MbsError without rosbags.
    """
    try:
        from rosbags.rosbag2 import StoragePlugin, Writer
        from rosbags.typesys import Stores, get_typestore
    except ImportError as error:
        raise MbsError(f"bags need rosbags ({error}): install the extra 'identify'") from error
    if out.suffix != ".mcap":
        raise ArgumentError(f"{option} {out}: valid is a file that ends in .mcap")
    check_writable(option, out)
    with tempfile.TemporaryDirectory() as folder:
        written = Path(folder) / out.stem
        with Writer(written, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
            yield writer, get_typestore(Stores.ROS2_JAZZY)
        shutil.copyfile(written / f"{out.stem}.mcap", expanded(out))


def yaml_text(value: Any, *, flow: bool | None = None) -> str:
    """Return a value of dicts, lists, numbers and texts as YAML that every reader reads back.

    The innermost lists and dicts stand in one line each; with ``flow`` True all of them, with False
    none. Raises MbsError without PyYAML.
    """
    try:
        import yaml
    except ImportError as error:
        raise MbsError(f"YAML needs PyYAML ({error}); install pyyaml") from error

    class Dumper(yaml.SafeDumper):  # type: ignore[misc]
        """A dumper that repeats equal values, since ROS refuses aliases."""

        def ignore_aliases(self, data: Any) -> bool:
            return True

    options = {"sort_keys": False, "allow_unicode": True, "width": math.inf}
    text: str = yaml.dump(value, Dumper=Dumper, default_flow_style=flow, **options)
    return text


def parsed_yaml(path: str | Path, parse: Callable[[Any], T]) -> T:
    """Return what ``parse`` makes of the value in a YAML file; ArgumentErrors name the file."""
    path = expanded(path)
    value = read_yaml_file(path)
    try:
        return parse(value)
    except ArgumentError as error:
        raise ArgumentError(f"{path}: {error}") from error


def read_yaml_file(path: Path) -> Any:
    """Return the value in a YAML file; ArgumentError if it cannot be read, see `read_yaml`."""
    try:
        with path.open(encoding="utf-8") as stream:
            text = stream.read(LARGEST_YAML + 1)
    except (OSError, UnicodeDecodeError) as error:
        raise ArgumentError(f"{str(path)!r}, which is no YAML: {error}") from error
    try:
        return read_yaml(text)
    except ArgumentError as error:
        raise ArgumentError(f"{str(path)!r}, which {error}") from error


def read_yaml(text: str) -> Any:
    """Return the value of a YAML text.

    Raises BackendError if PyYAML is not installed; ArgumentError for other text, for keys that are
    given twice, for aliases, by which a few lines can stand for billions of values and which ROS
    refuses too, and for more than ``LARGEST_YAML`` characters.
    """
    try:
        import yaml
    except ImportError as error:
        raise BackendError(f"YAML needs PyYAML ({error}): pip install pyyaml") from error

    class Loader(yaml.SafeLoader):  # type: ignore[misc]
        """A loader that accepts the tuples that launch writes, and no aliases."""

        def compose_node(self, parent: Any, index: Any) -> Any:
            if self.check_event(yaml.AliasEvent):
                line = self.peek_event().start_mark.line + 1
                raise ArgumentError(f"has an alias (*name) in line {line}; valid are plain values")
            return super().compose_node(parent, index)

        def construct_mapping(self, node: Any, deep: bool = False) -> Any:
            keys = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
            if len(set(keys)) < len(keys):
                twice = next(key for key, times in Counter(keys).items() if times > 1)
                raise ArgumentError(f"has {quoted(twice)} twice in line {node.start_mark.line + 1}")
            return super().construct_mapping(node, deep)

    Loader.add_constructor("tag:yaml.org,2002:python/tuple", Loader.construct_sequence)
    if len(text) > LARGEST_YAML:
        raise ArgumentError(f"has more than {LARGEST_YAML} characters")
    try:
        return yaml.load(text, Loader)
    except ArgumentError:
        raise
    except Exception as error:  # YAMLError, but a thirteenth month or deep lists raise others
        cause = " ".join(str(error).split()) or type(error).__name__
        raise ArgumentError(f"is no YAML: {cause}") from error
