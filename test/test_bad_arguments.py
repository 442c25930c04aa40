# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of the public functions raise at once and say what came and what is valid."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mechanisms import TREE, random_mechanism

import mbs_dynamics as mbs
from mbs_dynamics.errors import (
    ArgumentError,
    BackendError,
    MbsError,
    UnknownAlgorithmError,
    UnknownBackendError,
    UnknownBodyError,
    UnknownRepresentationError,
)

MODEL = random_mechanism(31, TREE).model
q, qd, qdd = MODEL.random_state(0)
BODIES = ", ".join(MODEL.body_names)
REPRESENTATIONS = "body_fixed, spatial, hybrid, mixed, auto"

CALLS = {
    "forward_kinematics": (q,),
    "twists": (q, qd),
    "jacobian": (q, "body3"),
    "inverse_dynamics": (q, qd, qdd),
    "gravity_torques": (q,),
    "bias_torques": (q, qd),
    "coriolis_torques": (q, qd),
    "generalized_momentum": (q, qd),
}
every_function = pytest.mark.parametrize("name", CALLS)
every_algorithm = pytest.mark.parametrize("function", mbs.ALGORITHMS, ids=lambda f: f.__name__)


def required(function):
    """Something for every argument of a function that has no default."""
    parameters = list(inspect.signature(function).parameters.values())[1:]
    return [q for p in parameters if p.default is p.empty and p.kind is not p.KEYWORD_ONLY]


def call(name, *args, model=MODEL, **options):
    return getattr(mbs, name)(model, *(args or CALLS[name]), **options)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("tool", rf"'tool'.* {BODIES}$"),
        ("Body3", rf"'Body3'.*'body3'.* {BODIES}$"),
        ("", "''"),
        (None, "None"),
        (3, "3"),
        (["body3", "body4"], r"\('body3', 'body4'\)"),
    ],
)
def test_unknown_body(given, said, compiled):
    if compiled:
        with pytest.raises(UnknownBodyError, match=said):
            mbs.compile(mbs.jacobian, MODEL, body=given)
    else:
        for call_it in (mbs.jacobian, lambda m, q, body: mbs.jacobian(m, q, body=body)):
            with pytest.raises(UnknownBodyError, match=said):
                call_it(MODEL, q, given)


@pytest.mark.parametrize("name", ["forward_kinematics", "twists"])
@pytest.mark.parametrize(
    ("bodies", "error", "said"),
    [
        (["body3", "boddy4"], UnknownBodyError, "'boddy4'.*'body4'"),
        (("tool",), UnknownBodyError, "'tool'.* body1, .*, body7"),
        ([None], UnknownBodyError, "None"),
        ([3], UnknownBodyError, "3"),
        ("body3", ArgumentError, "bodies.*'body3'"),
        (3, ArgumentError, "bodies.*3"),
        ([["body3"]], ArgumentError, r"bodies.*\['body3'\]"),
    ],
)
def test_unknown_bodies(name, bodies, error, said):
    with pytest.raises(error, match=said):
        call(name, bodies=bodies)
    with pytest.raises(error, match=said):
        mbs.compile(getattr(mbs, name), MODEL, bodies=bodies)


@pytest.mark.parametrize("name", [name for name in CALLS if name != "forward_kinematics"])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("hybird", rf"'hybird'.*'hybrid'.*{REPRESENTATIONS}$"),
        ("Spatial", "'Spatial'.*'spatial'"),
        ("body-fixed", "'body-fixed'.*'body_fixed'"),
        ("", "''"),
        (None, "None"),
        (["hybrid"], r"\['hybrid'\]"),
    ],
)
def test_unknown_representation(name, given, said):
    with pytest.raises(UnknownRepresentationError, match=said):
        call(name, representation=given)
    body = {"body": "body1"} if name == "jacobian" else {}
    with pytest.raises(UnknownRepresentationError, match=said):
        mbs.compile(getattr(mbs, name), MODEL, representation=given, **body)


def test_conversions_know_no_auto():
    """There, a representation cannot be left to choice."""
    C, V = np.eye(4), np.zeros(6)
    for convert in (mbs.convert_twist, mbs.convert_wrench):
        for names in ({"source": "auto", "target": "hybrid"}, {"source": "hybrid", "target": "xy"}):
            with pytest.raises(UnknownRepresentationError, match=r"are: \w+, \w+, \w+, mixed$"):
                convert(V, C, **names)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("lvm", "'lvm'.*'llvm'.* llvm, python$"),
        ("gpu", "'gpu'.* llvm, python$"),
        ("", "''"),
        (["llvm"], r"\['llvm'\]"),
    ],
)
def test_unknown_backend(given, said):
    with pytest.raises(UnknownBackendError, match=said):
        mbs.compile(mbs.gravity_torques, MODEL, backend=given)


