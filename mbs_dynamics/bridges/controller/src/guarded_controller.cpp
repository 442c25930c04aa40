// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#include "guarded_controller.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

#include "description.hpp"
#include "guarded_robot.h"
#include "pluginlib/class_list_macros.hpp"

namespace GUARDED_PACKAGE
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;

namespace
{

enum Action { kNone, kEnable, kDisable };
constexpr double kReportPeriod = 0.01;  // s
constexpr unsigned kUnwritten = 5;      // successive commands that cannot be written
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

double steady_time()
{
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void check_description(const std::string & description)
{
  const auto digest = description_digest(description);
  if (digest != GUARDED_DESCRIPTION) {
    char text[120];
    std::snprintf(
      text, sizeof(text), "the digest of robot_description is %016llx; this package is for %016llx",
      digest, GUARDED_DESCRIPTION);
    throw std::invalid_argument(
      std::string(text) +
      ", another robot, or other masses, lengths or limits: export the controller anew");
  }
}

/// Run periods under each law and from one to the other. Each has its own code, which the control
/// loop would otherwise have to wait for at the first switch, until it is read from the disk.
void load_code_of_laws()
{
  guarded_State state = guarded_initial, next;
  guarded_Output output;
  guarded_Verdict verdict;
  const guarded_Sample sample{};
  guarded_Request request{};
  for (const Law law : {kFloat, kJoint, kLink, kLink}) {
    request.law = law;
    guarded_period(&state, &sample, &request, &guarded_settings, &next, &output, &verdict);
    state = next;
  }
}

}  // namespace

// -- life cycle -----------------------------------------------------------------------------------

CallbackReturn GuardedController::on_init()
{
  try {
    listener_ = std::make_shared<guarded_controller::ParamListener>(get_node());
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "%s", error.what());
    return CallbackReturn::ERROR;
  }
  return CallbackReturn::SUCCESS;
}

CallbackReturn GuardedController::on_configure(const rclcpp_lifecycle::State &)
{
  const auto node = get_node();
  timer_.reset();
  report_ = Report{};
  try {
    check_description(get_robot_description());
    params_ = listener_->get_params();
    interfaces_ = Interfaces(get_robot_description(), params_);
    requests_.configure(params_, interfaces_.state_period(1.0 / get_update_rate()));
  } catch (const std::exception & error) {
    RCLCPP_ERROR(node->get_logger(), "%s", error.what());
    return CallbackReturn::FAILURE;
  }
  RCLCPP_INFO(node->get_logger(), "%s", interfaces_.summary().c_str());
  falls_back_ = params_.on_fault == "fallback";
  start_ = params_.start_from == "effort"    ? Start::kEffort
           : params_.start_from == "command" ? Start::kCommand
                                             : Start::kZero;
  load_code_of_laws();
  now_ = reported_ = 0.0;

  status_ = std::make_unique<Status>(node);
  subscriptions_.clear();
  listen("gravity", &Requests::set_gravity);
  listen("payload", &Requests::set_payload);
  listen("target_joint", &Requests::set_target_joint);
  listen("target_pose", &Requests::set_target_pose);
  enable_ = node->create_service<SetBool>(
    "~/enable", [this](
                  const std::shared_ptr<SetBool::Request> request,
                  std::shared_ptr<SetBool::Response> response) { enable(*request, *response); });
  timer_ = node->create_wall_timer(std::chrono::milliseconds(20), [this] { publish(); });
  return CallbackReturn::SUCCESS;
}

InterfaceConfiguration GuardedController::command_interface_configuration() const
{
  return {interface_configuration_type::INDIVIDUAL, interfaces_.commands()};
}

InterfaceConfiguration GuardedController::state_interface_configuration() const
{
  return {interface_configuration_type::INDIVIDUAL, interfaces_.states()};
}

std::vector<hardware_interface::CommandInterface>
GuardedController::on_export_reference_interfaces()
{
  const auto names = References::names();
  reference_interfaces_.assign(names.size(), kNaN);
  std::vector<hardware_interface::CommandInterface> interfaces;
  for (const auto & name : names) {
    interfaces.emplace_back(
      get_node()->get_name(), name, &reference_interfaces_[interfaces.size()]);
  }
  return interfaces;
}

bool GuardedController::on_set_chained_mode(bool)
{
  std::fill(reference_interfaces_.begin(), reference_interfaces_.end(), kNaN);
  return true;
}

CallbackReturn GuardedController::on_activate(const rclcpp_lifecycle::State &)
{
  requests_.settings.read(settings_);
  requests_.motions.read(motion_from_topics_);
  outdated_ = motion_from_topics_.motion;
  // The controller manager restarts an active controller when another one begins or ends to set its
  // references. Torques go on then.
  if (is_engaged(*state_) && steady_time() - left_at_ < 1.0 / get_update_rate()) {
    return CallbackReturn::SUCCESS;
  }
  now_ += 1.0;  // nothing of before is recent
  *state_ = guarded_initial;
  write_start();
  action_ = kNone;
  // The first update refuses what must be refused: its ERROR, unlike a failure here, lets the
  // fallback controllers take over.
  enters_ = true;
  return CallbackReturn::SUCCESS;
}

