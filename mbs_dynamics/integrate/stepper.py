# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A step in joint coordinates as one kernel: for simulators, and for loops in machine code."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics import checks
from mbs_dynamics.algorithms.kernels import compiled_on, model_inputs
from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, UnknownMethodError
from mbs_dynamics.integrate.joint_forces import Features, JointForces
from mbs_dynamics.integrate.joint_steps import STEPS, Step
from mbs_dynamics.lie.arrays import Array
from mbs_dynamics.model.model import Model
from mbs_dynamics.representation import checked
from mbs_dynamics.representation.tree import Tree


class Stepper:
    """Advances the state (q, qd) of a model by fixed steps, each one call of a compiled kernel.

        stepper = Stepper(arm, method="rk4", forces=JointForces.of(arm, stops=True))
        state = stepper.step(state, effort, 1e-3)

    :param method: ``"explicit_euler"``, ``"semi_implicit_euler"`` or ``"rk4"``; see
        :mod:`mbs_dynamics.integrate.joint_steps` for their orders and how friction and stops enter.
    :param forces: damping, friction and stops of the joints; None for none.
    :param wrenches: whether wrenches on the bodies are an input.
    :param representation: that of the wrenches.
    :param backend: as for :func:`mbs_dynamics.compile`.
    :raises UnknownMethodError: for another method; UnknownRepresentationError, UnknownBackendError.

    Gravity, payloads and the parameters of the joints are inputs of the kernel: :attr:`model` may
    be set to one made by ``with_gravity`` or ``with_payload``, and :attr:`forces` to others of the
    same features, without compiling.
    """

    def __init__(
        self,
        model: Model,
        *,
        method: str = "semi_implicit_euler",
        forces: JointForces | None = None,
        wrenches: bool = False,
        representation: str = "body_fixed",
        backend: str | None = None,
    ) -> None:
        if not isinstance(model, Model):
            raise ArgumentError(f"model must be a Model; got {type(model).__name__}")
        if method not in STEPS:
            raise UnknownMethodError(method, STEPS)
        self.method = method
        self.takes_wrenches = bool(wrenches)
        self.representation = checked(representation)
        self._model = model
        self._forces = self._checked_forces(forces)
        self._features = Features() if forces is None else forces.features
        key = method, self._features, self.takes_wrenches, self.representation
        n, nb = model.n, model.nb
        inputs: dict[str, tuple[int, ...]] = {"state": (2, n), "effort": (n,), "h": ()}
        if self.takes_wrenches:
            inputs["wrenches"] = (nb, 6)
        if any(self._features):
            inputs["joints"] = (7, n)
        self.kernel = compiled_on(
            model, key, self._equations, inputs, name=f"{method}_step", backend=backend
        )
        """``kernel(state, effort, h, [wrenches], *stepper.parameters)`` -> state (2, n)."""
        self._constants = self._parameters()

    def __repr__(self) -> str:
        return f"<Stepper {self.method} of {self.model.name!r}, {self.kernel.operations}>"

    @property
    def model(self) -> Model:
        """The model; may be set to another one that shares its kernels."""
        return self._model

    @model.setter
    def model(self, model: Model) -> None:
        if (
            not isinstance(model, Model)
            or model.compiled.kernels is not self._model.compiled.kernels
        ):
            raise ArgumentError(
                "model must be one made from the stepper's own by with_gravity or with_payload"
            )
        if model.loaded_bodies != self._model.loaded_bodies:
            raise ArgumentError("the same bodies must carry payloads; make another Stepper")
        self._model = model
        self._constants = self._parameters()

    @property
    def forces(self) -> JointForces | None:
        """Damping, friction and stops; may be set to others with the same features."""
        return self._forces

    @forces.setter
    def forces(self, forces: JointForces | None) -> None:
        checked_forces = self._checked_forces(forces)
        features = Features() if forces is None else forces.features
        if features != self._features:
            raise ArgumentError(
                f"forces must have the features {self._features}; got {features}; make another "
                "Stepper"
            )
        self._forces = checked_forces
        self._constants = self._parameters()

    @property
    def parameters(self) -> tuple[FloatArray, ...]:
        """Last inputs of the kernel: parameters of the joints, gravity, payloads, as it takes."""
        return self._constants

    def step(
        self, state: ArrayLike, effort: ArrayLike, h: ArrayLike, wrenches: ArrayLike | None = None
    ) -> FloatArray:
        """Return the state (..., 2, n) after h seconds under constant ``effort`` (..., n).

        ``wrenches`` (..., nb, 6) act on the bodies, moment first, if the stepper takes them. All
        arrays may carry batch axes. Not checked, for speed: that h is positive and the state
        finite; :func:`simulate` does that.

        Raises ArgumentError for a wrong shape or type; SingularError, naming the joint, where the
        mass matrix is not positive definite.
        """
        held = np.asarray(h, dtype=float)  # the fast way into the kernel takes arrays only
        loads = self._loads(wrenches) if self.takes_wrenches or wrenches is not None else ()
        found: FloatArray = self.kernel.call(state, effort, held, *loads, *self._constants)
        return found

    def run(
        self,
        state: ArrayLike,
        effort: ArrayLike,
        h: float,
        steps: int,
        wrenches: ArrayLike | None = None,
    ) -> FloatArray:
        """Return the states (steps + 1, ..., 2, n), the first one included; a loop in machine code.

        ``effort`` is constant, (n,), or has a leading axis with one value for each step, or 1,
        followed by axes that broadcast with those of the state. So have ``wrenches`` (nb, 6).

        Raises ArgumentError for a step or number of steps that is not positive, and as
        :meth:`step` does; SingularError has the states so far as its attribute ``trajectory``.
        """
        if isinstance(steps, bool) or not isinstance(steps, (int, np.integer)) or steps < 1:
            raise ArgumentError(f"steps must be a positive integer; got {steps!r}")
        if checks.number("h", h) <= 0.0:
            raise ArgumentError(f"h must be positive; got {h!r} s")
        inputs = [effort, h, *self._loads(wrenches), *self._constants]
        return self.kernel.iterate(state, *inputs, steps=int(steps))

    def _loads(self, wrenches: ArrayLike | None) -> tuple[ArrayLike, ...]:
        """Return the wrenches as the kernel takes them."""
        if self.takes_wrenches:
            return (np.zeros((self._model.nb, 6)) if wrenches is None else wrenches,)
        if wrenches is not None:
            raise ArgumentError("this Stepper was made without wrenches=True")
        return ()

    def _equations(
        self,
        model: Tree,
        state: Array,
        effort: Array,
        h: Any,
        wrenches: Array | None = None,
        joints: Array | None = None,
    ) -> Array:
        step = Step(
            model,
            self._features,
            self.representation,
            effort=effort,
            wrenches=wrenches,
            joints=joints,
        )
        return np.array(STEPS[self.method](step, state[0], state[1], h[()]))

    def _parameters(self) -> tuple[FloatArray, ...]:
        joints = () if self._forces is None or not any(self._features) else (self._forces.table,)
        return (*joints, *model_inputs(self._model, self.kernel))

    def _checked_forces(self, forces: JointForces | None) -> JointForces | None:
        if forces is None:
            return None
        if not isinstance(forces, JointForces):
            raise ArgumentError(f"forces must be JointForces or None; got {type(forces).__name__}")
        if forces.damping.shape != (self._model.n,):
            raise ArgumentError(
                f"forces are of {forces.damping.size} joints; the model has {self._model.n}"
            )
        return forces
