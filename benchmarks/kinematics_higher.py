# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Higher-order kinematics and all bodies at once, compared with Pinocchio from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pinocchio as pin

import mbs_dynamics as mbs
from benchmarks.mechanisms import FloatArray, Twins, robot, urdf
from benchmarks.report import Table
from benchmarks.timing import Call, interleaved, kernel_alone, median, ratio

HANDS = {"Panda": "panda_hand", "UR5": "tool0"}
"""The robots that are measured, and the link whose Jacobian is taken."""

FRAMES = {
    "body_fixed": pin.LOCAL,
    "spatial": pin.WORLD,
    "hybrid": pin.LOCAL_WORLD_ALIGNED,
}

ANGULAR_FIRST = [3, 4, 5, 0, 1, 2]
"""Pinocchio's twists have the linear part first."""

ORDERS = tuple(range(1, 9))

COLUMNS = (
    "microseconds",
    "operations",
    "kernel",
    "Kernel",
    "Pinocchio",
    "Kernel / Pin.",
    "difference",
)

NOTE = """Both libraries are called from Python, with NumPy arrays as arguments and results.
kernel: one evaluation in machine code, in a loop over equal states. Kernel: a call of the kernel
object. Pinocchio: its functions as listed in benchmarks/kinematics_higher.py, and the reading of
the result; the results of all bodies are stored in one array, as here. The mimic joint of the
Panda's fingers is an independent joint in Pinocchio's model for Jacobians, because its Hessians do
not support mimic joints. difference: largest difference between the results, relative to the
largest entry."""


class Subject(NamedTuple):
    """One row: what is evaluated by both libraries."""

    label: str
    function: Callable[..., Any]
    arrays: tuple[FloatArray, ...]
    options: dict[str, Any]
    pinocchio: Call
    read: Callable[[Any], Any]
    """What Pinocchio returned, in our order."""


def kinematics_higher() -> Iterator[Table]:
    """Yield a table beside Pinocchio for each arm, then the cost of each order of derivative."""
    for name, hand in HANDS.items():
        twins, free = robot(name), _free(name)
        table = Table(f"{name}: {twins.model.n} coordinates, {twins.model.nb} bodies", COLUMNS)
        subjects = (*_of_all_bodies(twins), *_of_the_hand(free, hand))
        table.rows = [_row(twins.model, subject) for subject in subjects]
        table.note = NOTE
        yield table
    for name in HANDS:
        yield _orders(name)


def _row(model: mbs.Model, subject: Subject) -> list[Any]:
    kernel = mbs.compile(subject.function, model, backend="llvm", **subject.options)
    ours = kernel(*subject.arrays)
    theirs = subject.read(subject.pinocchio.function(*subject.pinocchio.arguments))
    ways = {
        "kernel": kernel_alone(kernel, subject.arrays),
        "Kernel": Call(kernel, subject.arrays),
        "pinocchio": subject.pinocchio,
    }
    taken = interleaved(ways)
    return [
        subject.label,
        kernel.operations.total,
        *(median(taken[way]) for way in ways),
        ratio(taken["Kernel"], taken["pinocchio"]),
        float(np.abs(ours - theirs).max() / np.abs(theirs).max()),
    ]


# -- of all bodies --------------------------------------------------------------------------------


def _of_all_bodies(twins: Twins) -> Iterator[Subject]:
    model, data, joints = twins.pin_model, twins.pin_data, twins.joint_ids()
    q, qd, qdd = twins.model.random_state(1)
    p, pd, pdd = twins.configuration(q), twins.velocity(qd), twins.velocity(qdd)
    call = Call(_poses, (model, data, joints, p))
    yield Subject("forward_kinematics", mbs.forward_kinematics, (q,), {}, call, _same)
    for name, frame in FRAMES.items():
        read = pin.getClassicalAcceleration if name == "hybrid" else pin.getAcceleration
        call = Call(_accelerations, (model, data, joints, p, pd, pdd, frame, read))
        options = {"representation": name}
        label, arrays = f"accelerations, {name}", (q, qd, qdd)
        yield Subject(label, mbs.accelerations, arrays, options, call, _twists)


def _poses(model: Any, data: Any, joints: list[int], q: FloatArray) -> Any:
    pin.forwardKinematics(model, data, q)
    placements = data.oMi
    return np.array([placements[joint].homogeneous for joint in joints])