/// Write the command of the cycle in which the hardware changes its mode, before any update.
void GuardedController::write_start()
{
  interfaces_.read(state_interfaces_, now_, sample_);
  for (int k = 0; k < GUARDED_COMMANDED; ++k) {
    const int j = guarded_places[k];
    double start = 0.0;
    if (start_ == Start::kEffort) {
      start = sample_.effort[j];
    } else if (start_ == Start::kCommand) {
      start = command_interfaces_[k].get_optional().value_or(0.0);
    }
    start = std::isfinite(start) ? start : 0.0;
    state_->command[j] = std::clamp(start, -settings_.effort[j], settings_.effort[j]);
    unwritten_ += !command_interfaces_[k].set_value(state_->command[j]);
  }
  unwritten_in_turn_ = 0;
}

CallbackReturn GuardedController::on_deactivate(const rclcpp_lifecycle::State &)
{
  // The last torques stay in the command interfaces: the next controller, or the hardware, takes
  // over. Zeros would drop the arm in the cycle before it does.
  left_at_ = steady_time();
  write_report(false);
  return CallbackReturn::SUCCESS;
}

// -- the control loop -----------------------------------------------------------------------------

return_type GuardedController::update_reference_from_subscribers(
  const rclcpp::Time &, const rclcpp::Duration &)
{
  return return_type::OK;  // update_and_write_commands reads what the subscribers leave
}

return_type GuardedController::update_and_write_commands(
  const rclcpp::Time &, const rclcpp::Duration & period)
{
  requests_.settings.read(settings_);
  requests_.motions.read(motion_from_topics_);
  request_ = motion_from_topics_;
  if (request_.motion == outdated_) {
    request_.follows = request_.prefers = 0.0;
  }
  now_ += std::max(period.seconds(), 0.0);
  interfaces_.read(state_interfaces_, now_, sample_);
  if (is_in_chained_mode()) {
    references_.follow(reference_interfaces_, *state_, settings_, request_, sample_);
  }
  const double mode = state_->mode;
  const int asked = action_.exchange(kNone);
  request_.action = enters_ ? kEnable : asked;
  guarded_period(state_, &sample_, &request_, &settings_, next_, &output_, &verdict_);
  std::swap(state_, next_);
  const bool refused = enters_ && is(*state_, kOff);
  enters_ = false;

  bool written = true;
  for (int k = 0; k < GUARDED_COMMANDED && !refused; ++k) {
    written &= command_interfaces_[k].set_value(output_.torque[guarded_places[k]]);
  }
  unwritten_ += !written;
  unwritten_in_turn_ = written ? 0 : unwritten_in_turn_ + 1;

  const bool stops = is(*state_, kStopping) && falls_back_;
  const bool ends = refused || stops || is(*state_, kFault) || unwritten_in_turn_ >= kUnwritten;
  if (ends || state_->mode != mode || now_ - reported_ >= kReportPeriod) {
    write_report(true);
  }
  return ends ? return_type::ERROR : return_type::OK;
}

void GuardedController::write_report(bool active)
{
  Report & report = reports_.next();  // in place, so that nothing is copied twice
  report.active = active;
  report.state = *state_;
  report.sample = sample_;
  report.output = output_;
  report.verdict = verdict_;
  report.unwritten = unwritten_;
  report.is_chained = is_in_chained_mode();
  report.ignores_references = report.is_chained && references_.ignored();
  reports_.send();
  reported_ = now_;
}

// -- parameters, topics and the service -----------------------------------------------------------

/// Hand over each message of a topic, and log why it is refused.
template <class Message>
void GuardedController::listen(const std::string & name, void (Requests::*set)(const Message &))
{
  subscriptions_.push_back(get_node()->create_subscription<Message>(
    "~/" + name, 1, [this, name, set](const Message & message) {
      try {
        (requests_.*set)(message);
      } catch (const std::exception & error) {
        RCLCPP_ERROR(get_node()->get_logger(), "%s refused: %s", name.c_str(), error.what());
      }
    }));
}

void GuardedController::enable(const SetBool::Request & request, SetBool::Response & response)
{
  reports_.read(report_);
  std::vector<std::string> reasons;
  if (!report_.active) {
    reasons.push_back("the controller is not active");
  } else if (request.data && is_released(report_.state)) {
    reasons = problems(report_.verdict, report_.state);
  }
  response.success = reasons.empty();
  response.message = joined(reasons, "; ");
  if (response.success) {
    action_ = request.data ? kEnable : kDisable;
  }
}

void GuardedController::follow_parameters()
{
  if (!listener_->is_old(params_)) {
    return;
  }
  params_ = listener_->get_params();
  try {
    requests_.follow(params_);
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "parameters have no effect: %s", error.what());
  }
}

void GuardedController::publish()
{
  reports_.read(report_);
  follow_parameters();
  status_->publish(report_, requests_.mode());
}

}  // namespace GUARDED_PACKAGE

PLUGINLIB_EXPORT_CLASS(
  GUARDED_PACKAGE::GuardedController, controller_interface::ChainableControllerInterface)
