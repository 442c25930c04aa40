# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Simulation of a model.

implicit_midpoint is variational: symplectic, of order 2, implicit. The discrete Lagrangian
h L((q0 + q1) / 2, (q1 - q0) / h) gives, with v = (q1 - q0) / h, the midpoint qm = q0 + h v / 2 and
momenta p,

    M(qm) v = p0 + h f / 2,    p1 = p0 + h f,    f = C(qm, v)^T v - g(qm) + tau,

which is the implicit midpoint rule for Hamilton's equations. It conserves the momenta of symmetries
and keeps the energy within a bound over any time. v is found by iteration. On the groups of joints
qm = q0 exp(h v / 2), the momenta are seen from the bodies,

    M(qm) v = Ad^T p0 + h f / 2,    p1 = Ad^T (Ad^T p0 + h f),    f less ad_v^T M v,

with Ad of exp(h v / 2): so the spatial momentum of a floating mechanism changes by that of the
applied wrenches alone, Mueller (dynamics), eq. (79).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms import (
    coriolis_matrix,
    forward_dynamics,
    gravity_torques,
    kinetic_energy,
    mass_matrix,
    momenta,
    potential_energy,
)
from mbs_dynamics.algorithms.configurations import displaced, momentum_rates, transported
from mbs_dynamics.algorithms.kernels import compiled_on, model_inputs
from mbs_dynamics.algorithms.mass_matrix import factorize, solve
from mbs_dynamics.algorithms.newton_euler import Loads, Wrenches, newton_euler
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.errors import ArgumentError, SingularError, UnknownMethodError
from mbs_dynamics.integrate.charts import Arrangement, chart_of
from mbs_dynamics.integrate.driver import Course, Record, Run
from mbs_dynamics.integrate.events import EventFunction, between
from mbs_dynamics.integrate.forces import (
    Drive,
    Features,
    Inputs,
    JointForces,
    Law,
    State,
    check_forces,
    passive_torques,
    weight_of_end,
)
from mbs_dynamics.integrate.results import Event, Motion
from mbs_dynamics.integrate.schemes import (
    Arguments,
    Field,
    FixedStep,
    ImplicitMidpoint,
    Layout,
    Scheme,
    Task,
    explicit,
    field_of,
    tolerances,
)
from mbs_dynamics.integrate.stepper import STEPS, Step, Stepper, steps_per_decay
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation.tree import Tree

# -- the integrators -------------------------------------------------------------------------------

METHODS = (*STEPS, "runge_kutta", "dormand_prince", "implicit_midpoint")
"""The integrators of :func:`simulate`."""


class Problem(NamedTuple):
    """A model and its loads."""

    model: Model
    forces: JointForces | None
    inputs: Inputs
    """Motor torques, and wrenches on the bodies if there are any."""
    backend: str | None
    solver: str = "articulated_body"
    """Method of :func:`mbs_dynamics.forward_dynamics`, where the whole step is no kernel."""

    @property
    def features(self) -> Features:
        """Which forces there are in the joints."""
        return Features() if self.forces is None else self.forces.features

    @property
    def states(self) -> Arrangement:
        """How q and qd are put into arrays."""
        return Arrangement(self.model)

    @property
    def wrenches(self) -> bool:
        """Whether there are wrenches."""
        return len(self.inputs.drives) > 1

    def shapes(self, step: bool = True) -> dict[str, tuple[int, ...]]:
        """Return the inputs of kernels after the state: efforts, h, wrenches, joints."""
        n, nb = self.model.n, self.model.nb
        found: dict[str, tuple[int, ...]] = {"effort": self.inputs.drives[0].shape}
        if step:
            found["h"] = ()
        if self.wrenches:
            found["wrenches"] = (nb, 6)
        if any(self.features):
            found["joints"] = (7, n)
        return found

    def kernel(
        self,
        name: str,
        equations: Callable[..., Any],
        inputs: Mapping[str, tuple[int, ...]],
        *,
        key: Any = (),
        step: bool = True,
    ) -> tuple[Kernel, Arguments]:
        """Return a kernel of inputs and then those of :meth:`shapes`, and its arguments."""
        every = {**inputs, **self.shapes(step)}
        key = key, tuple(every)
        kernel = compiled_on(self.model, key, equations, every, name=name, backend=self.backend)
        return kernel, self.arguments(kernel, step)

    def acceleration(
        self, model: Tree, q: Array, qd: Array, effort: Array, wrenches: Any, joints: Any
    ) -> Array:
        """Return qdd (n,) under all forces at a state."""
        if joints is not None:
            effort = effort + passive_torques(joints, self.features, q, qd)
        found: Array = forward_dynamics(
            model, q, qd, effort, wrenches, method=self.solver, representation="body_fixed"
        )
        return found

    def step(self, model: Tree, effort: Array, wrenches: Any, joints: Any) -> Step:
        """Return the equations of a step whose laws are evaluated at every stage."""
        given = {"effort": effort, "wrenches": wrenches, "joints": joints}
        return Step(model, self.features, solver=self.solver, **given)

    def arguments(self, kernel: Kernel, step: bool = True) -> Arguments:
        """Return a function from values of the drives to the arguments after a kernel's state."""
        table = () if self.forces is None or not any(self.features) else (self.forces.table,)
        constants = (*table, *model_inputs(self.model, kernel))
        return lambda values, h: (
            values[0],
            *((np.array(h),) if step else ()),
            *values[1:],
            *constants,
        )

    def refuse_stiff(self) -> None:
        """Raise ArgumentError for forces that the midpoint scheme does not take."""
        if self.features.friction or self.features.stops:
            raise ArgumentError(
                "implicit_midpoint takes damping, but neither friction nor joint stops; take "
                "semi_implicit_euler or rk4"
            )


