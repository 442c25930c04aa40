# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Files of collision thresholds by joint, and detected collisions."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.checks import FloatArray, number
from mbs_dynamics.control.contact import tool_wrench
from mbs_dynamics.control.motor_table import check_keys, coordinate_of, line_of
from mbs_dynamics.control.period import collisions
from mbs_dynamics.control.period.records import NEVER, Settings, State
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import tools
from mbs_dynamics.yaml_files import parsed_yaml

DAMPING = 0.1
"""Smaller singular values are damped in the estimated wrench; see :func:`tool_wrench`."""

NOISE = 1e-3
"""Smallest threshold, in N m or N."""


class Threshold(NamedTuple):
    """Thresholds of a joint.

    A threshold is its value at rest plus ``_speed`` times the largest share of the joints' fastest
    speeds; beyond these speeds it grows with that share.
    """

    impact: float
    """Threshold of sudden external torques, in N m or N."""
    impact_speed: float
    sustained: float
    """Threshold of all external torques, errors of the model included, in N m or N."""
    sustained_speed: float
    fastest: float
    """Largest speed in the recording, in rad/s or m/s."""


UNWATCHED = Threshold(NEVER, 0.0, NEVER, 0.0, 1.0)
"""Thresholds of a joint without detection."""

SETTINGS = (
    "impact_threshold", "impact_slope", "sustained_threshold", "sustained_slope", "recorded_speed",
)  # fmt: skip
"""Settings of the period for the fields of Threshold."""


def threshold_settings(model: Model, rows: Mapping[str, Threshold]) -> dict[str, FloatArray]:
    """Return settings of the period, by name; joints without thresholds are not watched.

    Raises UnknownJointError or ArgumentError for joints that cannot have a motor.
    """
    table = np.tile(UNWATCHED, (model.n, 1))
    for name, row in rows.items():
        table[coordinate_of(model, name)] = row
    return dict(zip(SETTINGS, table.T, strict=True))


def read_thresholds(path: str | Path, model: Model) -> dict[str, Threshold]:
    """Return the thresholds of joints in a file with a text of :func:`thresholds_yaml`.

    Raises UnknownJointError for unknown joints, ArgumentError for another file and invalid values,
    OSError if it cannot be read.
    """

    def checked(table: Any) -> dict[str, Threshold]:
        check_keys("the file", table, ("joints",))
        check_keys("joints", table["joints"], (), model.joint_names)
        for name, row in table["joints"].items():
            check_keys(name, row, Threshold._fields)
            for key in Threshold._fields:
                least = 0.0 if key.endswith("_speed") else NOISE
                value = number(f"{name}: {key}", row[key])
                if value < least:
                    raise ArgumentError(f"{name}: {key} is {value:g}; must be at least {least:g}")
        return {name: Threshold(**row) for name, row in table["joints"].items()}

    return parsed_yaml(path, checked)


def thresholds_yaml(rows: Mapping[str, Threshold], source: str) -> str:
    """Return the text of a file of thresholds by joint; ``source`` is named in a comment."""
    lines = [
        line_of(name, {key: float(f"{x:.4g}") for key, x in row._asdict().items()})
        for name, row in rows.items()
    ]
    header = (
        f"# Thresholds of collisions in N m or N, tuned from {source!r}; speeds in rad/s or m/s"
    )
    return "\n".join([header, "joints:", *lines, ""])


class Collision(NamedTuple):
    """A detected contact."""

    joint: str
    """The joint whose external torque exceeds its threshold most."""
    stamp: int
    """Stamp of the measurement in ns."""
    torque: float
    """External torque of this joint, in N m or N."""
    threshold: float
    torques: FloatArray
    """(n,) external torques in N m or N; 0 at joints that are not watched."""
    link: str
    wrench: FloatArray
    """(6,) estimate of the wrench on this link in its frame, moment first, in N m and N.

    It grows for some 30 ms after the detection."""

    @property
    def time(self) -> float:
        """Stamp of the measurement in s."""
        return 1e-9 * self.stamp


def collision_of(s: State, p: Settings, model: Model) -> Collision:
    """Return the collision that began with the latest period of an arm, from its state."""
    link = tools(model)[0]
    torques, thresholds = collisions.compared(s, p, np.array(s.smooth))
    k = int(s.collided)
    kind = int(np.argmax(np.abs(torques[:, k]) / thresholds[:, k]))
    own = np.flatnonzero(p.impact_threshold < NEVER)
    J = mbs.jacobian(model, np.array(s.trusted), link, representation="body_fixed")
    W = tool_wrench(J[:, own], torques[kind, own], DAMPING).W
    torque, threshold = float(torques[kind, k]), float(thresholds[kind, k])
    stamp = int(1e9 * float(np.max(s.stamp[np.asarray(p.commanded) > 0.0])))
    return Collision(model.joint_names[k], stamp, torque, threshold, torques[kind], link, W)
