# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The integrators of a mechanism on a floating base, on SE(3) x R^m: no singularities.

The state is the pose C of the base, the positions q of the m joints, the body-fixed twist V of the
base and the rates qd of the joints, flat in this order.

**Steps in canonical coordinates of the second kind.** The Euler schemes and rk4 are those in joint
coordinates. Each step begins with the coordinates of the free joint at zero, Mueller (kinematics),
Remark 4, and ends by taking them into C, so that their singularity is never near. The order is that
of the scheme. On request the twist of the base then follows from the spatial momentum of the whole,
by the momentum form of the equations of motion, Mueller (dynamics), eq. (79): M_i^s J_i^s qd =
Pi_i^s, projected by the columns of J^s that belong to the base. Gravity is the only external load,
so this momentum is known in advance.

**Munthe-Kaas steps.** runge_kutta and dormand_prince integrate the increment X of the pose, C = C_0
exp(X), with Xdot = dexp_{-X}^-1 V, eqs. (88), (89), in addition to q, V and qd.

**The implicit midpoint rule** has the spatial momentum Pi of the whole and the momenta p of the
joints as its state, and finds V and the rates v of the joints in the middle of the step:

    C_m = C_0 exp(h V / 2),    q_m = q_0 + h v / 2,
    M(q_m) (V, v) = (Ad_{C_m}^T Pi_0 + h W / 2,  p_0 + h f / 2),
    Pi_1 = Pi_0 + h Ad_{C_m}^-T W,    p_1 = p_0 + h f,
    C_1 = C_0 exp(h V),    q_1 = q_0 + h v.

W is the wrench of all applied forces in the frame of the base, and f the rate of the momenta of the
joints. For a body without joints this is momentum_midpoint, and for joints without a base the
variational midpoint scheme. It is symmetric and of order 2; where nothing acts from outside, Pi is
kept to the last bit.

**The base.** With the pose C and body-fixed twist V of the base in place of the six coordinates of
the free joint and their rates, the configuration of a mechanism is an element of SE(3) x R^m. Its
equations are those of the model with the base at the origin of its coordinates, seen from the frame
G = C C_0^-1 that makes it so: in G nothing changes but the direction of gravity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms import (
    accelerations,
    center_of_mass,
    forward_kinematics,
    jacobian,
    kinetic_energy,
    mass_matrix,
    momenta,
    twists,
)
from mbs_dynamics.algorithms.mass_matrix import factorize, solve
from mbs_dynamics.algorithms.newton_euler import Wrenches
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.errors import ArgumentError, ModelError, UnknownMethodError
from mbs_dynamics.integrate.driver import Course, Record, Run
from mbs_dynamics.integrate.events import Between, EventFunction, between_joints, between_poses
from mbs_dynamics.integrate.forces import JointForces, Law, State, check_forces
from mbs_dynamics.integrate.groups import SE3, GroupChart, Increments, pose_of
from mbs_dynamics.integrate.joints import (
    METHODS,
    Problem,
    applied_force,
    batched,
    drives,
    inertial_force,
    midpoint_damping,
    midpoint_kernels,
    momentum,
    solve_mass,
)
from mbs_dynamics.integrate.results import Event, FloatingMotion
from mbs_dynamics.integrate.schemes import (
    Arguments,
    FixedStep,
    ImplicitMidpoint,
    Layout,
    Scheme,
    Task,
    explicit,
    field_of,
    tolerances,
)
from mbs_dynamics.integrate.stepper import STEPS, Step
from mbs_dynamics.lie import se3
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.body import GROUND
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation.tree import Tree

# -- the base --------------------------------------------------------------------------------------

FACTORS = ("/x", "/y", "/z", "/rx", "/ry", "/rz")
"""Ends of the names of the joints that make up a free joint, in their order."""

BASE = 5
"""Index of the body that is the base."""


class Local(NamedTuple):
    """A state in local coordinates of the base, which are zero."""

    model: Tree
    """With gravity resolved in G."""
    q: Array
    qd: Array
    G: Array


def has_floating_base(model: Model) -> bool:
    """Return whether :func:`simulate_floating` takes a model."""
    try:
        Base(model)
    except ModelError:
        return False
    return True


