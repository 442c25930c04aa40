// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0
//
// Gravity, loads and orientations of messages, checked, in the frames of a control period. All
// functions throw std::invalid_argument for values that cannot be right.

#ifndef FRAMES_HPP_
#define FRAMES_HPP_

#include <array>
#include <string>

#include "guarded_robot.h"

namespace GUARDED_PACKAGE
{

using Vector = std::array<double, 3>;

/// A mass in kg, its center of mass in m, and the inertia about it in kg m^2 (xx, xy, xz, yy, yz,
/// zz).
using Load = std::array<double, 10>;

/// Find a link by name. It must move.
const guarded_Link & moving_link(const std::string & name);

/// Find a link by name. It must not move. Without a name, it is the root.
const guarded_Link & fixed_link(const std::string & name);

/// Rotate a vector from the axes of a link to those of the body that moves with it.
Vector rotated(const guarded_Link & link, const Vector & v);

/// Transform a point from the frame of a link to that of the body that moves with it.
Vector placed(const guarded_Link & link, const Vector & point);

double length(const double * v);

/// Throw unless the length of a gravity is about 9.81 m/s^2.
void check_gravity(const double * gravity);

/// The inertial parameters of a load on a link, in the frame of the body that moves with it: the
/// mass, its first moments, and the inertia about the origin.
Load load_parameters(const guarded_Link & link, const Load & load);

/// The axes x, y and z of a frame whose orientation is a unit quaternion.
std::array<Vector, 3> axes_of(double x, double y, double z, double w);

}  // namespace GUARDED_PACKAGE

#endif  // FRAMES_HPP_
