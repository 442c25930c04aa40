# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulation in joint coordinates, on Lie groups and on floating bases, and its results."""

from mbs_dynamics.integrate.bodies import BODY_METHODS, BodyStepper, simulate_body
from mbs_dynamics.integrate.events import stop_events
from mbs_dynamics.integrate.floating import simulate_floating
from mbs_dynamics.integrate.forces import JointForces
from mbs_dynamics.integrate.groups import SE3, SO3, GroupBody, free_body, pivoted_body
from mbs_dynamics.integrate.joints import METHODS, simulate
from mbs_dynamics.integrate.results import (
    BodyMotion,
    Event,
    FloatingMotion,
    Motion,
    load_motion,
)
from mbs_dynamics.integrate.stepper import Stepper

__all__ = [
    "BODY_METHODS",
    "METHODS",
    "SE3",
    "SO3",
    "BodyMotion",
    "BodyStepper",
    "Event",
    "FloatingMotion",
    "GroupBody",
    "JointForces",
    "Motion",
    "Stepper",
    "free_body",
    "load_motion",
    "pivoted_body",
    "simulate",
    "simulate_body",
    "simulate_floating",
    "stop_events",
]
