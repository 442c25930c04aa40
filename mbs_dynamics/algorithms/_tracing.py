# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What equations are traced over as loops: which bodies, and which arrays have entries for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from mbs_dynamics.algorithms.kernels import MODEL_INPUTS
from mbs_dynamics.compiler import Program
from mbs_dynamics.compiler.passes import strategy
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import depth_first, path, path_to

if TYPE_CHECKING:
    from mbs_dynamics.compiler.frontend.loop_program import LoopProgram
    from mbs_dynamics.compiler.frontend.loops import Loops

COORDINATES = ("q", "qd", "qdd", "qddd", "qdddd")
"""Arrays of shape (n,): positions and their time derivatives."""

SEVERAL = frozenset({"motion"})
"""Arrays (k, n) of several of these."""


def traced(
    name: str,
    equations: Callable[..., Any],
    model: Model,
    inputs: Mapping[str, tuple[int, ...]],
    options: Mapping[str, Any],
    straight: Callable[[], Program],
) -> Program:
    """Return equations traced as loops over the bodies, or body by body: what the compiler prefers.

    If one body is named, loops run over those on the path to it. ``straight`` traces the same
    equations body by body.
    """

    def looped() -> LoopProgram:
        return _traced_in_loops(name, equations, model, inputs, options, straight)

    return strategy.chosen(_parents(model, options), model.n, looped, straight)


def _parents(model: Model, options: Mapping[str, Any]) -> Sequence[int]:
    """Return the parents of the bodies that loops run over."""
    if "body" not in options:
        return model.parents
    return range(-1, len(path(model, model.frame(options["body"]).body)) - 1)


def _traced_in_loops(
    name: str,
    equations: Callable[..., Any],
    model: Model,
    inputs: Mapping[str, tuple[int, ...]],
    options: Mapping[str, Any],
    straight: Callable[[], Program],
) -> LoopProgram:
    """Return equations traced as loops; Unsuitable if they, or the bodies, are not alike enough."""
    from mbs_dynamics.compiler.frontend.loop_trace import trace_loops  # most robots need none
    from mbs_dynamics.compiler.frontend.loops import Unsuitable
    from mbs_dynamics.representation.generic_tree import GenericTree, forest_of

    whole = "body" not in options
    ordered, order = depth_first(model) if whole else path_to(model, options["body"])
    joints = [model.bodies[i].joint for i in order]
    coordinates = [joint.coordinate for joint in joints if joint.ratio == 1.0]
    if len(set(coordinates)) < len(joints):  # mimic joints are traced one by one
        raise Unsuitable
    loads = {i: k for k, i in enumerate(model.loaded_bodies)} if whole else {}
    loaded = [k for k, i in enumerate(order) if i in loads]

    def on_generic(loops: Loops, gravity: Any, payload: Any, **symbols: Any) -> Any:
        generic = GenericTree(ordered, loops, gravity, payload, loaded, model.n)
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
    return trace_loops(
        on_generic,
        inputs,
        name=name,
        droppable=frozenset(MODEL_INPUTS),
        forest=forest_of(ordered, loaded),
        places=places,
        rows=rows,
        columns=SEVERAL,
        expand=straight,
    )
