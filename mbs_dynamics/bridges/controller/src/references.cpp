// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#include "references.hpp"

#include <algorithm>
#include <cmath>

#include "guarded_robot.h"
#include "interfaces.hpp"
#include "requests.hpp"

namespace GUARDED_PACKAGE
{

std::vector<std::string> References::names()
{
  std::vector<std::string> names;
  for (const auto & joint : commanded_joints()) {
    for (const auto & kind : kKinds) {
      names.push_back(joint + "/" + kind);
    }
  }
  return names;
}

void References::follow(
  const std::vector<double> & values, const guarded_State & state,
  const guarded_Settings & settings, guarded_Request & request, guarded_Sample & sample)
{
  const auto value = [&values](int k, Kind kind) { return values[kKindCount * k + kind]; };
  // What is infinite goes on to the checks of the period.
  bool moves = false, pushes = false, drifts = false;
  for (int k = 0; k < GUARDED_COMMANDED; ++k) {
    const bool has_position = !std::isnan(value(k, kPosition));
    moves |= has_position;
    pushes |= !std::isnan(value(k, kEffort));
    drifts |= !has_position && !std::isnan(value(k, kVelocity));
  }
  ignored_ = (moves && request.law != kJoint) || (pushes && request.law != kFloat) || drifts;
  request.follows = request.prefers = 0.0;
  if (moves && request.law == kJoint) {
    request.motion = -++periods_;  // a motion for each period; those of topics count upwards
    request.follows = 1.0;
    std::copy_n(state.reference, GUARDED_JOINTS, request.target);
    std::fill_n(request.target_qd, GUARDED_JOINTS, 0.0);
    for (int k = 0; k < GUARDED_COMMANDED; ++k) {
      const int j = guarded_places[k];
      const double q = value(k, kPosition), qd = value(k, kVelocity);
      if (!std::isnan(q)) {
        const double most = settings.fastest[j];
        request.target[j] = q;
        request.target_qd[j] = std::isnan(qd) ? 0.0 : std::clamp(qd, -most, most);
      }
    }
  }
  if (pushes && request.law == kFloat) {
    sample.floats = 0.0;
    for (int k = 0; k < GUARDED_COMMANDED; ++k) {
      const double effort = value(k, kEffort);
      sample.law[guarded_places[k]] = std::isnan(effort) ? 0.0 : effort;
    }
  }
}

}  // namespace GUARDED_PACKAGE
