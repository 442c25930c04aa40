// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#ifndef SETTINGS_HPP_
#define SETTINGS_HPP_

#include "guarded_controller_parameters.hpp"
#include "guarded_period.h"

namespace GUARDED_PACKAGE
{

/// Settings with the values of parameters, except gravity and loads. `state_period` is the time in
/// s between two states. Throws std::invalid_argument for an array of another length.
guarded_Settings with_parameters(
  guarded_Settings settings, const guarded_controller::Params & params, double state_period);

}  // namespace GUARDED_PACKAGE

#endif  // SETTINGS_HPP_
