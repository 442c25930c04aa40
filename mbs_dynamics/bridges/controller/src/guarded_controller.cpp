// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#include "guarded_controller.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <stdexcept>
#include <utility>

#include "guarded_robot.h"
#include "hardware_interface/component_parser.hpp"
#include "pluginlib/class_list_macros.hpp"
#include "words.hpp"

namespace GUARDED_PACKAGE
{

using controller_interface::CallbackReturn;
using controller_interface::InterfaceConfiguration;
using controller_interface::interface_configuration_type;
using controller_interface::return_type;
using diagnostic_msgs::msg::DiagnosticStatus;

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
const char * const kKinds[] = {"position", "velocity", "effort"};

std::invalid_argument invalid(const std::string & message)
{
  return std::invalid_argument(message);
}

bool is(const guarded_State & state, Mode mode) { return state.mode == mode; }

bool is_engaged(const guarded_State & state) { return is(state, kOn) || is(state, kRampingIn); }

double steady_time()
{
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool is_released(const guarded_State & state) { return is(state, kOff) || is(state, kFault); }

double length(const double * v) { return std::hypot(v[0], v[1], v[2]); }

void check_gravity(const double * gravity)
{
  const double low = (1.0 - GUARDED_GRAVITY_TOLERANCE) * GUARDED_STANDARD_GRAVITY;
  const double high = (1.0 + GUARDED_GRAVITY_TOLERANCE) * GUARDED_STANDARD_GRAVITY;
  if (!(length(gravity) >= low && length(gravity) <= high)) {
    throw invalid(
      "gravity has a length of " + number(length(gravity), "g") + " m/s^2; must be " +
      number(low) + " to " + number(high));
  }
}

const guarded_Link & link_named(const std::string & name, bool fixed)
{
  std::vector<std::string> names;
  for (const auto & link : guarded_links) {
    if (name == link.name && (link.body < 0) == fixed) {
      return link;
    }
    if ((link.body < 0) == fixed) {
      names.push_back(link.name);
    }
  }
  throw invalid(
    "'" + name + "' is not a link that " + (fixed ? "is fixed" : "moves") + "; valid: " +
    joined(names));
}

/// The inertial parameters of a load on a link, in the frame of the body that moves with it.
std::array<double, 10> load_parameters(
  const guarded_Link & link, const geometry_msgs::msg::Inertia & load)
{
  const double m = load.m;
  const double com[3] = {load.com.x, load.com.y, load.com.z};
  const double I[3][3] = {
    {load.ixx, load.ixy, load.ixz}, {load.ixy, load.iyy, load.iyz}, {load.ixz, load.iyz, load.izz}};
  double c[3];
  for (int i = 0; i < 3; ++i) {
    c[i] = link.p[i];
    for (int k = 0; k < 3; ++k) {
      c[i] += link.R[3 * i + k] * com[k];
    }
  }
  double T[3][3];
  for (int i = 0; i < 3; ++i) {
    for (int j = 0; j < 3; ++j) {
      T[i][j] = m * ((i == j ? c[0] * c[0] + c[1] * c[1] + c[2] * c[2] : 0.0) - c[i] * c[j]);
      for (int k = 0; k < 3; ++k) {
        for (int l = 0; l < 3; ++l) {
          T[i][j] += link.R[3 * i + k] * I[k][l] * link.R[3 * j + l];
        }
      }
    }
  }
  return {m,       m * c[0], m * c[1], m * c[2], T[0][0],
          T[0][1], T[0][2],  T[1][1],  T[1][2],  T[2][2]};
}

void check_load(const geometry_msgs::msg::Inertia & load)
{
  const double all[] = {load.m,   load.com.x, load.com.y, load.com.z, load.ixx,
                        load.ixy, load.ixz,   load.iyy,   load.iyz,   load.izz};
  for (const double x : all) {
    if (!(std::abs(x) <= 1e6)) {
      throw invalid(number(x, "g") + " is too large; must be at most 1e+06");
    }
  }
  const double minors[] = {
    load.ixx, load.iyy, load.izz, load.ixx * load.iyy - load.ixy * load.ixy,
    load.ixx * load.izz - load.ixz * load.ixz, load.iyy * load.izz - load.iyz * load.iyz};
  const double size = load.ixx + load.iyy + load.izz;
  if (load.m < 0.0 || *std::min_element(minors, minors + 6) < -1e-9 * size * size) {
    throw invalid("the mass is negative, or the inertia is not positive semidefinite");
  }
  if (load.m == 0.0 && size != 0.0) {
    throw invalid("there is no inertia without mass");
  }
}

/// The rotation matrix of a quaternion, by rows.
std::array<double, 9> rotation(const geometry_msgs::msg::Quaternion & o)
{
  const double x = o.x, y = o.y, z = o.z, w = o.w;
  if (!(std::abs(x * x + y * y + z * z + w * w - 1.0) < 1e-3)) {
    throw invalid("the orientation is not a quaternion of length 1");
  }
  return {1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
          2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x),
          2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y)};
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
  return static_cast<double>(std::find(std::begin(names), std::end(names), name) - std::begin(names));
}

