# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Time of one evaluation by every way to call it, compared with Pinocchio called from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

import mbs_dynamics as mbs
from benchmarks.mechanisms import ARMS, FRAMES, Twins, panda_without_fingers, robot
from benchmarks.report import Table
from benchmarks.timing import Call, interleaved, kernel_alone, median, ratio
from mbs_dynamics.model.orders import leaves
from mbs_dynamics.representation import REPRESENTATIONS

COLUMNS = (
    "microseconds",
    "operations",
    "kernel",
    "Kernel",
    "function",
    "plain Python",
    "Pinocchio",
    "kernel / Pin.",
    "Kernel / Pin.",
    "function / Pin.",
)

NOTE = (
    "Blank: Pinocchio has no such function, or not for mimic joints. A call of Pinocchio from "
    "Python takes about {rnea:.2g} us (rnea) or {gravity:.2g} us (computeGeneralizedGravity) even "
    "for a model with one joint."
)


class Subject(NamedTuple):
    """One thing to compute, in both libraries."""

    label: str
    function: Callable[..., Any]
    arrays: tuple[Any, ...]
    options: dict[str, Any]
    pinocchio: Call | None


def calls() -> Iterator[Table]:
    """Yield one table per arm, and one of several algorithms in one kernel."""
    note = NOTE.format(**_least())
    for name in ARMS:
        twins = robot(name)
        title = f"{name}: {twins.model.n} coordinates, {twins.model.nb} bodies"
        subjects = (*_torques(twins), *_motions(twins), *_matrices(twins))
        yield Table(title, COLUMNS, [_row(twins, subject) for subject in subjects], note)
    twins = panda_without_fingers()
    subjects = (*_torques(twins), *_matrices(twins))
    title = f"{twins.name}: {twins.model.n} coordinates"
    yield Table(title, COLUMNS, [_row(twins, subject) for subject in subjects], note)
    yield _together(robot("Panda"))


def _row(twins: Twins, subject: Subject) -> list[Any]:
    label, function, arrays, options, pinocchio = subject
    kernel = mbs.compile(function, twins.model, backend="llvm", **options)
    plain = mbs.compile(function, twins.model, backend="python", **options)
    ways = {
        "kernel": kernel_alone(kernel, arrays),
        "Kernel": Call(kernel, arrays),
        "function": Call(function, (twins.model, *arrays), options),
        "plain": Call(plain, arrays),
    }
    if pinocchio:
        ways["pinocchio"] = pinocchio
    taken = interleaved(ways)
    row = [label, kernel.operations.total, *(median(taken[way]) for way in ways)]
    if not pinocchio:
        return [*row, None, None, None, None]
    return [*row, *(ratio(taken[w], taken["pinocchio"]) for w in ("kernel", "Kernel", "function"))]


def _together(twins: Twins) -> Table:
    """Return the times of one kernel for several algorithms, and of one kernel for each."""
    model, body = twins.model, leaves(twins.model)[0]
    q, qd, _ = model.random_state(1)
    hybrid = {"representation": "hybrid"}
    choices: dict[str, list[tuple[Any, dict[str, Any]]]] = {
        "gravity_torques, bias_torques": [(mbs.gravity_torques, {}), (mbs.bias_torques, {})],
        "bias_torques, mass_matrix": [(mbs.bias_torques, {}), (mbs.mass_matrix, {})],
        "the same, gravity_torques, twists, jacobian": [
            (mbs.gravity_torques, {}),
            (mbs.bias_torques, {}),
            (mbs.mass_matrix, {}),
            (mbs.twists, {"bodies": (body,), **hybrid}),
            (mbs.jacobian, {"body": body, **hybrid}),
        ],
    }
    columns = (
        "algorithms",
        "operations together",
        "one by one",
        "microseconds together",
        "one by one",
        "ratio",
    )
    table = Table(f"{twins.name}: several algorithms in one kernel, called from Python", columns)
    for label, parts in choices.items():
        kernels = [mbs.compile(function, model, **options) for function, options in parts]
        fused = mbs.compile_together(parts, model)

        def each(q: Any, qd: Any, kernels: Any = kernels) -> None:
            for kernel in kernels:
                kernel(*(q, qd)[: kernel.required])

        taken = interleaved({"fused": Call(fused, (q, qd)), "each": Call(each, (q, qd))})
        table.rows.append(
            [
                label,
                fused.operations.total,
                sum(kernel.operations.total for kernel in kernels),
                *(median(samples) for samples in taken.values()),
                ratio(taken["fused"], taken["each"]),
            ]
        )
    return table