class Base:
    """The free joint at the root of a model.

    Raises ModelError if the model has no such joint, or another root.
    """

    def __init__(self, model: Model) -> None:
        if not isinstance(model, Model):
            raise ArgumentError(f"model must be a Model; got {type(model).__name__}")
        names = model.joint_names[:6]
        roots = sum(parent == GROUND for parent in model.parents)
        chained = model.parents[:6] == (GROUND, 0, 1, 2, 3, 4)
        ends = all(name.endswith(end) for name, end in zip(names, FACTORS, strict=False))
        if len(names) < 6 or roots != 1 or not chained or not ends:
            raise ModelError(
                "the base must be a free joint on the ground, coordinates 0 to 5, and the only "
                f"root; the first joints are {', '.join(names)}, and there are {roots} roots"
            )
        self.model, self.m = model, model.n - 6
        zero = np.zeros(model.n)
        self.jacobian: FloatArray = jacobian(model, zero, model.body_names[BASE])[:, :6]
        """(6, 6) rates of the coordinates at zero to the body-fixed twist."""
        self.rates: FloatArray = np.asarray(np.linalg.inv(self.jacobian), dtype=np.float64)
        home = forward_kinematics(model, zero)[BASE]
        self._from_home: FloatArray = se3.inverse(home)

    # -- equations, on numbers and on symbols ------------------------------------------------------

    def local(self, model: Tree, C: Array, q: Array, V: Array, qd: Array) -> Local:
        """Return a state in local coordinates of the base, for the model or a traced tree."""
        G = C @ self._from_home
        turned = model.under(G[:3, :3].T @ np.asarray(model.gravity))
        zero = np.zeros(6)
        return Local(turned, np.concatenate([zero, q]), np.concatenate([self.rates @ V, qd]), G)

    def moved(self, at: Local, q: Array, qd: Array) -> tuple[Array, Array, Array, Array]:
        """Return C, q, V, qd of other coordinates and rates, with the same G."""
        C = SE3.product(at.G, np.asarray(forward_kinematics(at.model, q))[BASE])
        V = np.asarray(twists(at.model, q, qd, representation="body_fixed"))[BASE]
        return C, q[6:], V, qd[6:]

    # -- of many states at once --------------------------------------------------------------------

    def poses(self, C: FloatArray, q: FloatArray) -> FloatArray:
        """Return the poses of all bodies (..., nb, 4, 4)."""
        x = np.concatenate([np.zeros((*q.shape[:-1], 6)), q], axis=-1)
        found: FloatArray = (C @ self._from_home)[..., None, :, :] @ forward_kinematics(
            self.model, x
        )
        return found

    def coordinates(self, V: FloatArray, q: FloatArray, qd: FloatArray) -> State:
        """Return local coordinates and rates (..., 6 + m)."""
        zero = np.zeros((*q.shape[:-1], 6))
        rates = (self.rates @ V[..., None])[..., 0]
        return np.concatenate([zero, q], axis=-1), np.concatenate([rates, qd], axis=-1)

    def quantities(self, C: FloatArray, V: FloatArray, q: FloatArray, qd: FloatArray) -> Any:
        """Return kinetic and potential energy (...), spatial momentum and first moment (..., 3)."""
        model, (x, u) = self.model, self.coordinates(V, q, qd)
        G = C @ self._from_home
        mass = model.total_mass
        c = (G[..., :3, :3] @ center_of_mass(model, x)[..., None])[..., 0] + G[..., :3, 3]
        local = momenta(model, x, u, representation="spatial").sum(axis=-2)
        P = (np.swapaxes(se3.Ad(se3.inverse(G)), -1, -2) @ local[..., None])[..., 0]
        potential = -mass * (c @ np.asarray(model.gravity))
        return kinetic_energy(model, x, u), potential, P, mass * c


# -- the integrators -------------------------------------------------------------------------------

POSE = 16
"""Entries of a pose."""


class FloatingLayout(Layout):
    """Flat arrays of C, q, V, qd, and of momentum and first moment to conserve momentum."""

    def __init__(self, base: Base, keep_momentum: bool) -> None:
        self.base, self.keep_momentum = base, keep_momentum
        self._ends = [int(k) for k in np.cumsum([POSE, base.m, 6, base.m])]

    def pack(self, *state: FloatArray) -> FloatArray:
        """Return the array of C, V, q, qd."""
        C, V, q, qd = state
        parts = [C.reshape(*C.shape[:-2], POSE), q, V, qd]
        if self.keep_momentum:
            parts += self.base.quantities(*state)[2:]
        return np.concatenate(parts, axis=-1)

    def seen(self, x: FloatArray) -> State:
        """Return C, V, q, qd."""
        a, b, c, d = self._ends
        C = x[..., :a].reshape(*x.shape[:-1], 4, 4)
        return C, x[..., b:c], x[..., a:b], x[..., c:d]


