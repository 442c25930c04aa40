// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#ifndef INTERFACES_HPP_
#define INTERFACES_HPP_

#include <array>
#include <string>
#include <vector>

#include "guarded_controller_parameters.hpp"
#include "guarded_period.h"
#include "hardware_interface/loaned_state_interface.hpp"
#include "hardware_interface/types/hardware_interface_type_values.hpp"

namespace GUARDED_PACKAGE
{

enum Kind { kPosition, kVelocity, kEffort, kKindCount };

inline constexpr const char * kKinds[kKindCount] = {
  hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
  hardware_interface::HW_IF_EFFORT};

/// Names of the joints to command.
std::vector<std::string> commanded_joints();

/// The interfaces of the joints in a description.
class Interfaces
{
public:
  Interfaces() = default;

  /// Throws std::invalid_argument for other joints than those of this package, and for joints that
  /// lack an interface.
  Interfaces(const std::string & description, const guarded_controller::Params & params);

  std::vector<std::string> commands() const;
  const std::vector<std::string> & states() const { return states_; }

  /// Which states are measured, as a sentence.
  const std::string & summary() const { return summary_; }

  /// Time in s between two states, for a control loop with a period in s: that of the slowest
  /// hardware, if its rw_rate is smaller than the rate of the loop.
  double state_period(double period) const;

  /// A sample at a time. Values that are missing are NaN. For the control loop.
  void read(
    const std::vector<hardware_interface::LoanedStateInterface> & interfaces, double now,
    guarded_Sample & sample) const;

private:
  std::vector<std::string> states_;
  std::string summary_;
  unsigned slowest_rate_ = 0;  // Hz; 0: that of the loop
  /// Places of position, velocity and effort of each joint among the states, or -1.
  std::array<std::array<int, kKindCount>, GUARDED_JOINTS> places_{};
  std::array<double, GUARDED_JOINTS> fixed_{};
};

}  // namespace GUARDED_PACKAGE

#endif  // INTERFACES_HPP_
