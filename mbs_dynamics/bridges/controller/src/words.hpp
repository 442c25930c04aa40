// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0
//
// Words for the numbers of a control period.

#ifndef WORDS_HPP_
#define WORDS_HPP_

#include <string>
#include <vector>

#include "guarded_period.h"

namespace GUARDED_PACKAGE
{

/// Name of the mode of a state.
const char * mode_name(const guarded_State & state);

/// Finding of check k in a period, in words; empty if the check passes.
std::string finding(int k, const guarded_Verdict & verdict, const guarded_State & state);

/// The fault of a state, in words; empty if there is none.
std::string fault_of(const guarded_State & state);

/// Reasons not to enable torques.
std::vector<std::string> problems(const guarded_Verdict & verdict, const guarded_State & state);

/// A verdict in which no check fails, before the first period.
guarded_Verdict nothing_found();

/// Names or sentences, with a separator between them.
std::string joined(const std::vector<std::string> & parts, const std::string & separator = ", ");

/// A number with the significant digits that a reader needs.
std::string number(double value, const std::string & format = ".4g");

}  // namespace GUARDED_PACKAGE

#endif  // WORDS_HPP_
