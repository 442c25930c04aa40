# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The guarded period: invariants of random histories, and mutants that they find."""

import copy
import inspect

import invariants
import numpy as np
import pytest
from cases import mostly_slow
from invariants import LEGAL
from random_periods import PERIOD, TURNING, Histories, N, settings

from mbs_dynamics.algorithms.kernels import traced_on
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.control.period import (
    checks,
    collisions,
    command,
    following,
    measurement,
    ramps,
    references,
    transitions,
)
from mbs_dynamics.control.period.checks import CHECKS
from mbs_dynamics.control.period.function import initial
from mbs_dynamics.control.period.laws import FLOAT, JOINT, LINK
from mbs_dynamics.control.period.records import Request, Sample, State
from mbs_dynamics.control.period.transitions import TRANSITIONS

INVARIANTS = [
    function
    for name, function in inspect.getmembers(invariants, inspect.isfunction)
    if not name.startswith("_")
]
"""All of them: one that is written cannot be left out of a list."""


def violated(layouts, seed, count, steps):
    """Return the first invariant that does not hold, with history and step; None if all hold.

    Where all hold, every transition must have been taken: an arm that is never enabled is safe.
    """
    histories, taken = Histories(count, seed, layouts), set()
    with np.errstate(all="ignore"):
        for step in range(steps):
            found = histories.step()
            for invariant in INVARIANTS:
                holds = invariant(found)
                if not holds.all():
                    return invariant.__name__, int(np.flatnonzero(~holds)[0]), step
            changed = found.before.mode != found.after.mode
            taken |= set(zip(found.before.mode[changed], found.after.mode[changed], strict=True))
    missing = LEGAL - taken
    return f"no transition {sorted(missing)}" if missing else None


@pytest.mark.long
@pytest.mark.parametrize("seed", mostly_slow(range(10), [0]))
def test_invariants_hold_in_a_million_random_periods(layouts, seed):
    assert violated(layouts, seed, 1000, 1000) is None


@pytest.mark.parametrize(
    ("bad", "reason"), [(np.nan, measurement.NOT_FINITE), (1.0, measurement.JUMP)]
)
@pytest.mark.parametrize(
    ("law", "law_before", "mode", "waits"),
    [
        (JOINT, JOINT, transitions.ON, True),
        (LINK, LINK, transitions.RAMPING_IN, True),
        (FLOAT, JOINT, transitions.ON, True),
        (FLOAT, FLOAT, transitions.ON, False),
        (JOINT, JOINT, transitions.RAMPING_OUT, False),
    ],
)
def test_springs_wait_for_a_joint_whose_reports_are_refused(
    layouts, law, law_before, mode, waits, bad, reason
):
    """From the second period on, until one is used; other laws follow the other joints."""
    p = settings(layouts)
    zero, one = np.zeros(N), np.ones(N)
    at_rest = {"now": 1.0, "stamp": one, "received": one, "q": zero}
    s = initial(p)._replace(mode=mode, law=law, law_before=law_before, **at_rest)
    used = []
    for k, refused in enumerate([True, True, True, False]):
        now = 1.0 + PERIOD * (k + 1)
        q = np.array([0.0, bad if refused else 0.0, 0.0])
        x = Sample(now, now * one, now * one, one, q, *[zero] * 6, 1.0, zero)
        m = measurement.measured(s, x, p, TURNING, transitions.is_engaged(s.mode))
        s = s._replace(**{name: getattr(m, name) for name in m._fields if name in State._fields})
        used.append([bool(new) for new in m.new])
        assert s.refused[1] == (reason if refused else 0.0)
    others = [True, not waits, not waits, True]
    assert used == [[new, k == 3, new] for k, new in enumerate(others)]


@pytest.mark.parametrize(
    ("gaps", "missing", "stale"),
    [
        ([1] * 5, 4, [False] * 5),  # the last one has its state again
        ([1] * 5, 5, [False] * 4 + [True]),
        ([1, 8, 1], 0, [False] * 3),  # a pause of the loop, with a valid state after it
        ([1, 8, 1], 3, [False, True, True]),
    ],
)
def test_joint_is_stale_at_its_fifth_missing_state_but_not_because_of_a_pause(
    layouts, gaps, missing, stale
):
    """As in the exported controller, whose loop may pause for longer than a state is missing."""
    one = np.ones(N)
    p = settings(layouts, timeout=4.5 * PERIOD * one, longest_pause=10.0 * PERIOD)
    known = dict.fromkeys(("stamp", "received"), one)
    s = initial(p)._replace(now=1.0, mode=transitions.ON, q=0.0 * one, trusted=0.0 * one, **known)
    kind = [check.kind for check in CHECKS].index("stale")
    state, now, found = layouts.state.packed(s), 1.0, []
    request = layouts.request.packed(Request(*np.zeros(len(Request._fields))))
    for k, gap in enumerate(gaps):
        now += gap * PERIOD
        q = np.where(np.arange(N) == 1, np.nan if k < missing else 0.0, 0.0)
        x = Sample(now, now * one, now * one, one, q, *[0.0 * one] * 6, 1.0, 0.0 * one)
        result = layouts(state, layouts.sample.packed(x), request, layouts.settings.packed(p))
        joint = layouts.verdict.unpacked(result.verdict).joint[kind]
        assert joint == 1.0 or np.isnan(joint)
        found.append(bool(joint == 1.0))
        state = layouts.state.packed(layouts.state.unpacked(result.state)._replace(mode=s.mode))
    assert found == stale


