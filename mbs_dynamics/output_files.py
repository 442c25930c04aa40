# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Paths that a user gives: files that are missing, and where files are written."""

from __future__ import annotations

import difflib
import os
import tempfile
from pathlib import Path

from mbs_dynamics.errors import ArgumentError, quoted


def expanded(path: str | Path) -> Path:
    """Return a path in which ``~`` at the beginning is the home folder.

    No shell expands it after ``--out=``, nor in a parameter file.
    """
    return Path(os.path.expanduser(path))


def missing_file(path: str | Path) -> str:
    """Return the message for a file that does not exist, with the most similar name beside it."""
    target, text = Path(path), f"there is no file {quoted(str(path))}"
    if target.is_dir():
        return f"{text}: it is a folder"
    if not target.parent.is_dir():
        return f"{text}, and no folder {quoted(str(target.parent))}"
    beside = [each.name for each in target.parent.glob("*")]
    close = difflib.get_close_matches(target.name, beside, n=1)
    return f"{text} (did you mean {close[0]!r}?)" if close else text


def check_writable(option: str, path: Path) -> None:
    """Raise ArgumentError, naming the option of a command, if a file cannot be written there."""
    target = expanded(path)
    if not target.parent.is_dir():
        raise ArgumentError(
            f"{option} is {str(path)!r}, but there is no folder {str(path.parent)!r}"
        )
    if target.is_dir() or not os.access(target.parent, os.W_OK):
        raise ArgumentError(
            f"{option} is {str(path)!r}; must be a file in a folder that can be written to"
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
