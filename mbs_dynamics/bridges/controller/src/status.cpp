// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#include "status.hpp"

#include "guarded_robot.h"

namespace GUARDED_PACKAGE
{

// no lifecycle publishers: a fault is told when the controller is not active any more
Status::Status(const rclcpp_lifecycle::LifecycleNode::SharedPtr & node)
: node_(node),
  status_(rclcpp::create_publisher<DiagnosticStatus>(node, "~/state", 1)),
  diagnostics_(rclcpp::create_publisher<DiagnosticArray>(node, "/diagnostics", 1)),
  torques_(
    rclcpp::create_publisher<JointState>(node, "~/commanded_torques", rclcpp::SensorDataQoS()))
{
}

void Status::log(const Report & report, const std::string & fault, const std::string & reasons)
{
  if (report.state.fault != logged_fault_ && !fault.empty()) {
    RCLCPP_ERROR(node_->get_logger(), "stopped: %s", fault.c_str());
  }
  if (was_active_ && !report.active && fault.empty() && !reasons.empty()) {
    RCLCPP_ERROR(node_->get_logger(), "refused: %s", reasons.c_str());
  }
  logged_fault_ = report.state.fault;
  was_active_ = report.active;
}

void Status::publish(const Report & report, const std::string & mode)
{
  const guarded_State & state = report.state;
  const std::string fault = fault_of(state);
  const std::string reasons =
    is_released(state) ? joined(problems(report.verdict, state), "; ") : "";
  log(report, fault, reasons);

  DiagnosticStatus status;
  status.name = node_->get_fully_qualified_name();
  status.hardware_id = joined({guarded_joints, guarded_joints + GUARDED_JOINTS});
  status.level = DiagnosticStatus::OK;
  status.message = mode_name(state);
  if (report.unwritten > 0 || report.ignores_references) {
    status.level = DiagnosticStatus::WARN;
  }
  if (!reasons.empty()) {
    status.level = DiagnosticStatus::WARN;
    status.message = "would be refused because " + reasons;
  }
  if (!fault.empty()) {
    status.level = DiagnosticStatus::ERROR;
    status.message = fault;
  }
  const auto add = [&status](const std::string & key, const std::string & value) {
    status.values.emplace_back();
    status.values.back().key = key;
    status.values.back().value = value;
  };
  const auto add_answer = [&add](const std::string & key, bool answer) {
    add(key, answer ? "yes" : "no");
  };
  add_answer("active", report.active);
  add("state", mode_name(state));
  add("mode", mode);
  const std::string ignored = report.ignores_references ? ", not followed in this mode" : "";
  add("references", report.is_chained ? "from another controller" + ignored : "from topics");
  add_answer("reference waits for the arm", state.waits_since < state.now);
  add_answer("springs softened", state.stiffness_share < 1.0);
  add("share of gravity torques", number(state.share));
  add_answer("torques verified", state.verified > 0.5 || state.proven > 0.5);
  add("commands that could not be written", std::to_string(report.unwritten));
  JointState torques;
  torques.header.stamp = node_->now();
  for (const int j : guarded_places) {
    add(std::string("torque of ") + guarded_joints[j], number(report.output.torque[j]));
    torques.name.push_back(guarded_joints[j]);
    torques.effort.push_back(report.output.torque[j]);
  }
  status_->publish(status);
  if (report.active) {
    torques_->publish(torques);
  }
  if (ticks_++ % 50 == 0) {
    DiagnosticArray array;
    array.header.stamp = torques.header.stamp;
    array.status.push_back(status);
    diagnostics_->publish(array);
  }
}

}  // namespace GUARDED_PACKAGE
