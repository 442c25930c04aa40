# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The choice of loops for large models: equations traced with generic bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from mbs_dynamics.compiler import Program
from mbs_dynamics.model.orders import depth_first, largest_tree, mean_depth, path_to
from mbs_dynamics.model.tree import Model

if TYPE_CHECKING:
    from mbs_dynamics.compiler.frontend.loop_program import LoopProgram
    from mbs_dynamics.compiler.frontend.loops import Loops

MANY = 48
"""From so many bodies on, loops over bodies may stay loops, whatever their depth."""

LONG = 40_000
"""Programs of more operations than this stay loops in any case, because these are compiled sooner.

So do those with more entries in their results. Others do if they have loops over pairs or columns
of a tree that is :data:`DEEP`. Elsewhere straight-line code leaves out more zeros, and takes half
of the time where a tree is shallow.
"""

SCATTERED, FULL, HUGE = 150_000, 4, 200_000
"""Where all trees are small, programs of more operations than SCATTERED stay loops, and so do those
of larger results than LONG that take at most FULL operations for an entry, or are HUGE.

Measured for 80 arms of 6 joints: loops take 1.3 to 2 times the time of straight-line code for
results by joint or by body, two thirds of it for matrices that follow pair by pair, and 1.9 to 3.4
times for those that follow column by column, which would take ten seconds and more to compile.
"""

WIDE = 5000
"""The same with loops over pairs or columns of a deep tree."""

LONG_PATH = 100_000
"""The same along the path to a body, without loops over pairs: these take up to twice the time of
straight-line code.
"""

DEEP = 12.0
"""Mean number of joints that move a body, from which on loops over pairs and columns are long.

Measured for chains: of 24 joints they take 0.55 to 1.1 of the time of straight-line code, of 40
joints 0.4 to 1, the least for the derivatives of forward dynamics.
"""

COORDINATES = ("q", "qd", "qdd", "qddd", "qdddd")
"""Arrays of shape (n,): positions and their time derivatives."""

SEVERAL = frozenset({"motion"})
"""Arrays (k, n) of several of these."""

BY_ELIMINATION = "mass_matrix"
"""The method that eliminates coordinate by coordinate, which is no loop over bodies."""

MODEL_INPUTS = frozenset({"gravity", "payload"})
"""Properties of the model that are inputs of the kernels, so that they change without compiling."""


def in_loops(
    name: str,
    equations: Callable[..., Any],
    model: Model,
    inputs: Mapping[str, tuple[int, ...]],
    options: Mapping[str, Any],
    straight: Callable[[], Program],
) -> LoopProgram | None:
    """Return equations traced with generic bodies, or None where they had better not be.

    If one body is named, loops run over those on the path to it, whose payloads do not matter.
    ``straight`` traces the same equations body by body.
    """
    chosen = _bodies(model, options)
    if chosen is None or options.get("method") == BY_ELIMINATION:
        return None
    joints = [model.bodies[i].joint for i in chosen[1]]
    coordinates = [joint.coordinate for joint in joints if joint.ratio == 1.0]
    if len(set(coordinates)) < len(joints):  # mimic joints are traced one by one
        return None
    # most robots have none, and these take a tenth of the start of a process
    from mbs_dynamics.compiler.frontend.loop_trace import trace_loops
    from mbs_dynamics.compiler.frontend.loops import Unsuitable
    from mbs_dynamics.model.generic import GenericModel, forest_of

    ordered, order = chosen
    deep = mean_depth(ordered) > DEEP
    loads = {} if "body" in options else {i: k for k, i in enumerate(model.carriers)}
    carriers = [k for k, i in enumerate(order) if i in loads]

    def on_generic(loops: Loops, gravity: Any, payload: Any, **symbols: Any) -> Any:
        generic = GenericModel(ordered, loops, gravity, payload, carriers, model.n)
        return equations(generic, **symbols, **options)

    rows = {key: "coordinate" for key in (*COORDINATES, *SEVERAL, "tau") if key in inputs}
    rows.update({key: "body" for key in ("wrenches",) if key in inputs})
    if loads:
        rows["payload"] = "load"
    places = {
        "coordinate": coordinates,
        "body": order,
        "load": [loads.get(i, -1) for i in order],
    }
    try:
        program = trace_loops(
            on_generic,
            inputs,
            name=name,
            droppable=MODEL_INPUTS,
            forest=forest_of(ordered, carriers),
            places=places,
            rows=rows,
            columns=SEVERAL,
            expand=straight,
        )
    except Unsuitable:
        return None
    entries, total = sum(port.size for port in program.outputs), program.operations.total
    if "body" not in options and not _is_large(model):
        suits = total > SCATTERED if entries <= LONG else total <= FULL * entries
        return program if suits or entries > HUGE else None
    least = LONG_PATH if "body" in options else LONG
    if deep and program.has_wide_loops:
        least = WIDE
    return program if total > least or entries > LONG else None


def _bodies(model: Model, options: Mapping[str, Any]) -> tuple[Model, list[int]] | None:
    """Return what loops run over, with their numbers in the model; None where they had better not.

    All bodies, or those on the path to the body that is named.
    """
    if "body" in options:
        path, order = path_to(model, options["body"])
        long = mean_depth(path) > DEEP or model.n >= MANY
        return (path, order) if order and long else None
    return depth_first(model) if _is_large(model) or model.nb >= MANY else None


def _is_large(model: Model) -> bool:
    """Whether there is a large tree, or the bodies are deep in theirs."""
    return mean_depth(model) > DEEP or largest_tree(model) >= MANY
