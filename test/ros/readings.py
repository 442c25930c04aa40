# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Readings, for tests of what is made of them."""

from __future__ import annotations

import numpy as np

from mbs_dynamics.control.joint_input import NO_EFFORTS, Efforts, Reading
from mbs_dynamics.ros.dynamics.contact import Contact
from mbs_dynamics.ros.dynamics.outputs import OUTPUTS


def reading(q, qd, efforts=None, stamp=0):
    """Return a reading; ``qd`` None: no velocities; ``efforts`` None: none, or torques (n,)."""
    if efforts is None:
        efforts = Efforts(np.full(np.size(q), np.nan), NO_EFFORTS)
    elif not isinstance(efforts, Efforts):
        efforts = Efforts(efforts)
    return Reading(q, qd, "" if qd is not None else "none sent", efforts, stamp, False)


def formed(results, name, k=0):
    """Return what a message of an output of dynamics_node is filled with."""
    return {one.name: one for one in OUTPUTS}[name].value(results, Contact(), k)
