# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The law of dry friction in a joint, on numbers, arrays and symbols alike."""

from __future__ import annotations

from typing import Any


def friction_bound(
    coulomb: Any, stribeck: Any, stribeck_speed: Any, load: Any, rate: Any, torque: Any
) -> Any:
    """Return the largest torque of dry friction at a rate, in N m or N.

        F = (coulomb + load |torque|) (1 + stribeck / (1 + (rate / stribeck_speed)^2))

    ``torque`` >= 0 is the size of the torque of gravity and applied wrenches about the joint,
    ``load`` the share of it that adds to friction (Hamon, Gautier and Garrec, 2010). ``stribeck``
    is the share by which static friction exceeds Coulomb friction, which it approaches beyond
    ``stribeck_speed`` (Hess and Soom, 1990).
    """
    ratio = rate / stribeck_speed
    return (coulomb + load * torque) * (1.0 + stribeck / (1.0 + ratio * ratio))
