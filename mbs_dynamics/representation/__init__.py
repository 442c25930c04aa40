# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The four representations of twists, and the operators in which they differ.

An algorithm is written once over these operators; each representation supplies them with its own
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

from mbs_dynamics.representation.along_tree import parameters_at as parameters_at
from mbs_dynamics.representation.along_tree import screws_at as screws_at
from mbs_dynamics.representation.along_tree import to_ancestors as to_ancestors
from mbs_dynamics.representation.body_axes import BodyAxes as BodyAxes
from mbs_dynamics.representation.body_axes import dynamic_operators as dynamic_operators
from mbs_dynamics.representation.conversions import convert_jacobian as convert_jacobian
from mbs_dynamics.representation.conversions import convert_twist as convert_twist
from mbs_dynamics.representation.conversions import convert_wrench as convert_wrench
from mbs_dynamics.representation.conversions import from_body_fixed as from_body_fixed
from mbs_dynamics.representation.conversions import to_body_fixed as to_body_fixed
from mbs_dynamics.representation.conversions import twist_from_rate as twist_from_rate
from mbs_dynamics.representation.operators import AUTO as AUTO
from mbs_dynamics.representation.operators import REPRESENTATIONS as REPRESENTATIONS
from mbs_dynamics.representation.operators import BodyFixed as BodyFixed
from mbs_dynamics.representation.operators import Hybrid as Hybrid
from mbs_dynamics.representation.operators import Identity as Identity
from mbs_dynamics.representation.operators import Mixed as Mixed
from mbs_dynamics.representation.operators import Operator as Operator
from mbs_dynamics.representation.operators import Representation as Representation
from mbs_dynamics.representation.operators import Spatial as Spatial
from mbs_dynamics.representation.operators import checked as checked
from mbs_dynamics.representation.operators import operators as operators
