# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Paths that a user gives, and where files are written."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from mbs_dynamics.errors import ArgumentError


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
