# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Timing of alternatives in turn, under the same conditions.

The CPU time of the thread is measured, so that other processes disturb less.
"""

import random
import time
import timeit
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mbs_dynamics import Kernel

SAMPLE = 2e-4
"""Seconds that one sample lasts at least; what is timed is called as often as that takes."""

ROUNDS = 101
"""Samples of each alternative. Odd, so that the median is one of them."""


class Call(NamedTuple):
    """Timed call: a function with its arguments."""

    function: Callable[..., Any]
    arguments: tuple[Any, ...] = ()
    options: Mapping[str, Any] = {}
    """Arguments by name."""
    evaluations: int = 1
    """How many evaluations one call makes; the time is given for one of them."""

    def timer(self) -> timeit.Timer:
        """Return a timer of the call as a user writes it, without a wrapper around it."""
        unnamed = {f"a{k}": value for k, value in enumerate(self.arguments)}
        given = {"f": self.function, **unnamed, **self.options}
        passed = ", ".join([*unnamed, *(f"{name}={name}" for name in self.options)])
        local = "; ".join(f"{name} = given[{name!r}]" for name in given)
        return timeit.Timer(f"f({passed})", local, time.thread_time, globals={"given": given})


def interleaved(calls: Mapping[str, Call], rounds: int = ROUNDS) -> dict[str, NDArray[np.float64]]:
    """Return the microseconds of each call, (rounds,), taken in turn and in random order."""
    samples = []
    for name, call in calls.items():
        timer = call.timer()
        timer.timeit(3)  # compiles and warms up what is only made at need
        number = max(1, round(SAMPLE / max(min(timer.repeat(5, 1)), 1e-9)))
        samples.append((name, timer, number, number * call.evaluations))
    taken = {name: np.empty(rounds) for name in calls}
    for k in range(rounds):
        for name, timer, number, evaluations in random.sample(samples, len(samples)):
            taken[name][k] = 1e6 * timer.timeit(number) / evaluations
    return taken


def median(taken: NDArray[np.float64] | Sequence[float]) -> float:
    """Return the median of the samples of one call."""
    return float(np.median(taken))


def ratio(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the median over the rounds of a's time divided by b's time of the same round."""
    return float(np.median(a / b))


def kernel_alone(kernel: Kernel, arrays: Sequence[Any], evaluations: int = 200) -> Call:
    """Return a call of a kernel's loop in machine code over ``evaluations`` equal states.

    Neither Python nor the making of arrays counts. Inputs and outputs stay in the first cache.
    """
    outputs = [np.empty(port.shape) for port in kernel.outputs]
    everything = [*(np.ascontiguousarray(x, float) for x in arrays), *kernel.defaults, *outputs]
    tables = [np.broadcast_to(x.reshape(-1), (evaluations, x.size)) for x in everything]

    def run() -> None:
        kernel.evaluate(evaluations, tables, in_turn=True)

    return Call(run, evaluations=evaluations)
