// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#include "settings.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "guarded_robot.h"

namespace GUARDED_PACKAGE
{

namespace
{

/// Without stale_timeout, the fifth successive state that is missing is a fault. Half a period is
/// for the jitter of the loop.
constexpr double kMissingPeriods = 4.5;

/// Element k of an array with one for each of joints, or another value if it is empty.
double element(const char * name, const std::vector<double> & values, int k, double otherwise)
{
  if (values.empty()) {
    return otherwise;
  }
  if (values.size() != GUARDED_COMMANDED) {
    throw std::invalid_argument(
      std::string(name) + " has " + std::to_string(values.size()) + " elements; valid: " +
      std::to_string(GUARDED_COMMANDED) + ", one for each of joints, or none");
  }
  return values[k];
}

}  // namespace

guarded_Settings with_parameters(
  guarded_Settings s, const guarded_controller::Params & p, double state_period)
{
  const double timeout = p.stale_timeout > 0.0 ? p.stale_timeout : kMissingPeriods * state_period;
  const double friction_scale = std::min(p.friction_scale, GUARDED_LARGEST_FRICTION);
  for (int k = 0; k < GUARDED_COMMANDED; ++k) {
    const int j = guarded_places[k];
    const double limit = element("effort_limits", p.effort_limits, k, 0.0);
    s.effort[j] = p.effort_scale * (limit > 0.0 ? limit : guarded_settings.effort[j]);
    s.rate[j] = GUARDED_RATE_SHARE * s.effort[j];
    s.timeout[j] = timeout;
    s.scale[j] = element("gravity_scale", p.gravity_scale, k, 1.0);
    s.damping[j] = element("damping", p.damping, k, 0.0);
    const double friction = element("friction", p.friction, k, -1.0);
    s.friction[j] = friction_scale * (friction < 0.0 ? guarded_friction[k] : friction);
    s.joint_stiffness[j] = element("stiffness", p.stiffness, k, 10.0);
    s.reference_velocity[j] =
      std::min(element("reference_velocity", p.reference_velocity, k, 0.5), s.fastest[j]);
    s.reference_acceleration[j] =
      element("reference_acceleration", p.reference_acceleration, k, 2.0);
  }
  for (int j = 0; j < GUARDED_JOINTS; ++j) {
    if (s.spring_low[j] > -GUARDED_NEVER) {
      s.low[j] = s.spring_low[j] - p.position_margin;
    }
    if (s.spring_high[j] < GUARDED_NEVER) {
      s.high[j] = s.spring_high[j] + p.position_margin;
    }
  }
  s.longest_pause = std::max(guarded_settings.longest_pause, timeout);
  s.differentiates = p.velocity_from_position;
  s.frozen_timeout = p.frozen_timeout;
  s.tolerance = p.tracking_tolerance;
  s.effort_check = p.effort_check == "off" ? 0.0 : p.effort_check == "auto" ? 1.0 : 2.0;
  s.starts_from_effort = p.start_from == "effort";
  // fallback: torques ramp down until the controller manager has switched
  s.on_fault = p.on_fault == "hold" ? 1.0 : p.on_fault == "zero" ? 2.0 : 0.0;
  s.ramp_in = p.ramp_in_time;
  s.ramp_out = s.gravity_time = s.loads_time = p.ramp_time;
  s.filter = p.velocity_filter;
  s.zone = p.limit_zone;
  s.state_period = state_period;
  s.switch_time = p.switch_time;
  s.reference_timeout = p.reference_timeout;
  std::copy_n(p.angular_stiffness.begin(), 3, s.link_stiffness);
  std::copy_n(p.linear_stiffness.begin(), 3, s.link_stiffness + 3);
  s.link_axes = p.stiffness_axes == "target";
  s.posture_frequency = p.posture_frequency;
  s.pose_velocity[0] = p.reference_angular_velocity;
  s.pose_velocity[1] = p.reference_linear_velocity;
  s.pose_acceleration[0] = p.reference_angular_acceleration;
  s.pose_acceleration[1] = p.reference_linear_acceleration;
  return s;
}

}  // namespace GUARDED_PACKAGE
