# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Every algorithm compared with every library: arms, humanoids and chains; one state and batches.

Arms of 6 and 7 joints, humanoids of some 30, and chains with generic placements and inertias. Every
library builds its mechanism from one model, without mimic joints, and results are compared before
anything is timed.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from time import thread_time
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import mbs_dynamics as mbs
from benchmarks.figures import draw_ratios
from benchmarks.mechanisms import HUMANOIDS, arms, chain, robot
from benchmarks.report import RESULTS, Table
from benchmarks.rivals import LIBRARIES, NOTES, Pinocchio
from benchmarks.timing import Call, interleaved, median, ratio
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.model.orders import path

FloatArray = NDArray[np.float64]

LENGTHS = (10, 30)
STATES = 10_000
LARGEST_RESULT = 1 << 30
"""Bytes; where results of so many states would be larger, there are fewer states."""

AGREEMENT = 1e-8
"""Largest difference from another library, relative to the largest entry."""


class Subject(NamedTuple):
    """One algorithm with its options, and how many of q, qd and qdd (or tau) it takes."""

    function: Callable[..., Any]
    arrays: int
    options: Mapping[str, Any] = MappingProxyType({})

    @property
    def label(self) -> str:
        """Its name in the tables, and in the calls of the other libraries."""
        given = [name for key, name in self.options.items() if key == "representation"]
        return ", ".join([algorithm_of(self.function).name, *given])


def subjects(body: str) -> list[Subject]:
    """Return the algorithms that another library has as well."""
    at = {"body": body}
    frames = ("body_fixed", "spatial", "hybrid")
    return [
        Subject(mbs.inverse_dynamics, 3),
        Subject(mbs.gravity_torques, 1),
        Subject(mbs.bias_torques, 2),
        Subject(mbs.forward_dynamics, 3),
        Subject(mbs.mass_matrix, 1),
        Subject(mbs.inverse_mass_matrix, 1),
        Subject(mbs.coriolis_matrix, 2),
        Subject(mbs.inverse_dynamics_derivatives, 3),
        Subject(mbs.forward_dynamics_derivatives, 3),
        Subject(mbs.inverse_dynamics_regressor, 3),
        Subject(mbs.forward_kinematics, 1),
        Subject(mbs.twists, 2),
        Subject(mbs.accelerations, 3),
        *(Subject(mbs.jacobian, 1, {**at, "representation": name}) for name in frames),
        Subject(mbs.jacobian_rate, 2, at),
        Subject(mbs.kinematic_hessian, 1, at),
        Subject(mbs.kinetic_energy, 2),
        Subject(mbs.potential_energy, 1),
        Subject(mbs.center_of_mass, 1),
        Subject(mbs.centroidal_momentum, 2),
        Subject(mbs.centroidal_momentum_matrix, 1),
        Subject(mbs.centroidal_momentum_matrix_rate, 2),
        Subject(mbs.center_of_mass_jacobian, 1),
        Subject(mbs.operational_space_inertia, 1, at),
    ]


def last_body(model: mbs.Model) -> str:
    """Return the body that most joints move."""
    return max(model.body_names, key=lambda name: len(path(model, model.frames[name].body)))


LINEAR_FIRST = [3, 4, 5, 0, 1, 2]

OTHERWISE_ORDERED = ("inverse_dynamics_regressor", "kinematic_hessian")
"""Results of Pinocchio with other orders of parameters or axes; the tests compare them."""

AMBIGUOUS = "coriolis_matrix"
"""Several matrices are right for joints with several degrees of freedom; the tests compare them."""