def _torques(twins: Twins) -> Iterator[Subject]:
    model, data = twins.pin_model, twins.pin_data
    q, qd, qdd = twins.model.random_state(1)
    p, pd, pdd = twins.configuration(q), twins.velocity(qd), twins.velocity(qdd)
    every: tuple[tuple[Callable[..., Any], tuple[Any, ...], Call], ...] = (
        (mbs.inverse_dynamics, (q, qd, qdd), Call(pin.rnea, (model, data, p, pd, pdd))),
        (mbs.gravity_torques, (q,), Call(pin.computeGeneralizedGravity, (model, data, p))),
        (mbs.bias_torques, (q, qd), Call(pin.nonLinearEffects, (model, data, p, pd))),
        (mbs.forward_dynamics, (q, qd, qdd), Call(pin.aba, (model, data, p, pd, pdd))),
    )
    for function, arrays, call in every:
        yield Subject(function.__name__, function, arrays, {}, _possible(call))


def _motions(twins: Twins) -> Iterator[Subject]:
    model, data = twins.pin_model, twins.pin_data
    q, qd, _ = twins.model.random_state(1)
    p, pd = twins.configuration(q), twins.velocity(qd)
    poses = mbs.forward_kinematics
    computed = Call(pin.forwardKinematics, (model, data, p))
    yield Subject("forward_kinematics", poses, (q,), {}, Call(_placements, (model, data, p)))
    yield Subject("the same, theirs not read", poses, (q,), {}, computed)
    body = leaves(twins.model)[0]
    link = model.getFrameId(body)
    for name in REPRESENTATIONS:
        frame, theirs = FRAMES.get(name), None
        if frame is not None:
            theirs = Call(_velocities, (model, data, p, pd, frame))
        yield Subject(f"twists, {name}", mbs.twists, (q, qd), {"representation": name}, theirs)
    for name in REPRESENTATIONS:
        frame, theirs = FRAMES.get(name), None
        options = {"body": body, "representation": name}
        if frame is not None:
            theirs = Call(pin.computeFrameJacobian, (model, data, p, link, frame))
        yield Subject(f"jacobian, {name}", mbs.jacobian, (q,), options, theirs)
    options = {"body": body, "representation": "body_fixed"}
    rate = Call(_jacobian_rate, (model, data, p, pd, link))
    yield Subject("jacobian_rate, body_fixed", mbs.jacobian_rate, (q, qd), options, rate)


def _matrices(twins: Twins) -> Iterator[Subject]:
    model, data = twins.pin_model, twins.pin_data
    q, qd, qdd = twins.model.random_state(1)
    p, pd, pdd = twins.configuration(q), twins.velocity(qd), twins.velocity(qdd)
    state = (model, data, p, pd)
    every: tuple[tuple[Callable[..., Any], tuple[Any, ...], Call], ...] = (
        (mbs.mass_matrix, (q,), Call(pin.crba, (model, data, p))),
        (mbs.inverse_mass_matrix, (q,), Call(pin.computeMinverse, (model, data, p))),
        (mbs.coriolis_matrix, (q, qd), Call(pin.computeCoriolisMatrix, state)),
        (
            mbs.inverse_dynamics_derivatives,
            (q, qd, qdd),
            Call(pin.computeRNEADerivatives, (*state, pdd)),
        ),
        (
            mbs.forward_dynamics_derivatives,
            (q, qd, qdd),
            Call(pin.computeABADerivatives, (*state, pdd)),
        ),
        (mbs.kinetic_energy, (q, qd), Call(pin.computeKineticEnergy, state)),
        (mbs.center_of_mass, (q,), Call(pin.centerOfMass, (model, data, p))),
        (mbs.centroidal_momentum, (q, qd), Call(pin.computeCentroidalMomentum, state)),
    )
    for function, arrays, call in every:
        yield Subject(function.__name__, function, arrays, {}, _possible(call))


def _possible(call: Call) -> Call | None:
    """Return the call, or None if Pinocchio refuses it for this model."""
    try:
        call.function(*call.arguments)
    except (RuntimeError, ValueError) as refusal:
        if "Mimic" not in str(refusal):
            raise
        return None
    return call


def _placements(model: Any, data: Any, q: Any) -> Any:
    pin.forwardKinematics(model, data, q)
    return np.array([placement.homogeneous for placement in data.oMi])


def _velocities(model: Any, data: Any, q: Any, v: Any, frame: Any) -> Any:
    pin.forwardKinematics(model, data, q, v)
    joints = range(1, model.njoints)
    return np.array([pin.getVelocity(model, data, joint, frame).vector for joint in joints])


def _jacobian_rate(model: Any, data: Any, q: Any, v: Any, link: int) -> Any:
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    return pin.getFrameJacobianTimeVariation(model, data, link, pin.LOCAL)


def _least() -> dict[str, float]:
    """Return the microseconds of two of Pinocchio's functions for a model of one joint."""
    model = pin.Model()
    model.addJoint(0, pin.JointModelRZ(), pin.SE3.Identity(), "joint")
    data, x = model.createData(), np.zeros(1)
    taken = interleaved(
        {
            "rnea": Call(pin.rnea, (model, data, x, x, x)),
            "gravity": Call(pin.computeGeneralizedGravity, (model, data, x)),
        }
    )
    return {name: median(samples) for name, samples in taken.items()}