class FloatingMidpointLayout(FloatingLayout):
    """Flat arrays of C, q, V, qd, Pi, p, and of V and v as start of the iteration."""

    def __init__(self, base: Base) -> None:
        super().__init__(base, False)

    def pack(self, *state: FloatArray) -> FloatArray:
        """Return the array of C, V, q, qd."""
        C, V, q, qd = state
        x, u = self.base.coordinates(V, q, qd)
        p = (mass_matrix(self.base.model, x) @ u[..., None])[..., 0]
        mu = p[..., :6] @ self.base.rates
        Pi = (np.swapaxes(se3.Ad(se3.inverse(C)), -1, -2) @ mu[..., None])[..., 0]
        return np.concatenate([super().pack(*state), Pi, p[..., 6:], V, qd], axis=-1)


def floating_scheme(
    method: str,
    problem: Problem,
    h: float,
    start: State,
    tolerances: tuple[float, float],
    keep_momentum: bool,
) -> Scheme:
    """Return the integrator of one of the methods of :func:`simulate` from C, V, q, qd on."""
    base = Base(problem.model)
    equations = Equations(base, problem, keep_momentum)
    implicit = method == "implicit_midpoint"
    layout = FloatingMidpointLayout(base) if implicit else FloatingLayout(base, keep_momentum)
    task = Task(layout, problem.inputs, h, layout.pack(*start))
    if method in STEPS:
        return FixedStep(task, *equations.step_kernel(method))
    if implicit:
        problem.refuse_stiff()
        return ImplicitMidpoint(task, equations.midpoint_kernels(), np.s_[..., -(6 + base.m) :])
    chart = GroupChart(SE3, 6 + 2 * base.m, Increments(), 5, problem.backend)
    stepwise = method != "dormand_prince"
    field = field_of(*equations.rate_kernel(stepwise), stepwise)
    return explicit(method, task, field, tolerances, chart)


