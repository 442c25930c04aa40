// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#ifndef REFERENCES_HPP_
#define REFERENCES_HPP_

#include <string>
#include <vector>

#include "guarded_period.h"

namespace GUARDED_PACKAGE
{

/// References that another controller sets in each cycle: positions and velocities in the mode
/// joint, efforts in the mode floating. NaN: not set.
class References
{
public:
  /// Names of the reference interfaces without that of the controller: position, velocity and
  /// effort of each joint to command.
  static std::vector<std::string> names();

  /// Follow values in the order of the names: write them into a request and a sample. For the
  /// control loop.
  void follow(
    const std::vector<double> & values, const guarded_State & state,
    const guarded_Settings & settings, guarded_Request & request, guarded_Sample & sample);

  /// Whether the latest values contain some that the mode does not follow.
  bool ignored() const { return ignored_; }

private:
  /// Number of periods in which positions were set.
  double periods_ = 0.0;
  bool ignored_ = false;
};

}  // namespace GUARDED_PACKAGE

#endif  // REFERENCES_HPP_
