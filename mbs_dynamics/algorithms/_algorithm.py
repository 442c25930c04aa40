# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Algorithms: equations that are traced and compiled at the first call of a kind.

The equations are a function of a model, of arrays, and of options that are known before any number
is. A call of an algorithm binds its arguments, looks up the kernel of these options, which is
traced and compiled if there is none, and calls it with the arrays. Calls with the same model and
options go to the kernel directly (see :mod:`compiler.runtime.dispatch`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

import numpy as np

from mbs_dynamics import checks
from mbs_dynamics.algorithms.arguments import declared_arrays, described, shape_of
from mbs_dynamics.algorithms.kernels import kernel_of, traced_on, variables
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.compiler import Dispatcher, Kernel, Operations, Program
from mbs_dynamics.errors import ArgumentError, UnknownAlgorithmError, quoted
from mbs_dynamics.lie import se3
from mbs_dynamics.model.equivalent import equivalent
from mbs_dynamics.model.model import Model, body_wrenches
from mbs_dynamics.model.separation import separated, wrench_links
from mbs_dynamics.representation import AUTO, checked, convert_wrench
from mbs_dynamics.representation.tree import Tree

__all__ = ["Algorithm", "algorithm", "algorithm_of", "compile"]

P = ParamSpec("P")
R = TypeVar("R")


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
        fixed_joints: bool,
    ) -> None:
        super().__init__()
        functools.update_wrapper(self, equations)
        self.equations = equations
        self.name = equations.__name__
        self.invariant = invariant
        self.joint_space_only = joint_space_only
        self.frame_free = frame_free
        self.fixed_joints = fixed_joints
        signature = inspect.signature(equations)
        first, *parameters = signature.parameters.values()
        self.__signature__ = signature.replace(
            parameters=[first.replace(annotation="Model"), *parameters]
        )
        self._bound = signature.replace(parameters=parameters)
        self.axes = declared_arrays(equations)
        """The axes of each array argument."""
        self.arrays = tuple(self.axes)
        defaults = {p.name: p.default for p in parameters}
        self.required = tuple(x for x in self.arrays if defaults[x] is inspect.Parameter.empty)
        self.optional = tuple(x for x in self.arrays if x not in self.required)
        self.options = {name: x for name, x in defaults.items() if name not in self.axes}
        """The defaults of the options."""
        self._arrays_first = [*defaults][: len(self.required)] == [*self.required]
        self.__doc__ = described(self.__doc__, self.axes, self.options)

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
        self.check_model(model)
        bound = self._arguments(args, named)
        arrays = {name: bound[name] for name in self.arrays if bound.get(name) is not None}
        for name in self.required:
            if name not in arrays:
                raise ArgumentError(f"{self.name}: {name} must be an array, got None")
        options = self.complete({name: x for name, x in bound.items() if name in self.options})
        kernel = self.kernel(model, tuple(arrays), options)
        count = len(self.required)
        if len(arrays) == count <= len(args) and self._arrays_first:
            self.remember(model, count, args[count:], tuple(named.items()), kernel)
        if isinstance(arrays.get("wrenches"), Mapping):
            on = self.model_for(model, options)
            arrays["wrenches"] = _wrenches_on(on, arrays["wrenches"], arrays["q"], options)
        if "damping" in arrays:
            checks.not_negative("damping", arrays["damping"])
        return kernel(*arrays.values())

    def _arguments(self, args: tuple[Any, ...], named: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments after the model by name. Raises ArgumentError."""
        parameters = self._bound.parameters.values()
        names = ", ".join(["model", *self._bound.parameters])
        most = sum(p.kind is not p.KEYWORD_ONLY for p in parameters)
        if len(args) > most:
            by_name = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
            instead = f"; give options by name: {by_name[0]}=..." if by_name else ""
            raise ArgumentError(
                f"{self.name}: cannot take {quoted(args[most])} without a name; "
                f"the arguments are: {names}{instead}"
            )
        try:
            return self._bound.bind(*args, **named).arguments
        except TypeError as error:
            raise ArgumentError(f"{self.name}: {error}; the arguments are: {names}") from None

    def kernel(
        self,
        model: Model,
        arrays: tuple[str, ...],
        options: Mapping[str, Any],
        backend: str | None = None,
    ) -> Kernel:
        """Return the kernel for these arrays and complete options; compiled once for each."""
        traced = functools.partial(self.program, model, arrays, options)
        key, on = (self, arrays, *options.values()), self.model_for(model, options)
        return kernel_of(on, key, traced, backend=backend, defaults=True)

    def check_model(self, model: object) -> None:
        """Raise ArgumentError if the argument is not a Model."""
        if not isinstance(model, Model):
            raise ArgumentError(f"{self.name}: model must be a Model; got {type(model).__name__}")

    def complete(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Return all options, with defaults for those that are absent; raise for invalid ones.

        The representation ``"auto"`` is body-fixed.
        """
        complete = {name: options.get(name, default) for name, default in self.options.items()}
        missing = [k for k, v in complete.items() if v is inspect.Parameter.empty]
        if missing:
            raise ArgumentError(f"{self.name} needs the argument {missing[0]!r}")
        if "representation" in complete:
            named = checked(complete["representation"], auto=True)
            complete["representation"] = "body_fixed" if named == AUTO else named
        order = complete.get("order", 0)
        if not isinstance(order, int) or order < 0:
            raise ArgumentError(f"order must be an integer of at least 0; got {order!r}")
        return {name: _constant(name, value) for name, value in complete.items()}

    def program(self, model: Model, arrays: Iterable[str], options: Mapping[str, Any]) -> Program:
        """Return the equations traced for these arrays and options."""
        arrays, options = tuple(arrays), self.complete(options)
        inputs = {name: self.shape(name, model, options) for name in arrays}
        same = self.equivalent(self.model_for(model, options), arrays, options)
        return traced_on(same, functools.partial(self.equations, **options), inputs, name=self.name)

    def operations(self, model: Model, options: Mapping[str, Any]) -> Operations:
        """Return how many operations the algorithm takes with its required arrays."""
        return self.program(model, self.required, options).operations

    def shape(self, name: str, model: Model, options: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the shape of an array argument, without batch axes."""
        return shape_of(name, self.axes[name], self.model_for(model, options), options)

    def model_for(self, model: Model, options: Mapping[str, Any]) -> Model:
        """Return the model, with the named fixed joints as joints if the algorithm is for these."""
        return separated(model, self.joints_in(options))

    def joints_in(self, options: Mapping[str, Any]) -> tuple[str, ...]:
        """Return the names in the option ``joints``, if these may be fixed joints."""
        joints = options.get("joints") if self.fixed_joints else None
        return tuple(joints) if isinstance(joints, (list, tuple)) else ()

    def equivalent(
        self, model: Model, arrays: tuple[str, ...], options: Mapping[str, Any]
    ) -> Model:
        """Return the model to trace, with other frames and inertias if results do not change."""
        if model.variable_links or not (self.joint_space_only or self.frame_free):
            return model
        keep = {*model.payloads.bodies}
        if "wrenches" in arrays:
            keep.update(range(model.nb))
        if "body" in options:
            keep.add(model.frames[options["body"]].body)
        regroup = self.joint_space_only
        other: Model = model.compiled.get_or_create(
            (equivalent, frozenset(keep), regroup, variables(model)),
            lambda: equivalent(model, keep_frames=keep, regroup=regroup),
        )
        return other


def _constant(name: str, option: Any) -> Any:
    """Return an option as part of the key of a kernel: lists become tuples.

    Raises ArgumentError for floats and arrays of floats: each value would be compiled.
    """
    if isinstance(option, (list, tuple, np.ndarray, float, np.floating)):
        values = np.asarray(option)
        if values.dtype.kind == "f" and values.size:
            raise ArgumentError(
                f"{name} is an option and must not be a float or an array of floats, got "
                f"{quoted(option)}; each value would be compiled. To make it an array, declare it "
                f"in the equations as {name}: Annotated[ArrayLike, {values.shape}]"
            )
    if isinstance(option, (list, tuple, np.ndarray)):
        option = tuple(option)
    try:
        hash(option)
    except TypeError:
        raise ArgumentError(
            f"{name} is an option and must be immutable, such as a string or a tuple of names; got "
            f"{quoted(option)}"
        ) from None
    return option


NAMED: dict[str, Algorithm] = {}
"""The public algorithms by name."""


def _wrenches_on(
    model: Model, by_link: Mapping[str, Any], q: Any, options: Mapping[str, Any]
) -> FloatArray:
    """Return wrenches (..., nb, 6) by link in the representation of the options.

    Each row is in the frame of one of :func:`wrench_links`.
    """
    links = wrench_links(model, options.get("joints"))
    frames = [model.frames[link] for link in links]
    W = body_wrenches(model, by_link)[..., [frame.body for frame in frames], :]
    if links != [*model.body_names]:
        Ad = np.array([se3.Ad(frame.placement) for frame in frames])
        W = np.einsum("...ki,kij->...kj", W, Ad)
    representation = options.get("representation", "body_fixed")
    if representation == "body_fixed":
        return W
    C = NAMED["forward_kinematics"](model, q, bodies=links)
    return np.asarray(convert_wrench(W, C, source="body_fixed", target=representation))


def algorithm(
    *,
    invariant: bool,
    joint_space_only: bool = False,
    frame_free: bool = False,
    fixed_joints: bool = False,
) -> Callable[[Callable[Concatenate[Tree, P], R]], Callable[Concatenate[Model | Tree, P], R]]:
    """Make a function of a model, arrays and options an algorithm: traced, compiled, batched.

    ``invariant`` says that the result does not depend on the representation of twists.
    ``joint_space_only`` says that it depends only on tau(q, qd, qdd), and on the pose of its
    ``body`` if it has one, so that an equivalent model may be traced; ``frame_free`` that it does
    not depend on the frames of bodies, which alone may then differ: see
    :mod:`mbs_dynamics.model.equivalent`. ``fixed_joints`` says that its option ``joints`` may name
    fixed joints, which are then joints of the model that is traced: :meth:`Algorithm.model_for`.

    It is public, and can be compiled by its name, if ``__all__`` of its module contains the name.
    """

    def decorate(
        equations: Callable[Concatenate[Tree, P], R],
    ) -> Callable[Concatenate[Model | Tree, P], R]:
        defined: Any = Algorithm(equations, invariant, joint_space_only, frame_free, fixed_joints)
        if defined.name in equations.__globals__.get("__all__", ()):
            NAMED.setdefault(defined.name, defined)  # copies of the equations do not replace them
        return defined  # type: ignore[no-any-return]

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
    (k, 10), ``armature`` (n,) and ``placements`` (k, 3, 4), which default to the model's. Models
    that differ in them share the machine code, if the same bodies have loads and the same links are
    placed: a kernel for another one takes microseconds.
    ``backend`` is ``"llvm"`` or ``"python"``; by default the environment variable MBS_BACKEND, else
    llvm if llvmlite is installed, else python.

    Raises UnknownAlgorithmError for an unknown name, ArgumentError for other objects that are no
    algorithm and for unknown options, UnknownBodyError, UnknownRepresentationError,
    UnknownBackendError; BackendError if llvmlite is needed and missing.
    """
    selected, arrays, complete = asked_of(function, options)
    selected.check_model(model)
    return selected.kernel(model, arrays, complete, backend)


def asked_of(
    function: Callable[..., Any] | str, options: Mapping[str, Any]
) -> tuple[Algorithm, tuple[str, ...], dict[str, Any]]:
    """Return an algorithm, its arrays and all its options, from arguments of :func:`compile`."""
    selected = algorithm_of(function)
    known = *selected.options, *selected.optional
    unknown = [name for name in options if name not in known]
    if unknown:
        raise ArgumentError(
            f"{selected.name} has no option {unknown[0]!r}; it has: {', '.join(known) or 'none'}"
        )
    chosen = tuple(name for name in selected.optional if options.get(name, False))
    return selected, (*selected.required, *chosen), selected.complete(options)
