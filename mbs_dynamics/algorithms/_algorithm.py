# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Turns equations into algorithms: tracing, compilation, a cache, and checked arguments.

The equations of an algorithm are a function of a model, of arrays, and of options that are known
before any number is. ``@algorithm`` makes it callable with arrays of numbers: the first call of a
kind traces the equations and compiles them, and further calls run the kernel.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.algorithms.arguments import ARRAYS, BODY_LEVEL, described, shape_of, wrenches_on
from mbs_dynamics.algorithms.kernels import (
    MODEL_INPUTS,
    kernel_of,
    shapes_of_model_inputs,
    traced_on,
)
from mbs_dynamics.compiler import Dispatcher, Kernel, Operations, Program
from mbs_dynamics.compiler.passes import strategy
from mbs_dynamics.errors import ArgumentError, UnknownAlgorithmError
from mbs_dynamics.model.compiled import compiled, placed_links, variables
from mbs_dynamics.model.equivalent import equivalent
from mbs_dynamics.model.model import Model
from mbs_dynamics.model.orders import path
from mbs_dynamics.representation import AUTO, REPRESENTATIONS, checked
from mbs_dynamics.representation.tree import Tree

__all__ = ["Algorithm", "algorithm", "algorithm_of", "compile"]

P = ParamSpec("P")
R = TypeVar("R")

GIVEN = object()
"""In the key of a kernel, in place of an array that can be absent."""


