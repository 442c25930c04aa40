# Copyright 2026 The mbs_dynamics authors
#
# Licensed under the Apache License, Version 2.0 (the "License");
# you may not use this file except in compliance with the License.
# You may obtain a copy of the License at
#
#     http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS,
# WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
# See the License for the specific language governing permissions and
# limitations under the License.
"""The real robots of the package example-robot-data, wherever it is installed."""

from __future__ import annotations

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
