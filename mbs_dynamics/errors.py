# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The exceptions of this package, and its log.

Each exception names the argument, the value received and the valid values. All derive from
:class:`MbsError`, and also from the built-in exception that a caller would expect.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable
from typing import Any

__all__ = [
    "ArgumentError",
    "BackendError",
    "MbsError",
    "ModelError",
    "ModelWarning",
    "SingularError",
    "TraceError",
    "UnknownAlgorithmError",
    "UnknownBackendError",
    "UnknownBodyError",
    "UnknownJointError",
    "UnknownMethodError",
    "UnknownRepresentationError",
    "UrdfError",
]

LONGEST_QUOTE = 100
"""Characters of a received value that a message quotes."""

LONGEST_LIST = 1500
"""Characters of the valid names that a message lists."""

LONGEST_MESSAGE = 2000
"""Characters of a message."""


def shortened(text: str, most: int = LONGEST_QUOTE) -> str:
    """Return a text for a message: at most its first ``most`` characters, and its length."""
    return text if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def quoted(value: object) -> str:
    """Return ``repr(value)`` for a message, shortened; of a long text its beginning is quoted."""
    if isinstance(value, str) and len(value) > LONGEST_QUOTE:
        return f"{value[:LONGEST_QUOTE]!r}... ({len(value)} characters)"
    return shortened(repr(value))


def listed(names: Iterable[object]) -> str:
    """Return names as a list for a message, shortened; "none" if there are none."""
    return shortened(", ".join(map(str, names)) or "none", LONGEST_LIST)


class MbsError(Exception):
    """Base class of all exceptions raised by this package.

    The middle of a long message is left out, as quoted values may have any length.
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(_cut(x) if isinstance(x, str) else x for x in args))

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the message and the attributes: subclasses take other arguments than these."""
        return _restored, (type(self), self.args), self.__dict__


def _cut(text: str) -> str:
    half = LONGEST_MESSAGE // 2
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:half]} [...] {text[-half:]}"


def _restored(cls: type[MbsError], args: tuple[object, ...]) -> MbsError:
    return cls.__new__(cls, *args)


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

    def __init_subclass__(cls, kind: str = "name", plural: str = "") -> None:
        """Call what is unknown ``kind``, and several of them ``plural``, by default with an s."""
        cls.kind, cls.plural = kind, plural or f"{kind}s"

    def __init__(self, name: object, valid: Iterable[str]) -> None:
        import difflib  # slow to import, and rarely needed

        valid = list(valid)
        close = difflib.get_close_matches(shortened(str(name)), valid, n=1)
        hint = f" (did you mean {quoted(close[0])}?)" if close else ""
        super().__init__(
            f"no {self.kind} {quoted(name)}{hint}; the {self.plural} are: {listed(valid)}"
        )

    @classmethod
    def check(cls, names: Iterable[str], valid: Collection[str]) -> None:
        """Raise this error for the first of these names that is not valid."""
        for name in names:
            if name not in valid:
                raise cls(name, valid)


class UnknownBodyError(UnknownNameError, kind="body", plural="bodies"):
    """The model has no body or link of this name."""


class UnknownJointError(UnknownNameError, kind="joint"):
    """The model has no joint of this name."""


class UnknownRepresentationError(UnknownNameError, ValueError, kind="representation"):
    """There is no twist representation of this name."""


class UnknownMethodError(UnknownNameError, ValueError, kind="method"):
    """There is no method of this name."""


class UnknownAlgorithmError(UnknownNameError, ValueError, kind="algorithm"):
    """There is no algorithm of this name."""


class UnknownBackendError(UnknownNameError, ValueError, kind="back end"):
    """There is no back end of this name."""


class BackendError(MbsError, RuntimeError):
    """A back end cannot run here, or an optional package such as SciPy is not installed."""


def missing_extra(purpose: str, extra: str, error: ImportError) -> BackendError:
    """Return the error for a package that is not installed, with the command that installs it."""
    return BackendError(f'{purpose} ({error}); install it: pip install "mbs_dynamics[{extra}]"')


class SingularError(MbsError, ArithmeticError):
    """The equations have no solution at this state: a quantity that must be positive is not."""

    trajectory: Any = None
    """From a run of steps, the states (k, ...) up to the one without a solution."""


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
    """The controller manager has not answered; the request may still be carried out."""


class TraceError(MbsError, TypeError):
    """A traced function used a symbol where only numbers are valid, such as in a condition."""


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
