# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Screw and Lie-group kinematics and dynamics of multibody systems.

The equations of the papers are the source code, and they are also the fast code: they are traced
once per robot and compiled. Twists and wrenches have the angular part first; units are SI. See
:class:`Model` for making a mechanism and the functions below for computing with it.
"""

import importlib
from typing import TYPE_CHECKING, Any

from mbs_dynamics.algorithms import (
    ALGORITHMS,
    ForwardDynamicsDerivatives,
    GeneralizedMomentum,
    InverseDynamicsDerivatives,
    InverseKinematics,
    Linearization,
    TorqueRates,
    accelerations,
    base_parameters,
    bias_torques,
    center_of_mass,
    centroidal_momentum,
    change_of_body_frame,
    change_of_inertial_frame,
    christoffel_symbols,
    compile_together,
    coriolis_matrix,
    coriolis_torques,
    difference,
    displaced,
    fit_joint_rates,
    forward_dynamics,
    forward_dynamics_derivatives,
    forward_kinematics,
    generalized_momentum,
    gravity_torques,
    inertial_parameters,
    inverse_condition_number,
    inverse_differential_kinematics,
    inverse_dynamics,
    inverse_dynamics_derivatives,
    inverse_dynamics_rates,
    inverse_dynamics_regressor,
    inverse_kinematics,
    inverse_mass_matrix,
    jacobian,
    jacobian_derivative,
    jacobian_rate,
    jacobian_second_rate,
    jacobian_sensitivity,
    jerks,
    joint_accelerations_from_twists,
    joint_rates_from_twists,
    joint_reactions,
    joint_wrenches,
    kinematic_hessian,
    kinetic_energy,
    linearize,
    manipulability,
    manipulability_gradient,
    mass_matrix,
    momenta,
    offset_jacobian,
    offset_twist,
    point_acceleration,
    point_jacobian,
    point_velocity,
    pose_sensitivity,
    position_rates,
    potential_energy,
    relative_jacobian,
    relative_twist,
    singular_values,
    torque_sensitivity,
    twist_derivatives,
    twists,
)
from mbs_dynamics.algorithms import (
    compile as compile,
)
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.errors import (
    ArgumentError,
    BackendError,
    MbsError,
    ModelError,
    ModelWarning,
    SingularError,
    TraceError,
    UnknownAlgorithmError,
    UnknownBackendError,
    UnknownBodyError,
    UnknownJointError,
    UnknownMethodError,
    UnknownRepresentationError,
    UrdfError,
)
from mbs_dynamics.model import Model, spatial_inertia
from mbs_dynamics.representation import (
    REPRESENTATIONS,
    convert_jacobian,
    convert_twist,
    convert_wrench,
    twist_from_rate,
)

if TYPE_CHECKING:
    from mbs_dynamics import integrate as integrate
    from mbs_dynamics.c_export import export_c
    from mbs_dynamics.model import dh, macro_joints

__version__ = "0.1.0"

__all__ = [
    "ALGORITHMS",
    "REPRESENTATIONS",
    "ArgumentError",
    "BackendError",
    "ForwardDynamicsDerivatives",
    "GeneralizedMomentum",
    "InverseDynamicsDerivatives",
    "InverseKinematics",
    "Kernel",
    "Linearization",
    "MbsError",
    "Model",
    "ModelError",
    "ModelWarning",
    "SingularError",
    "TorqueRates",
    "TraceError",
    "UnknownAlgorithmError",
    "UnknownBackendError",
    "UnknownBodyError",
    "UnknownJointError",
    "UnknownMethodError",
    "UnknownRepresentationError",
    "UrdfError",
    "accelerations",
    "base_parameters",
    "bias_torques",
    "center_of_mass",
    "centroidal_momentum",
    "change_of_body_frame",
    "change_of_inertial_frame",
    "christoffel_symbols",
    "compile_together",
    "convert_jacobian",
    "convert_twist",
    "convert_wrench",
    "coriolis_matrix",
    "coriolis_torques",
    "dh",
    "difference",
    "displaced",
    "export_c",
    "fit_joint_rates",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "forward_kinematics",
    "generalized_momentum",
    "gravity_torques",
    "inertial_parameters",
    "inverse_condition_number",
    "inverse_differential_kinematics",
    "inverse_dynamics",
    "inverse_dynamics_derivatives",
    "inverse_dynamics_rates",
    "inverse_dynamics_regressor",
    "inverse_kinematics",
    "inverse_mass_matrix",
    "jacobian",
    "jacobian_derivative",
    "jacobian_rate",
    "jacobian_second_rate",
    "jacobian_sensitivity",
    "jerks",
    "joint_accelerations_from_twists",
    "joint_rates_from_twists",
    "joint_reactions",
    "joint_wrenches",
    "kinematic_hessian",
    "kinetic_energy",
    "linearize",
    "macro_joints",
    "manipulability",
    "manipulability_gradient",
    "mass_matrix",
    "momenta",
    "offset_jacobian",
    "offset_twist",
    "point_acceleration",
    "point_jacobian",
    "point_velocity",
    "pose_sensitivity",
    "position_rates",
    "potential_energy",
    "relative_jacobian",
    "relative_twist",
    "singular_values",
    "spatial_inertia",
    "torque_sensitivity",
    "twist_derivatives",
    "twist_from_rate",
    "twists",
]


_LATER = {
    "dh": "mbs_dynamics.model.dh",
    "export_c": "mbs_dynamics.c_export",
    "integrate": "mbs_dynamics.integrate",
    "macro_joints": "mbs_dynamics.model.macro_joints",
}
"""What not everybody needs and takes longer to import: modules, and functions in modules."""


def __getattr__(name: str) -> Any:
    """Import names of slow modules on first access."""
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = importlib.import_module(_LATER[name])
    found = globals()[name] = getattr(module, name, module)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
