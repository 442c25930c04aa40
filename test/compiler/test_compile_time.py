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

import numpy as np
import pytest
from backends import LLVM
from mechanisms import random_mechanism

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
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


@pytest.mark.parametrize("backend", [pytest.param("llvm", marks=LLVM.marks)])
def test_vector_code_is_logged_when_it_is_compiled(impatient, caplog, backend):
    kernel = Kernel(polynomial(100), backend=backend)
    caplog.clear()
    for _ in range(2):
        kernel(np.zeros((200, 1)))
    assert len(caplog.records) == 1


def test_loops_are_estimated_by_their_bodies_whatever_the_length(monkeypatch, caplog):
    monkeypatch.setattr(strategy, "SILENT", 0.0)
    made = algorithm_of(mbs.mass_matrix)
    for n in (50, 150):
        model = random_mechanism(5, range(-1, n - 1), ("revolute",)).model
        program = made.program(model, made.required, made.complete({}))
        assert program.in_loops
        strategy.warn_if_long(program, "llvm")
    first, second = caplog.messages
    assert first == second


def test_long_tracing_is_logged_if_much_may_be_traced(monkeypatch):
    monkeypatch.setattr(tracing, "SILENT", 0.0)
    messages: queue.Queue[str] = queue.Queue()
    handler = logging.Handler()
    monkeypatch.setattr(handler, "emit", lambda record: messages.put(record.getMessage()))
    logger = logging.getLogger("mbs_dynamics")
    logger.addHandler(handler)

    def function(x: Any) -> Any:
        value = sin(x[0])
        found.append(messages.get(timeout=10.0))
        return [value]

    found: list[str] = []
    try:
        with joined_threads():
            trace(function, {"x": (1,)}, name="slow", large=True)
    finally:
        logger.removeHandler(handler)
    assert messages.empty()
    assert found[0].startswith("slow: tracing takes more than 0 s; ")


def test_short_tracing_is_not_logged(caplog):
    with joined_threads():
        trace(lambda x: [x[0] * x[0]], {"x": (1,)}, name="quick", large=True)
    assert not caplog.records