def suite(
    name: str = "suite",
    models: Callable[[], Iterable[tuple[str, mbs.Model]]] | None = None,
    libraries: Sequence[Any] = LIBRARIES,
) -> Iterator[Table]:
    """Yield tables of one state, of batches, and of geometric means."""
    file, models = name, models or _models
    names = [library.name for library in libraries]
    means = Table(
        "Time of the other library divided by ours: geometric mean / least",
        ("mechanism", *names),
        note=NOTES,
    )
    drawn: dict[str, dict[str, float]] = {}
    for name, model in models():
        table, gains = _one_state(name, model, libraries)
        yield table
        means.rows.append([name, *(_mean_and_least(gains[other]) for other in names)])
        drawn[name] = gains[Pinocchio.name]
    yield means
    singles, drawn = drawn, {}
    for name, model in models():
        table, drawn[name] = _batch(name, model)
        yield table
    if file != "suite":  # the pages show no other figures
        return
    title = f"Batch of {STATES} states, one thread: loop over Pinocchio / ours"
    draw_ratios("One state, called from Python: Pinocchio / ours", singles, RESULTS / "suite.svg")
    draw_ratios(title, drawn, RESULTS / "suite_batch.svg")


def _models() -> Iterator[tuple[str, mbs.Model]]:
    yield from arms()
    for name in HUMANOIDS:
        yield name, robot(name)
    for n in LENGTHS:
        yield f"chain of {n}", chain(n)


# -- one state -------------------------------------------------------------------------------------


def _one_state(
    name: str, model: mbs.Model, libraries: Sequence[Any]
) -> tuple[Table, dict[str, dict[str, float]]]:
    """Return the table of a mechanism, and by library and algorithm the ratios in it."""
    columns = ("microseconds", "operations", "trace + compile ms", "ours")
    ratios = [f"{library.name} / ours" for library in libraries]
    table = Table(f"{name}: {model.n} coordinates", (*columns, "Pinocchio", *ratios))
    state = model.random_state(1)
    body = last_body(model)
    made = {library.name: library(model) for library in libraries}
    order = made[Pinocchio.name].order
    q, qd, qdd = state
    others = {key: x.calls(body, q, qd[order], qdd[order]) for key, x in made.items()}
    incomparable = (*OTHERWISE_ORDERED, *([AMBIGUOUS] if model.nq > model.n else []))
    gains: dict[str, dict[str, float]] = {library: {} for library in others}
    for subject in subjects(body):
        kernel, seconds = _compiled(subject, model)
        arrays = state[: subject.arrays]
        calls = {key: each[subject.label] for key, each in others.items() if subject.label in each}
        for key, call in calls.items():
            if subject.label not in incomparable:
                _compare(f"{key}: {subject.label} of {name}", kernel(*arrays), call(), order)
        ways = {"ours": Call(kernel, arrays), **{key: Call(call) for key, call in calls.items()}}
        taken = interleaved(ways)
        by_library = {key: ratio(taken[key], taken["ours"]) for key in calls}
        for key, gain in by_library.items():
            gains[key][subject.label] = gain
        times = [1e3 * seconds, median(taken["ours"]), median(taken[Pinocchio.name])]
        compared = [by_library.get(key) for key in others]
        table.rows.append([subject.label, kernel.operations.total, *times, *compared])
    return table, gains


def _compiled(subject: Subject, model: mbs.Model) -> tuple[mbs.Kernel, float]:
    begin = thread_time()
    kernel = mbs.compile(subject.function, model, backend="llvm", **subject.options)
    return kernel, thread_time() - begin


def _compare(what: str, ours: Any, theirs: Any, order: NDArray[np.int64]) -> None:
    """Raise ArithmeticError if two results are arrays of one shape that differ."""
    if not isinstance(theirs, np.ndarray) or theirs.shape != np.shape(ours):
        return
    if theirs.ndim == 2 and theirs.shape[0] == len(order):
        if not theirs[np.tril_indices(len(theirs), -1)].any():
            theirs = theirs + np.triu(theirs, 1).T
        theirs = theirs[order]
    if theirs.shape[-1:] == order.shape:
        theirs = theirs[..., order]
    orders = [theirs]
    if theirs.shape[:1] == (6,):  # others have the linear part first
        orders.append(theirs[LINEAR_FIRST])
    if theirs.shape == (6, 6):
        orders.append(theirs[np.ix_(LINEAR_FIRST, LINEAR_FIRST)])
    difference = min(np.abs(ours - ordered).max() for ordered in orders)
    if difference > AGREEMENT * np.abs(ours).max():
        raise ArithmeticError(f"{what} differs by {difference:.1e}")


