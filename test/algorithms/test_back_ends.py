# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Every algorithm, through every back end, on robots of all kinds, is its equations on floats.

The reference is the equations of the very model, evaluated with NumPy: neither traced, nor of an
equivalent model. That the equations are right is tested against Pinocchio and definitions.
"""

import inspect
from functools import cache, lru_cache

import numpy as np
import pytest
from backends import EVALUATORS, c_function
from cases import mostly_slow
from reference import assert_close
from robots import robot
from twins import mixed, tree
from urdf_reference import joint, link, load, urdf

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.compiler import Kernel
from mbs_dynamics.compiler.runtime.machine import LEAST_STATES
from mbs_dynamics.representation.tree import Tree
from mbs_dynamics.resources import robot_path

ROBOTS = ("arm7", "mimics", "mixed", "solo12.urdf", "talos_full_v2.urdf")
"""An arm with a payload and rotors, a tree with mimic joints, one of all kinds of joints, and two
legged robots on floating bases."""

FEW_JOINTS = {
    "no joint": (),
    "free body": ("free",),
    "gantry": ("prismatic", "prismatic", "prismatic"),
    "ball": ("spherical", "planar"),
}


@cache
def model_of(name):
    if name == "no joint":
        return load(urdf(link("a"), link("b"), joint("j", "a", "b", "fixed")))
    if name in FEW_JOINTS:
        return mixed(1, FEW_JOINTS[name]).model
    if name == "arm7":
        arm = mbs.Model.from_urdf(robot_path(name)).with_payload("tool", 2.0, (0.0, 0.1, 0.2))
        return arm.with_armature({"joint2": 0.3})
    if not name.endswith("urdf"):
        return tree("mimics") if name == "mimics" else mixed(1).model
    return load(robot(name), floating_base=True)


def values(model):
    """Return arguments of all algorithms by name."""
    rng, (q, qd, qdd) = np.random.default_rng(0), model.random_state(2)
    single = tuple(joint.name for joint in model.joints if joint.nv == 1)[:2]
    rates = dict(zip(("v", "tau", "qddd", "qdddd"), rng.normal(size=(4, model.n)), strict=True))
    return {
        **{"q": q, "q2": model.random_state(3).q, "qd": qd, "qdd": qdd, **rates, "order": 2},
        **{"body": [*model.frames][-1], "joints": single, "point": (0.1, 0.2, 0.3)},
        **{"screws": rng.normal(size=(len(single), 6)), "motion": rng.normal(size=(4, model.n))},
        **{"wrenches": rng.normal(size=(model.nb, 6)), "damping": 0.1},
        **{"base_twist": rng.normal(size=6), "base_acceleration": rng.normal(size=6)},
    }


@lru_cache(maxsize=1)  # the back ends of an algorithm come one after the other
def evaluated(function, name):
    """Return the program of an algorithm, arrays for its inputs, and the results of its equations.

    Raises an error of this package if the model has none.
    """
    model, found = model_of(name), algorithm_of(function)
    given = values(model)
    needed = [k for k, v in found.options.items() if v is inspect.Parameter.empty]
    options = found.complete({key: given[key] for key in needed})
    arrays = [*found.required, *(["damping"] if "damping" in found.arrays else [])]
    arrays = {key: np.asarray(given[key], dtype=float) for key in arrays}
    program = found.program(model, tuple(arrays), options)
    on = Tree(found.model_for(model, options))
    results = found.equations(on, **{key: x[()] for key, x in arrays.items()}, **options)
    constants = {"gravity": model.gravity, "payload": model.payloads.parameters}
    constants["armature"] = model.armature
    inputs = [(arrays | constants)[port.name] for port in program.inputs]
    results = [*results.values()] if isinstance(results, dict) else results
    return program, inputs, results if isinstance(results, (tuple, list)) else [results]


def assert_same(program, found, expected):
    for port, result, wanted in zip(program.outputs, found, expected, strict=True):
        wanted = np.asarray(wanted, dtype=float)
        scale = 1e-11 * max(1.0, np.abs(wanted).max(initial=0.0))
        assert_close(result.reshape(port.shape), wanted, scale, port.name)


@pytest.mark.parametrize("evaluator", [*EVALUATORS, pytest.param("lanes", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", mostly_slow(ROBOTS, ["arm7"]))
@pytest.mark.parametrize("function", mbs.ALGORITHMS, ids=lambda f: f.__name__)
def test_every_back_end_evaluates_every_algorithm(function, name, evaluator, tmp_path):
    if name in ROBOTS[2:] and function is mbs.twist_derivatives:
        pytest.skip("takes joints of one degree of freedom")
    program, inputs, expected = evaluated(function, name)
    if evaluator == "exported":
        status, results = c_function(program, tmp_path)(*inputs)
        assert status == 0
    else:
        count = LEAST_STATES if evaluator == "lanes" else 3  # so many are evaluated as vectors
        kernel = Kernel(program, backend="llvm" if evaluator == "lanes" else evaluator)
        several = kernel(*[np.stack([x] * count) for x in inputs])
        several = several if isinstance(several, tuple) else (several,)
        results = [x[1] for x in several]
    assert_same(program, results, expected)


@pytest.mark.long
@pytest.mark.parametrize("name", FEW_JOINTS)
def test_every_algorithm_takes_few_joints_or_says_why_not(name):
    for function in mbs.ALGORITHMS:
        try:
            program, inputs, expected = evaluated(function, name)
        except (mbs.SingularError, mbs.ArgumentError, mbs.ModelError) as error:
            said = str(error)
            assert any(word in said for word in ("singular", "degrees of freedom", "no ")), said
            continue
        results = Kernel(program, backend="python")(*[np.stack([x] * 3) for x in inputs])
        results = results if isinstance(results, tuple) else (results,)
        assert_same(program, [x[1] for x in results], expected)
