# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The loop-nest IR: which programs are valid, what they mean, and that printers agree on that."""

from __future__ import annotations

import ctypes
import random
import re
import shutil
import subprocess
from collections import Counter
from typing import Any

import numpy as np
import pytest
from verifier import InvalidProgram, verify

from mbs_dynamics.compiler.codegen import c, llvm, python
from mbs_dynamics.compiler.codegen.llvm_shared import BODY
from mbs_dynamics.compiler.frontend.lowering import hoisted
from mbs_dynamics.compiler.ir import interpreter, nodes
from mbs_dynamics.compiler.ir import operations as ops
from mbs_dynamics.compiler.ir.interpreter import evaluate
from mbs_dynamics.compiler.ir.nodes import (
    INPUT,
    OUTPUT,
    SCRATCH,
    Buffer,
    Call,
    Check,
    Fill,
    For,
    Index,
    Let,
    Load,
    Module,
    Procedure,
    Store,
    Switch,
    Variable,
    index,
)
from mbs_dynamics.compiler.ir.operations import evaluations
from mbs_dynamics.compiler.ir.text import text
from mbs_dynamics.compiler.jit import machine_code
from mbs_dynamics.compiler.runtime.states import aligned

pytestmark = pytest.mark.backend_independent

ROWS = 21  # neither a multiple of the lanes of a vector nor less
X, Y, Z = Buffer("x", INPUT, ROWS), Buffer("y", OUTPUT, ROWS), Buffer("z", OUTPUT, ROWS**2)
V, W = Buffer("v", SCRATCH, ROWS), Buffer("w", SCRATCH, 2 * ROWS)
I, K, A, B = map(Variable, "ikab")
ZERO, END = Index(), index(ROWS)


def module(*body: nodes.Statement) -> Module:
    return Module("program", (X,), (Y, Z), body)


class Operations:
    """Random statements, and which of their values are numbers."""

    def __init__(self, rng: random.Random) -> None:
        self.rng, self.count = rng, 0
        self.body: list[nodes.Statement] = []
        self.numbers: list[int] = []

    def new(self, kind: Any, *rest: Any) -> int:
        self.body.append(kind(self.count, *rest))
        self.count += 1
        return self.count - 1

    def operand(self) -> int | float:
        return self.rng.choice([*self.numbers, self.rng.uniform(-1.0, 1.0)])

    def any_operation(self) -> None:
        op, (a, b, c) = self.rng.choice(OPERATIONS), (self.operand() for _ in range(3))
        if op == ops.DIV:
            b = self.new(Let, ops.ADD, (self.new(Let, ops.MUL, (b, b)), 0.5))
        if op == ops.SQRT:
            a = self.new(Let, ops.MUL, (a, a))
        if op == ops.SELECT:
            condition = self.new(Let, self.rng.choice((ops.LESS, ops.LESS_EQUAL)), (a, b))
            self.numbers.append(self.new(Let, op, (condition, b, c)))
            return
        one = op in (ops.NEG, ops.SQRT, ops.SIN, ops.COS)
        self.numbers.append(self.new(Let, op, (a,) if one else (a, b)))


OPERATIONS = (
    *(ops.ADD, ops.SUB, ops.MUL, ops.DIV, ops.NEG, ops.SQRT, ops.SIN, ops.COS, ops.ATAN2),
    *(ops.SELECT, ops.ADD, ops.MUL),
)


def operations(rng: random.Random, places: Any) -> Operations:
    """Return statements that load and compute."""
    made = Operations(rng)
    made.numbers = [made.new(Load, *place) for place in places]
    for _ in range(rng.randrange(4, 14)):
        made.any_operation()
    return made