def _mean_and_least(gains: Mapping[str, float]) -> str | None:
    if not gains:
        return None
    logarithms = np.log(list(gains.values()))
    return f"{np.exp(logarithms.mean()):.2f} / {np.exp(logarithms.min()):.2f}"


# -- batches ---------------------------------------------------------------------------------------


def _batch(name: str, model: mbs.Model) -> tuple[Table, dict[str, float]]:
    gains: dict[str, float] = {}
    table = Table(
        f"{name}: a batch of {STATES} states, one thread, (N, n) arrays in and out",
        (
            "microseconds per state",
            "ours",
            "Pinocchio, loop",
            "not stored",
            "its parallel API",
            "one write",
            "loop / ours",
            "API / ours",
        ),
        note="Results are new arrays. Pinocchio is called in a Python loop over the rows, which "
        "stores the result that is returned or left in its data; not stored: the "
        "same loop without storing. Its parallel API, run with one thread, takes (n, N) arrays and "
        "exists for two algorithms. One write: the time to fill an array of the size of the "
        "results with zeros, a lower bound for every library. There are fewer states where the "
        "results would take more than a gigabyte.",
    )
    body = last_body(model)
    rng = np.random.default_rng(2)
    moved, *rates = rng.uniform(-2.0, 2.0, (3, STATES, model.n))
    states = [mbs.displaced(model, model.neutral(), moved), *rates]
    library = Pinocchio(model)
    parallel = _parallel(library, states)
    for subject in subjects(body):
        kernel, _ = _compiled(subject, model)
        row = [np.empty(x.shape[1]) for x in states]
        call = library.calls(body, *row)[subject.label]
        size = 8 * sum(port.size for port in kernel.outputs)
        count = min(STATES, LARGEST_RESULT // size)
        results = tuple(np.zeros((count, *port.shape)) for port in kernel.outputs)
        arrays = tuple(x[:count] for x in states[: subject.arrays])
        store = library.storing(subject.label, call, results)
        few = count // 20  # a loop is as long as the sum of its turns
        turns = store, lambda _, call=call: call()
        loops = [_loop(turn, row, [*arrays, *states[len(arrays) :]], few) for turn in turns]
        ways = {
            "ours": Call(kernel, arrays, evaluations=count),
            "loop": Call(loops[0], evaluations=few),
            "not stored": Call(loops[1], evaluations=few),
            "write": Call(_fill, (results,), evaluations=count),
        }
        if subject.label in parallel:
            ways["api"] = Call(parallel[subject.label], evaluations=STATES)
        taken = interleaved(ways, rounds=11)
        gains[subject.label] = ratio(taken["loop"], taken["ours"])
        shown = ("ours", "loop", "not stored", "api", "write")
        times = [median(taken[way]) if way in taken else None for way in shown]
        api = ratio(taken["api"], taken["ours"]) if "api" in taken else None
        table.rows.append([subject.label, *times, gains[subject.label], api])
    return table, gains


def _loop(
    turn: Callable[[int], Any],
    row: Sequence[FloatArray],
    states: Sequence[FloatArray],
    count: int,
) -> Callable[[], None]:
    """Return a loop over so many of the states, at each call over the next ones."""
    begins = itertools.cycle(range(0, len(states[0]) - count + 1, count))

    def loop() -> None:
        first = next(begins)
        for k in range(first, first + count):
            for into, x in zip(row, states, strict=True):
                into[:] = x[k]
            turn(k)

    return loop


def _fill(results: tuple[FloatArray, ...]) -> None:
    for result in results:
        result.fill(0.0)


def _parallel(library: Pinocchio, states: Sequence[FloatArray]) -> dict[str, Callable[[], Any]]:
    """Return the algorithms of Pinocchio's parallel API."""
    import pinocchio as pin

    pool = pin.ModelPool(library.model, 1)
    Q, V, A = (np.asfortranarray(x.T) for x in states)  # for timing alone
    out = np.empty_like(A, order="F")
    return {
        "inverse_dynamics": lambda: pin.rneaInParallel(1, pool, Q, V, A, out),
        "forward_dynamics": lambda: pin.abaInParallel(1, pool, Q, V, A, out),
    }