class Algorithm(Dispatcher):
    """Equations, with the kernels that they are compiled to; a function of model and arrays.

    Called with a :class:`Tree` in place of the model, within other equations, it is its equations.
    """

    def __init__(
        self,
        equations: Callable[..., Any],
        invariant: bool,
        joint_space_only: bool,
        frame_free: bool,
        generic: bool,
    ) -> None:
        super().__init__()
        functools.update_wrapper(self, equations)
        self.equations = equations
        self.name = equations.__name__
        signature = inspect.signature(equations)
        first, *parameters = signature.parameters.values()
        self.__signature__ = signature.replace(
            parameters=[first.replace(annotation="Model"), *parameters]
        )
        self.invariant = invariant
        self.joint_space_only = joint_space_only
        self.frame_free = frame_free
        self.generic = generic
        self.positional = tuple(p.name for p in parameters)
        arrays = [p for p in parameters if p.name in ARRAYS]
        parameters = [*arrays, *(p for p in parameters if p.name not in ARRAYS)]
        self.parameters = tuple(p.name for p in parameters)
        self.arrays = tuple(p.name for p in arrays)
        self.required = tuple(p.name for p in arrays if p.default is p.empty)
        self.options = {p.name: p.default for p in parameters[len(arrays) :]}
        self.optional = self.arrays[len(self.required) :]
        self.defaults = (*[None] * len(self.optional), *self.options.values())
        """Of what follows the required arrays."""
        self.least = len(self.required)
        self.most = sum(p.kind is not p.KEYWORD_ONLY for p in parameters)
        self.__doc__ = described(self.__doc__, self.arrays, self.options, invariant=invariant)
        self._forms: dict[Any, Callable[[tuple[Any, ...]], tuple[Any, ...]]] = {}

    def __get__(self, instance: Any, owner: Any = None) -> Algorithm:
        """Return the algorithm: help() and similar tools recognize functions by ``__get__``."""
        return self

    def __reduce__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"<algorithm {self.name}{self.__signature__}>"

    def __call__(self, model: Model | Tree, *args: Any, **named: Any) -> Any:
        if isinstance(model, Tree):
            return self.equations(model, *args, **named)
        least, form = self.least, (len(args), *named) if named else len(args)
        if form == least:
            arrays, rest = args, self.defaults
        else:
            arrange = self._forms.get(form) or self._new_form(args, named)
            values = arrange((*args, *named.values(), *self.defaults))
            arrays, rest = values[:least], values[least:]
        try:
            kernel, forms = compiled(model).own[self, rest]
        except (KeyError, TypeError, AttributeError):  # new, or lists, or optional arrays
            return self._call(model, arrays, rest)
        if form not in forms:  # once: equal options may be other objects each time
            forms.add(form)
            if len(args) >= least:
                self.remember(model, least, args[least:], tuple(named.items()), kernel)
        return kernel(*arrays)

    def _new_form(self, args: tuple[Any, ...], named: Mapping[str, Any]) -> Any:
        """Return a function that arranges arguments in the order of the parameters, options last.

        It is looked up by the number of arguments and the names. Raises ArgumentError.
        """
        names = self.positional
        given = [*names[: len(args)], *named]
        wrong = [name for k, name in enumerate(given) if name not in names or name in given[:k]]
        unnamed = [f"{x!r} without a name" for x in args[self.most :]]
        if wrong or unnamed:
            refused = repr(wrong[0]) if wrong else unnamed[0]
            by_name = names[self.most :] if unnamed else ()
            raise ArgumentError(
                f"{self.name}: cannot take {refused}; the arguments are: model, {', '.join(names)}"
                + (f"; give options by name: {by_name[0]}=..." if by_name else "")
            )
        for name in self.required:
            if name not in given:
                raise ArgumentError(f"{self.name} needs the argument {name!r}")
        order = self.parameters
        places = [[*given, *order[self.least :]].index(name) for name in order]
        arrange = itemgetter(*places) if len(places) > 1 else tuple
        self._forms[(len(args), *named) if named else len(args)] = arrange
        return arrange

    def _call(self, model: Model, arrays: tuple[Any, ...], rest: tuple[Any, ...]) -> Any:
        """Call the kernel for required arrays, and for optional arrays and options."""
        count = len(self.optional)
        optional, options = rest[:count], rest[count:]
        given = tuple([None if x is None else GIVEN for x in optional])
        try:
            kernel = compiled(model).own[self, given + options][0]
        except (KeyError, TypeError, AttributeError):  # new, or lists
            self.check_model(model)
            complete = self.complete(dict(zip(self.options, options, strict=True)))
            own, key = compiled(model).own, (self, (*given, *complete.values()))
            entry = own.get(key)
            if entry is None:
                chosen = [name for name, x in zip(self.optional, given, strict=True) if x]
                entry = own[key] = self.kernel(model, (*self.required, *chosen), complete), set()
            kernel = entry[0]
        if any(given) and isinstance(optional[0], dict) and self.optional[0] == "wrenches":
            by_name = dict(zip(self.options, options, strict=True))
            optional = wrenches_on(model, optional[0], arrays[0], by_name), *optional[1:]
        if any(given) and self.optional == ("damping",):
            checks.not_negative("damping", optional[0])
        return kernel(*arrays, *[x for x in optional if x is not None])

    def kernel(
        self,
        model: Model,
        arrays: tuple[str, ...],
        options: Mapping[str, Any],
        backend: str | None = None,
    ) -> Kernel:
        """Return the kernel for these arrays and options; compiled once for each, and shared."""
        self.check_model(model)
        complete = self.complete(options)
        given = [GIVEN if name in arrays else None for name in self.optional]
        key = self, (*given, *complete.values())
        traced = functools.partial(self.program, model, arrays, complete)
        return kernel_of(model, key, traced, backend=backend, defaults=True)

    def check_model(self, model: object) -> None:
        """Raise ArgumentError if the argument is not a Model."""
        if not isinstance(model, Model):
            raise ArgumentError(f"{self.name}: model must be a Model; got {type(model).__name__}")

    def complete(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options, with defaults for those that are absent; raise for invalid ones."""
        complete = {name: options.get(name, default) for name, default in self.options.items()}
        missing = [k for k, v in complete.items() if v is inspect.Parameter.empty]
        if missing:
            raise ArgumentError(f"{self.name} needs the argument {missing[0]!r}")
        if "representation" in complete:
            checked(complete["representation"], auto=True)
        order = complete.get("order", 0)
        if not isinstance(order, int) or order < 0:
            raise ArgumentError(f"order must be an integer of at least 0; got {order!r}")
        return {name: _constant(name, value) for name, value in complete.items()}

    def program(self, model: Model, arrays: Iterable[str], options: Mapping[str, Any]) -> Program:
        """Return the traced equations, in the cheapest representation if the options say auto.

        For large models in the first one: to trace all takes longer than the best of them saves.
        """
        arrays = tuple(arrays)
        candidates = self.candidates(arrays, options)[: 1 if strategy.is_large(model.nb) else None]
        programs = [self._trace(model, arrays, each) for each in candidates]
        if len(programs) == 1:  # whose operations are not counted
            return programs[0]
        return min(programs, key=lambda program: program.operations.total)

    def candidates(self, arrays: tuple[str, ...], options: Mapping[str, Any]) -> list[Any]:
        """Return the options with each representation that ``"auto"`` may select."""
        if options.get("representation") != AUTO:
            return [options]
        cheapest = self.joint_space_only  # body-fixed it takes the fewest: test_operation_counts.py
        known = cheapest or not self.invariant or BODY_LEVEL.intersection(arrays)
        names = ["body_fixed"] if known else list(REPRESENTATIONS)
        return [{**options, "representation": name} for name in names]

    def operations(self, model: Model, options: Mapping[str, Any]) -> Operations:
        """Return how many operations the algorithm takes with its required arrays."""
        return self.program(model, self.required, self.complete(options)).operations

    def _trace(self, model: Model, arrays: tuple[str, ...], options: Mapping[str, Any]) -> Program:
        inputs, same = self._shapes(model, arrays, options), self.equivalent(model, arrays, options)

        def straight() -> Program:
            equations = functools.partial(self.equations, **options)
            large = strategy.is_large(model.nb)
            return traced_on(same, equations, inputs, name=self.name, large=large)

        if not self.generic or placed_links(model):
            return straight()
        parents: Sequence[int] = model.parents
        if "body" in options:  # of the bodies on the path to it
            parents = range(-1, len(path(model, model.frames[options["body"]].body)) - 1)

        def looped() -> Program:
            from mbs_dynamics.representation.generic_tree import traced_in_loops

            every, droppable = inputs | shapes_of_model_inputs(model), frozenset(MODEL_INPUTS)
            return traced_in_loops(self.name, self.equations, same, every, options, droppable)

        return strategy.chosen(parents, model.n, looped, straight)

    def _shapes(
        self, model: Model, arrays: tuple[str, ...], options: Mapping[str, Any]
    ) -> dict[str, tuple[int, ...]]:
        return {name: shape_of(name, model, options) for name in arrays}

    def equivalent(
        self, model: Model, arrays: tuple[str, ...], options: Mapping[str, Any]
    ) -> Model:
        """Return the model to trace, with other frames and inertias if results do not change."""
        if placed_links(model) or not (self.joint_space_only or self.frame_free):
            return model
        keep = {*model.payloads.bodies}
        if BODY_LEVEL.intersection(arrays):
            keep.update(range(model.nb))
        if "body" in options:
            keep.add(model.frames[options["body"]].body)
        regroup = self.joint_space_only
        other: Model = compiled(model).get_or_create(
            (equivalent, frozenset(keep), regroup, variables(model)),
            lambda: equivalent(model, keep_frames=keep, regroup=regroup),
        )
        return other


def _constant(name: str, option: Any) -> Any:
    """Return an option as part of the key of a kernel: lists become tuples."""
    if isinstance(option, (list, np.ndarray)):
        option = tuple(option)
    try:
        hash(option)
    except TypeError:
        raise ArgumentError(f"{name} cannot be {option!r}") from None
    return option


NAMED: dict[str, Algorithm] = {}
"""The public algorithms by name."""


def algorithm(
    *,
    invariant: bool,
    joint_space_only: bool = False,
    frame_free: bool = False,
    generic: bool = False,
) -> Callable[[Callable[Concatenate[Tree, P], R]], Callable[Concatenate[Model | Tree, P], R]]:
    """Make a function of a model, arrays and options an algorithm: traced, compiled, batched.

    ``invariant`` says that the result does not depend on the representation of twists, so that
    ``representation="auto"`` may choose the cheapest. For other algorithms auto means body_fixed.
    ``joint_space_only`` says that it depends only on tau(q, qd, qdd), and on the pose of its
    ``body`` if it has one, so that an equivalent model may be traced; ``frame_free`` that it does
    not depend on the frames of bodies, which alone may then differ: see
    :mod:`mbs_dynamics.model.equivalent`. ``generic`` says that the equations can be traced with one
    body in place of all of its kind, so that the loops of large models stay loops: see
    :mod:`mbs_dynamics.representation.generic_tree`.

    It is public, and can be compiled by its name, if ``__all__`` of its module contains the name.
    """

    def decorate(
        equations: Callable[Concatenate[Tree, P], R],
    ) -> Callable[Concatenate[Model | Tree, P], R]:
        made: Any = Algorithm(equations, invariant, joint_space_only, frame_free, generic)
        if made.name in equations.__globals__.get("__all__", ()):
            NAMED.setdefault(made.name, made)  # copies of the equations do not replace them
        return made  # type: ignore[no-any-return]

    return decorate


def algorithm_of(function: Callable[..., Any] | str) -> Algorithm:
    """Return the algorithm behind a function of this package, or that of a name.

    Raises UnknownAlgorithmError for an unknown name, ArgumentError for any other object.
    """
    if isinstance(function, str):
        if function not in NAMED:
            raise UnknownAlgorithmError(function, NAMED)
        return NAMED[function]
    if not isinstance(function, Algorithm):
        name = getattr(function, "__name__", type(function).__name__)
        raise ArgumentError(
            f"{name!r} is not an algorithm of this package that can be compiled, such as "
            "mbs_dynamics.inverse_dynamics"
        )
    return function


def compile(
    function: Callable[..., Any] | str,
    model: Model,
    *,
    backend: str | None = None,
    **options: Any,
) -> Kernel:
    """Return an algorithm, or that of a name, compiled for a model, as a callable on arrays.

    ``options`` are those of the algorithm (``representation=``, ``body=``, ...). Arrays that the
    algorithm can do without, such as ``wrenches``, become inputs of the kernel if they are named
    here as True: ``compile(inverse_dynamics, arm, wrenches=True)``. Gravity, payloads,
    armature and placements of the model are further inputs, named ``gravity`` (3,), ``payload``
    (k, 10), ``armature`` (n,) and ``placements`` (k, 3, 4), which default to the model's, and for
    wrenches in fixed joints ``payload_beyond`` (k, 10), the part of the payload beyond them. Models
    that differ in them share the machine code, if the same bodies have loads and the same links are
    placed: a kernel for another one takes microseconds.
    ``backend`` is ``"llvm"`` or ``"python"``; by default the environment variable MBS_BACKEND, else
    llvm if llvmlite is installed, else python.

    Raises UnknownAlgorithmError for an unknown name, ArgumentError for other objects that are no
    algorithm and for unknown options, UnknownBodyError, UnknownRepresentationError,
    UnknownBackendError; BackendError if llvmlite is needed and missing.
    """
    selected, arrays, chosen = asked_of(function, options)
    return selected.kernel(model, arrays, chosen, backend)


def asked_of(
    function: Callable[..., Any] | str, options: Mapping[str, Any]
) -> tuple[Algorithm, tuple[str, ...], dict[str, Any]]:
    """Return an algorithm, its arrays, and its options, from what :func:`compile` takes."""
    selected = algorithm_of(function)
    known = *selected.options, *selected.optional
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ArgumentError(
            f"{selected.name} has no option {unknown[0]!r}; it has: {', '.join(known) or 'none'}"
        )
    chosen = tuple(name for name in selected.optional if options.get(name, False))
    rest = {k: v for k, v in options.items() if k in selected.options}
    return selected, (*selected.required, *chosen), rest
