# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Readings, for tests of what is made of them."""

from __future__ import annotations

import numpy as np

from mbs_dynamics.control.joint_input import NO_EFFORTS, Reading
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.outputs import OUTPUTS


def reading(q, qd, tau=None, stamp=0, why_no_effort=""):
    """Return a reading, without velocities if ``qd`` is None, without efforts if ``tau`` is."""
    if tau is None:
        tau, why_no_effort = np.full(np.size(q), np.nan), NO_EFFORTS
    why_no_velocity = "" if qd is not None else "none sent"
    return Reading(q, qd, why_no_velocity, tau, why_no_effort, stamp, False)


def formed(results, name, k=0):
    """Return what a message of an output of dynamics_node is filled with."""
    return {one.name: one for one in OUTPUTS}[name].value(results, Contact(), k)
