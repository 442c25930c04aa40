# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The four representations of twists, and the moves in which they differ.

An algorithm is written once over these moves; each representation supplies them with its own
equations.

============  ==========================  ========================  =======================
name          twist                       measured at, resolved in  as Pinocchio calls it
============  ==========================  ========================  =======================
body_fixed    V^b = (omega^b, v^b)        body, body                LOCAL
spatial       V^s = (omega^s, v^s)        inertial, inertial        WORLD
hybrid        V^h = (omega^s, rdot)       body, inertial            LOCAL_WORLD_ALIGNED
mixed         V^m = (omega^b, rdot)       body; body and inertial   (none)
============  ==========================  ========================  =======================

Other libraries (jaxsim, adam) call the hybrid representation "mixed".
"""

from mbs_dynamics.representation.at_frame import parameters_at, screws_at
from mbs_dynamics.representation.body_axes import BodyAxes, dynamic_moves
from mbs_dynamics.representation.conversions import (
    convert_jacobian,
    convert_twist,
    convert_wrench,
    from_body_fixed,
    to_body_fixed,
    twist_from_rate,
)
from mbs_dynamics.representation.moves import (
    AUTO,
    REPRESENTATIONS,
    BodyFixed,
    Hybrid,
    Identity,
    Mixed,
    Operator,
    Representation,
    Spatial,
    after,
    checked,
    moves,
)
from mbs_dynamics.representation.pairs import common_frame

__all__ = [
    "AUTO",
    "REPRESENTATIONS",
    "BodyAxes",
    "BodyFixed",
    "Hybrid",
    "Identity",
    "Mixed",
    "Operator",
    "Representation",
    "Spatial",
    "after",
    "checked",
    "common_frame",
    "convert_jacobian",
    "convert_twist",
    "convert_wrench",
    "dynamic_moves",
    "from_body_fixed",
    "moves",
    "parameters_at",
    "screws_at",
    "to_body_fixed",
    "twist_from_rate",
]