# -- mutants ---------------------------------------------------------------------------------------


def without_check(kind):
    """A mutant in which a check never fails."""

    def findings(context):
        conditions, *rest = (found := FINDINGS(context))[kind]
        return found | {kind: (conditions & False, *rest)}

    return checks, "findings", findings


def without_doubt(k):
    changed = CHECKS[k]._replace(doubt=checks.NOTHING)
    return checks, "CHECKS", (*CHECKS[:k], changed, *CHECKS[k + 1 :])


def without_transition(k):
    return transitions, "TRANSITIONS", (*TRANSITIONS[:k], *TRANSITIONS[k + 1 :])


def without_rates(s, p, torque, now):
    return LIMITED(s, p._replace(rate=1e12 + 0.0 * p.rate), torque, now)


def without_request(field):
    """A mutant that commands what is wanted as if a field of the request were zero."""

    def wanted(s, x, r, *others):
        return WANTED(s, x, r._replace(**{field: 0.0 * getattr(r, field)}), *others)

    return command, "wanted", wanted


def always_forgotten(s, forgets, settles):
    return FORGOTTEN(s, forgets, settles)._replace(collided=-1.0 + 0.0 * s.collided)


def without_lag(*given):
    """A mutant whose gravity torques follow other loads at once."""
    return ENVIRONMENT(*given)._replace(lag=0.0 * given[0].lag)


ENVIRONMENT, FINDINGS = ramps.with_environment, checks.findings
LIMITED, WANTED = command.limited, command.wanted
HIT, FORGOTTEN = collisions.hit, collisions.without_collision

DETECTED_BY_OTHERS = {"effort_limit", "reference", "contact"}
"""Checks beside which others do the same: gravity overloads a joint whose limit is 0,
a motion that is none is not followed, and an arm floats after a contact without being
told so. Their sentences tell users why."""

MUTANTS = {
    **{f"no check {c.kind}": without_check(c.kind) for c in CHECKS
       if c.kind not in DETECTED_BY_OTHERS},
    **{f"no doubt of {c.kind}": without_doubt(k) for k, c in enumerate(CHECKS) if c.doubt},
    **{f"no transition if {t.when} {k}": without_transition(k) for k, t in enumerate(TRANSITIONS)},
    "springs follow states of different times": (measurement, "springs_act", lambda s: np.False_),
    "jumps are followed": (measurement, "SLACK", 1e9),
    "other loads act at once": (ramps, "with_environment", without_lag),
    "no effort limit": (command, "limited", lambda s, p, torque, now: torque),
    "no rate limit": (command, "limited", without_rates),
    "drives never hold": (command, "with_hold", lambda s, *_: s),
    "another holder does not end torques": without_request("holds"),
    "torques do not wait": without_request("holder"),
    "references run away": (references, "slowed_by", lambda ahead, lead: 1.0 + 0.0 * ahead),
    "motions that are none are followed": (following, "is_sound", lambda *_: np.True_),
    "laws go on after a collision": (collisions, "floats", lambda s, p: np.False_),
    "contacts are not observed": (
        collisions, "hit", lambda s, p, engaged: HIT(s, p, engaged & False)),
    "collisions are forgotten": (collisions, "without_collision", always_forgotten),
    "arms yield for good": (collisions, "YIELDING", 1e9),
    "trajectories end before the arm": (references, "ARRIVED", 1e9),
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_of_the_period_violates_an_invariant(name, layouts, monkeypatch):
    monkeypatch.setattr(*MUTANTS[name])
    mutant = copy.copy(layouts)
    parts = ("state", "sample", "request", "settings")
    shapes = {each: (getattr(layouts, each).size,) for each in parts}
    mutant.kernel = Kernel(traced_on(layouts.model, layouts.equations, shapes, name="mutant"))
    found = any(violated(mutant, seed, 1000, 1000) for seed in range(3))
    assert found, "no invariant is violated"
