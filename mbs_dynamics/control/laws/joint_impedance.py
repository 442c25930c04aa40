# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Joint impedance: each joint is a spring with a damper about a reference that moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mbs_dynamics import checks
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.control.laws.impedance import by_joint, checked_ratio


class JointImpedance:
    """Impedance of the joints, as a law of a guarded arm.

        tau = g + M qdd_d + C qd_d + K (q_d - q) + D (qd_d - qd)

    ``stiffness`` in N m/rad or N/m is one value for all joints, one for each, or a mapping from
    names of joints. D damps every mode of the springs with the ``damping_ratio``, at the present
    inertia, to which rotors contribute as ``model.with_armature`` states.

    Raises ArgumentError for values out of range, and when it is used for other joints.
    """

    def __init__(self, stiffness: Any = 50.0, damping_ratio: float = 1.0) -> None:
        self.stiffness, self.damping_ratio = stiffness, checked_ratio(damping_ratio)
        mapping = isinstance(stiffness, Mapping)
        checks.not_negative("stiffness", list(stiffness.values()) if mapping else stiffness)

    def stiffness_of(self, names: Sequence[str]) -> FloatArray:
        """Return the stiffness (m,) of joints; raise UnknownJointError or ArgumentError."""
        return by_joint(self.stiffness, names, "stiffness")