class Equations:
    """The kernels of a floating mechanism under all forces."""

    def __init__(self, base: Base, problem: Problem, keep_momentum: bool) -> None:
        self.base, self.problem, self.keep_momentum = base, problem, keep_momentum
        self.size = POSE + 6 + 2 * base.m

    def step_kernel(self, method: str) -> tuple[Kernel, Arguments]:
        """Return the kernel of a step by one of STEPS, and its arguments."""
        features, keep = self.problem.features, self.keep_momentum

        def equations(
            model: Tree,
            x: Array,
            effort: Array,
            h: Any,
            wrenches: Array | None = None,
            joints: Array | None = None,
        ) -> Array:
            at = self.base.local(model, *self._parts(x))
            tau = self._whole(effort)
            step = Step(at.model, features, effort=tau, wrenches=wrenches, joints=joints)
            after = self.base.moved(at, *STEPS[method](step, at.q, at.qd, h[()]))
            return self._kept(model, x, after, h[()]) if keep else _flat(after)

        size = self.size + 9 * keep
        key = features, keep
        return self.problem.kernel(f"{method}_floating", equations, {"x": (size,)}, key=key)

    def rate_kernel(self, stepwise: bool) -> tuple[Kernel, Arguments]:
        """Return the kernel of (V, qd, Vdot, qdd), and its arguments.

        A ``stepwise`` one is that of a stage: it takes the beginning of the step as well.
        """
        problem = self.problem

        def rate(model: Tree, x: Array, qdd_of: Callable[[Local], Array]) -> Array:
            _, _, V, qd = parts = self._parts(x)
            at = self.base.local(model, *parts)
            qdd = qdd_of(at)
            Vd = accelerations(at.model, at.q, at.qd, qdd, representation="body_fixed")
            return np.concatenate([V, qd, np.asarray(Vd)[BASE], qdd[6:]])

        def free(
            model: Tree, x: Array, effort: Array, wrenches: Any = None, joints: Any = None
        ) -> Array:
            given = self._whole(effort), wrenches, joints
            return rate(model, x, lambda at: problem.acceleration(*at[:3], *given))

        def stage(
            model: Tree,
            x: Array,
            begun: Array,
            effort: Array,
            h: Any,
            wrenches: Any = None,
            joints: Any = None,
        ) -> Array:
            first = self.base.local(model, *self._parts(begun))
            given = self._whole(effort), wrenches, joints
            held = problem.step(first.model, *given).held(first.q, first.qd, h[()])
            return rate(
                model,
                x,
                lambda at: problem.step(at.model, *given).acceleration(at.q, at.qd, held),
            )

        key, shape = (problem.features, problem.solver), (self.size,)
        if stepwise:
            inputs = {"x": shape, "begun": shape}
            return problem.kernel("floating_stage_rate", stage, inputs, key=key)
        return problem.kernel("floating_rate", free, {"x": shape}, key=key, step=False)

    def midpoint_kernels(self) -> tuple[tuple[Kernel, Arguments], tuple[Kernel, Arguments]]:
        """Return the kernels of the next iterate of V and v, and of the state after the step."""
        n = 6 + self.base.m
        inputs = {"x": (self.size + 2 * n,), "v": (n,)}
        return midpoint_kernels(self.problem, "floating_midpoint", self._midpoint, inputs)

    # -- parts of the equations --------------------------------------------------------------------

    def _parts(self, x: Array) -> list[Array]:
        """Return C, q, V, qd."""
        m = self.base.m
        _, q, V, qd, _ = np.split(x, np.cumsum([POSE, m, 6, m]))
        return [pose_of(SE3, x), q, V, qd]

    def _whole(self, effort: Array) -> Array:
        """Return the efforts (6 + m,), zero for the base."""
        return np.concatenate([np.zeros(6), effort])

    def _kept(self, model: Tree, x: Array, after: tuple[Array, ...], h: Any) -> Array:
        """Return the state after a step with the twist that follows from the momentum, D (79)."""
        P, moment = x[-9:-3], x[-3:]
        g, mass = np.asarray(model.gravity), sum(body.inertia.mass for body in model.bodies)
        turned = np.cross(h * moment + (0.5 * h * h) * P[3:], g)
        P_new = P + np.concatenate([turned, (h * mass) * g])
        moment = moment + h * P[3:] + (0.5 * h * h * mass) * g
        C, q, V, qd = after
        at = self.base.local(model, C, q, V, qd)
        M = np.asarray(mass_matrix(at.model, at.q, representation="body_fixed"))
        J = self.base.jacobian
        momentum = J.T @ (se3.Ad(C).T @ P_new) - M[:6, 6:] @ qd
        rates = solve(*factorize(at.model, M[:6, :6]), momentum)
        return np.concatenate([_flat((C, q, J @ rates, qd)), P_new, moment])

    def _solved(self, at: Any, mu: Array, p: Array, armature: Any = 0.0) -> Array:
        """Return V and v with the momenta mu, in the frame of the base, and p."""
        J = self.base.jacobian
        rates = solve_mass(at.model, at.q, np.concatenate([J.T @ mu, p]), armature)
        return np.concatenate([J @ rates[:6], rates[6:]])

    def _midpoint(
        self,
        model: Tree,
        x: Array,
        v: Array,
        effort: Array,
        h: Any,
        wrenches: Any = None,
        joints: Any = None,
        *,
        finished: bool,
    ) -> Array:
        """Return the next iterate of V and v, or, if ``finished``, the array after the step."""
        C, q, V, qd = self._parts(x)
        Pi, p, _ = np.split(x[self.size :], [6, 6 + self.base.m])
        h = h[()]
        half = se3.exp((0.5 * h) * v[:6])
        C_middle = C @ half
        at = self.base.local(model, C_middle, q + (0.5 * h) * v[6:], v[:6], v[6:])
        effort = self._whole(effort)
        begun = self.base.local(model, C, q, V, qd)
        known, damping = midpoint_damping(model, begun.q, begun.qd, joints, h)
        force = applied_force(at.model, at.q, effort, wrenches)
        W = self.base.rates.T @ force[:6]
        f = (force + inertial_force(at.model, at.q, at.qd) + known)[6:]
        if not finished:
            mu = se3.Ad(C).T @ Pi  # its rounding is the same in each iteration
            mu, p = se3.Ad(half).T @ mu + (0.5 * h) * W, p + (0.5 * h) * f
            return self._solved(at, mu, p, (0.5 * h) * damping)
        Pi = Pi + h * (se3.Ad(se3.inverse(C_middle)).T @ W)
        p = p + h * f if joints is None else 2.0 * momentum(at.model, at.q, at.qd)[6:] - p
        C, q = SE3.product(C, se3.exp(h * v[:6])), q + h * v[6:]
        rates = self._solved(self.base.local(model, C, q, V, qd), se3.Ad(C).T @ Pi, p)
        return np.concatenate([_flat((C, q, rates[:6], rates[6:])), Pi, p, v])


def _flat(state: tuple[Array, ...]) -> Array:
    return np.concatenate([np.ravel(x) for x in state])


# -- simulation ------------------------------------------------------------------------------------

SEEN = "C, V, q, qd"
"""What laws see after t."""


