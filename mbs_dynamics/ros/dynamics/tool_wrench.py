# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The wrench at a link that explains external joint torques. Knows no ROS."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mbs_dynamics.checks import FloatArray

TINY = float(np.finfo(float).tiny)


class ToolWrench(NamedTuple):
    """An estimate, and how much of it the joints can feel."""

    W: FloatArray
    """(6,) moment first, in N m and N."""
    felt: int
    """How many of six directions of wrenches the joints feel well; the others are damped or 0."""
    weakest: float
    """The smallest of six singular values of the Jacobian, lengths in m; 0 with fewer joints."""


def tool_wrench(J: FloatArray, torques: FloatArray, damping: float) -> ToolWrench:
    """Return the least-squares solution W of J^T W = ``torques``.

    J (6, n) is the Jacobian of the link on which the wrench acts, torques (n,) in N m and N; joints
    with NaN, whose torque is not known, are left out. A direction of wrenches whose singular value
    s is below ``damping`` is weighted s / damping^2 in place of 1 / s. So the estimate is
    continuous and stays finite where the arm is singular; it then lacks what no joint feels.
    """
    known = np.isfinite(torques)
    if not known.all():
        J, torques = J[:, known], torques[known]
    # J^T = V S U^T
    U, s, Vt = np.linalg.svd(J, full_matrices=False)
    weights = s / np.maximum(s, max(damping, TINY)) ** 2
    W = U @ (weights * (Vt @ torques))
    weakest = float(s[-1]) if s.size == 6 else 0.0
    return ToolWrench(W, int((s >= max(damping, 1e-12)).sum()), weakest)