@every_function
def test_a_misspelled_backend_in_the_environment(name, monkeypatch):
    model = random_mechanism(32, [-1, 0, 1]).model
    args = [x[:3] if isinstance(x, np.ndarray) else x for x in CALLS[name]]
    monkeypatch.setenv("MBS_BACKEND", "pyhton")
    with pytest.raises(UnknownBackendError, match=r"'pyhton'.*'python'"):
        call(name, *args, model=model)
    for backend in ("python", ""):
        monkeypatch.setenv("MBS_BACKEND", backend)  # as the name says, and as if it were not set
        assert np.asarray(call(name, *args, model=model)).dtype == np.float64


WRONG_ARRAYS = [
    (np.zeros(6), r"\(6,\).*\(7,\).*\(\.\.\., 7\)"),
    (np.zeros((7, 1)), r"\(7, 1\).*\(7,\)"),
    (np.zeros((3, 8)), r"\(3, 8\).*\(7,\)"),
    (0.0, r"\(\).*\(7,\)"),
    ([], r"\(0,\).*\(7,\)"),
    (q + 0j, "complex128"),
    (["0"] * 7, "<U1"),
    ("zero", "<U4"),
    ([True] * 7, "bool"),
    ([None] * 7, "object"),
    (dict.fromkeys(range(7), 0.0), "object"),
    ([[0.0] * 7, [0.0] * 6], ""),
    (np.zeros(7, dtype="datetime64[s]"), "datetime64"),
]


@every_function
@pytest.mark.parametrize(("wrong", "said"), WRONG_ARRAYS)
def test_wrong_positions(name, wrong, said):
    with pytest.raises(ArgumentError, match=rf"{name}.*\bq\b.*{said}"):
        call(name, wrong, *CALLS[name][1:])


@pytest.mark.parametrize("position", [1, 2, 3])
def test_each_argument_is_named(position):
    arrays = [q, qd, qdd, np.zeros((7, 6))]
    arrays[position] = np.zeros(5)
    argument, shape = [("qd", 7), ("qdd", 7), ("wrenches", "7, 6")][position - 1]
    with pytest.raises(ArgumentError, match=rf"\b{argument} .*\(5,\).*\({shape},?\)"):
        mbs.inverse_dynamics(MODEL, *arrays)


@pytest.mark.parametrize("shape", [(6, 6), (7, 3), (42,), (2, 6, 6)])
def test_wrong_wrenches(shape):
    with pytest.raises(ArgumentError, match=rf"wrenches.*{re.escape(str(shape))}.*\(7, 6\)"):
        mbs.inverse_dynamics(MODEL, q, qd, qdd, np.zeros(shape))


def test_batches_that_do_not_broadcast():
    with pytest.raises(ArgumentError, match=r"bias_torques.*q \(3, 7\), qd \(4, 7\)"):
        mbs.bias_torques(MODEL, np.zeros((3, 7)), np.zeros((4, 7)))
    with pytest.raises(ArgumentError, match=r"wrenches \(2, 7, 6\)"):
        mbs.inverse_dynamics(MODEL, np.zeros((3, 7)), qd, qdd, np.zeros((2, 7, 6)))


@every_function
def test_missing_arrays(name):
    names = ["q", "qd", "qdd"]
    count = sum(isinstance(x, np.ndarray) for x in CALLS[name])
    body = {"body": "body3"} if name == "jacobian" else {}
    for k in range(count):
        with pytest.raises(ArgumentError, match=rf"{name}.*{names[k]!r}"):
            getattr(mbs, name)(MODEL, *CALLS[name][:k], **body)
        arrays = [None if j == k else x for j, x in enumerate(CALLS[name])]
        with pytest.raises(ArgumentError, match=rf"{name}.*\b{names[k]}\b.*None"):
            getattr(mbs, name)(MODEL, *arrays)


def test_missing_option():
    for call_it in (lambda: mbs.jacobian(MODEL, q), lambda: mbs.compile(mbs.jacobian, MODEL)):
        with pytest.raises(ArgumentError, match=r"jacobian.*'body'"):
            call_it()


@every_function
def test_too_many_arguments(name):
    parameters = list(inspect.signature(getattr(mbs, name)).parameters.values())[1:]
    left_out = [None for p in parameters[len(CALLS[name]) :] if p.kind is not p.KEYWORD_ONLY]
    with pytest.raises(ArgumentError, match=rf"{name}.*'spatial'.*model, q"):
        getattr(mbs, name)(MODEL, *CALLS[name], *left_out, "spatial")


@every_algorithm
@pytest.mark.parametrize("option", ["rep", "backend", "out", "gravity", "Q"])
def test_unknown_options(function, option):
    with pytest.raises(ArgumentError, match=rf"{function.__name__}.*'{option}'.*model, "):
        function(MODEL, *required(function), **{option: None})
    with pytest.raises(ArgumentError, match=rf"{function.__name__}.*'{option}2'"):
        mbs.compile(function, MODEL, **{f"{option}2": None})


@pytest.mark.parametrize("name", ["gravity_torques", "forward_kinematics"])
def test_two_values_for_one_argument(name):
    with pytest.raises(ArgumentError, match=rf"{name}.*'q'"):
        call(name, q=q)
    with pytest.raises(ArgumentError, match=r"jacobian.*'body'"):
        mbs.jacobian(MODEL, q, "body3", body="body3")


