# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command of a period: the hold of the drives, and the torques, within all limits.

Drives that can hold the arm do so by their position loops whenever torques do not, with the gravity
torques of the held positions fed forward. The change from one to the other leaves no gap. Other
arms are released by ramping torques out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mbs_dynamics.compiler import abs, equal, isnan, less, less_equal, select
from mbs_dynamics.control.period.checks import ENCODER, GRAVITY, MOTOR
from mbs_dynamics.control.period.logic import (
    all_of,
    clipped,
    first_of,
    holds,
    is_one_of,
    largest,
    max,
    min,
)
from mbs_dynamics.control.period.records import LAG, NEVER, Output, Request, Sample, Settings, State
from mbs_dynamics.control.period.torques import Torques
from mbs_dynamics.control.period.transitions import (
    FAULT,
    ON,
    RAMPING_IN,
    RAMPING_OUT,
    RELEASED,
    STOPPING,
    is_engaged,
)

RAMP_DOWN, HOLD_TORQUE, ZERO = 0.0, 1.0, 2.0
"""Reactions to a fault where no drive holds the arm."""


def at_fault(s: State, doubt: float) -> Any:
    """Return the conditions (n,) that a latched fault raises this doubt about a joint."""
    is_fault = equal(s.doubt, doubt) & ~equal(s.fault, 0.0)
    joints = range(len(s.q))
    return np.array([is_fault & equal(s.fault_joint, float(k)) for k in joints], dtype=object)


def with_hold(
    s: State, r: Request, p: Settings, entered: Any, q: Any, begins: Any, now: Any
) -> State:
    """Return the state with the share of the drives' hold, and the positions that they hold.

    ``entered``: the mode is new; ``begins``: the drives are requested to hold the arm. They hold
    the present positions q (n,), except that they keep the previous ones while gravity is doubted.
    """
    can_hold, elapsed = holds(p.can_hold), now - s.since
    fades = 1.0 - min(1.0, max(elapsed, 0.0) / max(p.hand_over, 1e-9))
    hold = select(equal(s.mode, RAMPING_IN), 1.0 * can_hold, s.hold)
    hold = select(equal(s.mode, ON), select(can_hold, min(s.hold, fades), 0.0), hold)
    released = is_one_of(s.mode, (RAMPING_OUT, STOPPING))
    hold = select((released & can_hold) | begins, 1.0, hold)
    keeps = equal(s.doubt, GRAVITY) & equal(s.mode, STOPPING)
    anew = (entered & is_one_of(s.mode, (RAMPING_IN, RAMPING_OUT, STOPPING)) & ~keeps) | begins
    unknown = any_unknown(s.held)
    held = select(anew | unknown, q, s.held)
    switched = ~equal(1.0 * less(0.0, hold), 1.0 * less(0.0, s.hold))
    elsewhere = 1.0 * holds(r.holds)
    switched = switched | ~equal(elsewhere, s.held_elsewhere)
    return s._replace(
        hold=hold,
        held=held,
        held_elsewhere=elsewhere,
        switched_at=select(switched, now, s.switched_at),
    )


def any_unknown(values: Any) -> Any:
    """Return the condition that one of some values is NaN."""
    return ~all_of(~isnan(values))


def with_slip(s: State, x: Sample, p: Settings, q: Any, entered: Any) -> State:
    """Return the state whose held positions follow an arm that its drives do not hold.

    Drives may be without power or overloaded, and would later throw the arm back to distant
    positions. A doubted encoder is not followed.
    """
    ahead = s.held - q
    follows = equal(s.hold, 1.0) & ~is_engaged(s.mode) & equal(sum(abs(x.nudge)), 0.0)
    off = less(p.slip, abs(ahead)) & ~at_fault(s, ENCODER) & follows
    near = q + clipped(ahead, -p.slip, p.slip)
    joint, _, _ = first_of(off, ahead, p.slip)
    before = select(entered, -1.0, s.slipped)
    return s._replace(
        held=select(off, near, s.held),
        slipped=select(isnan(joint) | less_equal(0.0, before), before, joint),
    )


def release_began(s: State, r: Request, p: Settings) -> Any:
    """Return the time at which torques begin to ramp out.

    If another controller is to hold the arm, the full torques wait for it while trusted states
    arrive, for at most ``p.release``.
    """
    latest = largest(select(holds(p.commanded), s.received, -math.inf))
    waited = max(s.since, min(latest, s.since + p.release))
    return select(holds(r.holder) & ~holds(s.doubted), waited, s.since)


