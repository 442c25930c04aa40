// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#include "words.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "guarded_robot.h"

namespace GUARDED_PACKAGE
{
namespace
{

/// Fill the fields {joint}, {value} and {limit} of a sentence, which have formats as in Python.
std::string filled(
  const std::string & text, const std::string & joint, double value, double limit)
{
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text[at] == '{' ? text.find('}', at) : std::string::npos;
    if (end == std::string::npos) {
      result += text[at++];
      continue;
    }
    const std::string field = text.substr(at + 1, end - at - 1);
    const std::size_t colon = std::min(field.find(':'), field.size());
    const std::string name = field.substr(0, colon);
    const std::string format = colon < field.size() ? field.substr(colon + 1) : "g";
    result += name == "joint" ? joint : number(name == "value" ? value : limit, format);
    at = end + 1;
  }
  return result;
}

/// What check k has found, in words. `joint` is negative for the arm as a whole.
std::string sentence(int k, double joint, double value, double limit, const guarded_State & state)
{
  const std::string kind = guarded_checks[k].kind;
  std::string name = joint >= 0.0 ? guarded_joints[static_cast<int>(joint)] : "the arm";
  if (kind == "support" || kind == "opposed") {
    if (state.opposed_joint >= 0.0) {
      name = guarded_joints[static_cast<int>(state.opposed_joint)];
    }
    return filled(guarded_opposed[static_cast<int>(state.opposed) - 1], name, value, limit);
  }
  if (kind == "refused") {
    return name + ": " + filled(guarded_refused[static_cast<int>(value) - 1], name, limit, limit);
  }
  if (kind == "stale" && std::isinf(value)) {
    return filled(guarded_silent[0], name, value, limit);
  }
  return filled(guarded_checks[k].sentence, name, value, limit);
}

}  // namespace

const char * mode_name(const guarded_State & state)
{
  static const char * const names[] = {"off",         "ramping in", "on",
                                       "ramping out", "stopping",   "fault"};
  return names[static_cast<int>(state.mode)];
}

std::string number(double value, const std::string & format)
{
  char text[64];
  std::snprintf(text, sizeof(text), ("%" + format).c_str(), value);
  return text;
}

std::string joined(const std::vector<std::string> & parts, const std::string & separator)
{
  std::string result;
  for (const auto & part : parts) {
    result += (result.empty() ? "" : separator) + part;
  }
  return result;
}

std::string finding(int k, const guarded_Verdict & verdict, const guarded_State & state)
{
  const bool fails = !std::isnan(verdict.joint[k]);
  return fails ? sentence(k, verdict.joint[k], verdict.value[k], verdict.limit[k], state) : "";
}

std::string fault_of(const guarded_State & state)
{
  if (!(state.fault > 0.0)) {
    return "";
  }
  const int k = static_cast<int>(state.fault) - 1;
  return sentence(k, state.fault_joint, state.fault_value, state.fault_limit, state);
}

std::vector<std::string> problems(const guarded_Verdict & verdict, const guarded_State & state)
{
  std::vector<std::string> found;
  for (int k = 0; k < GUARDED_CHECKS; ++k) {
    const std::string why = finding(k, verdict, state);
    if (!why.empty() && guarded_checks[k].forbids) {
      found.push_back(why);
    }
  }
  return found;
}

guarded_Verdict nothing_found()
{
  guarded_Verdict verdict;
  for (int k = 0; k < GUARDED_CHECKS; ++k) {
    verdict.joint[k] = verdict.value[k] = verdict.limit[k] = NAN;
  }
  return verdict;
}

}  // namespace GUARDED_PACKAGE
