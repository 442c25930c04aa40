# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Sentences for the findings of a period."""

from __future__ import annotations

import math
from collections.abc import Sequence

from mbs_dynamics.control.faults import Doubt, Fault
from mbs_dynamics.control.period import transitions
from mbs_dynamics.control.period.checks import CHECKS
from mbs_dynamics.control.period.evidence import DISAGREES, RISES, SINKS
from mbs_dynamics.control.period.measurement import BACKWARDS, JUMP, LATE, NOT_FINITE
from mbs_dynamics.control.period.records import State, Verdict

MODES = {
    transitions.OFF: "disabled",
    transitions.RAMPING_IN: "ramping in",
    transitions.ON: "enabled",
    transitions.RAMPING_OUT: "ramping out",
    transitions.STOPPING: "fault",
    transitions.FAULT: "fault",
}
"""Names of the modes for users."""

OPPOSED = {
    RISES: "{joint} rises by {value:.3g} while gravity torques grow: something else "
    "carries the arm. Does its driver compensate gravity itself, is the arm mounted otherwise, is "
    "a mass wrong?",
    SINKS: "{joint} sinks at {value:.3g}, faster and faster, under the whole gravity torques: is "
    "the sign of its torque wrong, or a mass?",
    DISAGREES: "the drives hold the arm with other efforts than gravity needs: does its driver "
    "compensate gravity itself, is a sign or a factor of the efforts wrong, is the arm mounted "
    "otherwise?",
}

REFUSED = {
    NOT_FINITE: "a number of its latest report is NaN, infinite or absurd",
    LATE: "the stamp of its latest report is {value:.6g} s later than now",
    BACKWARDS: "the stamp of its latest report is not after that of the report before: {value:.6g}",
    JUMP: "it jumped by {value:.4g}",
}


SILENT = "no valid state so far of {joint}"
"""Sentence of the check "stale" for a joint that has not reported yet."""

FORBIDDING = tuple(check.kind for check in CHECKS if check.forbids)


def sentence(
    k: int, joint: float, value: float, limit: float, s: State, names: Sequence[str]
) -> str:
    """Return the finding of the check ``k`` of CHECKS in words.

    ``names`` are those of the joints.
    """
    check = CHECKS[k]
    name = names[int(joint)] if joint >= 0.0 else "the arm"
    if check.kind in ("support", "opposed"):
        name = names[int(s.opposed_joint)] if s.opposed_joint >= 0.0 else name
        return OPPOSED[float(s.opposed)].format(joint=name, value=value)
    if check.kind == "refused":
        return f"{name}: " + REFUSED[value].format(value=limit)
    if check.kind == "stale" and math.isinf(value):
        return SILENT.format(joint=name)
    return check.sentence.format(joint=name, value=value, limit=limit)


def problems(v: Verdict, s: State, names: Sequence[str], kinds: Sequence[str] = ()) -> list[str]:
    """Return the findings of failed checks of these kinds, in words.

    By default these are all checks that forbid enabling. ``names`` are those of the joints.
    """
    kinds = kinds or FORBIDDING
    return [
        sentence(k, float(v.joint[k]), float(v.value[k]), float(v.limit[k]), s, names)
        for k, check in enumerate(CHECKS)
        if check.kind in kinds and not math.isnan(v.joint[k])
    ]


def fault_of(s: State, names: Sequence[str], places: Sequence[int]) -> Fault | None:
    """Return the latched fault of a state; None if there is none, or for an external reason.

    ``places`` are the coordinates of the commanded joints; the fault counts them in this order.
    """
    if not s.fault > 0.0:
        return None
    k, joint = int(s.fault) - 1, float(s.fault_joint)
    text = sentence(k, joint, float(s.fault_value), float(s.fault_limit), s, names)
    doubtful = (list(places).index(int(joint)),) if int(joint) in places else ()
    return Fault(CHECKS[k].kind, text, Doubt(float(s.doubt)), doubtful)
