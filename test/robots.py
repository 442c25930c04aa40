# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The real robots of the package example-robot-data, wherever it is installed."""

import importlib.metadata
from functools import lru_cache
from pathlib import Path

MOTIONLESS = (
    "hector_description/robots/quadrotor_base.urdf",
    "iris_description/robots/iris_simple.urdf",
)
"""These describe one rigid body and no joint that moves."""

NAMELESS = ("ur_description/urdf/ur3.urdf",)
"""This one is an empty document, without even a name for the robot."""


@lru_cache(maxsize=1)
def all_files() -> dict[str, Path]:
    """Return every URDF by its path below ``robots/``; empty where the package is missing."""
    try:
        distribution = importlib.metadata.distribution("example-robot-data")
    except importlib.metadata.PackageNotFoundError:
        return {}
    found = {}
    for file in distribution.files or ():
        if file.suffix == ".urdf" and "robots" in file.parts:
            below = file.parts[file.parts.index("robots") + 1 :]
            found["/".join(below)] = Path(str(distribution.locate_file(file)))
    return dict(sorted(found.items()))


def robot_files() -> dict[str, Path]:
    """Return the URDFs that describe a mechanism with joints."""
    none = (*MOTIONLESS, *NAMELESS)
    return {name: path for name, path in all_files().items() if name not in none}


def robot(name: str) -> Path:
    """Return the URDF of one robot, by its path below ``robots/`` or a unique end of it."""
    found = [path for key, path in all_files().items() if key == name or key.endswith("/" + name)]
    if len(found) != 1:
        raise LookupError(f"{len(found)} robots are called {name!r}")
    return found[0]
