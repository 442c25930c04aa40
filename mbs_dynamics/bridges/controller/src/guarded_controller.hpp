// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#ifndef GUARDED_CONTROLLER_HPP_
#define GUARDED_CONTROLLER_HPP_

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller_interface/chainable_controller_interface.hpp"
#include "diagnostic_msgs/msg/diagnostic_array.hpp"
#include "frames.hpp"
#include "geometry_msgs/msg/inertia_stamped.hpp"
#include "geometry_msgs/msg/pose_stamped.hpp"
#include "geometry_msgs/msg/vector3_stamped.hpp"
#include "guarded_controller_parameters.hpp"
#include "guarded_period.h"
#include "latest.hpp"
#include "rclcpp/rclcpp.hpp"
#include "sensor_msgs/msg/joint_state.hpp"
#include "std_srvs/srv/set_bool.hpp"
#include "words.hpp"

namespace GUARDED_PACKAGE
{

/// What the control loop leaves to the other threads.
struct Report
{
  bool active = false;
  guarded_State state{};
  guarded_Sample sample{};
  guarded_Output output{};
  guarded_Verdict verdict = nothing_found();
  /// Number of commands that could not be written.
  unsigned unwritten = 0;
  /// Whether another controller sets the references, and some that the mode does not follow.
  bool is_chained = false;
  bool ignores_references = false;
};

/// Holds and moves an arm by efforts: floating under gravity compensation, or on springs about a
/// reference of its joints or of a link. Stops on whatever is wrong.
///
/// All decisions are made by the control period, `guarded_period`. This class converts interfaces,
/// parameters and messages. `update` shares nothing with other threads but a few atomic numbers.
///
/// References come from topics, or in chained mode from the controller that claims the reference
/// interfaces: positions and velocities in the mode joint, efforts in the mode floating.
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
  using InertiaStamped = geometry_msgs::msg::InertiaStamped;
  using JointState = sensor_msgs::msg::JointState;
  using PoseStamped = geometry_msgs::msg::PoseStamped;
  using SetBool = std_srvs::srv::SetBool;
  using Vector3Stamped = geometry_msgs::msg::Vector3Stamped;

  // in the control loop
  void read_sample();
  void read_references();
  void write_report(bool active);

  // in other threads, one at a time
  void check_description() const;
  void find_interfaces();
  guarded_Settings with_parameters(guarded_Settings settings) const;
  template <class Message>
  rclcpp::SubscriptionBase::SharedPtr listen(
    const std::string & name, void (GuardedController::*set)(const Message &));
  guarded_Settings with_gravity(guarded_Settings settings, const double * gravity) const;
  void set_gravity(const Vector3Stamped & message);
  void set_payload(const InertiaStamped & message);
  void set_goal(const guarded_Settings & settings);
  void set_mode();
  void set_target_joint(const JointState & message);
  void set_target_pose(const PoseStamped & message);
  void check_follows() const;
  void move(guarded_Request motion);
  void enable(const SetBool::Request & request, SetBool::Response & response);
  void follow_parameters();
  void publish();

  std::shared_ptr<guarded_controller::ParamListener> listener_;
  guarded_controller::Params params_;
  std::vector<std::string> state_names_;
  /// Places of position, velocity and effort of each joint among the state interfaces, or -1.
  std::array<std::array<int, 3>, GUARDED_JOINTS> places_{};
  std::array<double, GUARDED_JOINTS> fixed_{};

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
  double now_ = 0.0;
  double reported_ = 0.0;
  bool enters_ = false;
  /// When the controller was deactivated, in s of the steady clock.
  double left_at_ = 0.0;
  /// Number of the motion from topics that is not to be followed any more.
  double outdated_ = 0.0;
  /// Number of periods in which references came from another controller.
  double chained_periods_ = 0.0;
  bool ignores_references_ = false;
  bool falls_back_ = true;
  enum Start { kFromZero, kFromEffort, kFromCommand } start_ = kFromZero;
  unsigned unwritten_ = 0;
  unsigned unwritten_in_turn_ = 0;

  // between threads
  Latest<guarded_Settings> goals_;
  Latest<guarded_Request> motions_;
  Latest<Report> reports_;
  std::atomic<int> action_{0};

  // of other threads
  guarded_Settings goal_{};
  guarded_Request motion_{};
  Report report_{};
  std::map<std::string, Load> loads_;
  double logged_fault_ = 0.0;
  unsigned ticks_ = 0;

  std::vector<rclcpp::SubscriptionBase::SharedPtr> subscriptions_;
  rclcpp::Service<SetBool>::SharedPtr enable_;
  rclcpp::Publisher<diagnostic_msgs::msg::DiagnosticStatus>::SharedPtr status_;
  rclcpp::Publisher<diagnostic_msgs::msg::DiagnosticArray>::SharedPtr diagnostics_;
  rclcpp::Publisher<JointState>::SharedPtr torques_;
  rclcpp::TimerBase::SharedPtr timer_;
};

}  // namespace GUARDED_PACKAGE

#endif  // GUARDED_CONTROLLER_HPP_
