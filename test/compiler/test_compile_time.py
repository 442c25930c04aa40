# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Long compilation is announced, and programs that are too large refused."""

import logging
from typing import Any

import pytest

from mbs_dynamics.compiler import Kernel, Program, trace
from mbs_dynamics.compiler.frontend import graph
from mbs_dynamics.compiler.passes import pipeline
from mbs_dynamics.errors import ArgumentError


def polynomial(size: int) -> Program:
    """Return a program of 2 * size operations and an input."""

    def function(x: Any) -> Any:
        value = x[0]
        for k in range(size):
            value = value * x[0] + float(k + 1)
        return [value]

    return trace(function, {"x": (1,)}, name="polynomial")


def test_a_long_compilation_is_announced(monkeypatch, caplog):
    """Here one that takes longer than 100 operations."""
    monkeypatch.setattr(pipeline, "ANNOUNCED", 100.0 * pipeline.RATES["python"])
    Kernel(polynomial(40), backend="python")
    assert not caplog.records
    Kernel(polynomial(100), backend="python")
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("mbs_dynamics", logging.WARNING)
    assert "polynomial: 202 operations" in record.message


def test_a_program_of_too_many_operations_is_refused_by_name(monkeypatch):
    monkeypatch.setattr(graph, "LARGEST", 300)
    polynomial(140)
    with pytest.raises(ArgumentError, match=r"polynomial.*300 operations"):
        polynomial(151)
