# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The forced simulation of a PUMA of Mohan and Saha, sections 4.2 and 5, and why it deviates.

The torques of inverse dynamics for the motion of eq. (38) drive the arm, without feedback, and the
simulated motion is compared with the desired one. According to the paper, its recursion by UDU^T
follows for 5.4 to 5.6 s and the mass matrix with Cholesky's factors for 4.8 to 5.1 s, which it
attributes to numerical stability. This program repeats the simulation with the inertia of slender
rods, and with the constant C_5 of link 2 as printed in section 4.1, twice the integral of eq. (17).

    python examples/puma_study.py [FOLDER]     prints the tables; writes figures into FOLDER
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import mbs_dynamics as mbs
from mbs_dynamics.errors import ModelWarning, SimulationError
from mbs_dynamics.integrate import Motion, simulate
from mbs_dynamics.integrate.runge_kutta import DormandPrince
from mbs_dynamics.model.dh import DHRow, DHTable

FloatArray = NDArray[np.float64]

DURATION = 10.0
"""T of eq. (38), in s."""

UNACCEPTABLE = 1e-3
"""Error of an angle in rad at which a simulation counts as having deviated; the paper has none."""

TABLE_3 = {
    "UDU^T": (5.4, 5.6, 5.4, 5.4, 5.4, 5.4),
    "Cholesky": (5.1, 5.1, 4.8, 5.1, 5.1, 4.8),
}
"""Acceptable simulation duration of each angle, in s, as printed."""


def hub(b: float, alpha: float, I_zz: float) -> DHRow:
    """Return a row of the wrist: no mass, and an inertia about the joint axis alone.

    The axis Z_i is (0, sin(alpha), cos(alpha)) in the frame at the end of the link.
    """
    z = np.array([0.0, np.sin(alpha), np.cos(alpha)])
    return DHRow(0.0, b, alpha, com=(0.0, 0.0, 0.0), inertia_at_com=I_zz * np.outer(z, z))


PUMA = DHTable(
    name="puma",
    rows=(
        DHRow(a=0.0, d=0.20, alpha=-np.pi / 2, mass=10.521),
        DHRow(a=0.432, d=0.149, alpha=0.0, mass=15.7612),
        DHRow(a=0.02, d=0.0, alpha=np.pi / 2, mass=8.767),
        hub(0.432, -np.pi / 2, 0.181),
        hub(0.0, np.pi / 2, 0.0735),
        hub(0.056, 0.0, 0.0141),
    ),
)
"""The six-joint PUMA of Table 2. The paper states neither the strength of gravity nor its axis."""

SOLVERS = {"UDU^T": "udut", "Cholesky": "mass_matrix"}


def puma(*, printed: bool = False, gravity: float = 9.81) -> mbs.Model:
    """Return the arm of Table 2, optionally with the printed C_5."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelWarning)  # no body has the inertia of a hub
        model = mbs.Model.from_dh(PUMA, gravity=(0.0, 0.0, -gravity))
    return with_printed_constant(model, PUMA.rows) if printed else model


def with_printed_constant(model: mbs.Model, rows: Iterable[DHRow]) -> mbs.Model:
    """Return the model with C_5 = rho a^2 b, as printed, in place of rho a^2 b / 2."""
    bodies = []
    for body, row in zip(model.bodies, rows, strict=True):
        length = abs(row.a) + abs(row.d)
        excess = 0.5 * row.mass / length * row.a**2 * row.d if length else 0.0
        tensor = np.array(body.inertia.tensor)
        tensor[0, 2] -= excess  # the entry is -C_5
        tensor[2, 0] -= excess
        bodies.append(replace(body, inertia=replace(body.inertia, tensor=tensor)))
    return mbs.Model(model.name, tuple(bodies), model.gravity)


def desired(t: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return q, qd, qdd (..., 6) of eq. (38): from 0 to pi in T, with zero rates at both ends."""
    t = np.asarray(t, dtype=float)[..., None] * np.ones(6)
    w = 2.0 * np.pi / DURATION
    return (
        0.5 * (w * t - np.sin(w * t)),
        0.5 * w * (1.0 - np.cos(w * t)),
        0.5 * w**2 * np.sin(w * t),
    )


