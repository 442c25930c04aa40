# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Screw and Lie-group kinematics and dynamics of multibody systems.

The equations of the papers are the source code, and they are also the fast code: they are traced
once per robot and compiled. Twists and wrenches have the angular part first; units are SI. See
:class:`Model` for making a mechanism and the functions below for computing with it.
"""

import importlib
import typing
from inspect import ismodule as _ismodule

from mbs_dynamics.algorithms import *
from mbs_dynamics.compiler import Kernel as Kernel
from mbs_dynamics.errors import *
from mbs_dynamics.model import Model as Model
from mbs_dynamics.model import spatial_inertia as spatial_inertia
from mbs_dynamics.representation import REPRESENTATIONS as REPRESENTATIONS
from mbs_dynamics.representation import convert_jacobian as convert_jacobian
from mbs_dynamics.representation import convert_twist as convert_twist
from mbs_dynamics.representation import convert_wrench as convert_wrench
from mbs_dynamics.representation import twist_from_rate as twist_from_rate

if typing.TYPE_CHECKING:
    from mbs_dynamics import integrate as integrate
    from mbs_dynamics.bridges.mujoco import from_mujoco as from_mujoco
    from mbs_dynamics.bridges.mujoco import to_mujoco as to_mujoco
    from mbs_dynamics.c_export import export_c as export_c
    from mbs_dynamics.model import dh as dh
    from mbs_dynamics.model import joints as joints

__version__ = "0.1.0"

_LATER = {
    "dh": "mbs_dynamics.model.dh",
    "export_c": "mbs_dynamics.c_export",
    "from_mujoco": "mbs_dynamics.bridges.mujoco",
    "integrate": "mbs_dynamics.integrate",
    "joints": "mbs_dynamics.model.joints",
    "to_mujoco": "mbs_dynamics.bridges.mujoco",
}
"""Modules, and functions in modules, that are imported when they are first used."""


_UNLISTED = {"Algorithm", "algorithm", "algorithm_of", "compile", "integrate"}
"""Names that ``from mbs_dynamics import *`` leaves out: for authors of algorithms, or builtin."""

if not typing.TYPE_CHECKING:  # type checkers take names imported by * or as themselves for public
    _public = {k for k, x in globals().items() if not (k.startswith("_") or _ismodule(x))}
    __all__ = sorted((_public | _LATER.keys()) - _UNLISTED)

    def __getattr__(name: str) -> typing.Any:
        """Import names of slow modules on first access."""
        if name not in _LATER:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        module = importlib.import_module(_LATER[name])
        value = globals()[name] = getattr(module, name, module)
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