def test_options_that_compile_does_not_know():
    with pytest.raises(ArgumentError, match=r"gravity_torques.*'body'.* representation$"):
        mbs.compile(mbs.gravity_torques, MODEL, body="body3")
    with pytest.raises(ArgumentError, match=r"bias_torques.*'wrenches'"):
        mbs.compile(mbs.bias_torques, MODEL, wrenches=True)


@every_algorithm
@pytest.mark.parametrize("wrong", [None, "panda.urdf", np.zeros(7), mbs.Model, 3])
def test_no_model(function, wrong):
    said = f"{function.__name__}.*model.*{type(wrong).__name__}"
    with pytest.raises(ArgumentError, match=said):
        function(wrong, *required(function))
    with pytest.raises(ArgumentError, match=said):
        mbs.compile(function, wrong)


@pytest.mark.parametrize(
    ("wrong", "shown"),
    [
        (np.sin, "'sin'"),
        (mbs.spatial_inertia, "'spatial_inertia'"),
        (None, "'NoneType'"),
        (MODEL, "'Model'"),
    ],
)
def test_no_algorithm(wrong, shown):
    with pytest.raises(ArgumentError, match=rf"^{shown}"):
        mbs.compile(wrong, MODEL)


def test_algorithms_by_name():
    assert mbs.compile("gravity_torques", MODEL) is mbs.compile(mbs.gravity_torques, MODEL)
    both = mbs.compile_together(["gravity_torques", ("jacobian", {"body": "body3"})], MODEL)
    np.testing.assert_array_equal(both(q).jacobian, mbs.jacobian(MODEL, q, "body3"))
    with pytest.raises(UnknownAlgorithmError, match="'gravity_torques'"):
        mbs.compile("gravity_torque", MODEL)


def test_options_that_need_a_name_are_said():
    with pytest.raises(ArgumentError, match=r"'body3'.*bodies=\.\.\."):
        mbs.forward_kinematics(MODEL, q, "body3")


def test_a_star_import_leaves_the_builtin_compile_alone():
    assert "compile" not in mbs.__all__
    assert mbs.integrate.simulate
    with pytest.raises(AttributeError, match="integral"):
        mbs.integral  # noqa: B018


def test_signatures_are_those_of_users():
    first = next(iter(inspect.signature(mbs.mass_matrix).parameters.values()))
    assert (first.name, first.annotation) == ("model", "Model")


def test_errors_are_of_this_package_and_of_the_kind_that_callers_expect():
    for error, builtin in [
        (ArgumentError, ValueError),
        (UnknownBodyError, LookupError),
        (UnknownRepresentationError, ValueError),
        (UnknownBackendError, ValueError),
        (BackendError, RuntimeError),
    ]:
        assert issubclass(error, MbsError)
        assert issubclass(error, builtin)


@every_function
def test_a_wrong_call_leaves_the_right_one_as_it_was(name):
    before = call(name)
    with pytest.raises(MbsError):
        call(name, np.zeros(3), *CALLS[name][1:])
    np.testing.assert_array_equal(call(name), before)


WITHOUT_LLVMLITE = """
import sys
sys.modules["llvmlite"] = None  # every import of it fails from now on
import numpy as np
import mbs_dynamics as mbs
M = mbs.spatial_inertia(2.0, (0.5, 0.0, 0.0), np.zeros((3, 3)))
axis = [0.0, -1.0, 0.0, 0.0, 0.0, 0.0]
model = mbs.Model.from_screws([-1], [np.eye(4)], [axis], [M], frame="body_fixed")
assert mbs.compile(mbs.gravity_torques, model).backend == "python"
assert abs(mbs.gravity_torques(model, [0.0])[0] - 2.0 * 9.81 * 0.5) < 1e-14
for call in (
    lambda: mbs.compile(mbs.gravity_torques, model, backend="llvm"),
    lambda: mbs.compile(mbs.bias_torques, model, backend="llvm"),
):
    try:
        call()
    except mbs.BackendError as error:
        print(error)
"""


def run(script, **environment):
    """Return the output of a script in a fresh interpreter."""
    known = {key: value for key, value in os.environ.items() if key != "MBS_BACKEND"}
    path = {"PYTHONPATH": str(Path(mbs.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**known, **path, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_all_works_without_llvmlite_but_the_llvm_backend():
    said = run(WITHOUT_LLVMLITE)
    assert len(said) == 2
    for line in said:
        assert line.startswith("the llvm backend needs llvmlite, which is not installed")
        assert "backend='python'" in line


def test_llvm_in_the_environment_without_llvmlite():
    lines = WITHOUT_LLVMLITE.splitlines()
    until_model = "\n".join(lines[: next(k for k, x in enumerate(lines) if x[:6] == "assert")])
    script = f"""{until_model}
try:
    mbs.gravity_torques(model, [0.0])
except mbs.BackendError as error:
    print(error)
"""
    assert "llvmlite, which is not installed" in run(script, MBS_BACKEND="llvm")[0]
