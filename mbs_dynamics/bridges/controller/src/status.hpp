// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#ifndef STATUS_HPP_
#define STATUS_HPP_

#include <string>

#include "diagnostic_msgs/msg/diagnostic_array.hpp"
#include "rclcpp/rclcpp.hpp"
#include "rclcpp_lifecycle/lifecycle_node.hpp"
#include "report.hpp"
#include "sensor_msgs/msg/joint_state.hpp"

namespace GUARDED_PACKAGE
{

/// Publishes reports of the control loop, and logs faults and refusals.
class Status
{
public:
  explicit Status(const rclcpp_lifecycle::LifecycleNode::SharedPtr & node);

  /// Publish a report, 50 times a second. `mode` is the requested one.
  void publish(const Report & report, const std::string & mode);

private:
  using DiagnosticArray = diagnostic_msgs::msg::DiagnosticArray;
  using DiagnosticStatus = diagnostic_msgs::msg::DiagnosticStatus;
  using JointState = sensor_msgs::msg::JointState;

  void log(const Report & report, const std::string & fault, const std::string & reasons);

  rclcpp_lifecycle::LifecycleNode::SharedPtr node_;
  rclcpp::Publisher<DiagnosticStatus>::SharedPtr status_;
  rclcpp::Publisher<DiagnosticArray>::SharedPtr diagnostics_;
  rclcpp::Publisher<JointState>::SharedPtr torques_;
  double logged_fault_ = 0.0;
  bool was_active_ = false;
  unsigned ticks_ = 0;
};

}  // namespace GUARDED_PACKAGE

#endif  // STATUS_HPP_
