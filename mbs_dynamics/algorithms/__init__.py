# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The algorithms: equations written once, over the moves of all four representations."""

from mbs_dynamics.algorithms._algorithm import NAMED, Algorithm, algorithm, algorithm_of, compile
from mbs_dynamics.algorithms._together import compile_together
from mbs_dynamics.algorithms.configurations import difference, displaced, position_rates
from mbs_dynamics.algorithms.coriolis import (
    christoffel_symbols,
    coriolis_matrix,
)
from mbs_dynamics.algorithms.derivatives import (
    ForwardDynamicsDerivatives,
    InverseDynamicsDerivatives,
    TorqueRates,
    forward_dynamics_derivatives,
    inverse_dynamics_derivatives,
    inverse_dynamics_rates,
)
from mbs_dynamics.algorithms.energy import (
    GeneralizedMomentum,
    center_of_mass,
    centroidal_momentum,
    generalized_momentum,
    kinetic_energy,
    momenta,
    potential_energy,
)
from mbs_dynamics.algorithms.forward_dynamics import (
    forward_dynamics,
)
from mbs_dynamics.algorithms.frames import (
    change_of_body_frame,
    change_of_inertial_frame,
    relative_jacobian,
    relative_twist,
)
from mbs_dynamics.algorithms.inverse_kinematics import (
    InverseKinematics,
    inverse_differential_kinematics,
    inverse_kinematics,
)
from mbs_dynamics.algorithms.inverse_mass_matrix import inverse_mass_matrix
from mbs_dynamics.algorithms.joint_rates import (
    fit_joint_rates,
    joint_accelerations_from_twists,
    joint_rates_from_twists,
)
from mbs_dynamics.algorithms.joint_wrenches import (
    joint_reactions,
    joint_wrenches,
)
from mbs_dynamics.algorithms.kinematics import (
    forward_kinematics,
    jacobian,
    twists,
)
from mbs_dynamics.algorithms.linearization import (
    Linearization,
    linearize,
)
from mbs_dynamics.algorithms.manipulability import (
    inverse_condition_number,
    manipulability,
    manipulability_gradient,
    singular_values,
)
from mbs_dynamics.algorithms.mass_matrix import mass_matrix
from mbs_dynamics.algorithms.newton_euler import (
    bias_torques,
    coriolis_torques,
    gravity_torques,
    inverse_dynamics,
)
from mbs_dynamics.algorithms.partials import (
    jacobian_derivative,
    kinematic_hessian,
)
from mbs_dynamics.algorithms.points import (
    offset_jacobian,
    offset_twist,
    point_acceleration,
    point_jacobian,
    point_velocity,
)
from mbs_dynamics.algorithms.rates import (
    accelerations,
    jacobian_rate,
    jacobian_second_rate,
    jerks,
    twist_derivatives,
)
from mbs_dynamics.algorithms.regressor import (
    base_parameters,
    inertial_parameters,
    inverse_dynamics_regressor,
)
from mbs_dynamics.algorithms.sensitivity import (
    jacobian_sensitivity,
    pose_sensitivity,
)
from mbs_dynamics.algorithms.torque_sensitivity import (
    torque_sensitivity,
)

ALGORITHMS = (
    forward_kinematics,
    displaced,
    difference,
    position_rates,
    twists,
    jacobian,
    accelerations,
    jerks,
    twist_derivatives,
    jacobian_rate,
    jacobian_second_rate,
    relative_twist,
    relative_jacobian,
    offset_twist,
    offset_jacobian,
    point_acceleration,
    point_velocity,
    point_jacobian,
    pose_sensitivity,
    jacobian_sensitivity,
    jacobian_derivative,
    kinematic_hessian,
    inverse_dynamics,
    gravity_torques,
    bias_torques,
    coriolis_torques,
    mass_matrix,
    inverse_mass_matrix,
    coriolis_matrix,
    christoffel_symbols,
    forward_dynamics,
    joint_wrenches,
    joint_reactions,
    inverse_dynamics_regressor,
    inverse_dynamics_derivatives,
    forward_dynamics_derivatives,
    inverse_dynamics_rates,
    linearize,
    torque_sensitivity,
    kinetic_energy,
    potential_energy,
    center_of_mass,
    momenta,
    generalized_momentum,
    centroidal_momentum,
)
"""All algorithms, in the order in which users meet them."""

NAMED.update({algorithm_of(function).name: algorithm_of(function) for function in ALGORITHMS})

__all__ = [
    "ALGORITHMS",
    "Algorithm",
    "ForwardDynamicsDerivatives",
    "GeneralizedMomentum",
    "InverseDynamicsDerivatives",
    "InverseKinematics",
    "Linearization",
    "TorqueRates",
    "accelerations",
    "algorithm",
    "algorithm_of",
    "base_parameters",
    "bias_torques",
    "center_of_mass",
    "centroidal_momentum",
    "change_of_body_frame",
    "change_of_inertial_frame",
    "christoffel_symbols",
    "compile",
    "compile_together",
    "coriolis_matrix",
    "coriolis_torques",
    "difference",
    "displaced",
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
    "torque_sensitivity",
    "twist_derivatives",
    "twists",
]