def random_module(seed: int, hoist: bool = False) -> Module:
    """Return a module with loops over rows and, within, parallel ones, cases and a check."""
    rng = random.Random(seed)
    kinds = nodes.table("kinds", [rng.randrange(3) for _ in range(ROWS)])
    order = nodes.table("order", rng.sample(range(ROWS), ROWS))
    numbers = nodes.constants("numbers", [rng.uniform(-1.0, 1.0) for _ in range(ROWS)])
    diagonal = nodes.constants("diagonal", np.arange(1 - ROWS, ROWS) == 0)
    rows = []
    for kind in range(2):
        places = (X, index(I)), (V, index(A)), (numbers, index(I))
        made = operations(rng, places)
        body = (*made.body, Store(V, index(I), made.numbers[-1]))
        rows.append(Procedure(f"row{kind}", (I, A), body))
    places = (X, index(order[K])), (V, index(K)), (V, index(I)), (W, index(K) * 2 + 1)
    apart = index(K) + index(I) * -1 + (ROWS - 1)
    made = operations(rng, (*places, (numbers, index(K)), (diagonal, apart)))
    stores = (
        Store(Z, index(I) * ROWS + index(K), made.numbers[-1]),
        Store(Z, index(K) * ROWS + index(I), made.numbers[-1 - seed % 3 // 2]),
        Store(W, index(K) * 2, made.operand()),
    )
    within = For(K, index(A), index(B), (*made.body, *stores), parallel=True)
    wide = Procedure("wide", (I, A, B), hoisted(within) if hoist else (within,))
    last = (Load(0, V, index(order[I])), Store(Y, index(I), 0))
    limit, rows_checked = rng.choice((0.2, 1e9)), rng.sample(range(ROWS), ROWS)
    checks: list[nodes.Statement] = []
    for k in range(0, 2 * ROWS, 2):
        load = Load(k, Y, index(rows_checked[k // 2]))
        checks += [load, Let(k + 1, ops.SUB, (limit, k)), Check(k + 1, k // 2 + 1)]
    cases = tuple((k, (Call(x, (index(I), index(order[I]))),)) for k, x in enumerate(rows))
    return module(
        Fill(V, 0, ROWS),
        Fill(W, 0, 2 * ROWS),
        Fill(Z, 0, ROWS**2),
        For(I, ZERO, END, (Switch(index(kinds[I]), cases),), backwards=rng.random() < 0.5),
        For(I, ZERO, END, (Call(wide, (index(I), index(I) + 1, END)),)),
        For(I, ZERO, END, last, backwards=rng.random() < 0.5),
        *checks,
    )


def values(seed: int) -> Any:
    return np.random.default_rng(seed).uniform(-1.0, 1.0, ROWS)


SEEDS = range(8)


def close(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_hoisted_means_the_same(seed):
    whole = verify(random_module(seed))
    moved = verify(random_module(seed, hoist=True))
    (loop,) = moved.procedures[-1].body[-1:]
    before = whole.procedures[-1].body[0]
    assert isinstance(loop, For)
    assert isinstance(before, For)
    assert len(loop.body) < len(before.body)
    expected, found = (evaluate(x, {"x": values(seed)}) for x in (whole, moved))
    assert found[1] == expected[1]
    for name in ("y", "z"):
        np.testing.assert_array_equal(found[0][name], expected[0][name])


@pytest.mark.parametrize("seed", SEEDS)
def test_evaluations_are_those_of_the_interpreter(seed, monkeypatch):
    done = Counter()

    def counting(op, meaning):
        def evaluated(*args):
            done[op] += 1
            return meaning(*args)

        return evaluated

    for op, meaning in interpreter.MEANING.items():
        monkeypatch.setitem(interpreter.MEANING, op, counting(op, meaning))
    whole = random_module(seed)
    evaluate(whole, {"x": values(seed)})
    assert done == evaluations(whole)


@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
@pytest.mark.parametrize("seed", SEEDS)
def test_machine_code(seed, lanes):
    states = np.array([values(10 * seed + k) for k in range(lanes)])
    whole = random_module(seed, hoist=seed % 2 == 1)
    code = machine_code.MachineCode(llvm.emit_module(whole, lanes))
    ports = [np.ascontiguousarray(states.T), *(aligned((x.size, lanes)) for x in whole.outputs)]
    statuses = aligned((lanes,)).view(np.int32)
    addresses = np.array([x.ctypes.data for x in (*ports, statuses)], dtype=np.uint64)
    status = machine_code.c_type(BODY)(code.address(whole.name))(addresses.ctypes.data)
    every = [evaluate(whole, {"x": x}) for x in states]
    assert bool(status) == any(status for _, status in every)
    for k, (expected, failed) in enumerate(every):
        if status:
            assert (status if lanes == 1 else statuses[k]) == failed
        for port, output in zip(ports[1:], whole.outputs, strict=True):
            close(port[:, k], expected[output.name])


@pytest.mark.parametrize("seed", SEEDS)
def test_plain_python(seed):
    whole = random_module(seed, hoist=True)
    function = python.compile_python(whole)
    expected, status = evaluate(whole, {"x": values(seed)})
    if status:
        with pytest.raises(python.Failed) as failed:
            function(values(seed).tolist())
        assert failed.value.args == (status - 1,)
        return
    for found, output in zip(function(values(seed).tolist()), whole.outputs, strict=True):
        close(found, expected[output.name])


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
@pytest.mark.parametrize("seed", SEEDS[:3])
def test_c(seed, tmp_path):
    whole = random_module(seed, hoist=True)
    source = c.emit_module(whole, "program").definition
    file, shared = tmp_path / "program.c", tmp_path / "program.so"
    file.write_text(f"#include <math.h>\n{source}\n")
    flags = (
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-unused-variable",
        "-ffp-contract=off",
        "-O1",
    )
    subprocess.run(["cc", *flags, "-fPIC", "-shared", file, "-o", shared, "-lm"], check=True)
    x, y, z = values(seed), np.empty(ROWS), np.empty(ROWS**2)
    arrays = (ctypes.c_void_p(a.ctypes.data) for a in (x, y, z))
    status = ctypes.CDLL(str(shared)).program(*arrays)
    expected, failed = evaluate(whole, {"x": x})
    assert status == failed
    if not failed:
        close(y, expected["y"])
        close(z, expected["z"])


def several_sines() -> Module:
    """Return a module that stores the sines and cosines of three angles, with room for eight."""
    at = Buffer("at", SCRATCH, 26)
    loads = (Load(k, X, index(3 * k)) for k in range(3))
    found = (Load(3 + k, at, index(8 + k)) for k in range(16))
    kept = [k for k in range(16) if k % 8 < 3]
    stores = (Store(Z, index(k), 3 + k) for k in kept)
    return module(*loads, nodes.Sines(at, 8, (0, 1, 2), 8), *found, *stores)


@pytest.mark.parametrize("printer", ["llvm", "c", "python"])
def test_several_sines_at_once(printer, tmp_path):
    whole, x = verify(several_sines()), values(3)
    expected, _ = evaluate(whole, {"x": x})
    kept = np.isfinite(expected["z"])
    assert kept.sum() == 6
    if printer == "python":
        _, z = python.compile_python(whole)(x.tolist())
    elif printer == "c":
        if shutil.which("cc") is None:
            pytest.skip("there is no C compiler")
        file, shared = tmp_path / "program.c", tmp_path / "program.so"
        file.write_text(f"#include <math.h>\n{c.emit_module(whole, 'program').definition}\n")
        subprocess.run(["cc", "-O1", "-fPIC", "-shared", file, "-o", shared, "-lm"], check=True)
        y, z = np.empty(ROWS), np.empty(ROWS**2)
        arrays = (ctypes.c_void_p(a.ctypes.data) for a in (x, y, z))
        assert ctypes.CDLL(str(shared)).program(*arrays) == 0
    else:
        code = machine_code.MachineCode(llvm.emit_module(whole))
        y, z = np.empty(ROWS), np.empty(ROWS**2)
        ports = np.array([a.ctypes.data for a in (x, y, z)], dtype=np.uint64)
        assert machine_code.c_type(BODY)(code.address("program"))(ports.ctypes.data) == 0
    close(np.asarray(z)[kept], expected["z"][kept])


def test_the_first_check_that_fails_decides():
    checks = [x for k in range(ROWS) for x in (Load(k, X, index(k)), Check(k, k + 5))]
    x = np.ones(ROWS)
    assert evaluate(module(*checks), {"x": x})[1] == 0
    x[[7, 3]] = 0.0, np.nan
    assert evaluate(module(*checks), {"x": x})[1] == 8


def test_addresses_out_of_bounds_are_found():
    read = For(I, ZERO, END + 1, (Load(0, X, index(I)),))
    with pytest.raises(IndexError, match=r"x\[21\]"):
        evaluate(verify(module(read)), {"x": np.zeros(ROWS)})


def inner(*body: nodes.Statement, parallel: bool = True) -> For:
    return For(K, ZERO, END, body, parallel=parallel)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ((Store(Y, ZERO, 0),), "value 0 is used where it is not defined"),
        ((inner(Load(0, X, index(K))), Store(Y, ZERO, 0)), "value 0 is used where"),
        ((Load(0, X, ZERO), Load(0, X, ZERO)), "value 0 is defined twice"),
        ((Load(0, X, index(K)),), "variable k is not defined"),
        ((Store(X, ZERO, 1.0),), "x is written, of kind input"),
        ((Store(nodes.constants("c", [1.0]), ZERO, 1.0),), "c is written, of kind constant"),
        ((Load(0, nodes.table("t", [1]), ZERO),), "a double is loaded from table t"),
        ((Load(0, X, index(V[I])),), "v is no table"),
        ((Load(0, V, ZERO),), "v is read and never written"),
        ((Check(0, 1),), "value 0 is used where it is not defined"),
        ((Let(0, ops.ADD, (1.0,)),), "of 1 operands"),
        ((Let(0, "no", (1.0,)),), "'no' of 1 operands"),
        ((Let(0, ops.LESS, (1.0, 2.0)), Store(Y, ZERO, 0)), "value 0 is a condition"),
        (
            (Load(0, X, ZERO), Let(1, ops.SELECT, (0, 1.0, 2.0))),
            "value 0 is a condition, or should",
        ),
        ((Let(0, ops.SELECT, (1.0, 1.0, 2.0)),), "a number is used as a condition"),
        ((inner(Load(0, X, ZERO), Check(0, 1), parallel=False),), "a check stands within"),
        ((inner(Store(Y, ZERO, 1.0)),), "iterations share y"),
        ((inner(For(I, ZERO, END, ())),), "a parallel loop has a loop"),
        ((inner(inner(), parallel=False),), "k is taken"),
        ((Fill(Y, 1, ROWS),), "y is too short"),
        ((nodes.Sines(Y, 4, (1.0,), 8),), "sines of width 8 begin at y[4]"),
        ((nodes.Sines(Y, 8, (1.0,), 8),), "y is too short for sines"),
        ((nodes.Sines(Z, 0, (1.0, 2.0), 1),), "2 angles, width 1"),
        ((Call(Procedure("p", (I,), ()), ()),), "p is called with 0 arguments"),
        (
            (Store(Buffer("v", SCRATCH, 1), ZERO, 1.0), Store(V, ZERO, 1.0)),
            "2 have the name 'v'",
        ),
        ((Call(Procedure("p", (), (Store(Y, index(I), 1.0),)), ()),), "variable i is not"),
    ],
)
def test_what_is_not_valid(body, rule):
    with pytest.raises(InvalidProgram, match=re.escape(rule)):
        verify(module(*body))


def test_as_text():
    said = text(random_module(0))
    assert said.startswith("procedure row0(i, a):\n    %0 = x[i]\n    %1 = v[a]\n")
    assert "module program(x[21]) -> (y[21], z[441]):\n    scratch v[21]\n" in said
    assert "parallel for k from a to b:" in said
    assert "z[21*i + k] = %" in said
