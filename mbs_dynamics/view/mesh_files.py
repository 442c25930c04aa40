# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Mesh files of a robot: the folders in which they are searched."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote, urlparse

from mbs_dynamics.errors import quoted, shortened

LONGEST_REASON = 500
"""Characters of a message of a reader of meshes that are shown."""


def find_mesh(filename: str, source: Path | None, packages: Sequence[Path]) -> Path:
    """Return the path of a mesh file.

    ``package://name/rest`` is searched in ``packages``, in the sourced workspaces, and around the
    URDF ``source``: in packages in the folders above it, which have a ``package.xml``, and in the
    next folder above. Relative paths are those from the URDF, up to that folder. Absolute paths
    must lead to the folder of the URDF, its package, ``packages``, or workspaces. Raises
    FileNotFoundError for a missing file, for one elsewhere, and for a URL.
    """
    shown = shortened(repr(filename), LONGEST_REASON)
    try:
        address = urlparse(filename)
    except ValueError as error:
        raise FileNotFoundError(f"mesh {shown} is no path and no URL: {error}") from error
    if address.scheme in ("http", "https"):
        raise FileNotFoundError(f"mesh {shown} is a URL, and nothing is downloaded")
    if address.scheme in ("package", "model"):
        name, rest = address.netloc, os.path.normpath(unquote(address.path).lstrip("/"))
        if name in ("", ".", "..") or rest.split("/")[0] == "..":
            raise FileNotFoundError(f"mesh {shown} is outside of a package")
        for file in _in_packages(name, rest, source, packages):
            if file.is_file():
                return file
        raise FileNotFoundError(
            f"no mesh {shown}; give the folder that contains package {quoted(name)} by "
            f"--package-path FOLDER"
        )
    path = unquote(address.path) if address.scheme == "file" else filename
    relative = not os.path.isabs(path)
    path = os.path.abspath(path if source is None else source.parent / path)
    if not any(_inside(path, folder) for folder in _readable(source, packages, relative)):
        raise FileNotFoundError(
            f"mesh {shown} is outside of the folder of the URDF and of its package; give a folder "
            "that contains it by --package-path FOLDER"
        )
    if not os.path.isfile(path):
        raise FileNotFoundError(f"no mesh {shown}")
    return Path(path)


def _inside(path: str, folder: Path) -> bool:
    """Return whether a file is in a folder, by its own path or after following links."""
    return any(Path(f(path)).is_relative_to(f(folder)) for f in (os.path.abspath, os.path.realpath))


def _readable(source: Path | None, packages: Sequence[Path], relative: bool) -> Iterator[Path]:
    """Yield the folders of files that need not be named by their package."""
    yield from packages
    yield from _workspaces()
    if source is not None:
        yield _above(source.absolute()) if relative else source.absolute().parent
        yield from (each for each in source.absolute().parents if _is_package(each))


def _above(source: Path) -> Path:
    """Return the folder above that of the URDF, as of ``pack/urdf``; not the root, but its own."""
    folder, *above = source.parents
    return above[0] if above[1:] else folder


def _is_package(folder: Path) -> bool:
    return (folder / "package.xml").is_file()


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
    for folder in source.parents:
        for place in (folder, folder / name):
            known = _is_package(place) or place.is_relative_to(_above(source))
            if place.name == name and known:
                yield place / rest
