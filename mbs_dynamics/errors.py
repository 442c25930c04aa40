# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package, and its log.

Each exception names the argument, the value received and the valid values. All derive from
:class:`MbsError`, and also from the built-in exception that a caller would expect.
"""

from __future__ import annotations

import functools
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
    """A name does not exist; the message lists the valid names."""

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
    """The model has no body or link of this name."""

    kind = "body"
    plural = "bodies"


class UnknownJointError(UnknownNameError):
    """The model has no joint of this name."""

    kind = "joint"
    plural = "joints"


class UnknownRepresentationError(UnknownNameError, ValueError):
    """There is no twist representation of this name."""

    kind = "representation"
    plural = "representations"


class UnknownMethodError(UnknownNameError, ValueError):
    """There is no method of this name."""

    kind = "method"
    plural = "methods"


class UnknownAlgorithmError(UnknownNameError, ValueError):
    """There is no algorithm of this name."""

    kind = "algorithm"
    plural = "algorithms"


class UnknownBackendError(UnknownNameError, ValueError):
    """There is no back end of this name."""

    kind = "backend"
    plural = "backends"


class BackendError(MbsError, RuntimeError):
    """A back end cannot run here, for example because llvmlite is not installed."""


class SingularError(MbsError, ArithmeticError):
    """The equations have no solution at this state: a quantity that must be positive is not."""

    trajectory: Any = None
    """For iterated kernels, the states (k, ...) up to the one without a solution."""


class SimulationError(MbsError, ArithmeticError):
    """A simulation cannot continue; the trajectory up to the failure is attached."""

    def __init__(self, message: str, *, time: float, motion: Any = None) -> None:
        super().__init__(message)
        self.time = time
        """Time of the failure in s."""
        self.motion = motion
        """Result up to the failure, or None."""


class ControllerError(MbsError, RuntimeError):
    """Controllers could not be listed or switched."""


class NoAnswerError(ControllerError):
    """The controller manager has not answered: what was asked for may still happen."""


class TraceError(MbsError, TypeError):
    """A traced function used a symbol as only a number can be, for example in a condition."""


class ModelWarning(UserWarning):
    """The physics of a model is implausible. Names the link or joint."""


def log_warning(message: str, *args: object) -> None:
    """Log a warning under the name of the package; the arguments are put in as ``logging`` does."""
    import logging  # slow to import, and rarely needed

    logging.getLogger("mbs_dynamics").warning(message, *args)


@functools.cache
def log_once(message: str, *args: object) -> None:
    """Log a warning the first time that these arguments are given."""
    log_warning(message, *args)
