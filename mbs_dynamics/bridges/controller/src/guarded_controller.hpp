// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#ifndef GUARDED_CONTROLLER_HPP_
#define GUARDED_CONTROLLER_HPP_

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "guarded_controller_parameters.hpp"
#include "guarded_period.h"
#include "interfaces.hpp"
#include "latest.hpp"
#include "rclcpp/rclcpp.hpp"
#include "references.hpp"
#include "report.hpp"
#include "requests.hpp"
#include "status.hpp"
#include "std_srvs/srv/set_bool.hpp"

namespace GUARDED_PACKAGE
{

/// Holds and moves an arm by efforts: floating under gravity compensation, or on springs about a
/// reference of its joints or of a link. Stops on whatever is wrong.
///
/// All decisions are made by the control period, `guarded_period`. This class calls it, and follows
/// the life cycle of a controller. `update` shares nothing with other threads but a few atomic
/// numbers.
class GuardedController : public controller_interface::ChainableControllerInterface
{
public:
  controller_interface::CallbackReturn on_init() override;
  controller_interface::InterfaceConfiguration command_interface_configuration() const override;
  controller_interface::InterfaceConfiguration state_interface_configuration() const override;
  controller_interface::CallbackReturn on_configure(const rclcpp_lifecycle::State &) override;
  controller_interface::CallbackReturn on_activate(const rclcpp_lifecycle::State &) override;
  controller_interface::CallbackReturn on_deactivate(const rclcpp_lifecycle::State &) override;

protected:
  std::vector<hardware_interface::CommandInterface> on_export_reference_interfaces() override;
  bool on_set_chained_mode(bool chained_mode) override;
  controller_interface::return_type update_reference_from_subscribers(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;
  controller_interface::return_type update_and_write_commands(
    const rclcpp::Time & time, const rclcpp::Duration & period) override;

private:
  using SetBool = std_srvs::srv::SetBool;

  // in the control loop
  void write_start();
  void write_report(bool active);

  // in other threads, one at a time
  template <class Message>
  void listen(const std::string & name, void (Requests::*set)(const Message &));
  void enable(const SetBool::Request & request, SetBool::Response & response);
  void follow_parameters();
  void publish();

  // from the configuration
  std::shared_ptr<guarded_controller::ParamListener> listener_;
  guarded_controller::Params params_;
  Interfaces interfaces_;
  bool falls_back_ = true;
  enum class Start { kZero, kEffort, kCommand } start_ = Start::kZero;

  // of the control loop
  guarded_Settings settings_{};
  /// The state, and the one after the next period, which change places.
  guarded_State states_[2] = {};
  guarded_State * state_ = &states_[0];
  guarded_State * next_ = &states_[1];
  guarded_Sample sample_{};
  guarded_Request request_{};
  guarded_Request motion_from_topics_{};
  guarded_Output output_{};
  guarded_Verdict verdict_ = nothing_found();
  References references_;
  /// The sum of all periods, in s.
  double now_ = 0.0;
  double reported_ = 0.0;
  /// Whether the next update is the first one.
  bool enters_ = false;
  /// When the controller was deactivated, in s of the steady clock.
  double left_at_ = 0.0;
  /// Number of the motion from topics that is not to be followed any more.
  double outdated_ = 0.0;
  unsigned unwritten_ = 0;
  unsigned unwritten_in_turn_ = 0;

  // between threads; requests_ too has what the control loop reads
  Latest<Report> reports_;
  std::atomic<int> action_{0};

  // of other threads
  Report report_;
  Requests requests_{report_};
  std::unique_ptr<Status> status_;
  std::vector<rclcpp::SubscriptionBase::SharedPtr> subscriptions_;
  rclcpp::Service<SetBool>::SharedPtr enable_;
  rclcpp::TimerBase::SharedPtr timer_;
};

}  // namespace GUARDED_PACKAGE

#endif  // GUARDED_CONTROLLER_HPP_
