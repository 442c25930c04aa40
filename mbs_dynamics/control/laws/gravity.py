# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity compensation, as a law; its torques are those of ``period/torques.py``."""

from __future__ import annotations

from typing import Any


class Gravity:
    """Gravity compensation, as a law of a guarded arm.

    ``options`` are settings of the arm, as one value, one for each joint, or by name of the joint:
    ``gravity_scale``, ``damping`` in N m s/rad, ``friction`` in N m, ``friction_scale``,
    ``velocity_filter``, ``limit_zone``.
    """

    def __init__(self, **options: Any) -> None:
        self.options = options
