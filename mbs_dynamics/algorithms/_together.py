# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Several algorithms in one kernel, which computes common subexpressions once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from mbs_dynamics.algorithms._algorithm import Algorithm, asked_of
from mbs_dynamics.algorithms.arguments import ARRAYS
from mbs_dynamics.algorithms.kernels import kernel_of, traced_on
from mbs_dynamics.compiler import Kernel, Program, named_results
from mbs_dynamics.errors import ArgumentError
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.separation import loads_on, separated
from mbs_dynamics.representation.tree import Tree

__all__ = ["compile_together"]


class _Part(NamedTuple):
    """One of the algorithms."""

    name: str
    algorithm: Algorithm
    arrays: tuple[str, ...]
    options: dict[str, Any]


def compile_together(
    functions: Mapping[str, Any] | Sequence[Any],
    model: Model,
    *,
    backend: str | None = None,
    defaults: bool = True,
) -> Kernel:
    """Return several algorithms compiled into one kernel for a model, as a callable on arrays.

    ``functions`` are algorithms, or pairs of an algorithm and a mapping of its options, which are
    those of :func:`compile`: either a sequence, or a mapping that names them. The inputs of the
    kernel are the arrays that any of them takes, each once, in the order q, qd, qdd, ..., then
    gravity, payloads, armature and placements. It returns a tuple with the result of each
    algorithm, in order; its ``outputs`` carry the names, by default those of the algorithms. One
    with several results, such as inverse_dynamics_derivatives, has one output for each:
    ``name_dtau_dq`` and so on. With both = compile_together([gravity_torques, bias_torques], arm)
    it is g, h = both(q, qd).

    Fixed joints that :func:`joint_wrenches` names separate the loads of their body: the input
    ``payload`` then has the rows of ``mbs_dynamics.model.separation.separated``.

    What the algorithms share is computed once. That takes fewer operations than separate kernels,
    and one call in place of several.

    Gravity, payloads, armature and placements default to those of the model. With ``defaults``
    False every call must give them, and models that differ in nothing else share the kernel: what
    changes them while it runs compiles nothing.

    Raises ArgumentError for no algorithm at all, names that are used twice or are not identifiers,
    and an array that means different things to two algorithms; else as :func:`compile` does.
    """
    parts = _parts(functions)
    parts[0].algorithm.check_model(model)
    inputs = _inputs(parts, model)
    joints = [name for part in parts for name in part.algorithm.joints_in(part.options)]
    whole = separated(model, joints)
    return kernel_of(
        whole,
        tuple((*part[:3], tuple(part.options.values())) for part in parts),
        lambda: _traced(parts, inputs, model, whole),
        backend=backend,
        defaults=defaults,
    )


def _parts(functions: Mapping[str, Any] | Sequence[Any]) -> list[_Part]:
    """Return the algorithms with their names, arrays and complete options."""
    if isinstance(functions, str) or not isinstance(functions, (Mapping, Sequence)):
        raise ArgumentError(
            "functions must be a sequence of algorithms, or a mapping of names to them; got "
            f"{functions!r}"
        )
    parts: list[_Part] = []
    for key in functions:
        name, entry = (key, functions[key]) if isinstance(functions, Mapping) else (None, key)
        function, options = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, {})
        if isinstance(function, tuple) or not isinstance(options, Mapping):
            raise ArgumentError(
                "an algorithm with options is a pair (algorithm, mapping of options); got "
                f"{entry!r}"
            )
        algorithm, arrays, complete = asked_of(function, options)
        name = algorithm.name if name is None else name
        if not isinstance(name, str) or not name.isidentifier():
            raise ArgumentError(f"the name of an output must be an identifier; got {name!r}")
        if any(name == part.name for part in parts):
            raise ArgumentError(
                f"two outputs are called {name!r}: give a mapping of different names to algorithms"
            )
        parts.append(_Part(name, algorithm, arrays, complete))
    if not parts:
        raise ArgumentError("functions must name at least one algorithm")
    return parts


def _inputs(parts: Sequence[_Part], model: Model) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all arrays, or raise ArgumentError where two parts disagree."""
    uses: dict[str, tuple[str, tuple[int, ...], str]] = {}
    for part in parts:
        for name in part.arrays:
            shape, frames = part.algorithm.shape(name, model, part.options), ""
            if name == "wrenches":
                frames = f" {part.options.get('representation', 'body_fixed')}"
            first = uses.setdefault(name, (part.name, shape, frames))
            if first[1:] != (shape, frames):
                raise ArgumentError(
                    f"the array {name!r} is not the same for all algorithms: {first[0]} takes "
                    f"{first[1]}{first[2]}, {part.name} takes {shape}{frames}"
                )
    order = dict.fromkeys([*ARRAYS, *uses])
    return {name: uses[name][1] for name in order if name in uses}


def _traced(
    parts: Sequence[_Part], inputs: Mapping[str, tuple[int, ...]], model: Model, whole: Model
) -> Program:
    """Return the parts as one program for a model, those of joints on an equivalent model.

    That takes fewer operations than to share the frames of the bodies with the other parts.
    ``whole`` has the fixed joints of all parts separated; its properties are inputs of the program.
    """

    def equations(tree: Tree, **symbols: Any) -> dict[str, Any]:
        results: dict[str, Any] = {}
        for part in parts:
            same = part.algorithm.model_for(model, part.options)
            loads = loads_on(same, whole, tree.loads)
            if part.algorithm.joint_space_only:
                same = part.algorithm.equivalent(same, part.arrays, part.options)
            on = Tree(same, tree.gravity, loads, tree.armature, tree.placements)
            arrays = {name: symbols[name] for name in part.arrays}
            result = part.algorithm.equations(on, **arrays, **part.options)
            for key, array in named_results("", result)[0].items():
                results[f"{part.name}_{key}" if key else part.name] = array
        return results

    name = "_and_".join(part.name for part in parts)
    return traced_on(whole, equations, inputs, name=name)
