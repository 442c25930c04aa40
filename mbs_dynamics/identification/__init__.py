# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification: from recordings of an arm to a description whose torques are right.

The steps, and their files:

1. Prepare: stretches without gaps (``preparation``), below a cutoff frequency (``signals``).
2. State the equations, linear in the parameters (``torque_model``; ``data`` for motions, ``static``
   for still poses).
3. Check the torques (``torque_checks``), by comparison with the description (``torque_evidence``)
   and with common masses of all joints (``common_masses``).
4. Fit (``estimation``) with physically consistent bodies (``consistent``), and judge by held-out
   data: ``identify``, ``static``, ``payload``, ``servos``.
5. Write the URDF and other files (``description``), and a ``report``.

``excitation`` plans motions, and ``gains`` converts motor currents. All need the extra ``identify``
of this package.
"""

from mbs_dynamics.identification.description import (
    identified_urdf,
    node_parameters,
    servo_mjcf,
    servo_urdf,
    servo_yaml,
)
from mbs_dynamics.identification.estimation import BaseEstimate
from mbs_dynamics.identification.excitation import (
    Box,
    Excitation,
    MotionLimits,
    box_of,
    plan_excitation,
)
from mbs_dynamics.identification.gains import fitted_gains, with_gains
from mbs_dynamics.identification.identify import Errors, Identification, identify, validate
from mbs_dynamics.identification.payload import PayloadEstimate, identify_payload
from mbs_dynamics.identification.report import report
from mbs_dynamics.identification.servos import Servo, ServoIdentification, identify_servos
from mbs_dynamics.identification.static import StaticIdentification, identify_static

__all__ = [
    "BaseEstimate",
    "Box",
    "Errors",
    "Excitation",
    "Identification",
    "MotionLimits",
    "PayloadEstimate",
    "Servo",
    "ServoIdentification",
    "StaticIdentification",
    "box_of",
    "fitted_gains",
    "identified_urdf",
    "identify",
    "identify_payload",
    "identify_servos",
    "identify_static",
    "node_parameters",
    "plan_excitation",
    "report",
    "servo_mjcf",
    "servo_urdf",
    "servo_yaml",
    "validate",
    "with_gains",
]