def wanted(
    s: State, x: Sample, r: Request, p: Settings, t: Torques, acts: Any
) -> tuple[State, Any, Any, Any]:
    """Return the state with the share of gravity torques, and the torques (n,) to command.

    For a release, also return its present target torques (n,), and the condition that these have
    reached their final values. ``acts`` (n,) are the conditions that states are recent enough for
    damping and assist.
    """
    engaged, can_hold = is_engaged(s.mode), holds(p.can_hold)
    elapsed = max(x.now - s.since, 0.0)
    ramp = select(less(elapsed, p.ramp_in), elapsed / max(p.ramp_in, 1e-9), 1.0)
    share = select(equal(s.mode, RAMPING_IN), min(ramp, s.most_share), s.share)
    share = select(equal(s.mode, ON), 1.0, share)
    held_by_drives = ~engaged & equal(s.hold, 1.0)
    share = select(held_by_drives, s.most_share, share)
    base = s.start + share * (t.gravity - s.start)
    base = select(less(abs(base), NEVER), base, s.command)  # this replaces NaN as well
    base = clipped(base, -p.effort, p.effort)

    left = max(0.0, 1.0 - max(x.now - release_began(s, r, p), 0.0) / p.ramp_out)
    left = select(holds(r.holds), 0.0, left)
    stops = is_one_of(s.mode, (STOPPING, FAULT))
    wrong = stops & equal(s.doubt, GRAVITY)
    left = select(stops & equal(p.on_fault, ZERO) & ~holds(s.lets_go) & ~wrong, 0.0, left)
    left = select(is_one_of(s.mode, RELEASED), 0.0, left)
    left = select(held_by_drives, 1.0, left)
    # zero after the ramp, and if something else carries the arm
    goes_on = less(0.0, left) & (held_by_drives | ~wrong)
    released = select(goes_on, left * base, 0.0)
    keeps = stops & equal(p.on_fault, HOLD_TORQUE) & ~can_hold & ~equal(s.doubt, GRAVITY)
    keeps = keeps & ~holds(s.lets_go) & ~holds(r.holds)
    released = select(keeps, s.carried, released)
    released = select(at_fault(s, MOTOR), 0.0, released)
    released = released + select(held_by_drives, x.nudge, 0.0)
    released = clipped(released, -p.effort, p.effort)

    dissipates = (engaged | less(0.0, left)) & ~held_by_drives & ~holds(s.rates_doubted)
    damps = acts & dissipates & ~(at_fault(s, MOTOR) & ~engaged)
    assists = acts & (engaged & ~holds(s.rates_doubted))
    torque = select(engaged, base, released)
    torque = torque + select(damps, t.damping, 0.0) + share * select(assists, t.assist, 0.0)
    ends = held_by_drives | equal(left, 0.0) | keeps
    carried = select(engaged, base, s.carried)
    s = s._replace(share=share, carried=carried)
    return s, clipped(torque, -p.effort, p.effort), released, ends


def limited(s: State, p: Settings, torque: Any, now: Any) -> Any:
    """Return the command (n,): the torque within the limits of rate and effort, and finite."""
    step = p.rate * select(isnan(s.commanded_at), 0.0, max(now - s.commanded_at, 0.0))
    command = clipped(torque, s.command - step, s.command + step)
    command = select(less(abs(command), NEVER), command, s.command)
    return clipped(command, -p.effort, p.effort)


def expected(s: State, p: Settings, command: Any, q: Any, qd: Any) -> Any:
    """Return the efforts (n,) that follow from a command, with the position loops of the drives."""
    loops = p.stiffness * (s.held - q) - p.drive_damping * qd
    return command + select(less(0.0, s.hold), s.hold * loops, 0.0)


def remembered(
    s: State, r: Request, p: Settings, command: Any, arrived: Any, behind: Any, now: Any
) -> State:
    """Return the state after a command.

    ``arrived``: it completes a release; ``behind``: the rate limit changed it.
    """
    efforts = expected(s, p, command, s.q, s.qd)
    asked = np.vstack([efforts[None], s.asked[: LAG - 1]])
    sends = holds(r.sends)
    at_limit = less_equal(p.effort, abs(command)) & holds(p.commanded)
    engaged = is_engaged(s.mode)
    since = select(at_limit & engaged, min(s.saturated_since, now), np.inf)
    return s._replace(
        command=select(sends, command, s.command),
        commanded_at=select(sends, now, s.commanded_at),
        asked=select(sends, asked, s.asked),
        asked_count=select(sends, s.asked_count + 1.0, s.asked_count),
        saturated_since=select(sends, since, s.saturated_since),
        behind=select(sends, 1.0 * behind, s.behind),
        arrived=select(sends, 1.0 * arrived, 0.0),
    )


def output(s: State, p: Settings) -> Output:
    """Return the command to the drives."""
    engaged = is_engaged(s.mode)
    motor, encoder = at_fault(s, MOTOR) & ~engaged, at_fault(s, ENCODER) & ~engaged
    # the position loop of a doubted motor exerts the torque that the motor would not
    motor = motor & less(abs(s.g), NEVER)
    stretched = s.held + select(motor, s.g / max(p.stiffness, 1e-9), 0.0)
    position = select(less(0.0, s.hold), stretched, s.q) - s.turned
    active = less(0.0, s.hold) | engaged | less(0.0, sum(abs(s.command)))
    return Output(
        torque=s.command,
        position=position,
        stiffness=select(encoder, 0.0, s.hold),
        damping=s.hold,
        active=1.0 * active,
    )
