# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The robot of the checks, and a state of it."""

import os
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path

FOLDER = Path(tempfile.mkdtemp(prefix="mbs_dynamics-smoke-"))
os.environ["MBS_CACHE_DIR"] = str(FOLDER / "cache")  # what is found there is what is stored here
os.environ.pop("MBS_CACHE", None)


@cache
def arm() -> mbs.Model:
    """Return the robot that is installed with the package."""
    return mbs.Model.from_urdf(robot_path("arm7"))


@cache
def state() -> Any:
    """Return q, qd, qdd and qddd of a motion away from singular postures."""
    motion = np.random.default_rng(7).uniform(-1.0, 1.0, (4, arm().n))
    motion[0] += 0.3
    return motion


def close(found: Any, expected: Any, tolerance: float = 1e-11) -> None:
    """Compare, relative to the largest entry."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, f"shape {found.shape}, not {expected.shape}"
    error = np.abs(found - expected).max(initial=0.0)
    scale = max(1.0, np.abs(expected).max(initial=0.0))
    assert error <= tolerance * scale, f"the error is {error:.1e}, of values up to {scale:.1e}"
