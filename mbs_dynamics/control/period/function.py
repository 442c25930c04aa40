# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""One period of an arm under guard, as one function of numbers.

    state', output, verdict = period(state, sample, request, settings)

It has no clock, no memory and no branches: it is traced, compiled and exported like any algorithm,
and is identical in Python, in batches and in C. Its steps are, in this order: accept or refuse the
reports; evaluate the checks; change the mode by one table; compute torques at the trusted state;
limit the command.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import mbs_dynamics as mbs
from mbs_dynamics.algorithms.kernels import compiled_on, model_inputs
from mbs_dynamics.algorithms.verification import verify
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel, abs, equal, isnan, less, less_equal, select
from mbs_dynamics.control.period import (
    checks,
    collisions,
    command,
    evidence,
    logic,
    measurement,
    ramps,
    transitions,
)
from mbs_dynamics.control.period.following import (
    GAINS,
    GRAVITY_ALONE,
    Arm,
    Traced,
    floats,
    is_sound,
    law_torques,
    with_law,
)
from mbs_dynamics.control.period.laws import Inertia
from mbs_dynamics.control.period.logic import all_of, any_of, clipped, holds, max
from mbs_dynamics.control.period.records import (
    NEVER,
    Layout,
    Output,
    Request,
    Result,
    Sample,
    Settings,
    State,
    Verdict,
)
from mbs_dynamics.control.period.torques import gravity_torques, torques
from mbs_dynamics.control.turns import turning
from mbs_dynamics.errors import BackendError
from mbs_dynamics.model.model import Model, without_payloads
from mbs_dynamics.representation import AUTO
from mbs_dynamics.representation.tree import Tree

ROUNDING = 1e-9
"""Tolerance of comparisons of torques, as a share of the effort limit."""


class Period:
    """The period of the arms of a model: layouts of the records, and the compiled function.

    Gravity and loads are inputs, so that changing them compiles nothing. ``traced`` are the laws
    that it computes; the records do not depend on them.
    """

    def __init__(self, model: Model, algorithm: str = AUTO, traced: Traced = GRAVITY_ALONE) -> None:
        representation = "body_fixed" if algorithm == AUTO else algorithm
        carrying = without_payloads(model)
        for body in carrying.body_names:
            carrying = carrying.with_payload(body, 0.0)
        self.model, self.traced, self.representation = carrying, traced, representation
        sizes = {"n": model.n, "b": carrying.nb, "checks": len(checks.CHECKS)}
        self.state = Layout(State, sizes)
        self.sample = Layout(Sample, sizes)
        self.request = Layout(Request, sizes)
        self.settings = Layout(Settings, sizes)
        self.output = Layout(Output, sizes)
        self.verdict = Layout(Verdict, sizes)
        names = ("state", "sample", "request", "settings")
        shapes = {name: (getattr(self, name).size,) for name in names}
        key = ("period", representation, traced)
        self.kernel: Kernel = compiled_on(carrying, key, self.equations, shapes, name="period")
        self.model_inputs = model_inputs(carrying, self.kernel)

        self._torques = mbs.compile(mbs.gravity_torques, carrying, representation=representation)

    def tracing(self, traced: Traced) -> Period:
        """Return the period that computes other laws."""
        if traced == self.traced:
            return self
        return Period(self.model, self.representation, traced)

    def gravity(self, q: FloatArray, gravity: FloatArray, loads: FloatArray) -> FloatArray:
        """Return the gravity torques (n,) at q (n,) under a gravity (3,), with loads (nb, 10)."""
        given = {"gravity": gravity, "payload": loads}
        names = [port.name for port in self._torques.inputs]
        torques: FloatArray = self._torques(
            q, *[np.ascontiguousarray(given[name]) for name in names if name in given]
        )
        return torques

    def verify(self, settings: FloatArray) -> None:
        """Raise BackendError if gravity torques of compiled code differ from the equations."""
        verify(self._torques, mbs.gravity_torques, self.model)
        p, n, rng = self.settings.unpacked(settings), self.model.n, np.random.default_rng(0)
        state = self.state.packed(initial(p))
        zero, one = np.zeros(n), np.ones(n)
        for _ in range(3):
            q = rng.uniform(-1.0, 1.0, n)
            reported = {"stamp": one, "received": one, "reported": one, "q": q, "qd": zero}
            x = self.sample.packed(Sample(now=1.0, **reported))
            r = np.zeros(self.request.size)
            r[self.request.places["sends"]] = 1.0
            result = self(state, x, r, settings)
            computed = self.state.unpacked(result.state).g
            expected = p.scale * self.gravity(q, p.gravity, p.loads)
            if not np.allclose(computed, expected, rtol=1e-9, atol=1e-9):
                raise BackendError(
                    "period: the gravity torques of the compiled code differ from the equations. "
                    "Delete the cache of compiled code (MBS_CACHE_DIR), or set MBS_BACKEND=python"
                )

    def __call__(self, state: Any, sample: Any, request: Any, settings: Any) -> Result:
        """Return the result of a period, from vectors, or from batches of them."""
        result: Result = self.kernel(state, sample, request, settings, *self.model_inputs)
        return result

    def equations(self, tree: Tree, state: Any, sample: Any, request: Any, settings: Any) -> Result:
        """Return the result of a period, from vectors of numbers or symbols."""
        s, x = self.state.unpacked(state), self.sample.unpacked(sample)
        r, p = self.request.unpacked(request), self.settings.unpacked(settings)
        after, output, verdict = period(tree, s, x, r, p, self.representation, self.traced)
        return Result(
            self.state.packed(after), self.output.packed(output), self.verdict.packed(verdict)
        )