def state_rate(problem: Problem) -> Field:
    """Return the rate (qd, qdd) of the state under all forces, as one kernel."""
    states = problem.states

    def equations(
        model: Tree, state: Array, effort: Array, wrenches: Any = None, joints: Any = None
    ) -> Array:
        q, qd = states.parts(state)
        qdd = problem.acceleration(model, q, qd, effort, wrenches, joints)
        return states.joined(qd, qdd)

    inputs = {"state": states.shape()}
    key = problem.features, problem.solver
    return field_of(*problem.kernel("state_rate", equations, inputs, key=key, step=False))


def stage_rate(problem: Problem) -> Field:
    """Return the rate of the state in a stage of a Runge-Kutta step, see :meth:`Step.held`."""
    states = problem.states

    def equations(
        model: Tree,
        state: Array,
        begun: Array,
        effort: Array,
        h: Any,
        wrenches: Any = None,
        joints: Any = None,
    ) -> Array:
        step = problem.step(model, effort, wrenches, joints)
        (q0, qd0), (q, qd) = states.parts(begun), states.parts(state)
        return states.joined(qd, step.acceleration(q, qd, step.held(q0, qd0, h[()])))

    shape = states.shape()
    inputs, key = {"state": shape, "begun": shape}, (problem.features, problem.solver)
    return field_of(*problem.kernel("stage_rate", equations, inputs, key=key), stepwise=True)


class JointLayout(Layout):
    """Arrays of q and qd."""

    def __init__(self, model: Model) -> None:
        self.model, self.states = model, Arrangement(model)
        self.axes = self.states.axes

    def pack(self, *state: FloatArray) -> FloatArray:
        """Return the array of q and qd."""
        packed: FloatArray = self.states.joined(*state)
        return packed

    def seen(self, x: FloatArray) -> State:
        """Return q and qd."""
        q, qd, *_ = self.states.parts(x)
        return q, qd


class MidpointLayout(JointLayout):
    """Arrays of q, qd, the momenta p, and rates to begin the iteration with."""

    def pack(self, *state: FloatArray) -> FloatArray:
        """Return the array of q and qd."""
        q, qd = state
        p = (mass_matrix(self.model, q) @ qd[..., None])[..., 0]
        return super().pack(q, qd, p, qd)


def joint_scheme(
    method: str, problem: Problem, h: float, start: State, tolerances: tuple[float, float]
) -> Scheme:
    """Return the integrator of one of :data:`METHODS` from q and qd on."""
    kind = MidpointLayout if method == "implicit_midpoint" else JointLayout
    layout, states = kind(problem.model), problem.states
    task = Task(layout, problem.inputs, h, layout.pack(*start))
    if method in STEPS:
        stepper = Stepper(
            problem.model,
            method=method,
            forces=problem.forces,
            wrenches=problem.wrenches,
            backend=problem.backend,
        )
        return FixedStep(task, stepper.kernel, problem.arguments(stepper.kernel))
    if method == "implicit_midpoint":
        problem.refuse_stiff()
        inputs = {"x": states.shape(4), "v": (problem.model.n,)}
        rates, step = (
            problem.kernel(f"midpoint_{name}", partial(_midpoint, finished=finished), inputs)
            for name, finished in (("rates", False), ("step", True))
        )
        return ImplicitMidpoint(task, (rates, step), states.last())
    rate = state_rate if method == "dormand_prince" else stage_rate
    return explicit(method, task, rate(problem), tolerances, chart_of(problem.model, states))


