// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#include "interfaces.hpp"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "guarded_robot.h"
#include "hardware_interface/component_parser.hpp"
#include "words.hpp"

namespace GUARDED_PACKAGE
{

using std::invalid_argument;

namespace
{

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

using Names = std::set<std::string>;

std::string listed(const Names & names)
{
  return names.empty() ? "none" : joined({names.begin(), names.end()});
}

}  // namespace

std::vector<std::string> commanded_joints()
{
  std::vector<std::string> names;
  for (const int j : guarded_places) {
    names.push_back(guarded_joints[j]);
  }
  return names;
}

Interfaces::Interfaces(const std::string & description, const guarded_controller::Params & params)
{
  if (!params.joints.empty() && params.joints != commanded_joints()) {
    throw invalid_argument(
      "joints are " + joined(params.joints) + "; valid: those of this package, " +
      joined(commanded_joints()) + ", in this order");
  }
  if (params.fixed_joints.size() != params.fixed_positions.size()) {
    throw invalid_argument("must be one position in fixed_positions for each of fixed_joints");
  }
  std::map<std::string, Names> states, commands;
  for (const auto & component :
       hardware_interface::parse_control_resources_from_urdf(description)) {
    for (const auto & joint : component.joints) {
      for (const auto & one : joint.state_interfaces) {
        states[joint.name].insert(one.name);
      }
      for (const auto & one : joint.command_interfaces) {
        commands[joint.name].insert(one.name);
      }
    }
    const unsigned rate = component.rw_rate;
    if (rate > 0 && (slowest_rate_ == 0 || rate < slowest_rate_)) {
      slowest_rate_ = rate;
    }
  }
  std::array<std::vector<std::string>, kKindCount> missing;
  for (int j = 0; j < GUARDED_JOINTS; ++j) {
    const std::string name = guarded_joints[j];
    const bool is_commanded = guarded_settings.commanded[j] > 0.0;
    if (is_commanded && commands[name].count(kKinds[kEffort]) == 0) {
      throw invalid_argument(
        "joint '" + name + "' has no command interface 'effort'; it has: " +
        listed(commands[name]));
    }
    const auto & fixed = params.fixed_joints;
    const auto at = std::find(fixed.begin(), fixed.end(), name);
    const bool is_fixed = at != fixed.end() && !is_commanded;
    fixed_[j] = is_fixed ? params.fixed_positions[at - fixed.begin()] : kNaN;
    for (int kind = 0; kind < kKindCount; ++kind) {
      places_[j][kind] = -1;
      if (!is_fixed && states[name].count(kKinds[kind]) > 0) {
        places_[j][kind] = static_cast<int>(states_.size());
        states_.push_back(name + "/" + kKinds[kind]);
      } else if (!is_fixed) {
        missing[kind].push_back(name);
      }
    }
  }
  if (!missing[kPosition].empty()) {
    throw invalid_argument(
      "there is no state interface 'position' of " + joined(missing[kPosition]) +
      "; joints that are not commanded may be in fixed_joints");
  }
  if (!missing[kVelocity].empty() && !params.velocity_from_position) {
    throw invalid_argument(
      "there is no state interface 'velocity' of " + joined(missing[kVelocity]) +
      "; set velocity_from_position to take differences of positions");
  }
  summary_ =
    std::string("velocities are ") +
    (missing[kVelocity].empty() ? "measured" : "differences of positions") + ", efforts are " +
    (missing[kEffort].empty() ? "measured" : "not measured of " + joined(missing[kEffort]));
}

std::vector<std::string> Interfaces::commands() const
{
  std::vector<std::string> names;
  for (const auto & joint : commanded_joints()) {
    names.push_back(joint + "/" + kKinds[kEffort]);
  }
  return names;
}

double Interfaces::state_period(double period) const
{
  return slowest_rate_ > 0 ? std::max(period, 1.0 / slowest_rate_) : period;
}

void Interfaces::read(
  const std::vector<hardware_interface::LoanedStateInterface> & interfaces, double now,
  guarded_Sample & sample) const
{
  sample = guarded_Sample{};
  sample.now = now;
  sample.floats = 1.0;
  for (int j = 0; j < GUARDED_JOINTS; ++j) {
    const auto value = [&](Kind kind) {
      const int at = places_[j][kind];
      return at < 0 ? kNaN : interfaces[at].get_optional().value_or(kNaN);
    };
    const bool is_fixed = places_[j][kPosition] < 0;
    sample.stamp[j] = sample.received[j] = now;
    sample.reported[j] = 1.0;
    sample.q[j] = is_fixed ? fixed_[j] : value(kPosition);
    sample.qd[j] = is_fixed ? 0.0 : value(kVelocity);
    sample.effort[j] = value(kEffort);
  }
}

}  // namespace GUARDED_PACKAGE
