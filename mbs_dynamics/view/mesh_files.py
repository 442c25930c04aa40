# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The search for the mesh files of a robot."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

from mbs_dynamics.errors import quoted, shortened

LONGEST_REASON = 500
"""Longest part of a mesh reader's message that is shown, in characters."""


def find_mesh(filename: str, source: Path | None, packages: Sequence[Path]) -> Path:
    """Return the path of a mesh file.

    ``package://name/rest`` is searched in ``packages``, in the sourced workspaces, in packages
    (folders with a ``package.xml``) above the URDF ``source``, and in the parent of its folder.
    Relative paths start at the folder of the URDF. Raises FileNotFoundError for a missing file and
    for a URL.
    """
    shown = shortened(repr(filename), LONGEST_REASON)
    try:
        address = urlparse(filename)
    except ValueError as error:
        raise FileNotFoundError(f"mesh {shown} is neither a path nor a URL: {error}") from error
    if address.scheme in ("http", "https"):
        raise FileNotFoundError(f"mesh {shown} is a URL, and nothing is downloaded")
    if address.scheme in ("package", "model"):
        name, rest = address.netloc, unquote(address.path).lstrip("/")
        for file in _in_packages(name, rest, source, packages):
            if file.is_file():
                return file
        raise FileNotFoundError(
            f"no mesh {shown}; give the folder that contains package {quoted(name)} by "
            f"--package-path FOLDER"
        )
    named = unquote(address.path) if address.scheme == "file" else filename
    path = Path(os.path.abspath(named if source is None else source.parent / named))
    if not path.is_file():
        raise FileNotFoundError(f"no mesh {shown}")
    return path


def _workspaces() -> Iterator[Path]:
    for variable, within in (("AMENT_PREFIX_PATH", "share"), ("ROS_PACKAGE_PATH", ".")):
        for prefix in filter(None, os.environ.get(variable, "").split(os.pathsep)):
            yield Path(prefix) / within


def _in_packages(
    name: str, rest: str, source: Path | None, packages: Sequence[Path]
) -> Iterator[Path]:
    for folder in packages:
        yield folder / name / rest
        if folder.name == name:
            yield folder / rest
    for folder in _workspaces():
        yield folder / name / rest
    if source is None:
        return
    source = source.resolve()
    near = source.parents[min(1, len(source.parents) - 1)]
    for folder in source.parents:
        for place in (folder, folder / name):
            known = (place / "package.xml").is_file() or place.is_relative_to(near)
            if place.name == name and known:
                yield place / rest
