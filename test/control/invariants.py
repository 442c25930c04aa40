# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What holds of every period of a guarded arm, whatever happened before.

Each public function takes one period of many arms, and returns for each arm whether the invariant
holds; a test checks all of them. They are written with NumPy alone, from what an arm must do, and
share no code with the period; they take the numbers of its checks.
"""

from typing import Any

import numpy as np
from random_periods import TURNING, Step

from mbs_dynamics.control.period.checks import CHECKS
from mbs_dynamics.control.period.laws import OF_LINKS

OFF, RAMPING_IN, ON, RAMPING_OUT, STOPPING, FAULT = range(6)
EPS = 1e-9

NUMBER = {check.kind: k + 1 for k, check in reversed(list(enumerate(CHECKS)))}
STALE = NUMBER["stale"], NUMBER["encoder_jump"]  # no report of a joint was used
UNTRUSTED = NUMBER["stale"], NUMBER["frozen"]  # states are doubted after these
FORBIDDING = tuple(k for k, check in enumerate(CHECKS) if check.forbids)  # places, not numbers
DOUBTS = {
    "encoder_jump": 3.0, "motors_apart": 3.0, "velocity_reading": 1.0, "support": 4.0,
    "drive_error": 5.0, "tracking": 5.0,
}  # fmt: skip
"""Doubts by the kinds of checks."""


def _now(c: Step) -> Any:
    """The time of a period: that of the one before if it runs backwards, or is not a number."""
    now = np.where(np.isfinite(c.sample.now), c.sample.now, c.before.now)
    return np.fmax(now, c.before.now)


def _engaged(s: Any) -> Any:
    return np.isin(s.mode, (RAMPING_IN, ON))


def _all(conditions: Any) -> Any:
    return np.asarray(conditions).all(axis=-1)


def _at_fault(c: Step) -> Any:
    """Whether each joint is the one that the latched fault names."""
    return c.after.fault_joint[:, None] == np.arange(c.output.torque.shape[-1])


def numbers_are_finite(c: Step) -> Any:
    """What motors are told is finite, and gains are shares."""
    o = c.output
    fine = [np.isfinite(x) for x in (o.torque, o.stiffness, o.damping)]
    position = np.isfinite(o.position) | ~(o.stiffness > 0.0)
    shares = [(x >= 0.0) & (x <= 1.0) for x in (o.stiffness, o.damping)]
    return _all(np.concatenate([*fine, position, *shares], axis=-1))


def torques_are_within_limits(c: Step) -> Any:
    """No torque exceeds its limit."""
    return _all(np.abs(c.output.torque) <= c.settings.effort)


def rates_are_within_limits(c: Step) -> Any:
    """No torque changes faster than its rate limit, by the clock of the periods."""
    elapsed = np.nan_to_num(_now(c) - c.before.commanded_at)[:, None]
    elapsed = np.where(c.request.sends[:, None] > 0.5, np.maximum(elapsed, 0.0), 0.0)
    change = np.abs(c.after.command - c.before.command)
    return _all(change <= c.settings.rate * elapsed * (1.0 + EPS) + EPS)


def time_does_not_run_backwards(c: Step) -> Any:
    """The time of the periods does not run backwards, and is never NaN once it is known."""
    return np.isnan(c.before.now) | (c.after.now >= c.before.now)


LEGAL = {
    (OFF, RAMPING_IN), (RAMPING_IN, ON), (RAMPING_IN, RAMPING_OUT), (RAMPING_IN, STOPPING),
    (ON, RAMPING_OUT), (ON, STOPPING), (RAMPING_OUT, OFF), (STOPPING, FAULT), (FAULT, OFF),
    (FAULT, RAMPING_OUT), (RAMPING_OUT, RAMPING_IN), (FAULT, STOPPING),
}  # fmt: skip


def transitions_are_legal(c: Step) -> Any:
    """The mode stays, or goes to one that follows it."""
    pairs = zip(c.before.mode.astype(int), c.after.mode.astype(int), strict=True)
    return np.array([a == b or (a, b) in LEGAL for a, b in pairs])


def a_fault_stays_until_it_is_cleared(c: Step) -> Any:
    """A latched fault ends by a request alone, and its number does not change meanwhile."""
    was = np.isin(c.before.mode, (STOPPING, FAULT))
    ended = np.isin(c.after.mode, (OFF, RAMPING_OUT))
    cleared = (c.request.action == 3) & (c.before.mode == FAULT)
    same = (c.after.fault == c.before.fault) | (ended & (c.after.fault == 0.0))
    return ~was | (same & (~ended | cleared))


def _begins(c: Step) -> Any:
    return np.isin(c.before.mode, (OFF, RAMPING_OUT)) & (c.after.mode == RAMPING_IN)


def torques_begin_by_request(c: Step) -> Any:
    """Torques are enabled by a request, in a state that is new and complete."""
    age = _now(c)[:, None] - c.after.received
    fresh = _all((age < c.settings.timeout) & np.isfinite(c.after.q))
    return ~_begins(c) | ((c.request.action == 1) & fresh & (c.after.refused == 0).all(axis=-1))


def torques_begin_where_they_can_hold(c: Step) -> Any:
    """Torques are enabled only if gravity needs no more than the limits, which are positive."""
    p = c.settings
    return ~_begins(c) | _all((p.effort > 0.0) & (np.abs(c.after.g) <= p.effort))


def torques_begin_unless_efforts_contradict_them(c: Step) -> Any:
    """Efforts of drives that hold the arm agree with gravity, and are known where they must be."""
    p, effort, check = c.settings, c.after.effort, c.settings.effort_check
    known = _all(np.isfinite(effort))
    must = (check == 2) | (p.starts_from_effort > 0.5)
    off = np.abs(effort - c.after.g) / p.effort
    bound = 0.02 + 0.5 * (np.abs(c.after.g) / p.effort).max(axis=-1)
    agree = _all(off <= bound[:, None] + EPS)
    compared = known & (effort != 0.0).any(axis=-1) & (check > 0) & (c.before.hold == 1.0)
    return ~_begins(c) | ((known | ~must) & (agree | ~compared))


def torques_begin_unless_evidence_contradicts_them(c: Step) -> Any:
    """What has contradicted the torques is cleared before they are enabled."""
    return ~_begins(c) | (c.before.opposed == 0.0)


def torques_begin_with_a_stiffness_that_the_loop_can_control(c: Step) -> Any:
    """No law begins that would be softened at the latest posture, for the period of the states."""
    return ~_begins(c) | (c.before.stiffness_share == 1.0)


def stiffness_is_limited_for_laws_of_springs_alone(c: Step) -> Any:
    """Some of the stiffness is controlled always, and all of it where no law has springs."""
    s = c.after
    springs = np.isin(s.law, (1.0, 2.0)) | np.isin(s.law_before, (1.0, 2.0))
    share = s.stiffness_share
    return (share > 0.0) & (share <= 1.0) & (springs | (share == 1.0))


def an_engaged_arm_is_not_opposed(c: Step) -> Any:
    """Evidence against the torques of an engaged arm stops it, and gravity torques do not grow."""
    return ~_engaged(c.after) | (c.after.opposed == 0.0)


def an_engaged_arm_has_efforts_that_are_demanded(c: Step) -> Any:
    """Efforts that end while torques are commanded are a fault where they were demanded."""
    missing = _now(c) - c.after.unknown_since >= c.settings.timeout.max(axis=-1)
    return ~_engaged(c.after) | ~(missing & (c.settings.effort_check == 2))


def an_engaged_arm_is_not_saturated_for_long(c: Step) -> Any:
    """No joint of an engaged arm stays at its limit for longer than is set."""
    long = _now(c)[:, None] - c.before.saturated_since > c.settings.saturation[:, None]
    return ~(_engaged(c.before) & _engaged(c.after)) | _all(~long)


def an_engaged_arm_has_finite_gravity_torques(c: Step) -> Any:
    """No torque of an engaged arm comes from numbers that are none."""
    return ~_engaged(c.after) | _all(np.isfinite(c.after.g))


def velocities_that_positions_contradict_do_not_damp(c: Step) -> Any:
    """A reported velocity beyond the limit that positions do not confirm is doubted."""
    s = c.after
    speed = (s.q - s.slow_q) / 0.04
    reading = (s.mean_qd**2 * 0.5 > speed * s.mean_qd) & (np.abs(s.mean_qd) > c.settings.fastest)
    reading = reading & (np.abs(s.qd) > c.settings.fastest)
    stops = _engaged(c.before) & (s.mode == STOPPING)
    first = stops & (s.fault == NUMBER["velocity_limit"]) & reading.any(axis=-1)
    return ~first


def a_doubted_state_is_doubted(c: Step) -> Any:
    """States are doubted once they are missing or frozen."""
    stops = _engaged(c.before) & (c.after.mode == STOPPING) & np.isin(c.after.fault, UNTRUSTED)
    return ~stops | (c.after.doubted > 0.5)


def a_doubt_names_its_part(c: Step) -> Any:
    """A jumping encoder, a motor that does not obey, and an opposed arm are doubted as such."""
    stops = _engaged(c.before) & (c.after.mode == STOPPING)
    wrong = np.zeros_like(stops)
    for kind, doubt in DOUBTS.items():
        wrong |= (c.after.fault == NUMBER[kind]) & (c.after.doubt != doubt)
    return ~(stops & wrong)


def a_request_to_clear_clears_everything(c: Step) -> Any:
    """A disabled arm that is cleared has neither a fault nor evidence against its torques."""
    asked = (c.request.action == 3) & np.isin(c.before.mode, (OFF, FAULT)) & (c.after.mode == OFF)
    return ~asked | ((c.after.fault == 0.0) & (c.after.opposed == 0.0))


def torques_begin_when_asked(c: Step) -> Any:
    """A request that no check forbids is not ignored."""
    asked = (c.request.action == 1) & np.isin(c.before.mode, (OFF, RAMPING_OUT))
    free = np.isnan(c.verdict.joint[:, FORBIDDING]).all(axis=-1)
    return ~(asked & free) | (c.after.mode == RAMPING_IN)


def limit_springs_are_numbers(c: Step) -> Any:
    """Limit springs begin somewhere, whatever is known of the joints."""
    begins = [c.after.spring_low, c.after.spring_high]
    return _all(np.isfinite(np.concatenate(begins, axis=-1)))


def an_encoder_that_jumped_is_doubted(c: Step) -> Any:
    """A joint that is stale since its reports agree on another place has a doubted encoder."""
    stops = _engaged(c.before) & (c.after.mode == STOPPING) & (c.after.fault == STALE[0])
    jumped = (c.after.refused == 4) & np.isfinite(c.after.suspect)
    return ~stops | ~(_at_fault(c) & jumped).any(axis=-1)


def a_release_is_obeyed(c: Step) -> Any:
    """Whatever is asked for or fails, an engaged arm that is to stop is not engaged after that."""
    asked = np.isin(c.request.action, (2, 5))
    return ~(_engaged(c.before) & asked) | ~_engaged(c.after)


def the_arm_has_a_holder(c: Step) -> Any:
    """Drives that can hold the arm do so, unless whole torques hold it, or nobody ever has."""
    can = c.settings.can_hold > 0.5
    torques = (c.after.mode == ON) & (c.after.share == 1.0)
    holds = (c.after.hold == 1.0) | torques
    return ~can | (c.after.mode == OFF) | holds


def _waits(c: Step) -> Any:
    """Whether whole torques are to wait for another holder."""
    s, p, r = c.after, c.settings, c.request
    stops = (s.mode == STOPPING) & (p.on_fault == 0) & ~np.isin(s.doubt, (4, 5))
    released = ((s.mode == RAMPING_OUT) | stops) & (s.doubted < 0.5)
    return released & (r.holder > 0.5) & (r.holds < 0.5)


def torques_stay_whole_until_another_holds(c: Step) -> Any:
    """A release to another controller keeps whole gravity torques while states come, for a time."""
    s, p = c.after, c.settings
    new = (_now(c) - s.received.max(axis=-1) < 0.003) & (_now(c) - s.since < p.release)
    new = new & (c.request.sends > 0.5) & (s.behind < 0.5)
    whole = s.start + s.share[:, None] * (s.g - s.start)
    off = np.abs(s.command - np.clip(whole, -p.effort, p.effort))
    damped = s.damping * np.abs(s.smooth) + 0.03 * p.effort
    settled = s.settling <= _now(c)
    return ~(_waits(c) & new & settled) | _all((off <= damped) | ~np.isfinite(whole))


def torques_end_when_another_holds(c: Step) -> Any:
    """Once another controller holds a released arm, torques go to zero within the rate limit."""
    released = ~_engaged(c.after) & (c.request.holds > 0.5) & (c.request.sends > 0.5)
    elapsed = np.nan_to_num(_now(c) - c.before.commanded_at)[:, None]
    fastest = np.abs(c.before.command) - c.settings.rate * np.maximum(elapsed, 0.0)
    return _all(~released[:, None] | (np.abs(c.after.command) <= np.maximum(fastest, 0.0) + 1e-6))


def torques_that_a_fault_keeps_go_when_asked(c: Step) -> Any:
    """A request to disable lets torques that a fault has kept ramp out; the fault stays."""
    asked = (c.request.action == 2) & (c.before.mode == FAULT) & (c.before.hold == 0.0)
    acts = (c.before.command != 0.0).any(axis=-1)
    return ~(asked & acts) | ((c.after.mode == STOPPING) & (c.after.fault == c.before.fault))


def drives_hold_after_a_release(c: Step) -> Any:
    """Drives that held the arm, or took it over, go on until torques hold it again."""
    held = (c.before.hold == 1.0) & ~_engaged(c.before)
    return ~held | (c.after.hold == 1.0)


def no_torque_follows_a_doubted_state(c: Step) -> Any:
    """Once states are doubted, trusted positions stay, until the arm is at rest."""
    doubted = (c.after.doubted > 0.5)[:, None]
    same = (c.after.trusted == c.before.trusted) | np.isnan(c.before.trusted)
    return _all(~doubted | same)


def drives_hold_trusted_positions(c: Step) -> Any:
    """Positions to be held are those that were trusted last when the drives took over."""
    takes = _engaged(c.before) & ~_engaged(c.after) & (c.settings.can_hold > 0.5)
    keeps = (c.after.doubt == 4) & (c.after.mode == STOPPING)  # gravity is doubted
    from_trusted = np.abs(c.after.held - c.after.trusted) <= EPS
    return ~takes | _all(from_trusted | keeps[:, None])


def held_positions_move_by_slip_alone(c: Step) -> Any:
    """Held positions change only when drives begin to hold, or do not hold the arm."""
    rests = ~_engaged(c.before) & ~_engaged(c.after) & (c.before.hold == 1.0)
    moved = np.abs(c.after.held - c.before.held) > EPS
    off = np.abs(c.before.held - c.after.trusted) > c.settings.slip
    return _all(~(rests[:, None] & moved) | off)


def a_doubted_encoder_damps(c: Step) -> Any:
    """The drive of a joint whose encoder is doubted only damps."""
    stopped = np.isin(c.after.mode, (STOPPING, FAULT)) & (c.after.doubt == 3)
    return _all(~(_at_fault(c) & stopped[:, None]) | (c.output.stiffness == 0.0))


def a_doubted_motor_loses_its_torque(c: Step) -> Any:
    """The torque of a motor that is doubted does not grow in size."""
    stopped = np.isin(c.after.mode, (STOPPING, FAULT)) & (c.after.doubt == 5)
    stopped = stopped & ((c.settings.can_hold > 0.5) | (c.settings.on_fault != 1))
    grows = np.abs(c.after.command) > np.abs(c.before.command) + EPS
    return _all(~(_at_fault(c) & stopped[:, None] & grows))


def a_single_bad_report_stops_nothing(c: Step) -> Any:
    """A report that is refused is no fault while the one before is not too old."""
    only = _now(c)[:, None] - c.before.received < c.settings.timeout
    stale = np.isin(c.after.fault, STALE) & (c.after.mode == STOPPING)
    begins = stale & _engaged(c.before)
    return ~begins | ~_all(only)


def springs_follow_states_of_one_time(c: Step) -> Any:
    """No report is used under springs while that of a joint is refused in successive periods."""
    s = c.before
    springs = _engaged(s) & ((s.law != 0.0) | (s.law_before != 0.0))
    again = ((s.refused > 0.0) & (c.after.refused > 0.0)).any(axis=-1)
    return ~(springs & again) | _all((c.after.received == s.received) & (c.after.stamp == s.stamp))


def an_engaged_arm_is_not_stale(c: Step) -> Any:
    """No joint of an engaged arm has been without a used report for its timeout."""
    age = _now(c)[:, None] - c.after.received
    return ~_engaged(c.after) | _all(age < c.settings.timeout)


def an_engaged_arm_is_within_limits(c: Step) -> Any:
    """No commanded joint of an engaged arm is beyond its position limits."""
    p, q = c.settings, c.after.q
    return ~_engaged(c.after) | _all((p.low <= q) & (q <= p.high) | (p.commanded < 0.5))


def an_engaged_arm_is_not_too_fast(c: Step) -> Any:
    """No joint moves faster than its limit for long, by positions or by velocities."""
    p, s = c.settings, c.after
    by_positions = np.abs(s.q - s.slow_q) <= 0.04 * p.fastest + EPS
    by_velocities = (np.abs(s.mean_qd) <= p.fastest) | (np.abs(s.qd) <= p.fastest)
    return ~_engaged(c.after) | _all(by_positions & by_velocities)


def an_engaged_arm_has_no_drive_errors(c: Step) -> Any:
    """No drive of an engaged arm reports an error, heat, or motors that are apart."""
    x = c.sample
    error = (x.error != 0.0) | (x.temperature > c.settings.hottest[:, None]) | (x.apart > 0.1)
    return ~_engaged(c.after) | _all(~error | (x.reported < 0.5))


def an_engaged_arm_gets_finite_laws(c: Step) -> Any:
    """No law of an engaged arm returns a NaN."""
    return ~_engaged(c.after) | _all(np.isfinite(c.sample.law))


def an_engaged_arm_has_motors_that_obey(c: Step) -> Any:
    """No measured effort of an engaged arm contradicts its command for long."""
    return ~_engaged(c.after) | _all(c.after.deviations < 75.0)


def an_engaged_arm_is_not_frozen(c: Step) -> Any:
    """No joint moves by its velocity while its position stays the same."""
    s, timeout = c.after, c.settings.frozen_timeout[:, None]
    since = s.stamp - s.changed_at
    new = s.stamp > c.before.stamp
    return ~_engaged(c.after) | _all((since < timeout) | ~new)


def an_engaged_arm_is_called_in_time(c: Step) -> Any:
    """A pause between two periods, or a time that stands still, stops an engaged arm."""
    pause = c.after.now - c.before.now
    late = (pause >= c.settings.longest_pause) & (c.request.sends > 0.5)
    return ~(_engaged(c.before) & _engaged(c.after)) | ~(late | (c.after.stood >= 5))


def unverified_torques_grow_slowly(c: Step) -> Any:
    """Torques that nothing has shown to be right act by no more than their share of evidence."""
    ramps = (c.after.mode == RAMPING_IN) & (c.after.weighing > 0.5)
    return ~ramps | (c.after.share <= c.after.most_share + EPS)


def what_is_set_is_in_force(c: Step) -> Any:
    """Gravity, loads and gains are those that are set once their ramps are over, in any mode."""
    s, p = c.after, c.settings
    environment = (s.lag == 0.0).all(axis=-1)
    gains = ((s.scale == p.scale) & (s.damping == p.damping)).all(axis=-1)
    over = s.now[:, None] >= np.stack([s.lag_end, s.gains_end], axis=-1)
    stands = np.isnan(s.now) | (c.request.sends < 0.5) | (c.after.now == c.before.now)
    return _all(~over | np.stack([environment, gains], axis=-1)) | stands


def gravity_torques_ramp(c: Step) -> Any:
    """Other gravity and loads change the torques of an arm that is not at rest by a ramp.

    Within a period of the change, gravity torques follow the motion of the arm alone.
    """
    s, p, before = c.after, c.settings, c.before
    ramp = (p.gravity_time > 0.0) & (p.loads_time > 0.0)
    rests = np.isin(before.mode, (OFF, FAULT))
    moved = np.abs(s.q - before.q).max(axis=-1)
    step = np.abs(s.g - before.g).max(axis=-1)
    allowed = 0.05 * np.abs(p.effort).max(axis=-1)
    known = np.isfinite(step) & (moved < 0.01) & (before.hold == 0.0) & (s.hold == 0.0)
    short = _now(c) - before.now < 0.006
    return rests | ~ramp | ~known | ~short | (step <= allowed)


def ramps_end(c: Step) -> Any:
    """No ramp of gravity, loads or gains ends later than its time from now."""
    s, p = c.after, c.settings
    left = np.stack([s.lag_end, s.gains_end], axis=-1) - _now(c)[:, None]
    most = np.stack([np.maximum(p.gravity_time, p.loads_time), p.ramp_out], axis=-1)
    return _all((left <= most + EPS) | ~np.isfinite(left))


def positions_are_unwrapped(c: Step) -> Any:
    """Positions of joints without limits change by less than a turn, in whole turns of reports."""
    off = c.after.q - c.sample.q - c.after.turned
    new = c.after.stamp > c.before.stamp
    whole = np.abs(c.after.turned / (2.0 * np.pi) - np.round(c.after.turned / (2.0 * np.pi))) < EPS
    step = np.abs(c.after.q - c.before.q) <= np.pi + EPS
    known = np.isfinite(c.before.q)
    return _all((~new | (np.abs(off) < 1e-6)) & whole & (~(new & known & TURNING) | step))


def positions_that_torques_follow_do_not_jump(c: Step) -> Any:
    """No position of an engaged arm is farther from the one before than twice its speed allows."""
    step = np.abs(c.after.q - c.before.q)
    elapsed = np.maximum(c.after.stamp - c.before.stamp, 0.0)
    fine = step <= 0.05 + 2.0 * c.settings.fastest * elapsed + EPS
    return ~_engaged(c.before) | _all(fine)


def nothing_is_commanded_at_the_end(c: Step) -> Any:
    """A disabled arm that no drive holds is given no torque, and is told so."""
    rests = (c.after.mode == OFF) & (c.after.hold == 0.0)
    return ~rests | ((c.output.torque == 0.0).all(axis=-1) & (c.output.active == 0.0))


def damping_follows_new_states_alone(c: Step) -> Any:
    """A limit of the torque of an engaged arm without states: that of gravity and start."""
    old = (_now(c)[:, None] - c.after.received) >= 2.0 * c.after.interval + 1e-6
    bare = c.after.start + c.after.share[:, None] * (c.after.g - c.after.start)
    bare = np.clip(bare, -c.settings.effort, c.settings.effort)
    ends = np.abs(c.after.command - bare) <= np.abs(c.before.command - bare) + 1e-6
    known = (c.after.interval > 0.0) & (c.request.sends[:, None] > 0.5)
    return ~_engaged(c.after) | _all(~(old & known) | ends | (c.before.g != c.after.g))


def an_engaged_arm_has_laws_that_are_numbers(c: Step) -> Any:
    """Laws that are not numbers, as those of a stiffness that is none, stop an engaged arm."""
    return ~_engaged(c.after) | (c.before.broken == 0.0)


def _follows(c: Step) -> Any:
    """Whether one law, which follows joints, was and is in force."""
    same = (c.before.law == c.after.law) & np.isin(c.after.law, (1, 3))
    return same & _engaged(c.before) & _engaged(c.after)


def laws_take_over_one_after_the_other(c: Step) -> Any:
    """A law of an engaged arm is one of those that are computed, and takes over completely."""
    acts = _engaged(c.before) & _engaged(c.after)
    changed = acts & (c.before.law != c.after.law)
    over = _now(c) - c.before.law_at >= c.settings.switch_time - EPS
    collided = c.after.collided >= 0.0
    at_once = collided
    asked = (c.after.law == c.request.law) | (collided & (c.after.law == 0.0))
    fades = (c.after.law_before == c.before.law) & (c.after.law_at == _now(c))
    legal = np.isin(c.after.law, (0, 1, 2, 3, 4)) & (~changed | asked)
    return legal & (~changed | at_once | (over & fades))


def a_law_that_has_faded_is_forgotten(c: Step) -> Any:
    """Otherwise a longer switch_time would bring it back, with a reference of long ago."""
    fades = _now(c) - c.after.law_at < c.settings.switch_time + EPS
    return fades | (c.after.law_before == c.after.law)


def references_are_numbers(c: Step) -> Any:
    """References of an engaged arm are numbers, whatever is requested."""
    s = c.after
    poses = s.pose.reshape(*s.pose.shape[:-2], 12)
    rows = [s.reference, s.reference_qd, s.reference_qdd, s.fading, s.fading_qd, s.twist, poses]
    return ~_engaged(s) | _all(np.isfinite(np.concatenate(rows, axis=-1)))


def references_rotate(c: Step) -> Any:
    """The reference of a link is a pose while a law follows it."""
    s = c.after
    R = s.pose[..., :3]
    off = np.abs(np.swapaxes(R, -1, -2) @ R - np.eye(3)).max(axis=(-2, -1))
    follows = np.isin(s.law, OF_LINKS) | np.isin(s.law_before, OF_LINKS)
    return ~(_engaged(s) & follows) | (off < 2e-3)


def references_are_slow_enough(c: Step) -> Any:
    """A reference that approaches a target keeps the limits of velocity and acceleration.

    One that plays a trajectory keeps the velocity limits of the joints.
    """
    s, p = c.after, c.settings
    dt = (s.now - c.before.now)[:, None]
    change = np.abs(s.reference_qd) - np.abs(c.before.reference_qd)
    slow = np.abs(s.reference_qd) <= p.reference_velocity + 1e-6
    smooth = change <= p.reference_acceleration * dt + 1e-6
    moved = np.abs(s.reference - c.before.reference) <= p.reference_velocity * dt + 1e-6
    plays = np.isfinite(c.before.played) | np.isfinite(s.played)
    possible = np.abs(s.reference - c.before.reference) <= p.fastest * dt + 1e-6
    return ~_follows(c) | np.where(plays, _all(possible), _all(slow & smooth & moved))


def references_stay_within_limits(c: Step) -> Any:
    """No reference leads past a position limit, or on past it from beyond."""
    s, p, x = c.after, c.settings, c.before.reference
    low, high = np.minimum(p.spring_low, x), np.maximum(p.spring_high, x)
    plays = np.isfinite(c.before.played) | np.isfinite(s.played)
    return ~_follows(c) | plays | _all((low - EPS <= s.reference) & (s.reference <= high + EPS))


def references_wait_for_the_arm(c: Step) -> Any:
    """A reference that leads an arm by its lead goes no further away."""
    s, off = c.after, c.before.reference - c.after.trusted
    leaves = (s.reference - c.before.reference) * np.sign(off)
    far = np.abs(off) >= c.before.lead
    return ~_follows(c) | _all(~far | (leaves <= 1e-9))


def nothing_moves_that_was_requested_before(c: Step) -> Any:
    """A reference speeds up only by a motion that was requested since torques were enabled."""
    faster = np.abs(c.after.reference_qd) > np.abs(c.before.reference_qd) + EPS
    return ~_follows(c) | (c.after.obeys > 0.5) | _all(~faster)


def motions_are_obeyed_once_they_are_new(c: Step) -> Any:
    """The number of a motion that is followed has changed while torques were enabled."""
    begins = (c.after.obeys > 0.5) & ~(c.before.obeys > 0.5)
    return ~begins | (_engaged(c.before) & (c.request.motion != c.before.motion))


def trajectories_end_where_the_arm_is(c: Step) -> Any:
    """A trajectory has ended once the measured arm is at its end, and plays no faster than time."""
    s = c.after
    ends = (s.ended > 0.5) & ~(c.before.ended > 0.5)
    near = (np.abs(c.before.reference - s.trusted) <= 0.03 + EPS) | (c.before.lead > 1e6)
    step = np.nan_to_num(s.played - c.before.played)
    fine = (step >= -EPS) & (step <= s.now - c.before.now + EPS)
    same = c.request.motion == c.before.motion
    return (~ends | _all(near)) & (~(_follows(c) & same) | fine)


def gains_of_laws_are_in_force(c: Step) -> Any:
    """Gains of springs are those that are set once their ramp is over, which ends in time."""
    s, p = c.after, c.settings
    rows = [(s.joint_stiffness, p.joint_stiffness), (s.link_stiffness, p.link_stiffness)]
    gains = [_all((a == b) | np.isnan(b)) for a, b in rows]
    equal = np.stack([*gains, s.link_axes == p.link_axes], axis=-1)
    over = (s.now >= s.springs_end) & (c.request.sends > 0.5) & (s.now > c.before.now)
    late = s.springs_end - _now(c) > p.switch_time + EPS
    return (~over | _all(equal)) & ~late


def _excess(c: Step) -> Any:
    """External torques of an arm that is watched and has settled, relative to their thresholds."""
    s, p = c.after, c.settings
    watched = p.impact_threshold < 1e12
    impact = np.abs(s.sustained - s.drift - s.trend)
    ratios = np.maximum(impact / p.impact_threshold, np.abs(s.sustained) / p.sustained_threshold)
    settled = (s.contact_time >= 0.5)[:, None]
    return np.where(watched & settled, ratios, 0.0).max(axis=-1)


def an_engaged_arm_is_not_pushed(c: Step) -> Any:
    """External torques of an engaged arm beyond thresholds are a collision."""
    return ~(_engaged(c.before) & _engaged(c.after)) | (_excess(c) <= 1.0 + 1e-9) | _collided(c)


def _collided(c: Step) -> Any:
    return c.after.collided >= 0.0


def collisions_begin_with_a_contact(c: Step) -> Any:
    """A collision of an engaged arm is one of external torques beyond thresholds."""
    begins = _collided(c) & (c.before.collided < 0.0)
    return ~begins | ((_excess(c) >= 1.0 - 1e-9) & _engaged(c.before))


def a_collision_stops_the_arm_if_it_must(c: Step) -> Any:
    """An arm that is to stop at a collision does not stay engaged."""
    stops = _collided(c) & (c.settings.on_collision == 0.0)
    return ~stops | ~_engaged(c.after)


def an_arm_floats_after_a_collision(c: Step) -> Any:
    """No law moves an engaged arm after a collision; it yields to no more than the contact."""
    floats = _collided(c) & _engaged(c.after)
    return ~floats | ((c.after.law == 0.0) & (c.after.law_before == 0.0) & (c.after.obeys == 0.0))


def a_collision_is_forgotten_by_request_alone(c: Step) -> Any:
    """An arm stays as a collision has left it until it is enabled, or cleared while engaged."""
    ends = (c.before.collided >= 0.0) & ~_collided(c)
    cleared = (c.request.action == 3) & _engaged(c.before)
    return ~ends | _begins(c) | cleared


def arms_yield_for_a_short_time(c: Step) -> Any:
    """An arm goes along with a contact for half a second, if it is to yield."""
    left = c.after.yields_until - _now(c)
    yields = (c.settings.on_collision == 2.0) & _collided(c)
    return ~(left > 0.5 + EPS) & (yields | ~(left > 0.0))