/// Element k of a parameter that is an array, or another value if it is empty.
double element(const std::vector<double> & values, int k, double otherwise)
{
  return values.empty() ? otherwise : values[k];
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
    goal_ = with_parameters(guarded_settings);
    check_gravity(params_.gravity.data());
    std::copy_n(params_.gravity.begin(), 3, goal_.gravity);
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
  report_ = Report{};
  report_.state = guarded_initial;
  now_ = 0.0;

  // no lifecycle publishers: a fault is told when the controller is not active any more
  status_ = rclcpp::create_publisher<DiagnosticStatus>(node, "~/state", 1);
  torques_ = rclcpp::create_publisher<JointState>(
    node, "~/commanded_torques", rclcpp::SensorDataQoS());
  diagnostics_ =
    rclcpp::create_publisher<diagnostic_msgs::msg::DiagnosticArray>(node, "/diagnostics", 1);
  gravity_ = node->create_subscription<Vector3Stamped>(
    "~/gravity", 1, [this](const Vector3Stamped & message) { set_gravity(message); });
  payload_ = node->create_subscription<InertiaStamped>(
    "~/payload", 1, [this](const InertiaStamped & message) { set_payload(message); });
  target_joint_ = node->create_subscription<JointState>(
    "~/target_joint", 1, [this](const JointState & message) { set_target_joint(message); });
  target_pose_ = node->create_subscription<PoseStamped>(
    "~/target_pose", 1, [this](const PoseStamped & message) { set_target_pose(message); });
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
    throw invalid(
      std::string(text) +
      ", another robot, or other masses, lengths or limits: export the controller anew");
  }
}