def _accelerations(
    model: Any,
    data: Any,
    joints: list[int],
    q: FloatArray,
    v: FloatArray,
    a: FloatArray,
    frame: Any,
    read: Callable[..., Any],
) -> Any:
    """The classical acceleration in inertial axes is the derivative of the hybrid twist."""
    pin.forwardKinematics(model, data, q, v, a)
    return np.array([read(model, data, joint, frame).vector for joint in joints])


def _same(poses: Any) -> Any:
    return poses


def _twists(vectors: Any) -> Any:
    return vectors[:, ANGULAR_FIRST]


# -- of one link ----------------------------------------------------------------------------------


def _free(name: str) -> Twins:
    """Return an arm whose mimic joints are free in Pinocchio's model."""
    pin_model = pin.buildModelFromUrdf(str(urdf(name)))
    return Twins(name, robot(name).model, pin_model, pin_model.createData())


def _of_the_hand(twins: Twins, hand: str) -> Iterator[Subject]:
    model, data = twins.pin_model, twins.pin_data
    q, qd, _ = twins.model.random_state(1)
    p, pd, columns = twins.configuration(q), twins.velocity(qd), twins.columns()
    index = model.getFrameId(hand, pin.BODY)

    def rows(J: Any) -> Any:
        return J[ANGULAR_FIRST][:, columns]

    def tensor(H: Any) -> Any:
        """Pinocchio's array has the entries in the order of Fortran but the strides of C."""
        return H.ravel().reshape(H.shape, order="F")[ANGULAR_FIRST][:, columns][:, :, columns]

    for name, frame in FRAMES.items():
        options = {"body": hand, "representation": name}
        call = Call(pin.computeFrameJacobian, (model, data, p, index, frame))
        yield Subject(f"jacobian, {name}", mbs.jacobian, (q,), options, call, rows)
    for name, frame in FRAMES.items():
        options = {"body": hand, "representation": name}
        call = Call(_jacobian_rate, (model, data, p, pd, index, frame))
        yield Subject(f"jacobian_rate, {name}", mbs.jacobian_rate, (q, qd), options, call, rows)
    for name, frame in FRAMES.items():
        options = {"body": hand, "representation": name}
        call = Call(_hessian, (model, data, p, index, frame))
        label = f"kinematic_hessian, {name}"
        yield Subject(label, mbs.kinematic_hessian, (q,), options, call, tensor)


def _jacobian_rate(
    model: Any, data: Any, q: FloatArray, v: FloatArray, index: int, frame: Any
) -> Any:
    pin.computeJointJacobiansTimeVariation(model, data, q, v)
    pin.updateFramePlacement(model, data, index)
    return pin.getFrameJacobianTimeVariation(model, data, index, frame)


def _hessian(model: Any, data: Any, q: FloatArray, index: int, frame: Any) -> Any:
    pin.computeJointKinematicHessians(model, data, q)
    pin.updateFramePlacement(model, data, index)
    return pin.getFrameKinematicHessian(model, data, index, frame)


# -- of any order ---------------------------------------------------------------------------------


def _orders(name: str) -> Table:
    model = robot(name).model
    table = Table(
        f"{name}: twist_derivatives of all bodies, by their order k",
        ("", *(f"k = {k}" for k in ORDERS)),
    )
    for representation in ("body_fixed", "spatial", "hybrid", "mixed"):
        kernels = {
            k: mbs.compile(mbs.twist_derivatives, model, order=k, representation=representation)
            for k in ORDERS
        }
        rng = np.random.default_rng(1)
        motions = {k: rng.uniform(-1.0, 1.0, (k + 2, model.n)) for k in ORDERS}
        taken = interleaved({str(k): kernel_alone(kernels[k], (motions[k],)) for k in ORDERS})
        counts = [kernels[k].operations.total for k in ORDERS]
        table.rows.append((f"{representation}: operations", *counts))
        growth = [count / (counts[0] * k**2) for k, count in zip(ORDERS, counts, strict=True)]
        table.rows.append(("over k^2 times those of k = 1", *growth))
        table.rows.append(("microseconds, kernel alone", *(median(taken[str(k)]) for k in ORDERS)))
        times = [ratio(taken[str(k)], taken["1"]) / k**2 for k in ORDERS]
        table.rows.append(("over k^2 times those of k = 1", *times))
    return table
