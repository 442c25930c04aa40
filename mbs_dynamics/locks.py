# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Locks that are safe with forks: another thread that holds one does not exist in the child."""

from __future__ import annotations

import os
import threading
import weakref
from typing import Any

_all: weakref.WeakSet[Lock] = weakref.WeakSet()


class Lock:
    """A re-entrant lock that is free in the child of a fork, whoever held it.

    The guarded data must be consistent at any moment, as a dictionary of complete values.
    """

    def __init__(self) -> None:
        self.renew()
        _all.add(self)

    def renew(self) -> None:
        """Make the lock anew."""
        self._lock = threading.RLock()

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: Any) -> None:
        self._lock.release()


def held_during_forks() -> Any:
    """Return a lock that forks wait for, since the guarded objects have locks of their own."""
    lock = threading.RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(
            before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release
        )
    return lock


def _renew_all() -> None:
    for lock in list(_all):
        lock.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
