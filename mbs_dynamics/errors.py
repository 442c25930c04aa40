# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package.

Every one of them names the argument, what came and what is valid. All derive from
:class:`MbsError`, and each also from the built-in exception a caller would expect.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any


class MbsError(Exception):
    """Base class of all exceptions raised by this package."""


class ArgumentError(MbsError, ValueError):
    """An argument of a function has a wrong shape, type or value."""


class ModelError(MbsError, ValueError):
    """The description of a mechanism contradicts itself or physics."""


class UrdfError(ModelError):
    """A URDF cannot be read, or describes no mechanism that this package can model."""


class UnknownNameError(MbsError, LookupError):
    """A name was asked for that does not exist."""

    kind = "name"
    plural = "names"

    def __init__(self, name: object, valid: Iterable[str]) -> None:
        import difflib  # slow to import, and rarely needed

        valid = list(valid)
        close = difflib.get_close_matches(str(name), valid, n=1)
        hint = f" (did you mean {close[0]!r}?)" if close else ""
        listed = ", ".join(valid) if valid else "none"
        super().__init__(f"no {self.kind} {name!r}{hint}; the {self.plural} are: {listed}")


class UnknownBodyError(UnknownNameError):
    """A body or link was asked for that the model does not have."""

    kind = "body"
    plural = "bodies"


class UnknownJointError(UnknownNameError):
    """A joint was asked for that the model does not have."""

    kind = "joint"
    plural = "joints"


class UnknownRepresentationError(UnknownNameError, ValueError):
    """A twist representation was asked for that does not exist."""

    kind = "representation"
    plural = "representations"


class UnknownMethodError(UnknownNameError, ValueError):
    """A method of computation was asked for that does not exist."""

    kind = "method"
    plural = "methods"


class UnknownAlgorithmError(UnknownNameError, ValueError):
    """An algorithm was asked for by a name that none has."""

    kind = "algorithm"
    plural = "algorithms"


class UnknownBackendError(UnknownNameError, ValueError):
    """A back end was asked for that does not exist."""

    kind = "backend"
    plural = "backends"


class BackendError(MbsError, RuntimeError):
    """A back end cannot run here, for example because llvmlite is not installed."""


class SingularError(MbsError, ArithmeticError):
    """The equations have no solution at this state: a quantity that must be positive is not."""

    trajectory: Any = None
    """Where a kernel was iterated, the states (k, ...) up to the one that has no solution."""


class SimulationError(MbsError, ArithmeticError):
    """A simulation cannot go on. What there is until then is not lost."""

    def __init__(self, message: str, *, time: float, motion: Any = None) -> None:
        super().__init__(message)
        self.time = time
        """When it happened, in s."""
        self.motion = motion
        """What was simulated until then; None if nothing was."""


class ControllerError(MbsError, RuntimeError):
    """Controllers could not be listed or switched."""


class TraceError(MbsError, TypeError):
    """A traced function did with a symbol what only a number can do, such as branching on it."""


class ModelWarning(UserWarning):
    """The physics of a model is implausible. Names the link or joint."""
