# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Long tracing and compilation are logged once, with an estimate."""

from __future__ import annotations

import contextlib
import logging
import queue
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from backends import LLVM
from waiting import TIMEOUT

from mbs_dynamics.compiler import Kernel, Program, sin, trace
from mbs_dynamics.compiler.frontend import program as tracing
from mbs_dynamics.compiler.passes import strategy

pytestmark = pytest.mark.backend_independent


def polynomial(size: int) -> Program:
    """Return a program of 2 * size operations and an input."""

    def function(x: Any) -> Any:
        value = x[0]
        for k in range(size):
            value = value * x[0] + float(k + 1)
        return [value]

    return trace(function, {"x": (1,)}, name="polynomial")


@contextlib.contextmanager
def joined_threads() -> Iterator[None]:
    """Join the threads that are started meanwhile, which end sooner than a patient timer."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(4.0)
        assert not thread.is_alive()


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Log what takes more than the time for 100 operations to compile."""
    monkeypatch.setattr(strategy, "SILENT", 100.0 * strategy.RATES["llvm"])


@pytest.mark.parametrize("backend", [pytest.param("llvm", marks=LLVM.marks)])
def test_a_long_compilation_is_logged_before_with_an_estimate(impatient, caplog, backend):
    Kernel(polynomial(40), backend=backend)
    assert not caplog.records
    Kernel(polynomial(100), backend=backend)
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("mbs_dynamics", logging.WARNING)
    assert "polynomial: 202 operations take some 0 s to compile (llvm)" in record.message


def test_long_tracing_is_logged_if_much_may_be_traced(monkeypatch):
    monkeypatch.setattr(tracing, "SILENT", 0.0)
    messages: queue.Queue[str] = queue.Queue()
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: messages.put(record.getMessage()))
    logger = logging.getLogger("mbs_dynamics")
    logger.addHandler(handler)

    def function(x: Any) -> Any:
        value = sin(x[0])
        found.append(messages.get(timeout=TIMEOUT))
        return [value]

    found: list[str] = []
    try:
        with joined_threads():
            trace(function, {"x": (1,)}, name="slow", large=True)
    finally:
        logger.removeHandler(handler)
    assert messages.empty()
    assert found[0].startswith("slow: tracing takes more than 0 s; ")
