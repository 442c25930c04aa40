# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The command that prints an algorithm on its way to machine code."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import mbs_dynamics as mbs
from mbs_dynamics.cli import main
from mbs_dynamics.resources import robot_path

pytestmark = pytest.mark.backend_independent

needs_llvm = pytest.mark.skipif(
    importlib.util.find_spec("llvmlite") is None, reason="llvmlite is not installed"
)


def explain(capsys, *arguments):
    code = main(["explain", *arguments])
    said = capsys.readouterr()
    assert code == 0, said.err
    return said.out


def refused(capsys, *arguments):
    assert main(["explain", *arguments]) == 1
    return capsys.readouterr().err


@needs_llvm
def test_without_a_stage_it_says_how_large_each_is(capsys):
    said = explain(capsys, "gravity_torques", "arm7")
    operations = mbs.compile(
        mbs.gravity_torques, mbs.Model.from_urdf(robot_path("arm7"))
    ).operations
    assert said.startswith(f"gravity_torques: {operations}\n")
    for stage in (
        "equations",
        "after trace",
        "llvm",
        "assembly",
        "c",
        "python",
    ):
        assert stage in said


def test_the_intermediate_representation_after_each_pass_or_one(capsys):
    arguments = "inverse_dynamics", "arm7", "--representation", "spatial", "--stage", "ir"
    every = explain(capsys, *arguments, "--lanes", "4")
    passes = [x.removeprefix("== after ") for x in every.splitlines() if x.startswith("==")]
    assert passes == ["trace", "sines", "spilling"]
    one = explain(capsys, *arguments, "--lanes", "4", "--after", "sines")
    assert f"== after sines\n{one}== after spilling" in every
    said = refused(capsys, *arguments, "--after", "tea")
    assert "no pass 'tea' here; valid are trace, sines, spilling" in said


def test_python_that_is_printed_is_what_is_computed(capsys):
    source = explain(capsys, "jacobian", "arm7", "--body", "tool", "--stage", "python")
    arm = mbs.Model.from_urdf(robot_path("arm7"))
    names = {"sin": np.sin, "cos": np.cos}
    exec(source, names)
    q = np.linspace(-1.0, 1.0, 7)
    (found,) = names["jacobian"](q.tolist())
    np.testing.assert_allclose(
        np.reshape(found, (6, 7)), mbs.jacobian(arm, q, body="tool"), atol=1e-14
    )


@needs_llvm
@pytest.mark.parametrize(
    ("stage", "said"),
    [
        ("equations", "tau[i] = rep.screw(i).T @ W[i]"),
        ("llvm", "define i32 @inverse_dynamics(ptr %p0)"),
        ("assembly", "\ninverse_dynamics:\n"),
        ("c", "int inverse_dynamics(const double q[7]"),
    ],
)
def test_other_stages(capsys, stage, said):
    assert said in explain(capsys, "inverse_dynamics", "arm7", "--stage", stage)


def test_what_is_not_there_is_named(capsys):
    assert "no algorithm 'dynamics'" in refused(capsys, "dynamics", "arm7")
    assert "no robot 'arm9'" in refused(capsys, "twists", "arm9")
    assert "body" in refused(capsys, "jacobian", "arm7")
