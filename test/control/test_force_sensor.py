# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Wrist sensors: what fits, what is refused, and what is left of a reading.

Readings come from the joint wrenches of the arm with a payload, or from MuJoCo's sensors.
"""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.control.force_sensor import (
    Calibration,
    ForceSensor,
    Mounting,
    Rejection,
    fit,
    to_root,
)
from mbs_dynamics.errors import ArgumentError, ModelError, UnknownBodyError
from mbs_dynamics.lie import se3, so3
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.resources import robot_path

ARM = mbs.Model.from_urdf(robot_path("arm7"))
BARE = ARM.with_inertia if False else ARM
BIAS = np.array([0.1, -0.2, 0.3, 4.0, -5.0, 6.0])
MASS, COM, TENSOR = 1.0, np.array([0.02, -0.03, 0.08]), np.diag([0.004, 0.003, 0.002])
TOOL = (MASS, COM, TENSOR)
NOISE = np.array([0.01] * 3 + [0.1] * 3)
STAMP = 10**9


def tool_wrench(q, qd, qdd, link="flange", tool=TOOL):
    """The wrench of the tool on a link: what a payload changes of the last joint's wrench."""
    loaded = ARM.with_payload(link, *tool)
    with_it, without = (mbs.joint_wrenches(m, q, qd, qdd)[-1] for m in (loaded, ARM))
    frame = ARM.frames[link]
    return se3.Ad(frame.placement).T @ (without - with_it)


def poses(N, seed=0, **how):
    """Gravities (N, 3) in the axes of the flange, and readings (N, 6) without noise."""
    rng, zero = np.random.default_rng(seed), np.zeros(7)
    Q = rng.uniform(-2.5, 2.5, (N, 7))
    R = mbs.forward_kinematics(ARM, Q, bodies=["flange"])[:, 0, :3, :3]
    g = np.swapaxes(R, 1, 2) @ ARM.gravity
    return g, BIAS + np.array([tool_wrench(q, zero, zero, **how) for q in Q])
