// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#include "frames.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <vector>

#include "words.hpp"

namespace GUARDED_PACKAGE
{

using std::invalid_argument;

namespace
{

const guarded_Link kRoot{"", -1, {1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}};

const guarded_Link & link_named(const std::string & name, bool moves)
{
  std::vector<std::string> names;
  for (const auto & link : guarded_links) {
    if ((link.body >= 0) != moves) {
      continue;
    }
    if (name == link.name) {
      return link;
    }
    names.push_back(link.name);
  }
  throw invalid_argument(
    "'" + name + "' is not a link that " + (moves ? "moves" : "is fixed") + "; valid: " +
    joined(names));
}

void check_load(const Load & load)
{
  for (const double x : load) {
    if (!(std::abs(x) <= 1e6)) {
      throw invalid_argument(number(x, "g") + " is too large; must be at most 1e+06");
    }
  }
  const auto [m, x, y, z, ixx, ixy, ixz, iyy, iyz, izz] = load;
  const double minors[] = {
    ixx, iyy, izz, ixx * iyy - ixy * ixy, ixx * izz - ixz * ixz, iyy * izz - iyz * iyz};
  const double size = ixx + iyy + izz;
  if (m < 0.0 || *std::min_element(minors, minors + 6) < -1e-9 * size * size) {
    throw invalid_argument("the mass is negative, or the inertia is not positive semidefinite");
  }
  if (m == 0.0 && size != 0.0) {
    throw invalid_argument("there is no inertia without mass");
  }
  constexpr double kLongest = 15.0;  // as in Python; by its inertia, a rod is no longer either
  const double distance = m > 0.0 ? x * x + y * y + z * z : 0.0;
  if (distance > kLongest * kLongest || 6.0 * size > m * kLongest * kLongest) {
    throw invalid_argument("the centre of mass or the radius of gyration is too large");
  }
}

}  // namespace

const guarded_Link & moving_link(const std::string & name) { return link_named(name, true); }

const guarded_Link & fixed_link(const std::string & name)
{
  return name.empty() ? kRoot : link_named(name, false);
}

Vector rotated(const guarded_Link & link, const Vector & v)
{
  Vector result;
  for (int i = 0; i < 3; ++i) {
    const double * row = link.R + 3 * i;
    result[i] = row[0] * v[0] + row[1] * v[1] + row[2] * v[2];
  }
  return result;
}

Vector placed(const guarded_Link & link, const Vector & point)
{
  Vector result = rotated(link, point);
  for (int i = 0; i < 3; ++i) {
    result[i] += link.p[i];
  }
  return result;
}

double length(const double * v) { return std::hypot(v[0], v[1], v[2]); }

void check_gravity(const double * gravity)
{
  const double low = (1.0 - GUARDED_GRAVITY_TOLERANCE) * GUARDED_STANDARD_GRAVITY;
  const double high = (1.0 + GUARDED_GRAVITY_TOLERANCE) * GUARDED_STANDARD_GRAVITY;
  if (!(length(gravity) >= low && length(gravity) <= high)) {
    throw invalid_argument(
      "gravity has a length of " + number(length(gravity), "g") + " m/s^2; must be " +
      number(low) + " to " + number(high));
  }
}

Load load_parameters(const guarded_Link & link, const Load & load)
{
  check_load(load);
  const auto [m, x, y, z, ixx, ixy, ixz, iyy, iyz, izz] = load;
  const Vector c = placed(link, {x, y, z});
  const Vector columns[3] = {
    rotated(link, {ixx, ixy, ixz}), rotated(link, {ixy, iyy, iyz}), rotated(link, {ixz, iyz, izz})};
  Vector I[3];  // R inertia R^T + m (c^T c 1 - c c^T), by rows
  for (int i = 0; i < 3; ++i) {
    I[i] = rotated(link, {columns[0][i], columns[1][i], columns[2][i]});
    for (int j = 0; j < 3; ++j) {
      I[i][j] -= m * c[i] * c[j];
    }
    I[i][i] += m * (c[0] * c[0] + c[1] * c[1] + c[2] * c[2]);
  }
  return {m,       m * c[0], m * c[1], m * c[2], I[0][0],
          I[0][1], I[0][2],  I[1][1],  I[1][2],  I[2][2]};
}

std::array<Vector, 3> axes_of(double x, double y, double z, double w)
{
  if (!(std::abs(x * x + y * y + z * z + w * w - 1.0) < 1e-3)) {
    throw invalid_argument("the orientation is not a quaternion of length 1");
  }
  return {
    Vector{1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)},
    Vector{2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)},
    Vector{2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)}};
}

}  // namespace GUARDED_PACKAGE
