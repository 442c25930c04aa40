# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Print the times from the start of a process to compiled kernels, as JSON.

Run by the benchmark ``startup`` as ``python -m benchmarks.fresh_process URDF``. It imports one
thing after another, because that is what is timed. Each entry is the time that has passed and the
time that the thread had a processor, in milliseconds.
"""

from time import perf_counter, thread_time

BEGIN = perf_counter(), thread_time()

import json  # noqa: E402
import sys  # noqa: E402
from collections.abc import Callable  # noqa: E402
from typing import Any  # noqa: E402


class Stopwatch:
    """Milliseconds by what they went into."""

    def __init__(self) -> None:
        self.taken: dict[str, tuple[float, float]] = {}
        self._last = BEGIN

    def book(self, name: str, begin: tuple[float, float]) -> None:
        """Add the time since ``begin`` to a name."""
        before = self.taken.get(name, (0.0, 0.0))
        passed = 1e3 * (perf_counter() - begin[0]), 1e3 * (thread_time() - begin[1])
        self.taken[name] = before[0] + passed[0], before[1] + passed[1]

    def lap(self, name: str) -> None:
        """Book the time since the last lap."""
        self.book(name, self._last)
        self._last = perf_counter(), thread_time()

    def watched(self, name: str, function: Callable[..., Any]) -> Any:
        """Return the function, with the time of its calls booked under a name as well."""

        def timed(*args: Any, **named: Any) -> Any:
            begin = perf_counter(), thread_time()
            try:
                return function(*args, **named)
            finally:
                self.book(name, begin)

        return timed


def main(urdf: str) -> None:
    watch = Stopwatch()
    import numpy as np

    watch.lap("import numpy")
    import mbs_dynamics as mbs

    watch.lap("import mbs_dynamics")
    model = mbs.Model.from_urdf(urdf)
    watch.lap("load the URDF")
    from mbs_dynamics.algorithms import kernels
    from mbs_dynamics.compiler import Kernel, trace
    from mbs_dynamics.model.orders import leaves

    Kernel(trace(lambda x: x, {"x": (1,)}, name="nothing"), backend="llvm")
    watch.lap("import llvmlite, compile nothing")
    used: Any = kernels
    used.trace = watch.watched("trace", trace)
    used.Kernel = watch.watched("compile", Kernel)
    rest = np.zeros(model.n)
    frame: dict[str, Any] = {"representation": "body_fixed"}
    mbs.gravity_torques(model, rest)
    watch.lap("gravity_torques")
    mbs.bias_torques(model, rest, rest)
    watch.lap("bias_torques")
    mbs.twists(model, rest, rest, bodies=leaves(model), **frame)
    watch.lap("twists of the leaves")
    for leaf in leaves(model):
        mbs.jacobian(model, rest, leaf, **frame)
    watch.lap("jacobian of each leaf")
    watch.book("all", BEGIN)
    json.dump(watch.taken, sys.stdout)


if __name__ == "__main__":
    main(sys.argv[1])