def applied_force(model: Tree, q: Array, effort: Array, wrenches: Any) -> Array:
    """Return the generalized force (n,) of motors, gravity and wrenches."""
    gravity = gravity_torques(model, q, representation="body_fixed")
    f = effort - gravity
    if wrenches is not None:
        rest = np.zeros(model.n)
        loaded = newton_euler(model, q, rest, rest, "body_fixed", Loads(wrenches))
        f = f - loaded + gravity
    return np.asarray(f)


def midpoint_damping(model: Tree, q: Array, qd: Array, joints: Any, h: Any) -> tuple[Array, Array]:
    """Return f and A, both (n,): with mean rates v, damping of a step from q, qd exerts f - A v."""
    if joints is None:
        return np.zeros(model.n), np.zeros(model.n)
    damping = joints[0]
    weight = 2.0 * weight_of_end(steps_per_decay(model, q, damping, h))
    return (weight - 1.0) * damping * qd, weight * damping


def inertial_force(model: Tree, q: Array, v: Array) -> Array:
    """Return C^T v (n,); plus the applied forces it is the rate of the momenta M v."""
    return np.asarray(coriolis_matrix(model, q, v)).T @ v


def _midpoint(
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
    """Return the next iterate of v; or, if v is final, q, qd, p and v at the end of the step."""
    states, h = Arrangement(model.model), h[()]
    q, qd, p, _ = states.parts(x)
    known, damping = midpoint_damping(model, q, qd, joints, h)
    half = (0.5 * h) * v
    qm, p = displaced(model, q, half), transported(model, half, p)
    f = inertial_force(model, qm, v) + applied_force(model, qm, effort, wrenches) + known
    if states.flat:  # p turns with the bodies by itself
        f = f - momentum_rates(model, v, momentum(model, qm, v))
    if not finished:
        return solve_mass(model, qm, p + (0.5 * h) * f, (0.5 * h) * damping)
    p = p + h * f if joints is None else 2.0 * momentum(model, qm, v) - p
    q, p = displaced(model, q, h * v), transported(model, half, p)
    return states.joined(q, solve_mass(model, q, p), p, v)


def solve_mass(model: Tree, q: Array, p: Array, armature: Any = 0.0) -> Array:
    """Return (M(q) + diag(armature))^-1 p."""
    M = np.asarray(mass_matrix(model, q, representation="body_fixed"))
    return solve(*factorize(model, M + np.diag(armature + np.zeros(model.n))), p)


def momentum(model: Tree, q: Array, v: Array) -> Array:
    """Return M(q) v.

    In the middle of a step it is the mean of the momenta, which stays exact for any damping.
    """
    return np.asarray(mass_matrix(model, q, representation="body_fixed")) @ v


# -- simulation ------------------------------------------------------------------------------------


def simulate(
    model: Model,
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
    rtol: float = 1e-8,
    atol: float = 1e-8,
    solver: str = "articulated_body",
    progress: bool | None = None,
    backend: str | None = None,
) -> Motion:
    """Return the motion of a model that starts at q (..., nq) and qd (..., n), a state a ``step``.

    Joints with several degrees of freedom move on their groups, without singularities: a free
    joint is a floating base, and one body with a free or a spherical joint a body in space.

    Methods, with their orders:

    - ``explicit_euler`` (1), ``semi_implicit_euler`` (1), ``rk4`` (4): one kernel per step; motor
      torques are held over the step, as by a digital controller. Without a control law and events
      the loop is machine code.
    - ``runge_kutta`` (4): control laws are evaluated at every stage.
    - ``dormand_prince`` (5): the step size follows from ``rtol`` and ``atol``, with states every
      ``step`` by interpolation of order 4; control laws are evaluated at every stage.
    - ``implicit_midpoint`` (2): variational; the energy error is bounded, and momenta of symmetries
      are conserved. It takes neither friction nor stops; torques are held.

    Schemes with a fixed step are stable for any damping, friction and stops, which they take
    implicitly where the step does not resolve them, see :mod:`mbs_dynamics.integrate.stepper`.
    ``dormand_prince`` resolves them, which may take many steps.

    :param q: positions in rad or m; leading axes are a batch of simulations.
    :param qd: rates in rad/s or m/s; None means zero.
    :param duration: in s; the last step is shorter if it is no whole number of steps.
    :param every: store every ``every``-th state, and the last one.
    :param control: motor torques: constant (n,), one value per step (steps, ..., n), or a function
        of t, q (..., n) and qd that returns them. None means zero.
    :param wrenches: body-fixed wrenches on the bodies, moment first, (nb, 6), in the same ways; or
        mappings from link names to wrenches (6,) in the frames of the links.
    :param forces: damping, friction and stops of the joints; none if None.
    :param events: functions of t, q (n,) and qd of one simulation, by name, whose changes of sign
        are recorded as events, separately for each simulation of a batch.
    :param stop: such a function; the simulation ends where its sign changes. In a batch a stopped
        simulation keeps its state, and the batch ends when all have stopped.
    :param solver: how ``runge_kutta`` and ``dormand_prince`` solve the equations of motion; see
        :func:`mbs_dynamics.forward_dynamics`.
    :param progress: whether to print progress to stderr; None means for long runs on a terminal.
    :raises ArgumentError: for a wrong shape or value, such as a step that is not positive.
    :raises SimulationError: if the state or a torque becomes infinite or NaN, the mass matrix is
        singular, or the tolerances cannot be met. It states the time, and its attribute ``motion``
        contains the trajectory up to the failure.
    """
    if not isinstance(model, Model):
        raise ArgumentError(f"model must be a Model; got {type(model).__name__}")
    course = Course.of(duration, step, every, events, stop, progress)
    q = model.checked_positions("q", q)
    start = batched(q=(q, (model.nq,)), qd=(np.zeros(model.n) if qd is None else qd, (model.n,)))
    if method not in METHODS:
        raise UnknownMethodError(method, METHODS)
    check_forces(forces, model)
    accuracy = tolerances(rtol, atol)
    inputs = drives(model, (model.n,), control, wrenches, course)
    problem = Problem(model, forces, inputs, backend, solver)
    run = Run(course, problem.inputs, method, start, start[0].shape[:-1], between(model))
    return run.go(
        lambda: joint_scheme(method, problem, course.h, start, accuracy),
        lambda record: _motion(problem, record, method),
    )


def drives(
    model: Model,
    n: tuple[int, ...],
    control: Any,
    wrenches: Any,
    course: Course,
    seen: str = "q, qd",
) -> Inputs:
    """Return the drives of motor torques and, if there are any, of wrenches."""
    found = [Drive("control", control, n, course.steps, seen)]
    if wrenches is not None:
        given = _by_body(model, wrenches)
        found.append(Drive("wrenches", given, (model.nb, 6), course.steps, seen))
    return Inputs(tuple(found))


def _by_body(model: Model, wrenches: Any) -> Any:
    """Return wrenches, or a law of them, by body also where they are given by link name."""
    if isinstance(wrenches, Mapping):
        return model.wrenches(wrenches)
    if callable(wrenches):
        return lambda t, *state: _by_body(model, wrenches(t, *state))
    return wrenches


def batched(**given: tuple[ArrayLike, tuple[int, ...]]) -> State:
    """Return arrays of these shapes, with the axes of one batch; or raise ArgumentError."""
    arrays = {
        name: checks.numbers(name, value, shape, batch=True)
        for name, (value, shape) in given.items()
    }
    cores = {name: shape for name, (_, shape) in given.items()}
    leads = {name: x.shape[: x.ndim - len(cores[name])] for name, x in arrays.items()}
    batch = checks.batch_of(**leads)
    return tuple(
        np.ascontiguousarray(np.broadcast_to(x, (*batch, *cores[name])))
        for name, x in arrays.items()
    )


def _motion(problem: Problem, record: Record, method: str) -> Motion:
    model, (q, qd), tau = problem.model, record.state, record.acted[0]
    return Motion(
        t=record.t,
        q=q,
        qd=qd,
        qdd=_accelerations(problem, record),
        tau=tau,
        kinetic=kinetic_energy(model, q, qd),
        potential=np.asarray(potential_energy(model, q)),
        momentum=momenta(model, q, qd, representation="spatial").sum(axis=-2),
        joint_names=model.velocity_names,
        position_names=model.position_names,
        events=tuple(
            Event(x.name, x.t, x.state[0], x.state[1], member=x.member) for x in record.events
        ),
        method=method,
    )


def _accelerations(problem: Problem, record: Record) -> FloatArray:
    """Return qdd at all states; NaN at those where the mass matrix is singular."""
    states, qd = problem.states.joined(*record.state), record.state[1]
    last = problem.states.last()
    try:
        rate = state_rate(problem)
    except SingularError:  # whatever the state
        return np.full(qd.shape, np.nan)
    try:
        return np.asarray(rate(states, record.acted)[last])
    except SingularError:
        flat: Any = [states.reshape(-1, *problem.states.shape())]
        flat += [
            x.reshape(-1, *drive.shape)
            for x, drive in zip(record.acted, problem.inputs.drives, strict=True)
        ]
        found = np.full((len(flat[0]), problem.model.n), np.nan)
        for k, (state, *values) in enumerate(zip(*flat, strict=True)):
            try:
                found[k] = rate(state, tuple(values))[last]
            except SingularError:
                continue
        return found.reshape(qd.shape)
