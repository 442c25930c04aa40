# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A process that evaluates one version of the package at the request of its parent.

Run as ``python worker.py ROOT``. ROOT is the folder from which mbs_dynamics must come.
Requests and answers are lines of JSON on stdin and stdout. Only the public API is used, because the
internals of the two versions differ.
"""

from __future__ import annotations

import gc
import inspect
import json
import os
import random
import sys
import timeit
import traceback
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from time import process_time, thread_time_ns
from typing import Any

if __name__ == "__main__":
    sys.path.pop(0)  # the folder of this script; nothing in it is a module of its own

import numpy as np
from numpy.typing import NDArray

import mbs_dynamics as mbs

FloatArray = NDArray[np.float64]
Answer = dict[str, Any]

MOST_JOINTS = 8
"""Joints of which a sensitivity asks for parameters."""

SMALL = 4096
"""Numbers in a result of which many are held."""

HELD = 50

ORDER = 3
"""Of the derivatives where an order is asked for."""


def _leaf(model: Any) -> str:
    """Return the first of the bodies that most joints move, in any version of the package."""
    depth = [0]  # of the bodies, and last of the ground
    for body in model.bodies:
        depth.insert(-1, 1 + depth[body.parent])
    return str(model.bodies[int(np.argmax(depth))].name)


class Worker:
    """Compiled kernel and the call that is timed."""

    def __init__(self) -> None:
        self.kernel: Any = None
        self.timer = timeit.Timer()
        self.hold: Callable[[], Any] | None = None
        self.held: list[Any] = []
        self.sizes = random.Random(0)

    def prepare(
        self, mechanism: Mapping[str, Any], function: str, options: Answer, anew: bool
    ) -> Answer:
        """Compile a function. Return the seconds up to its first result, and that result's size.

        With ``anew`` for a copy of the model, which shares nothing that is compiled.
        """
        self.kernel, self.timer, self.hold = None, timeit.Timer(), None
        self.held.clear()
        model = described(json.dumps(mechanism))
        if anew:
            model = replace(model)
        chosen = {**_options(function, model), **options}
        algorithm = getattr(mbs, function)
        gc.collect()
        gc.freeze()  # what is left of earlier requests is not searched again and again
        begin = process_time()
        kernel = mbs.compile(algorithm, model, backend="llvm", **chosen)
        arrays = _arrays(kernel, 0)
        result = kernel(*arrays)
        seconds = process_time() - begin
        gc.unfreeze()
        self.kernel = kernel
        parts = result if isinstance(result, tuple) else (result,)
        return {"seconds": seconds, "size": sum(np.size(part) for part in parts)}

    def call(self, states: int) -> Answer:
        """Choose a batch of so many states, or one state for 0. Return a digest of the result."""
        arrays = _arrays(self.kernel, states)
        result = self.kernel(*arrays)
        self.timer = _timer(self.kernel, arrays)
        parts = result if isinstance(result, tuple) else (result,)
        small = not states and sum(map(np.size, parts)) <= SMALL
        self.hold = partial(self.kernel, *arrays) if small else None
        return {"digest": _digest(result)}

    def sample(self, number: int) -> Answer:
        """Return the nanoseconds of one call, from the time that so many take.

        What counts is the time for which the thread has a processor: other processes disturb less.
        Results that are held make the kernel use other memory: whether its arrays begin where lines
        of the cache do makes a difference of a third, which is no property of a version.
        """
        if self.hold:
            self.held[HELD:] = []
            self.held.insert(0, (bytearray(16 * self.sizes.randrange(1, 256)), self.hold()))
        self.timer.timeit(1 + number // 10)  # another process has used the caches in between
        return {"nanoseconds": self.timer.timeit(number) / number}


def _timer(function: Callable[..., Any], arguments: Sequence[Any]) -> timeit.Timer:
    """Return a timer of the call as a user writes it."""
    given = {"f": function, **{f"a{k}": x for k, x in enumerate(arguments)}}
    passed = ", ".join(f"a{k}" for k in range(len(arguments)))
    local = "; ".join(f"{name} = given[{name!r}]" for name in given)
    return timeit.Timer(f"f({passed})", local, thread_time_ns, globals={"given": given})


# -- models and arguments --------------------------------------------------------------------------


@lru_cache(maxsize=1)
def described(description: str) -> mbs.Model:
    """Return the model that a request describes, as JSON."""
    source = json.loads(description)
    if "screws" in source:
        given = np.load(source["screws"])
        z = np.tile([0.0, 0.0, 1.0, 0.0, 0.0, 0.0], (len(given["parents"]), 1))
        screws = given["parents"].tolist(), given["homes"], z, given["inertias"]
        return mbs.Model.from_screws(*screws, frame="body_fixed")
    tip = {"tip": source["tip"]} if source["tip"] else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mbs.ModelWarning)  # of what lies beyond the tip
        return mbs.Model.from_urdf(Path(source["urdf"]), **tip)


def _options(function: str, model: mbs.Model) -> dict[str, Any]:
    """Return values of the options that a function cannot do without."""
    names = model.joint_names
    some = np.linspace(0, len(names) - 1, min(MOST_JOINTS, len(names))).astype(int)
    body = {"body": _leaf(model)}
    if function == "jacobian_derivative":
        return {**body, "joints": (names[len(names) // 2], names[-1])}
    if function == "twist_derivatives":
        return {"order": ORDER}
    if function == "torque_sensitivity":
        return {"joints": tuple(names[i] for i in some)}
    if function.endswith("_sensitivity"):
        return {**body, "joints": tuple(names[i] for i in some)}
    return body if "body" in inspect.signature(getattr(mbs, function)).parameters else {}


def _arrays(kernel: mbs.Kernel, states: int) -> list[FloatArray]:
    """Return the same values for every version: those that a kernel cannot do without."""
    rng = np.random.default_rng(1)
    batch = (states,) if states else ()
    ports = kernel.inputs[: kernel.required]
    return [rng.uniform(-1.0, 1.0, (*batch, *port.shape)) for port in ports]


def _digest(result: Any) -> list[float]:
    """Return few numbers that differ if results do."""
    parts = result if isinstance(result, tuple) else (result,)
    few = [np.ravel(part)[:: 1 + np.size(part) // 1000] for part in parts]
    weights = np.cos(np.arange(1000.0))
    return [x for part in few for x in (float(part @ weights[: part.size]), float(abs(part).sum()))]


# -- requests --------------------------------------------------------------------------------------


def main(root: str) -> None:
    """Answer requests until stdin ends."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what others print is no answer

    def answer(**entries: Any) -> None:
        answers.write(json.dumps(entries) + "\n")
        answers.flush()

    if Path(root).resolve() not in Path(str(mbs.__file__)).resolve().parents:
        raise SystemExit("mbs_dynamics was not imported from the version that is to be measured")
    worker = Worker()
    one = [np.eye(4)], [[0.0, 0.0, 1.0, 0.0, 0.0, 0.0]], [np.eye(6)]
    first = mbs.Model.from_screws([-1], *one, frame="body_fixed")
    mbs.compile(mbs.gravity_torques, first, backend="llvm")  # loads LLVM
    answer(ready=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer(**getattr(worker, request.pop("do"))(**request))
        except Exception as error:
            traceback.print_exc()
            answer(error=f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main(sys.argv[1])