def torques(model: mbs.Model) -> Callable[[float, FloatArray, FloatArray], FloatArray]:
    """Return the feed-forward law: the torques of eq. (38), independent of the state."""
    inverse_dynamics = mbs.compile(mbs.inverse_dynamics, model)
    return lambda t, q, qd: inverse_dynamics(*desired(t))


def forced(model: mbs.Model, solver: str, duration: float = 7.0, **given: Any) -> Motion:
    """Return the forced simulation of a sound model; by default as the paper's ode45."""
    given = {"method": "dormand_prince", "rtol": 1e-8, "atol": 1e-6, **given}
    law = torques(model)
    start = np.zeros(6)
    return simulate(model, start, duration=duration, control=law, solver=solver, **given)


# -- without the tests that refuse an indefinite mass matrix ---------------------------------------


def unguarded_udut(M: FloatArray, b: FloatArray) -> FloatArray:
    """Return M^-1 b by U D U^T, which needs no square root and therefore no positive pivot."""
    n = len(M)
    M, U, x = M.copy(), np.eye(n), b.copy()
    for k in reversed(range(n)):
        U[:k, k] = M[:k, k] / M[k, k]
        M[:k, :k] -= np.outer(U[:k, k], M[k, :k])
        x[:k] -= U[:k, k] * x[k]
    x /= np.diag(M)
    for k in range(n):
        x[k] -= U[:k, k] @ x[:k]
    return x


def cholesky(M: FloatArray, b: FloatArray) -> FloatArray:
    """Return M^-1 b by Cholesky's factors; LinAlgError where M is not positive definite."""
    L = np.linalg.cholesky(M)
    found: FloatArray = np.linalg.solve(L.T, np.linalg.solve(L, b))
    return found


UNGUARDED = {"UDU^T": unguarded_udut, "Cholesky": cholesky}


def forced_unguarded(
    model: mbs.Model, solver: str, duration: float = 6.0, rtol: float = 1e-8, atol: float = 1e-6
) -> tuple[FloatArray, FloatArray, str]:
    """Return times, states (N, 2, 6), and what ended the simulation, if anything did."""
    mass_matrix, bias = mbs.compile(mbs.mass_matrix, model), mbs.compile(mbs.bias_torques, model)
    law, solve = torques(model), UNGUARDED[solver]

    def rate(t: float, state: FloatArray) -> FloatArray:
        q, qd = np.ascontiguousarray(state)
        return np.array([qd, solve(mass_matrix(q), law(t, q, qd) - bias(q, qd))])

    times, states, ended = [0.0], [np.zeros((2, 6))], ""
    pair = DormandPrince(rate, 0.0, states[0], rtol=rtol, atol=atol)
    try:
        while pair.t < duration and np.abs(pair.y).max() < 1e3:
            pair.advance()
            times.append(pair.t)
            states.append(pair.y)
    except np.linalg.LinAlgError:
        ended = "the mass matrix is not positive definite"
    except SimulationError as error:
        ended = str(error)
    return np.array(times), np.array(states), ended


# -- measurements --------------------------------------------------------------------------------


def first_deviations(t: FloatArray, q: FloatArray) -> FloatArray:
    """Return for each joint the time of the first error above a milliradian; inf for never."""
    wrong = np.abs(q - desired(t)[0]) > UNACCEPTABLE
    return np.where(wrong.any(axis=0), t[np.argmax(wrong, axis=0)], np.inf)


def smallest_eigenvalues(model: mbs.Model, t: FloatArray) -> FloatArray:
    """Return the smallest eigenvalue of the mass matrix along eq. (38)."""
    found: FloatArray = np.linalg.eigvalsh(mbs.mass_matrix(model, desired(t)[0]))[..., 0]
    return found


def singular_instants(model: mbs.Model) -> list[float]:
    """Return the times at which the smallest eigenvalue of the mass matrix changes its sign."""
    t = np.linspace(0.0, DURATION, 2001)
    values = smallest_eigenvalues(model, t)
    found = []
    for k in np.flatnonzero(values[1:] * values[:-1] < 0.0):
        low, high = t[k], t[k + 1]
        while high - low > 1e-12:
            middle = 0.5 * (low + high)
            same = smallest_eigenvalues(model, middle) * values[k] > 0.0
            low, high = (middle, high) if same else (low, middle)
        found.append(float(low))
    return found


