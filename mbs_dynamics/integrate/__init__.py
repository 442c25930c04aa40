# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulation of models, and its results."""

from mbs_dynamics.integrate.contact import ContactPlanes, Plane
from mbs_dynamics.integrate.events import stop_events
from mbs_dynamics.integrate.forces import JointForces
from mbs_dynamics.integrate.joints import METHODS, simulate
from mbs_dynamics.integrate.results import Event, Motion
from mbs_dynamics.integrate.stepper import Stepper

__all__ = [
    "METHODS",
    "ContactPlanes",
    "Event",
    "JointForces",
    "Motion",
    "Plane",
    "Stepper",
    "simulate",
    "stop_events",
]
