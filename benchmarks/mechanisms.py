# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The mechanisms that are measured."""

import importlib.metadata
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.compiler import Program
from mbs_dynamics.lie import se3
from mbs_dynamics.model.orders import leaves
from mbs_dynamics.representation import REPRESENTATIONS
from mbs_dynamics.resources import robot_path

FloatArray = NDArray[np.float64]

ARMS = {
    "Panda": "panda_description/urdf/panda.urdf",
    "UR5": "ur_description/urdf/ur5_robot.urdf",
    "arm7": "",
}
"""Arms by their path in example-robot-data; arm7 comes with this package."""

HUMANOIDS = {
    "G1": "g1_description/urdf/g1_29dof_rev_1_0.urdf",
    "Talos": "talos_data/robots/talos_reduced.urdf",
}


QUADRUPEDS = {
    "ANYmal": "anymal_b_simple_description/robots/anymal.urdf",
    "Solo": "solo_description/robots/solo12.urdf",
}


def robot(name: str, **options: Any) -> mbs.Model:
    """Return a robot of :func:`urdf`, by default with its base fixed and its mimic joints."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)
        return mbs.Model.from_urdf(urdf(name), **options)


TIPS = {"Panda": "panda_hand", "UR5": "tool0"}
"""The last link of the arms that other libraries have as well."""


def urdf(name: str) -> Path:
    """Return the URDF of a robot, or of another one by its path in example-robot-data."""
    below = {**ARMS, **HUMANOIDS, **QUADRUPEDS}.get(name, name)
    if not below:
        return robot_path(name)
    distribution = importlib.metadata.distribution("example-robot-data")
    files = [file for file in distribution.files or () if str(file).endswith(below)]
    return Path(str(distribution.locate_file(files[0])))


def arms() -> Iterator[tuple[str, mbs.Model]]:
    """Yield the arms without fingers, as every library can have them, by name."""
    for name, tip in TIPS.items():
        yield name, robot(name, tip=tip)


def chain(n: int) -> mbs.Model:
    """Return a random serial chain of n revolute joints about the z axes of the bodies.

    Bodies have generic inertias and placements.
    """
    rng = np.random.default_rng(0)
    homes = np.tile(np.eye(4), (n, 1, 1))
    inertias = np.empty((n, 6, 6))
    for i in range(n):
        twist, offset = rng.uniform(-2.0, 2.0, 3), rng.uniform(-0.2, 0.2, 3)
        homes[i] = se3.exp(np.concatenate([twist, offset]))
        points = rng.normal(size=(8, 3)) * 0.1
        mass, com = float(rng.uniform(0.5, 2.0)), points.mean(axis=0)
        about = points - com
        tensor = mass / 8.0 * sum(np.dot(x, x) * np.eye(3) - np.outer(x, x) for x in about)
        inertias[i] = mbs.spatial_inertia(mass, com, tensor)
    z = np.tile([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (n, 1))
    return mbs.Model.from_screws(range(-1, n - 1), homes, z, inertias, frame="body_fixed")


def program(function: Callable[..., Any], model: mbs.Model, representation: str) -> Program:
    """Return a traced algorithm, of the first leaf if it is about one body."""
    made = algorithm_of(function)
    given = {"body": leaves(model)[0], "representation": representation}
    options = made.options | {name: given[name] for name in given if name in made.options}
    return made.program(model, made.required, options)


def representations(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the representations of an algorithm; one empty text if it has no such option."""
    return tuple(REPRESENTATIONS) if "representation" in algorithm_of(function).options else ("",)