def growth_rates(model: mbs.Model, t: FloatArray) -> FloatArray:
    """Return the largest real part of the eigenvalues of the linear dynamics along eq. (38)."""
    q, qd, qdd = desired(t)
    A, _ = mbs.linearize(model, q, qd, mbs.inverse_dynamics(model, q, qd, qdd))
    found: FloatArray = np.linalg.eigvals(A).real.max(axis=-1)
    return found


def powers(model: mbs.Model, t: FloatArray, qd: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the desired power of the motors and the simulated one, for these rates."""
    motion = desired(t)
    tau = mbs.inverse_dynamics(model, *motion)
    return np.sum(tau * motion[1], axis=-1), np.sum(tau * qd, axis=-1)


# -- tables ----------------------------------------------------------------------------------------


def _row(label: str, values: Iterable[float]) -> None:
    print(f"  {label:34}", *(f"{x:7.2f}" for x in values))


def print_deviations() -> None:
    """Print the times at which the simulations deviate."""
    print("First deviation by more than 1 mrad, in s, of joints 1 to 6")
    for name, values in TABLE_3.items():
        _row(f"printed in Table 3, {name}", values)
    for name in SOLVERS:
        t, states, ended = forced_unguarded(puma(printed=True), name)
        _row(f"printed C_5, {name}", first_deviations(t, states[:, 0]))
        print(f"    ended at {t[-1]:.3f} s {ended}")
    runs = {
        "ode45, atol 1e-6": {},
        "ode45, atol 1e-8": {"atol": 1e-8},
        "ode45, rtol, atol 1e-12": {"rtol": 1e-12, "atol": 1e-12},
        "RK4, torques held for 1 ms": {"method": "rk4"},
    }
    for label, given in runs.items():
        for name, solver in SOLVERS.items():
            begun = time.process_time()
            motion = forced(puma(), solver, **given)
            taken = time.process_time() - begun
            _row(f"right C_5, {label}, {name}", first_deviations(motion.t, motion.q))
            print(f"    {taken:.2f} s of CPU time for {motion.t[-1]:g} s")
    free = forced(puma(gravity=0.0), "udut", 10.0)
    error = np.abs(free.q - desired(free.t)[0]).max()
    print(f"  without gravity, UDU^T, all 10 s: off by at most {error:.1e} rad")


def print_steps() -> None:
    """Print the effect of the step size: none for an adaptive scheme, little at order 4."""
    print("First deviation of any joint, in s, by step size")
    for step in (0.1, 0.01, 0.001, 0.0001):
        found = {}
        for method in ("dormand_prince", "rk4"):
            try:
                motion = forced(puma(), "udut", step=step, method=method)
            except SimulationError as error:  # so far off that the numbers overflow
                motion = error.motion
            found[method] = first_deviations(motion.t, motion.q).min()
        said = ", ".join(f"{method} {value:.2f}" for method, value in found.items())
        print(f"  step {step:6g} s: {said}")


def main() -> None:
    """Print the tables, and write the figures if a folder is named."""
    t = np.linspace(0.0, DURATION, 1001)
    for label, model in (("right", puma()), ("printed", puma(printed=True))):
        values = smallest_eigenvalues(model, t)
        print(f"{label} C_5: smallest eigenvalue of the mass matrix {values.min():.3g} kg m^2")
        print(f"  changes its sign at {np.round(singular_instants(model), 4).tolist()} s")
    growth = growth_rates(puma(), t)
    print("Growth rates of a deviation, right C_5, in 1/s:", end="")
    print(*(f" {growth[int(100 * now)]:.1f} at {now} s" for now in (2.0, 4.9, 5.25, 6.5)), sep=",")
    print_deviations()
    print_steps()
    if len(sys.argv) > 1:
        from puma_figures import write_figures

        write_figures(Path(sys.argv[1]))


if __name__ == "__main__":
    main()
