# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Locations of the robots of this package, in a checkout and where it is installed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from mbs_dynamics.errors import UnknownNameError


class UnknownRobotError(UnknownNameError, kind="robot"):
    """This package contains no robot of this name."""


def robot_path(name: str) -> Path:
    """Return the path of the URDF of a robot of this package, such as ``"arm7"``.

    Raises UnknownRobotError, which lists the robots there are.
    """
    robots: dict[str, Path] = {}
    for folder in _urdf_folders():
        for path in sorted(folder.glob("*.urdf")):
            robots.setdefault(path.stem, path)
    if name not in robots:
        raise UnknownRobotError(name, sorted(robots))
    return robots[name]


def _urdf_folders() -> Iterator[Path]:
    """Yield the folders to look in, the one nearest to this file first.

    A checkout keeps the robots in ``urdf``. pip and colcon install them in
    ``share/mbs_dynamics/urdf`` of the prefix this module lies in, whatever the depth of its
    site-packages. Last come the prefixes of a sourced ROS workspace, read from the environment
    because ROS need not be there.
    """
    here = Path(__file__).resolve()
    checkout = here.parents[1]
    if (checkout / "package.xml").is_file():
        yield checkout / "urdf"
    ament = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    for prefix in (*here.parents, *(Path(entry) for entry in ament if entry)):
        yield prefix / "share" / "mbs_dynamics" / "urdf"
