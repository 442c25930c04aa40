# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of a guarded arm: their settings, and the interface of those that users write."""

from mbs_dynamics.control.laws.impedance import CartesianImpedance, JointImpedance
from mbs_dynamics.control.laws.law import Gravity, Law, LawState, law_from

AnyLaw = Law | JointImpedance | CartesianImpedance
"""Laws that the period computes, and those that are called before it."""

__all__ = [
    "AnyLaw",
    "CartesianImpedance",
    "Gravity",
    "JointImpedance",
    "Law",
    "LawState",
    "law_from",
]
