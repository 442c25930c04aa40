// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#include "guarded_controller.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <stdexcept>
#include <utility>

#include "description.hpp"
#include "frames.hpp"
#include "guarded_robot.h"
#include "hardware_interface/component_parser.hpp"
#include "hardware_interface/types/hardware_interface_type_values.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "words.hpp"

namespace GUARDED_PACKAGE
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;
using diagnostic_msgs::msg::DiagnosticStatus;
using std::invalid_argument;

namespace
{

enum Mode { kOff, kRampingIn, kOn, kRampingOut, kStopping, kFault };
enum Action { kNone, kEnable, kDisable };
enum Law { kFloat, kJoint, kLink };
enum Kind { kPosition, kVelocity, kEffort, kKindCount };
constexpr double kReportPeriod = 0.01;  // s
constexpr unsigned kUnwritten = 5;      // successive commands that cannot be written
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
const char * const kStarts[] = {"zero", "effort", "command"};
const char * const kKinds[] = {
  hardware_interface::HW_IF_POSITION, hardware_interface::HW_IF_VELOCITY,
  hardware_interface::HW_IF_EFFORT};

bool is(const guarded_State & state, Mode mode) { return state.mode == mode; }

bool is_engaged(const guarded_State & state) { return is(state, kOn) || is(state, kRampingIn); }

double steady_time()
{
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool is_released(const guarded_State & state) { return is(state, kOff) || is(state, kFault); }

/// Run periods under each law and from one to the other. Each has its own code, which the control
/// loop would otherwise have to wait for at the first switch, until it is read from the disk.
void load_code_of_laws()
{
  guarded_State state = guarded_initial, next;
  guarded_Output output;
  guarded_Verdict verdict;
  const guarded_Sample sample{};
  guarded_Request request{};
  for (const double law : {kFloat, kJoint, kLink, kLink}) {
    request.law = law;
    guarded_period(&state, &sample, &request, &guarded_settings, &next, &output, &verdict);
    state = next;
  }
}

/// Place of a name among several, or their number.
template <class Names>
double place(const std::string & name, const Names & names)
{
  const auto begin = std::begin(names);
  return static_cast<double>(std::find(begin, std::end(names), name) - begin);
}

/// Element k of an array with one for each of joints, or another value if it is empty.
double element(const char * name, const std::vector<double> & values, int k, double otherwise)
{
  if (values.empty()) {
    return otherwise;
  }
  if (values.size() != GUARDED_COMMANDED) {
    throw invalid_argument(
      std::string(name) + " has " + std::to_string(values.size()) + " elements; valid: " +
      std::to_string(GUARDED_COMMANDED) + ", one for each of joints, or none");
  }
  return values[k];
}

/// Names of the joints to command.
std::vector<std::string> commanded_joints()
{
  std::vector<std::string> names;
  for (const int j : guarded_places) {
    names.push_back(guarded_joints[j]);
  }
  return names;
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
  try {
    check_description();
    params_ = listener_->get_params();
    find_interfaces();
    falls_back_ = params_.on_fault == "fallback";
    start_ = static_cast<Start>(place(params_.start_from, kStarts));
    report_ = Report{};
    report_.state = guarded_initial;
    goal_ = with_gravity(with_parameters(guarded_settings), params_.gravity.data());
    motion_ = guarded_Request{};
    motion_.sends = motion_.pace = 1.0;
    motion_.target_pose[0][0] = motion_.target_pose[1][1] = motion_.target_pose[2][2] = 1.0;
    set_mode();
  } catch (const std::exception & error) {
    RCLCPP_ERROR(node->get_logger(), "%s", error.what());
    return CallbackReturn::FAILURE;
  }
  load_code_of_laws();
  loads_.clear();
  goals_.write(goal_);
  now_ = 0.0;

  // no lifecycle publishers: a fault is told when the controller is not active any more
  status_ = rclcpp::create_publisher<DiagnosticStatus>(node, "~/state", 1);
  torques_ = rclcpp::create_publisher<JointState>(
    node, "~/commanded_torques", rclcpp::SensorDataQoS());
  diagnostics_ =
    rclcpp::create_publisher<diagnostic_msgs::msg::DiagnosticArray>(node, "/diagnostics", 1);
  subscriptions_ = {
    listen("gravity", &GuardedController::set_gravity),
    listen("payload", &GuardedController::set_payload),
    listen("target_joint", &GuardedController::set_target_joint),
    listen("target_pose", &GuardedController::set_target_pose)};
  enable_ = node->create_service<SetBool>(
    "~/enable", [this](
                  const std::shared_ptr<SetBool::Request> request,
                  std::shared_ptr<SetBool::Response> response) { enable(*request, *response); });
  timer_ = node->create_wall_timer(std::chrono::milliseconds(20), [this] { publish(); });
  return CallbackReturn::SUCCESS;
}

void GuardedController::check_description() const
{
  const auto digest = description_digest(get_robot_description());
  if (digest != GUARDED_DESCRIPTION) {
    char text[120];
    std::snprintf(
      text, sizeof(text), "the digest of robot_description is %016llx; this package is for %016llx",
      digest, GUARDED_DESCRIPTION);
    throw invalid_argument(
      std::string(text) +
      ", another robot, or other masses, lengths or limits: export the controller anew");
  }
}

void GuardedController::find_interfaces()
{
  const auto commanded = commanded_joints();
  if (!params_.joints.empty() && params_.joints != commanded) {
    throw invalid_argument(
      "joints are " + joined(params_.joints) + "; valid: those of this package, " +
      joined(commanded) + ", in this order");
  }
  if (params_.fixed_joints.size() != params_.fixed_positions.size()) {
    throw invalid_argument("must be one position in fixed_positions for each of fixed_joints");
  }
  std::map<std::string, std::set<std::string>> states, commands;
  for (const auto & component :
       hardware_interface::parse_control_resources_from_urdf(get_robot_description())) {
    for (const auto & joint : component.joints) {
      for (const auto & one : joint.state_interfaces) {
        states[joint.name].insert(one.name);
      }
      for (const auto & one : joint.command_interfaces) {
        commands[joint.name].insert(one.name);
      }
    }
  }
  const auto listed = [](const std::set<std::string> & names) {
    return names.empty() ? "none" : joined({names.begin(), names.end()});
  };
  state_names_.clear();
  std::array<std::vector<std::string>, 3> missing;
  for (int j = 0; j < GUARDED_JOINTS; ++j) {
    const std::string name = guarded_joints[j];
    const bool is_commanded = guarded_settings.commanded[j] > 0.0;
    if (is_commanded && commands[name].count("effort") == 0) {
      throw invalid_argument(
        "joint '" + name + "' has no command interface 'effort'; it has: " +
        listed(commands[name]));
    }
    const auto at = static_cast<std::size_t>(place(name, params_.fixed_joints));
    const bool is_fixed = at < params_.fixed_joints.size() && !is_commanded;
    fixed_[j] = is_fixed ? params_.fixed_positions[at] : kNaN;
    for (int kind = 0; kind < 3; ++kind) {
      places_[j][kind] = -1;
      if (!is_fixed && states[name].count(kKinds[kind]) > 0) {
        places_[j][kind] = static_cast<int>(state_names_.size());
        state_names_.push_back(name + "/" + kKinds[kind]);
      } else if (!is_fixed) {
        missing[kind].push_back(name);
      }
    }
  }
  if (!missing[0].empty()) {
    throw invalid_argument(
      "there is no state interface 'position' of " + joined(missing[0]) +
      "; joints that are not commanded may be in fixed_joints");
  }
  if (!missing[1].empty() && !params_.velocity_from_position) {
    throw invalid_argument(
      "there is no state interface 'velocity' of " + joined(missing[1]) +
      "; set velocity_from_position to take differences of positions");
  }
  RCLCPP_INFO(
    get_node()->get_logger(), "velocities are %s, efforts are %s",
    missing[1].empty() ? "measured" : "differences of positions",
    missing[2].empty() ? "measured" : ("not measured of " + joined(missing[2])).c_str());
}

InterfaceConfiguration GuardedController::command_interface_configuration() const
{
  InterfaceConfiguration configuration{interface_configuration_type::INDIVIDUAL, {}};
  for (const auto & joint : commanded_joints()) {
    configuration.names.push_back(joint + "/effort");
  }
  return configuration;
}

InterfaceConfiguration GuardedController::state_interface_configuration() const
{
  return {interface_configuration_type::INDIVIDUAL, state_names_};
}

std::vector<hardware_interface::CommandInterface>
GuardedController::on_export_reference_interfaces()
{
  reference_interfaces_.assign(kKindCount * GUARDED_COMMANDED, kNaN);
  std::vector<hardware_interface::CommandInterface> interfaces;
  for (const auto & joint : commanded_joints()) {
    for (const auto & kind : kKinds) {
      interfaces.emplace_back(
        get_node()->get_name(), joint + "/" + kind, &reference_interfaces_[interfaces.size()]);
    }
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
  goals_.read(settings_);
  motions_.read(motion_from_topics_);
  outdated_ = motion_from_topics_.motion;
  // The controller manager restarts an active controller when another one begins or ends to set its
  // references. Torques go on then.
  const double cycle = get_update_rate() > 0 ? 1.0 / get_update_rate() : kReportPeriod;
  if (is_engaged(*state_) && steady_time() - left_at_ < cycle) {
    return CallbackReturn::SUCCESS;
  }
  now_ += 1.0;  // nothing of before is recent
  *state_ = guarded_initial;
  // This is the command of the cycle in which the hardware changes its mode, before any update.
  read_sample();
  for (int k = 0; k < GUARDED_COMMANDED; ++k) {
    const int j = guarded_places[k];
    double start = 0.0;
    if (start_ == kFromEffort) {
      start = sample_.effort[j];
    } else if (start_ == kFromCommand) {
      start = command_interfaces_[k].get_optional().value_or(0.0);
    }
    start = std::isfinite(start) ? start : 0.0;
    state_->command[j] = std::clamp(start, -settings_.effort[j], settings_.effort[j]);
    unwritten_ += !command_interfaces_[k].set_value(state_->command[j]);
  }
  unwritten_in_turn_ = 0;
  action_ = kNone;
  // The first update refuses what must be refused: its ERROR, unlike a failure here, lets the
  // fallback controllers take over.
  enters_ = true;
  return CallbackReturn::SUCCESS;
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
  goals_.read(settings_);
  motions_.read(motion_from_topics_);
  request_ = motion_from_topics_;
  if (request_.motion == outdated_) {
    request_.follows = request_.prefers = 0.0;
  }
  now_ += std::max(period.seconds(), 0.0);
  read_sample();
  if (is_in_chained_mode()) {
    read_references();
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

void GuardedController::read_sample()
{
  sample_ = guarded_Sample{};
  sample_.now = now_;
  sample_.floats = 1.0;
  for (int j = 0; j < GUARDED_JOINTS; ++j) {
    const auto value = [this, j](int kind) {
      const int at = places_[j][kind];
      return at < 0 ? kNaN : state_interfaces_[at].get_optional().value_or(kNaN);
    };
    const bool is_fixed = places_[j][0] < 0;
    sample_.stamp[j] = sample_.received[j] = now_;
    sample_.reported[j] = 1.0;
    sample_.q[j] = is_fixed ? fixed_[j] : value(kPosition);
    sample_.qd[j] = is_fixed ? 0.0 : value(kVelocity);
    sample_.effort[j] = value(kEffort);
  }
}

void GuardedController::read_references()
{
  const auto reference = [this](int k, int kind) {
    return reference_interfaces_[kKindCount * k + kind];
  };
  // NaN: not set. What is infinite goes on to the checks of the period.
  bool moves = false, pushes = false, drifts = false;
  for (int k = 0; k < GUARDED_COMMANDED; ++k) {
    moves |= !std::isnan(reference(k, kPosition));
    pushes |= !std::isnan(reference(k, kEffort));
    drifts |= std::isnan(reference(k, kPosition)) && !std::isnan(reference(k, kVelocity));
  }
  ignores_references_ =
    (moves && request_.law != kJoint) || (pushes && request_.law != kFloat) || drifts;
  request_.follows = request_.prefers = 0.0;
  if (moves && request_.law == kJoint) {
    request_.motion = -++chained_periods_;  // a motion for each period
    request_.follows = 1.0;
    std::copy_n(state_->reference, GUARDED_JOINTS, request_.target);
    std::fill_n(request_.target_qd, GUARDED_JOINTS, 0.0);
    for (int k = 0; k < GUARDED_COMMANDED; ++k) {
      const int j = guarded_places[k];
      const double q = reference(k, kPosition), qd = reference(k, kVelocity);
      if (!std::isnan(q)) {
        request_.target[j] = q;
        request_.target_qd[j] =
          !std::isnan(qd) ? std::clamp(qd, -settings_.fastest[j], settings_.fastest[j]) : 0.0;
      }
    }
  }
  if (pushes && request_.law == kFloat) {
    sample_.floats = 0.0;
    for (int k = 0; k < GUARDED_COMMANDED; ++k) {
      const double effort = reference(k, kEffort);
      sample_.law[guarded_places[k]] = std::isnan(effort) ? 0.0 : effort;
    }
  }
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
  report.ignores_references = report.is_chained && ignores_references_;
  reports_.send();
  reported_ = now_;
}

// -- parameters, topics and the service -----------------------------------------------------------

guarded_Settings GuardedController::with_parameters(guarded_Settings s) const
{
  const auto & p = params_;
  const double friction_scale = std::min(p.friction_scale, GUARDED_LARGEST_FRICTION);
  for (int k = 0; k < GUARDED_COMMANDED; ++k) {
    const int j = guarded_places[k];
    const double limit = element("effort_limits", p.effort_limits, k, 0.0);
    s.effort[j] = p.effort_scale * (limit > 0.0 ? limit : guarded_settings.effort[j]);
    s.rate[j] = GUARDED_RATE_SHARE * s.effort[j];
    s.timeout[j] = p.stale_timeout;
    s.scale[j] = element("gravity_scale", p.gravity_scale, k, 1.0);
    s.damping[j] = element("damping", p.damping, k, 0.0);
    const double friction = element("friction", p.friction, k, -1.0);
    s.friction[j] = friction_scale * (friction < 0.0 ? guarded_friction[k] : friction);
    s.joint_stiffness[j] = element("stiffness", p.stiffness, k, 10.0);
    s.reference_velocity[j] =
      std::min(element("reference_velocity", p.reference_velocity, k, 0.5), s.fastest[j]);
    s.reference_acceleration[j] =
      element("reference_acceleration", p.reference_acceleration, k, 2.0);
  }
  for (int j = 0; j < GUARDED_JOINTS; ++j) {
    if (s.spring_low[j] > -GUARDED_NEVER) {
      s.low[j] = s.spring_low[j] - p.position_margin;
    }
    if (s.spring_high[j] < GUARDED_NEVER) {
      s.high[j] = s.spring_high[j] + p.position_margin;
    }
  }
  using Names = std::vector<std::string>;
  s.ahead = s.longest_pause = p.stale_timeout;
  s.differentiates = p.velocity_from_position;
  s.frozen_timeout = p.frozen_timeout;
  s.tolerance = p.tracking_tolerance;
  s.effort_check = place(p.effort_check, Names{"off", "auto", "always"});
  s.starts_from_effort = p.start_from == "effort";
  const Names reactions{"ramp_down", "hold", "zero"};
  s.on_fault = std::fmod(place(p.on_fault, reactions), reactions.size());
  s.ramp_in = p.ramp_in_time;
  s.ramp_out = s.gravity_time = s.loads_time = p.ramp_time;
  s.filter = p.velocity_filter;
  s.zone = p.limit_zone;
  s.state_period = get_update_rate() > 0 ? 1.0 / get_update_rate() : 0.0;
  s.switch_time = p.switch_time;
  s.reference_timeout = p.reference_timeout;
  std::copy_n(p.angular_stiffness.begin(), 3, s.link_stiffness);
  std::copy_n(p.linear_stiffness.begin(), 3, s.link_stiffness + 3);
  s.link_axes = p.stiffness_axes == "target";
  s.posture_frequency = p.posture_frequency;
  s.pose_velocity[0] = p.reference_angular_velocity;
  s.pose_velocity[1] = p.reference_linear_velocity;
  s.pose_acceleration[0] = p.reference_angular_acceleration;
  s.pose_acceleration[1] = p.reference_linear_acceleration;
  return s;
}

/// Call a method with each message of a topic, and log why it refuses one.
template <class Message>
rclcpp::SubscriptionBase::SharedPtr GuardedController::listen(
  const std::string & name, void (GuardedController::*set)(const Message &))
{
  return get_node()->create_subscription<Message>(
    "~/" + name, 1, [this, name, set](const Message & message) {
      try {
        (this->*set)(message);
      } catch (const std::exception & error) {
        RCLCPP_ERROR(get_node()->get_logger(), "%s refused: %s", name.c_str(), error.what());
      }
    });
}

void GuardedController::set_gravity(const Vector3Stamped & message)
{
  const auto & v = message.vector;
  const auto gravity = rotated(fixed_link(message.header.frame_id), {v.x, v.y, v.z});
  set_goal(with_gravity(goal_, gravity.data()));
}

guarded_Settings GuardedController::with_gravity(
  guarded_Settings settings, const double * gravity) const
{
  check_gravity(gravity);
  const double * before = settings.gravity;
  const double product = std::inner_product(before, before + 3, gravity, 0.0);
  const double cosine = product / (length(before) * length(gravity));
  if (cosine < std::cos(GUARDED_LARGEST_TURN) && report_.active && !is_released(report_.state)) {
    throw invalid_argument("it turns by more than 60 degrees at once while torques are commanded");
  }
  std::copy_n(gravity, 3, settings.gravity);
  return settings;
}

void GuardedController::set_payload(const InertiaStamped & message)
{
  const std::string & name = message.header.frame_id;
  const auto & given = message.inertia;
  const Load load{given.m,   given.com.x, given.com.y, given.com.z, given.ixx,
                  given.ixy, given.ixz,   given.iyy,   given.iyz,   given.izz};
  auto loads = loads_;
  loads[name] = load_parameters(moving_link(name), load);
  guarded_Settings goal = goal_;
  std::fill_n(&goal.loads[0][0], sizeof(goal.loads) / sizeof(double), 0.0);
  double mass = 0.0, carried = 0.0;
  for (const auto & [carrier, parameters] : loads) {
    double * row = goal.loads[moving_link(carrier).body];
    std::transform(row, row + 10, parameters.begin(), row, std::plus<double>());
    mass += parameters[0];
  }
  for (const auto & row : goal_.loads) {
    carried += row[0];
  }
  const double heaviest = params_.max_payload > 0.0 ? params_.max_payload : guarded_mass;
  if (mass > std::max(heaviest, carried * (1.0 + 1e-9))) {
    throw invalid_argument(
      "the payload has a mass of " + number(mass, "g") + " kg; must be at most " +
      number(heaviest) + ", see max_payload. Are these grams?");
  }
  set_goal(goal);
  loads_ = loads;
}

/// Aim at settings, unless the arm could not be held under them where it is.
void GuardedController::set_goal(const guarded_Settings & settings)
{
  if (report_.active) {
    guarded_State state = report_.state, next;
    guarded_Output output;
    guarded_Verdict verdict;
    const guarded_Request none{};
    state.mode = kOff;  // so that they act at once
    std::fill_n(state.command, GUARDED_JOINTS, 0.0);
    guarded_period(&state, &report_.sample, &none, &settings, &next, &output, &verdict);
    const std::string why = finding(GUARDED_OVERLOAD, verdict, next);
    if (!why.empty()) {
      throw invalid_argument("the arm could not be held: " + why);
    }
  }
  goal_ = settings;
  goals_.write(goal_);
}

/// Request the law of the parameter mode. What the law before followed is forgotten.
void GuardedController::set_mode()
{
  const char * const modes[] = {"floating", "joint", "cartesian"};
  guarded_Request motion = motion_;
  motion.law = place(params_.mode, modes);
  if (!(GUARDED_LAWS & (1 << static_cast<int>(motion.law)))) {
    throw invalid_argument(
      "this package was exported without the mode '" + params_.mode + "'; see --modes");
  }
  motion.follows = motion.prefers = 0.0;
  move(motion);
}

void GuardedController::move(guarded_Request motion)
{
  motion.motion = motion_.motion + 1.0;
  motion_ = motion;
  motions_.write(motion_);
}

void GuardedController::check_follows() const
{
  if (report_.is_chained) {
    throw invalid_argument("another controller sets the references");
  }
  if (motion_.law == kFloat) {
    throw invalid_argument("the arm floats; references need a law that follows them");
  }
  if (!report_.active || !is_engaged(report_.state)) {
    throw invalid_argument("torques are disabled");
  }
}

void GuardedController::set_target_joint(const JointState & message)
{
  check_follows();
  const auto & s = goal_;
  const std::size_t m = message.name.size();
  if (m == 0 || message.position.size() != m || message.velocity.size() % m != 0) {
    throw invalid_argument("must be one position, and one velocity or none, for each name");
  }
  guarded_Request motion = motion_;
  const bool follows = motion_.law == kLink ? motion_.prefers > 0.0 : motion_.follows > 0.0;
  std::copy_n(follows ? motion_.target : report_.state.reference, GUARDED_JOINTS, motion.target);
  std::fill_n(motion.target_qd, GUARDED_JOINTS, 0.0);
  for (std::size_t k = 0; k < m; ++k) {
    const int j = static_cast<int>(place(message.name[k], guarded_joints));
    if (j == GUARDED_JOINTS || s.commanded[j] == 0.0) {
      throw invalid_argument("'" + message.name[k] + "' is not a joint that is commanded");
    }
    const double q = message.position[k];
    const double qd = message.velocity.empty() ? 0.0 : message.velocity[k];
    if (!(q >= s.spring_low[j] - 1e-9 && q <= s.spring_high[j] + 1e-9)) {
      throw invalid_argument(
        "the target of '" + message.name[k] + "' is out of reach at " + number(q, ".6g") +
        "; must be " + number(s.spring_low[j], ".6g") + " to " +
        number(s.spring_high[j], ".6g"));
    }
    if (!(std::abs(qd) <= s.fastest[j])) {
      throw invalid_argument(
        "the target of '" + message.name[k] + "' moves at " + number(qd, ".6g") +
        "; its velocity limit is " + number(s.fastest[j], ".6g"));
    }
    motion.target[j] = q;
    motion.target_qd[j] = qd;
  }
  (motion.law == kLink ? motion.prefers : motion.follows) = 1.0;
  move(motion);
}

void GuardedController::set_target_pose(const PoseStamped & message)
{
  check_follows();
  if (motion_.law != kLink) {
    throw invalid_argument("a pose is a target in the mode cartesian only");
  }
  const auto & p = message.pose.position;
  const auto & o = message.pose.orientation;
  if (!(std::abs(p.x) + std::abs(p.y) + std::abs(p.z) < 1e6)) {
    throw invalid_argument("the position is not finite");
  }
  const auto & frame = fixed_link(message.header.frame_id);
  guarded_Request motion = motion_;
  const auto axes = axes_of(o.x, o.y, o.z, o.w);
  const Vector columns[] = {
    rotated(frame, axes[0]), rotated(frame, axes[1]), rotated(frame, axes[2]),
    placed(frame, {p.x, p.y, p.z})};
  for (int i = 0; i < 3; ++i) {
    for (int k = 0; k < 4; ++k) {
      motion.target_pose[i][k] = columns[k][i];
    }
  }
  motion.follows = 1.0;
  move(motion);
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
  const auto before = params_;
  params_ = listener_->get_params();
  try {
    guarded_Settings goal = with_parameters(goal_);
    if (params_.gravity != before.gravity) {
      goal = with_gravity(goal, params_.gravity.data());
    }
    set_goal(goal);
    if (params_.mode != before.mode) {
      set_mode();
    }
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "parameters have no effect: %s", error.what());
  }
}

void GuardedController::publish()
{
  const auto node = get_node();
  const bool was_active = report_.active;
  reports_.read(report_);
  follow_parameters();
  const guarded_State & state = report_.state;
  const std::string fault = fault_of(state);
  if (state.fault != logged_fault_ && !fault.empty()) {
    RCLCPP_ERROR(node->get_logger(), "stopped: %s", fault.c_str());
  }
  logged_fault_ = state.fault;

  const std::string reasons =
    is_released(state) ? joined(problems(report_.verdict, state), "; ") : "";
  if (was_active && !report_.active && fault.empty() && !reasons.empty()) {
    RCLCPP_ERROR(node->get_logger(), "refused: %s", reasons.c_str());
  }
  DiagnosticStatus status;
  status.name = node->get_fully_qualified_name();
  status.hardware_id = joined({guarded_joints, guarded_joints + GUARDED_JOINTS});
  const bool warns = report_.unwritten > 0 || report_.ignores_references || !reasons.empty();
  status.level = !fault.empty() ? DiagnosticStatus::ERROR
                 : warns        ? DiagnosticStatus::WARN
                                : DiagnosticStatus::OK;
  status.message = !fault.empty()     ? fault
                   : !reasons.empty() ? "would be refused because " + reasons
                                      : mode_name(state);
  const auto add = [&status](const std::string & key, const std::string & value) {
    status.values.emplace_back();
    status.values.back().key = key;
    status.values.back().value = value;
  };
  add("active", report_.active ? "yes" : "no");
  add("state", mode_name(state));
  add("mode", params_.mode);
  const std::string ignored = report_.ignores_references ? ", not followed in this mode" : "";
  add("references", report_.is_chained ? "from another controller" + ignored : "from topics");
  add("reference waits for the arm", state.waits_since < state.now ? "yes" : "no");
  add("springs softened", state.stiffness_share < 1.0 ? "yes" : "no");
  add("share of gravity torques", number(state.share));
  add("torques verified", state.verified > 0.5 || state.proven > 0.5 ? "yes" : "no");
  add("commands that could not be written", std::to_string(report_.unwritten));
  JointState torques;
  torques.header.stamp = node->now();
  for (const int j : guarded_places) {
    add(std::string("torque of ") + guarded_joints[j], number(report_.output.torque[j]));
    torques.name.push_back(guarded_joints[j]);
    torques.effort.push_back(report_.output.torque[j]);
  }
  status_->publish(status);
  if (report_.active) {
    torques_->publish(torques);
  }
  if (ticks_++ % 50 == 0) {
    diagnostic_msgs::msg::DiagnosticArray array;
    array.header.stamp = torques.header.stamp;
    array.status.push_back(status);
    diagnostics_->publish(array);
  }
}

}  // namespace GUARDED_PACKAGE

PLUGINLIB_EXPORT_CLASS(
  GUARDED_PACKAGE::GuardedController, controller_interface::ChainableControllerInterface)