def period(
    tree: Tree,
    s: State,
    x: Sample,
    r: Request,
    p: Settings,
    representation: str,
    traced: Traced = GRAVITY_ALONE,
) -> tuple[State, Output, Verdict]:
    """Return state, output and verdict of a period; see the module and ``records.py``."""
    n, sends = len(s.q), holds(r.sends)
    now = select(less(abs(x.now), NEVER), x.now, s.now)  # an invalid time does not advance
    now = select(isnan(s.now), now, max(now, s.now))  # time does not run backwards
    x = x._replace(now=now)
    pause = select(isnan(s.now), 0.0, now - s.now)
    dt = select(sends, pause, 0.0)
    stood = select(sends, logic.count_if(equal(pause, 0.0) & ~isnan(s.now), s.stood), s.stood)
    engaged, at_rest = transitions.is_engaged(s.mode), transitions.is_at_rest(s)
    elsewhere = holds(r.holds)

    # reports, and parameters in force
    turns = np.array(turning(tree.model))
    m = measurement.measured(s, x, p, turns, engaged)
    new_loads = ramps.changes(p.loads, s.loads)
    s = ramps.with_parameters(s, p, now, dt, at_rest, m.q)
    arm = Tree(tree.model, p.gravity, p.loads, tree.armature, tree.placements)
    here = select(holds(s.doubted), s.trusted, m.q)
    on_drives = ~engaged & equal(s.hold, 1.0)
    at = select(on_drives, s.held, here)
    g = gravity_torques(arm, s, at, representation)
    s = ramps.with_environment(s, p, g, now, dt, at_rest)
    g = g + s.lag
    M = mbs.mass_matrix(arm, at, representation=representation)
    step = max(m.elapsed, 0.0)
    share = select(less(0.0, p.filter) & ~m.restarts, step / (p.filter + step), 1.0)
    within = clipped(m.qd, -p.fastest, p.fastest)
    smooth = select(m.new, s.smooth + share * (within - s.smooth), s.smooth)

    # contact with the surroundings
    hit = collisions.Hit(np.full(n, np.False_), np.zeros(n), np.zeros(n))
    if traced.collisions:
        watched, elapsed = less(p.impact_threshold, NEVER), select(m.heard, m.advance, 0.0)
        momentum, rate = mbs.generalized_momentum(arm, here, smooth, representation=representation)
        rate = rate + m.effort + collisions.resistance(tree.model, smooth)
        s = collisions.with_contact(s, watched, elapsed, momentum, rate)
        hit = collisions.hit(s, p, engaged & ~new_loads)
        s = collisions.with_collision(s, p, hit, now)

    # checks
    measures = less(0.0, p.effort_check) & evidence.shown(m.effort, p)
    exerted = select(measures, m.effort, command.expected(s, p, s.command, m.q, m.qd))
    x = x._replace(floats=1.0 * floats(s, x, p))
    after = checks.watched(s, x, p, m, engaged, elsewhere)
    after, opposes = evidence.with_evidence(after, x, p, m, g, exerted, engaged, elsewhere, dt)
    finite = all_of(less(abs(g), NEVER) | isnan(at))
    law_fails = ~all_of(less(abs(x.law), NEVER)) | holds(s.broken)
    x = x._replace(law=select(law_fails, 0.0, x.law))
    floating = collisions.floats(s, p) if traced.collisions else np.False_
    x = x._replace(law=select(floating, collisions.yielding(s, p, smooth, now), x.law))
    sound = is_sound(s.law, r, traced)
    context = checks.Context(
        s, x, r, p, m, after, opposes, hit, engaged, pause, stood, g, law_fails, finite,
        sound,
    )  # fmt: skip
    fails, rows = checks.judged(context, n)
    code, joint, value, limit, doubt = checks.first_failing(fails, rows)

    # the mode
    conditions = {
        "fails": less(0.0, code),
        "allowed": checks.allowed(fails),
        "ramped": equal(s.share, 1.0),
        "arrived": holds(s.arrived),
        "torques act": ~equal(sum(abs(s.command)), 0.0) & equal(s.hold, 0.0),
    }
    mode = transitions.moved(s.mode, r.action, conditions)
    entered = ~equal(mode, s.mode)
    stops = entered & engaged & equal(mode, transitions.STOPPING)
    lets_go = entered & ~engaged & equal(mode, transitions.STOPPING)
    enables = entered & equal(mode, transitions.RAMPING_IN)
    clears = entered & equal(mode, transitions.OFF) & ~equal(s.fault, 0.0)
    clears = clears | (equal(r.action, transitions.CLEAR) & equal(s.mode, transitions.OFF))
    forgets = enables | (equal(r.action, transitions.CLEAR) & engaged)
    external = stops & equal(code, 0.0)
    usable = ~any_of(less_equal(p.timeout, now - m.received))
    begins_hold = transitions.begins_to_hold(s, r, p.can_hold, usable)
    doubt = select(external, r.doubt, doubt)

    # the state from which torques are computed
    rests = at_rest & ~enables
    jumps = equal(doubt, checks.ENCODER) & ~holds(p.can_hold)  # torques would follow it
    doubted = holds(s.doubted) | (stops & (equal(doubt, checks.STATE) | jumps))
    doubted = doubted & ~rests & ~enables
    rates_doubted = holds(s.rates_doubted) | (stops & equal(doubt, checks.VELOCITY))
    rates_doubted = rates_doubted & ~rests & ~enables
    known = ~command.any_unknown(m.q)
    follows = known & ~doubted
    q = select(follows, m.q, s.trusted)
    g = select(follows | holds(s.doubted) | on_drives, g, s.g)

    # the state so far
    damped = select(less(0.0, p.settle_time), p.ramp_out, 0.0)
    supported = ~at_rest & (holds(s.verified) | holds(s.proven))
    supported = supported | (equal(s.hold, 1.0) & holds(s.proven))
    measures = measures & (equal(s.hold, 1.0) | ~evidence.idle(m.effort, p))
    supported = supported | (measures & evidence.confirm(m.effort, g, p))
    start = select(at_rest & holds(p.starts_from_effort), m.effort, s.command)
    resets = enables | begins_hold
    s = after._replace(
        now=select(sends, now, s.now),
        stood=stood,
        mode=mode,
        since=select(entered | begins_hold, now, s.since),
        fault=select(stops, select(external, -1.0, code), select(clears | enables, 0.0, s.fault)),
        fault_joint=select(stops, joint, s.fault_joint),
        fault_value=select(stops, value, s.fault_value),
        fault_limit=select(stops, limit, s.fault_limit),
        doubt=select(stops, doubt, select(clears | enables, 0.0, s.doubt)),
        **{name: getattr(m, name) for name in m._fields if name in State._fields},
        doubted=1.0 * doubted,
        rates_doubted=1.0 * rates_doubted,
        trusted=q,
        g=g,
        smooth=smooth,
        verified=select(enables, 1.0 * supported, s.verified),
        start=select(
            enables,
            start,
            select(begins_hold, 0.0, select(lets_go, s.command, s.start)),
        ),
        share=select(resets | lets_go, 0.0, s.share),
        lets_go=select(lets_go, 1.0, select(enables | clears | stops, 0.0, s.lets_go)),
        asked_count=select(enables, 0.0, s.asked_count),
        settling=select(
            enables | (new_loads & engaged) | (any_of(hit.joints) & floating),
            now + p.settle_time,
            select(stops & equal(doubt, checks.GRAVITY), now + damped, s.settling),
        ),
    )
    s = s._replace(
        deviations=select(enables, 0.0, s.deviations),
        opposed=select(clears, 0.0, s.opposed),
    )
    if traced.collisions:
        s = collisions.without_collision(s, forgets, new_loads)
    s = evidence.restarted(s, m.q, resets, enables & supported)
    s = ramps.with_springs_at(s, m.q, enables)

    # the law in force, and its reference
    floating = floating & ~forgets
    s, begins, moves = with_law(
        s, r, p, m, traced, turns, engaged, transitions.is_engaged(mode), floating, now, dt
    )
    present = Arm(arm, Inertia.of(M, p.commanded), q, smooth, representation)
    s, law = law_torques(s, x, r, p, present, traced, begins, moves, dt)
    broken = ~all_of(less(abs(law), NEVER))
    law = select(broken, 0.0, law)
    s = s._replace(broken=1.0 * (broken & known))

    # torques, and the command within all limits
    s = command.with_hold(s, r, p, entered, q, begins_hold, now)
    s = command.with_slip(s, x, p, q, entered | begins_hold)
    acts = less(now - s.received, 2.0 * s.interval + 1e-9) | equal(s.interval, 0.0)
    t = torques(s, x, p, M, q, smooth, g, law, acts)
    s, torque, released, ends = command.wanted(s, x, r, p, t, acts)
    limited = command.limited(s, p, torque, now)
    arrived = ends & all_of(less_equal(abs(limited - released), ROUNDING * p.effort))
    behind = any_of(less(ROUNDING * p.effort, abs(limited - torque)))
    s = command.remembered(s, r, p, limited, arrived, behind, now)
    return s, command.output(s, p), checks.verdict(rows)


def initial(p: Settings) -> State:
    """Return the state of an arm before its first report, with the settings in force."""
    gains = {name: getattr(p, name) for name in GAINS}
    return State(
        **gains, **{f"{name}_goal": gain for name, gain in gains.items()},
        lead=p.own_lead, link_lead=p.own_link_lead, gravity=p.gravity, loads=p.loads,
        scale=p.scale, damping=p.damping, friction=p.friction, zone=p.zone, zone_goal=p.zone,
        scale_goal=p.scale, damping_goal=p.damping, friction_goal=p.friction,
        spring_low=p.spring_low + p.zone, spring_high=p.spring_high - p.zone,
    )  # fmt: skip