def simulate_floating(
    model: Model,
    C: ArrayLike,
    V: ArrayLike,
    q: ArrayLike,
    qd: ArrayLike | None = None,
    *,
    duration: float,
    step: float = 1e-3,
    every: int = 1,
    method: str = "rk4",
    control: ArrayLike | Law | None = None,
    wrenches: Wrenches | Law | None = None,
    forces: JointForces | None = None,
    events: Mapping[str, EventFunction] | None = None,
    stop: EventFunction | None = None,
    keep_momentum: bool = False,
    rtol: float = 1e-8,
    atol: float = 1e-8,
    solver: str = "articulated_body",
    progress: bool | None = None,
    backend: str | None = None,
) -> FloatingMotion:
    """Return the motion of a mechanism on a floating base, without singularities of orientation.

    The methods, control laws, friction and stops are those of :func:`simulate`; see
    :mod:`mbs_dynamics.integrate.floating` for the motion of the base.

    :param model: its first six coordinates are a free joint on the ground, the only root.
    :param C: (..., 4, 4) pose of the base, the body that the free joint moves; leading axes are a
        batch of simulations.
    :param V: (..., 6) body-fixed twist of the base.
    :param q: (..., m) positions of the other joints.
    :param qd: (..., m) their rates; None means zero.
    :param control: torques (m,) of the other joints: constant, one value per step (steps, ..., m),
        or a law ``control(t, C, V, q, qd)``. None means zero.
    :param wrenches: body-fixed wrenches on the bodies of the model, moment first, (nb, 6), in the
        same ways; or mappings from link names to wrenches (6,) in the frames of the links. The base
        is body 5; the five before it are massless.
    :param forces: damping, friction and stops of all joints, (6 + m,) each; zero for the base.
    :param events: and ``stop`` as for :func:`simulate`, functions of t, C, V, q, qd.
    :param keep_momentum: conserve the total spatial momentum to rounding, not only to the order of
        the method; for ``"explicit_euler"``, ``"semi_implicit_euler"`` and ``"rk4"``, without
        wrenches. ``"implicit_midpoint"`` always does.
    :raises ModelError: if the model has no floating base.
    :raises ArgumentError: for a wrong shape or value; UnknownMethodError.
    :raises SimulationError: as for :func:`simulate`.

    ``every``, ``solver``, ``rtol``, ``atol``, ``progress`` and ``backend`` are those of
    :func:`simulate`.
    """
    base = Base(model)
    course, n = Course.of(duration, step, every, events, stop, progress), (base.m,)
    if method not in METHODS:
        raise UnknownMethodError(method, METHODS)
    rates = np.zeros(base.m) if qd is None else qd
    start = batched(C=(C, (4, 4)), V=(V, (6,)), q=(q, n), qd=(rates, n))
    checks.check_poses("C", start[0])
    _check_base(forces, model)
    if keep_momentum and (wrenches is not None or method not in STEPS):
        raise ArgumentError(
            f"keep_momentum takes no wrenches, and one of the methods {', '.join(STEPS)}; got "
            f"{method!r}" + " and wrenches" * (wrenches is not None)
        )
    accuracy = tolerances(rtol, atol)
    inputs = drives(model, n, control, wrenches, course, SEEN)
    problem = Problem(model, forces, inputs, backend, solver)
    run = Run(course, problem.inputs, method, start, start[2].shape[:-1], _between)
    return run.go(
        lambda: floating_scheme(method, problem, course.h, start, accuracy, bool(keep_momentum)),
        lambda record: _motion(base, record, method),
    )


def _check_base(forces: JointForces | None, model: Model) -> None:
    check_forces(forces, model)
    if forces is None:
        return
    bounds = np.isfinite(forces.lower[:6]) | np.isfinite(forces.upper[:6])
    if forces.damping[:6].any() or forces.friction[:6].any() or bounds.any():
        raise ArgumentError("forces must leave the base free: the first six entries must be none")


def _between(before: State, after: State, h: float) -> Between:
    """Return C and V by the cubic in the algebra, q and qd by that of the joints."""
    poses = between_poses(SE3, before[:2], after[:2], h)
    joints = between_joints(before[2:], after[2:], h)
    return lambda s: (*poses(s), *joints(s))


def _motion(base: Base, record: Record, method: str) -> FloatingMotion:
    C, V, q, qd = record.state
    kinetic, potential, momentum, _ = base.quantities(C, V, q, qd)
    return FloatingMotion(
        t=record.t,
        C=C,
        V=V,
        q=q,
        qd=qd,
        kinetic=kinetic,
        potential=potential,
        momentum=momentum,
        joint_names=base.model.joint_names[6:],
        tau=record.acted[0],
        events=tuple(
            Event(x.name, x.t, x.state[2], x.state[3], x.state[0], x.state[1], x.member)
            for x in record.events
        ),
        method=method,
    )
