# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The algorithms: equations written once, over the operators of all four representations.

Public names stand in ``__all__`` of the module that defines them, and nowhere else.
"""

import typing
from inspect import ismodule as _ismodule

# in the order of ALGORITHMS, in which users meet them
# isort: off
from mbs_dynamics.algorithms._algorithm import *
from mbs_dynamics.algorithms._algorithm import NAMED as _NAMED
from mbs_dynamics.algorithms._together import *
from mbs_dynamics.algorithms.kinematics import *
from mbs_dynamics.algorithms.configurations import *
from mbs_dynamics.algorithms.rates import *
from mbs_dynamics.algorithms.frames import *
from mbs_dynamics.algorithms.points import *
from mbs_dynamics.algorithms.sensitivity import *
from mbs_dynamics.algorithms.partials import *
from mbs_dynamics.algorithms.inverse_kinematics import *
from mbs_dynamics.algorithms.manipulability import *
from mbs_dynamics.algorithms.newton_euler import *
from mbs_dynamics.algorithms.mass_matrix import *
from mbs_dynamics.algorithms.factorization import *
from mbs_dynamics.algorithms.coriolis import *
from mbs_dynamics.algorithms.forward_dynamics import *
from mbs_dynamics.algorithms.joint_wrenches import *
from mbs_dynamics.algorithms.regressor import *
from mbs_dynamics.algorithms.derivatives import *
from mbs_dynamics.algorithms.energy import *
from mbs_dynamics.algorithms.centroidal import *
from mbs_dynamics.algorithms.operational_space import *
# isort: on

ALGORITHMS: tuple[typing.Callable[..., typing.Any], ...] = tuple(_NAMED.values())
"""All algorithms, in the order in which users meet them."""

if not typing.TYPE_CHECKING:  # type checkers take names that are imported by * for public
    __all__ = [k for k, x in globals().items() if not (k.startswith("_") or _ismodule(x))]