void GuardedController::find_interfaces()
{
  std::vector<std::string> commanded;
  for (const int j : guarded_places) {
    commanded.push_back(guarded_joints[j]);
  }
  if (!params_.joints.empty() && params_.joints != commanded) {
    throw invalid(
      "joints are " + joined(params_.joints) + "; valid: those of this package, " +
      joined(commanded) + ", in this order");
  }
  std::map<std::string, double> fixed;
  if (params_.fixed_joints.size() != params_.fixed_positions.size()) {
    throw invalid("must be one position in fixed_positions for each of fixed_joints");
  }
  for (std::size_t k = 0; k < params_.fixed_joints.size(); ++k) {
    fixed[params_.fixed_joints[k]] = params_.fixed_positions[k];
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
    const bool is_commanded = std::count(commanded.begin(), commanded.end(), name) > 0;
    if (is_commanded && commands[name].count("effort") == 0) {
      throw invalid(
        "joint '" + name + "' has no command interface 'effort'; it has: " +
        listed(commands[name]));
    }
    const bool is_fixed = fixed.count(name) > 0 && !is_commanded;
    fixed_[j] = is_fixed ? fixed[name] : kNaN;
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
    throw invalid(
      "there is no state interface 'position' of " + joined(missing[0]) +
      "; joints that are not commanded may be in fixed_joints");
  }
  if (!missing[1].empty() && !params_.velocity_from_position) {
    throw invalid(
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
  for (const int j : guarded_places) {
    configuration.names.push_back(std::string(guarded_joints[j]) + "/effort");
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
  for (int k = 0; k < GUARDED_COMMANDED; ++k) {
    for (int kind = 0; kind < kKindCount; ++kind) {
      interfaces.emplace_back(
        get_node()->get_name(), std::string(guarded_joints[guarded_places[k]]) + "/" + kKinds[kind],
        &reference_interfaces_[kKindCount * k + kind]);
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
  step(enters_ ? kEnable : asked);
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
  // Springs between new states of some joints and old ones of others would drive the arm. From the
  // second period on in which one joint lacks its state, all keep theirs until it returns or is a
  // fault.
  const auto lacks_state_again = [this](int j) {
    const bool derives = std::isnan(sample_.qd[j]) && settings_.differentiates > 0.0;
    const double qd = derives ? 0.0 : sample_.qd[j];
    return state_->refused[j] != 0.0 && !std::isfinite(sample_.q[j] + qd);
  };
  if (
    is_engaged(*state_) && state_->law != kFloat &&
    std::any_of(std::begin(guarded_places), std::end(guarded_places), lacks_state_again)) {
    std::fill_n(sample_.reported, GUARDED_JOINTS, 0.0);
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
    for (int j = 0; j < GUARDED_JOINTS; ++j) {
      request_.target[j] = state_->reference[j];
      request_.target_qd[j] = 0.0;
    }
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

void GuardedController::step(double action)
{
  request_.action = action;
  guarded_period(state_, &sample_, &request_, &settings_, next_, &output_, &verdict_);
  std::swap(state_, next_);
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
  const std::pair<const char *, const std::vector<double> *> arrays[] = {
    {"effort_limits", &params_.effort_limits},
    {"gravity_scale", &params_.gravity_scale},
    {"damping", &params_.damping},
    {"friction", &params_.friction},
    {"stiffness", &params_.stiffness},
    {"reference_velocity", &params_.reference_velocity},
    {"reference_acceleration", &params_.reference_acceleration}};
  for (const auto & [name, values] : arrays) {
    if (!values->empty() && values->size() != GUARDED_COMMANDED) {
      throw invalid(
        std::string(name) + " has " + std::to_string(values->size()) + " elements; valid: " +
        std::to_string(GUARDED_COMMANDED) + ", one for each of joints, or none");
    }
  }
  const double friction_scale = std::min(params_.friction_scale, GUARDED_LARGEST_FRICTION);
  for (int k = 0; k < GUARDED_COMMANDED; ++k) {
    const int j = guarded_places[k];
    const double limit = element(params_.effort_limits, k, 0.0);
    s.effort[j] = params_.effort_scale * (limit > 0.0 ? limit : guarded_settings.effort[j]);
    s.rate[j] = GUARDED_RATE_SHARE * s.effort[j];
    s.timeout[j] = params_.stale_timeout;
    s.scale[j] = element(params_.gravity_scale, k, 1.0);
    s.damping[j] = element(params_.damping, k, 0.0);
    const double friction = element(params_.friction, k, -1.0);
    s.friction[j] = friction_scale * (friction < 0.0 ? guarded_friction[k] : friction);
    s.joint_stiffness[j] = element(params_.stiffness, k, 10.0);
    s.reference_velocity[j] = std::min(element(params_.reference_velocity, k, 0.5), s.fastest[j]);
    s.reference_acceleration[j] = element(params_.reference_acceleration, k, 2.0);
  }
  for (int j = 0; j < GUARDED_JOINTS; ++j) {
    if (s.spring_low[j] > -GUARDED_NEVER) {
      s.low[j] = s.spring_low[j] - params_.position_margin;
    }
    if (s.spring_high[j] < GUARDED_NEVER) {
      s.high[j] = s.spring_high[j] + params_.position_margin;
    }
  }
  using Names = std::vector<std::string>;
  s.ahead = s.longest_pause = params_.stale_timeout;
  s.differentiates = params_.velocity_from_position;
  s.frozen_timeout = params_.frozen_timeout;
  s.tolerance = params_.tracking_tolerance;
  s.effort_check = place(params_.effort_check, Names{"off", "auto", "always"});
  s.starts_from_effort = params_.start_from == "effort";
  const Names reactions{"ramp_down", "hold", "zero"};
  s.on_fault = std::fmod(place(params_.on_fault, reactions), reactions.size());
  s.ramp_in = params_.ramp_in_time;
  s.ramp_out = s.gravity_time = s.loads_time = params_.ramp_time;
  s.filter = params_.velocity_filter;
  s.zone = params_.limit_zone;
  s.state_period = get_update_rate() > 0 ? 1.0 / get_update_rate() : 0.0;
  s.switch_time = params_.switch_time;
  s.reference_timeout = params_.reference_timeout;
  std::copy_n(params_.angular_stiffness.begin(), 3, s.link_stiffness);
  std::copy_n(params_.linear_stiffness.begin(), 3, s.link_stiffness + 3);
  s.link_axes = params_.stiffness_axes == "target";
  s.posture_frequency = params_.posture_frequency;
  s.pose_velocity[0] = params_.reference_angular_velocity;
  s.pose_velocity[1] = params_.reference_linear_velocity;
  s.pose_acceleration[0] = params_.reference_angular_acceleration;
  s.pose_acceleration[1] = params_.reference_linear_acceleration;
  return s;
}

void GuardedController::set_gravity(const Vector3Stamped & message)
{
  try {
    const auto & v = message.vector;
    const double given[3] = {v.x, v.y, v.z};
    guarded_Settings goal = goal_;
    std::copy_n(given, 3, goal.gravity);
    if (!message.header.frame_id.empty()) {
      const auto & link = link_named(message.header.frame_id, true);
      for (int i = 0; i < 3; ++i) {
        const double * row = link.R + 3 * i;
        goal.gravity[i] = row[0] * given[0] + row[1] * given[1] + row[2] * given[2];
      }
    }
    check_gravity(goal.gravity);
    double cosine = 0.0;
    for (int i = 0; i < 3; ++i) {
      cosine += goal.gravity[i] * goal_.gravity[i];
    }
    cosine /= length(goal.gravity) * length(goal_.gravity);
    if (cosine < std::cos(GUARDED_LARGEST_TURN) && report_.active && !is_released(report_.state)) {
      throw invalid("it turns by more than 60 degrees at once while torques are commanded");
    }
    set_goal(goal);
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "gravity refused: %s", error.what());
  }
}

void GuardedController::set_payload(const InertiaStamped & message)
{
  const std::string & name = message.header.frame_id;
  try {
    const auto & link = link_named(name, false);
    check_load(message.inertia);
    auto loads = loads_;
    loads[name] = load_parameters(link, message.inertia);
    guarded_Settings goal = goal_;
    std::fill_n(&goal.loads[0][0], sizeof(goal.loads) / sizeof(double), 0.0);
    double mass = 0.0, carried = 0.0;
    for (const auto & [carrier, parameters] : loads) {
      double * row = goal.loads[link_named(carrier, false).body];
      std::transform(row, row + 10, parameters.begin(), row, std::plus<double>());
      mass += parameters[0];
    }
    for (const auto & row : goal_.loads) {
      carried += row[0];
    }
    const double heaviest = params_.max_payload > 0.0 ? params_.max_payload : guarded_mass;
    if (mass > std::max(heaviest, carried * (1.0 + 1e-9))) {
      throw invalid(
        "the payload has a mass of " + number(mass, "g") + " kg; must be at most " +
        number(heaviest) + ", see max_payload. Are these grams?");
    }
    set_goal(goal);
    loads_ = loads;
  } catch (const std::exception & error) {
    RCLCPP_ERROR(
      get_node()->get_logger(), "payload on '%s' refused: %s", name.c_str(), error.what());
  }
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
    for (int k = 0; k < GUARDED_CHECKS; ++k) {
      if (std::strcmp(guarded_checks[k].kind, "overload") == 0 && !std::isnan(verdict.joint[k])) {
        throw invalid(
          "the arm could not be held: " +
          sentence(k, verdict.joint[k], verdict.value[k], verdict.limit[k], next));
      }
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
    throw invalid("this package was exported without the mode '" + params_.mode + "'; see --modes");
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
    throw invalid("another controller sets the references");
  }
  if (motion_.law == kFloat) {
    throw invalid("the arm floats; references need a law that follows them");
  }
  if (!report_.active || !is_engaged(report_.state)) {
    throw invalid("torques are disabled");
  }
}

void GuardedController::set_target_joint(const JointState & message)
{
  try {
    check_follows();
    const auto & s = goal_;
    const std::size_t m = message.name.size();
    if (m == 0 || message.position.size() != m || message.velocity.size() % m != 0) {
      throw invalid("must be one position, and one velocity or none, for each name");
    }
    guarded_Request motion = motion_;
    const bool follows = motion_.law == kLink ? motion_.prefers > 0.0 : motion_.follows > 0.0;
    std::copy_n(follows ? motion_.target : report_.state.reference, GUARDED_JOINTS, motion.target);
    std::fill_n(motion.target_qd, GUARDED_JOINTS, 0.0);
    for (std::size_t k = 0; k < m; ++k) {
      const int j = static_cast<int>(place(message.name[k], guarded_joints));
      if (j == GUARDED_JOINTS || s.commanded[j] == 0.0) {
        throw invalid("'" + message.name[k] + "' is not a joint that is commanded");
      }
      const double q = message.position[k];
      const double qd = message.velocity.empty() ? 0.0 : message.velocity[k];
      if (!(q >= s.spring_low[j] - 1e-9 && q <= s.spring_high[j] + 1e-9)) {
        throw invalid(
          "the target of '" + message.name[k] + "' is out of reach at " + number(q, ".6g") +
          "; must be " + number(s.spring_low[j], ".6g") + " to " +
          number(s.spring_high[j], ".6g"));
      }
      if (!(std::abs(qd) <= s.fastest[j])) {
        throw invalid(
          "the target of '" + message.name[k] + "' moves at " + number(qd, ".6g") +
          "; its velocity limit is " + number(s.fastest[j], ".6g"));
      }
      motion.target[j] = q;
      motion.target_qd[j] = qd;
    }
    (motion.law == kLink ? motion.prefers : motion.follows) = 1.0;
    move(motion);
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "target refused: %s", error.what());
  }
}

void GuardedController::set_target_pose(const PoseStamped & message)
{
  try {
    check_follows();
    if (motion_.law != kLink) {
      throw invalid("a pose is a target in the mode cartesian only");
    }
    const auto & p = message.pose.position;
    const double at[3] = {p.x, p.y, p.z};
    if (!(std::abs(p.x) + std::abs(p.y) + std::abs(p.z) < 1e6)) {
      throw invalid("the position is not finite");
    }
    const auto R = rotation(message.pose.orientation);
    guarded_Link frame{"", -1, {1, 0, 0, 0, 1, 0, 0, 0, 1}, {0, 0, 0}};
    if (!message.header.frame_id.empty()) {
      frame = link_named(message.header.frame_id, true);
    }
    guarded_Request motion = motion_;
    for (int i = 0; i < 3; ++i) {
      motion.target_pose[i][3] = frame.p[i];
      for (int k = 0; k < 3; ++k) {
        motion.target_pose[i][3] += frame.R[3 * i + k] * at[k];
        motion.target_pose[i][k] = 0.0;
        for (int l = 0; l < 3; ++l) {
          motion.target_pose[i][k] += frame.R[3 * i + l] * R[3 * l + k];
        }
      }
    }
    motion.follows = 1.0;
    move(motion);
  } catch (const std::exception & error) {
    RCLCPP_ERROR(get_node()->get_logger(), "target refused: %s", error.what());
  }
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

void GuardedController::publish()
{
  const auto node = get_node();
  const bool was_active = report_.active;
  reports_.read(report_);
  if (listener_->is_old(params_)) {
    const auto before = params_;
    params_ = listener_->get_params();
    try {
      guarded_Settings goal = with_parameters(goal_);
      if (params_.gravity != before.gravity) {
        check_gravity(params_.gravity.data());
        std::copy_n(params_.gravity.begin(), 3, goal.gravity);
      }
      set_goal(goal);
      if (params_.mode != before.mode) {
        set_mode();
      }
    } catch (const std::exception & error) {
      RCLCPP_ERROR(node->get_logger(), "parameters have no effect: %s", error.what());
    }
  }
  const guarded_State & state = report_.state;
  const std::string fault = fault_of(state);
  if (state.fault != logged_fault_ && !fault.empty()) {
    RCLCPP_ERROR(node->get_logger(), "stopped: %s", fault.c_str());
  }
  logged_fault_ = state.fault;

  const auto reasons = problems(report_.verdict, state);
  const bool is_off = is_released(state);
  if (was_active && !report_.active && is_off && fault.empty() && !reasons.empty()) {
    RCLCPP_ERROR(node->get_logger(), "refused: %s", joined(reasons, "; ").c_str());
  }
  DiagnosticStatus status;
  status.name = node->get_fully_qualified_name();
  status.hardware_id = joined({guarded_joints, guarded_joints + GUARDED_JOINTS});
  const bool warns =
    report_.unwritten > 0 || report_.ignores_references || (is_off && !reasons.empty());
  status.level = !fault.empty() ? DiagnosticStatus::ERROR
                 : warns        ? DiagnosticStatus::WARN
                                : DiagnosticStatus::OK;
  status.message = !fault.empty() ? fault
                   : is_off && !reasons.empty()
                     ? "would be refused because " + joined(reasons, "; ")
                     : mode_name(state);
  const auto add = [&status](const std::string & key, const std::string & value) {
    status.values.emplace_back();
    status.values.back().key = key;
    status.values.back().value = value;
  };
  add("active", report_.active ? "yes" : "no");
  add("state", mode_name(state));
  add("mode", params_.mode);
  add(
    "references", !report_.is_chained          ? "from topics"
                  : report_.ignores_references ? "from another controller, not followed in this mode"
                                               : "from another controller");
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
