// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#ifndef REPORT_HPP_
#define REPORT_HPP_

#include "guarded_period.h"
#include "words.hpp"

namespace GUARDED_PACKAGE
{

enum Mode { kOff, kRampingIn, kOn, kRampingOut, kStopping, kFault };

/// What the control loop tells the other threads about its latest period.
struct Report
{
  bool active = false;
  guarded_State state = guarded_initial;
  guarded_Sample sample{};
  guarded_Output output{};
  guarded_Verdict verdict = nothing_found();
  /// Number of commands that could not be written.
  unsigned unwritten = 0;
  /// Whether another controller sets the references, and some that the mode does not follow.
  bool is_chained = false;
  bool ignores_references = false;
};

inline bool is(const guarded_State & state, Mode mode) { return state.mode == mode; }

inline bool is_engaged(const guarded_State & state)
{
  return is(state, kOn) || is(state, kRampingIn);
}

inline bool is_released(const guarded_State & state)
{
  return is(state, kOff) || is(state, kFault);
}

}  // namespace GUARDED_PACKAGE

#endif  // REPORT_HPP_
