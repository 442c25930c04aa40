// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#ifndef REQUESTS_HPP_
#define REQUESTS_HPP_

#include <map>
#include <string>

#include "frames.hpp"
#include "geometry_msgs/msg/inertia_stamped.hpp"
#include "geometry_msgs/msg/pose_stamped.hpp"
#include "geometry_msgs/msg/vector3_stamped.hpp"
#include "guarded_controller_parameters.hpp"
#include "guarded_period.h"
#include "guarded_robot.h"
#include "latest.hpp"
#include "report.hpp"
#include "sensor_msgs/msg/joint_state.hpp"

namespace GUARDED_PACKAGE
{

enum Law { kFloat, kJoint, kLink };

/// What users request by parameters and messages, as settings and requests of the control loop.
///
/// Each method checks what it is given against the latest report, and throws
/// std::invalid_argument, with no effect, if it must be refused.
class Requests
{
public:
  using InertiaStamped = geometry_msgs::msg::InertiaStamped;
  using JointState = sensor_msgs::msg::JointState;
  using PoseStamped = geometry_msgs::msg::PoseStamped;
  using Vector3Stamped = geometry_msgs::msg::Vector3Stamped;

  explicit Requests(const Report & report) : report_(report) {}

  /// Begin with parameters. `state_period` is the time in s between two states.
  void configure(const guarded_controller::Params & params, double state_period);

  /// Follow parameters that have changed.
  void follow(const guarded_controller::Params & params);

  void set_gravity(const Vector3Stamped & message);
  void set_payload(const InertiaStamped & message);
  void set_target_joint(const JointState & message);
  void set_target_pose(const PoseStamped & message);

  /// Name of the requested mode.
  const char * mode() const;

  /// For the control loop.
  Latest<guarded_Settings> settings;
  Latest<guarded_Request> motions;

private:
  void set_goal(const guarded_Settings & settings);
  guarded_Settings with_gravity(guarded_Settings settings, const Vector & gravity) const;
  void set_law(Law law);
  void check_follows() const;
  void move(guarded_Request motion);

  const Report & report_;
  guarded_controller::Params params_;
  double state_period_ = 0.0;
  guarded_Settings goal_{};
  guarded_Request motion_{};
  std::map<std::string, Load> loads_;
};

}  // namespace GUARDED_PACKAGE

#endif  // REQUESTS_HPP_
