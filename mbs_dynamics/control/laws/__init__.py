# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Laws of a guarded arm: settings, and the interface of laws of users."""

from mbs_dynamics.control.laws.impedance import CartesianImpedance, JointImpedance
from mbs_dynamics.control.laws.law import Gravity, Law, LawState, law_from

AnyLaw = Law | JointImpedance | CartesianImpedance
"""Laws that the period computes, and laws that are called before it."""

__all__ = [
    "AnyLaw",
    "CartesianImpedance",
    "Gravity",
    "JointImpedance",
    "Law",
    "LawState",
    "law_from",
]
