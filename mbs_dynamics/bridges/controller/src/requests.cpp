// Copyright 2026 The mbs_dynamics authors
// SPDX-License-Identifier: Apache-2.0

#include "requests.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <stdexcept>

#include "settings.hpp"

namespace GUARDED_PACKAGE
{

using std::invalid_argument;

namespace
{

constexpr const char * kModes[] = {"floating", "joint", "cartesian"};

/// The law of a mode.
Law law_of(const std::string & mode)
{
  const auto law = std::find(std::begin(kModes), std::end(kModes), mode) - std::begin(kModes);
  if (!(GUARDED_LAWS & (1 << law))) {
    throw invalid_argument("this package was exported without the mode '" + mode + "'; see --modes");
  }
  return static_cast<Law>(law);
}

/// The joint to command with a name.
int commanded_joint(const std::string & name)
{
  for (const int j : guarded_places) {
    if (name == guarded_joints[j]) {
      return j;
    }
  }
  throw invalid_argument("'" + name + "' is not a joint that is commanded");
}

}  // namespace

const char * Requests::mode() const { return kModes[static_cast<int>(motion_.law)]; }

// -- settings -------------------------------------------------------------------------------------

void Requests::configure(const guarded_controller::Params & params, double state_period)
{
  params_ = params;
  state_period_ = state_period;
  goal_ = with_gravity(
    with_parameters(guarded_settings, params, state_period),
    {params.gravity[0], params.gravity[1], params.gravity[2]});
  loads_.clear();
  motion_ = guarded_Request{};
  motion_.sends = motion_.pace = 1.0;
  motion_.target_pose[0][0] = motion_.target_pose[1][1] = motion_.target_pose[2][2] = 1.0;
  set_law(law_of(params.mode));
  settings.write(goal_);
}

void Requests::follow(const guarded_controller::Params & params)
{
  const auto before = params_;
  params_ = params;
  guarded_Settings goal = with_parameters(goal_, params, state_period_);
  if (params.gravity != before.gravity) {
    goal = with_gravity(goal, {params.gravity[0], params.gravity[1], params.gravity[2]});
  }
  const Law law = law_of(params.mode);
  set_goal(goal);
  if (params.mode != before.mode) {
    set_law(law);
  }
}

void Requests::set_gravity(const Vector3Stamped & message)
{
  const auto & v = message.vector;
  set_goal(with_gravity(goal_, rotated(fixed_link(message.header.frame_id), {v.x, v.y, v.z})));
}

guarded_Settings Requests::with_gravity(guarded_Settings settings, const Vector & gravity) const
{
  check_gravity(gravity.data());
  const double * before = settings.gravity;
  const double product = std::inner_product(before, before + 3, gravity.begin(), 0.0);
  const double cosine = product / (length(before) * length(gravity.data()));
  if (cosine < std::cos(GUARDED_LARGEST_TURN) && report_.active && !is_released(report_.state)) {
    throw invalid_argument("it turns by more than 60 degrees at once while torques are commanded");
  }
  std::copy_n(gravity.begin(), 3, settings.gravity);
  return settings;
}

void Requests::set_payload(const InertiaStamped & message)
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
void Requests::set_goal(const guarded_Settings & goal)
{
  if (report_.active) {
    guarded_State state = report_.state, next;
    guarded_Output output;
    guarded_Verdict verdict;
    const guarded_Request none{};
    state.mode = kOff;  // so that they act at once
    std::fill_n(state.command, GUARDED_JOINTS, 0.0);
    guarded_period(&state, &report_.sample, &none, &goal, &next, &output, &verdict);
    const std::string why = finding(GUARDED_OVERLOAD, verdict, next);
    if (!why.empty()) {
      throw invalid_argument("the arm could not be held: " + why);
    }
  }
  goal_ = goal;
  settings.write(goal_);
}

// -- motions --------------------------------------------------------------------------------------

/// Request a law. What the law before followed is forgotten.
void Requests::set_law(Law law)
{
  guarded_Request motion = motion_;
  motion.law = law;
  motion.follows = motion.prefers = 0.0;
  move(motion);
}

void Requests::move(guarded_Request motion)
{
  motion.motion = motion_.motion + 1.0;
  motion_ = motion;
  motions.write(motion_);
}

void Requests::check_follows() const
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

void Requests::set_target_joint(const JointState & message)
{
  check_follows();
  const std::size_t m = message.name.size();
  if (m == 0 || message.position.size() != m || message.velocity.size() % m != 0) {
    throw invalid_argument("must be one position, and one velocity or none, for each name");
  }
  guarded_Request motion = motion_;
  double & follows = motion.law == kLink ? motion.prefers : motion.follows;
  std::copy_n(
    follows > 0.0 ? motion_.target : report_.state.reference, GUARDED_JOINTS, motion.target);
  std::fill_n(motion.target_qd, GUARDED_JOINTS, 0.0);
  for (std::size_t k = 0; k < m; ++k) {
    const int j = commanded_joint(message.name[k]);
    const double q = message.position[k];
    const double qd = message.velocity.empty() ? 0.0 : message.velocity[k];
    const double low = goal_.spring_low[j], high = goal_.spring_high[j];
    if (!(q >= low - 1e-9 && q <= high + 1e-9)) {
      throw invalid_argument(
        "the target of '" + message.name[k] + "' is out of reach at " + number(q, ".6g") +
        "; must be " + number(low, ".6g") + " to " + number(high, ".6g"));
    }
    if (!(std::abs(qd) <= goal_.fastest[j])) {
      throw invalid_argument(
        "the target of '" + message.name[k] + "' moves at " + number(qd, ".6g") +
        "; its velocity limit is " + number(goal_.fastest[j], ".6g"));
    }
    motion.target[j] = q;
    motion.target_qd[j] = qd;
  }
  follows = 1.0;
  move(motion);
}

void Requests::set_target_pose(const PoseStamped & message)
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

}  // namespace GUARDED_PACKAGE
