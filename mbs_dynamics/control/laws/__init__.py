# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Laws: torques of a state and a reference, and nothing else."""

from mbs_dynamics.control.laws.cartesian_impedance import CartesianImpedance
from mbs_dynamics.control.laws.gravity import Gravity
from mbs_dynamics.control.laws.joint_impedance import JointImpedance
from mbs_dynamics.control.laws.law import Law, LawState, law_from

__all__ = ["CartesianImpedance", "Gravity", "JointImpedance", "Law", "LawState", "law_from"]
