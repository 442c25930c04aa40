# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Placements of links as inputs of kernels, and a calibration with them."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import pytest
from cases import mostly_slow
from reference import assert_close
from twins import tree

import mbs_dynamics as mbs
from mbs_dynamics.algorithms._algorithm import NAMED
from mbs_dynamics.lie import se3
from mbs_dynamics.resources import robot_path

ARM = mbs.Model.from_urdf(robot_path("arm7"))


@functools.cache
def plain(name):
    if name == "arm":
        return ARM.with_payload("tool", 1.0, (0.0, 0.1, 0.2)).with_armature({"joint2": 0.3})
    return tree(name)


def displaced(model, links, seed=0, size=0.1):
    rng = np.random.default_rng(seed)
    return model.with_placements(
        {x: model.placement(x) @ se3.exp(rng.uniform(-size, size, 6)) for x in links}
    )


def results(algorithm, model, **options):
    rng = np.random.default_rng(1)
    state = dict(zip(("q", "qd", "qdd"), model.random_state(2), strict=True))
    kernel = algorithm.kernel(model, algorithm.required, algorithm.complete(options))
    given = [
        state[port.name]
        if port.name in state
        else np.eye(4)
        if port.name == "target"
        else model.random_state(3).q
        if port.name == "q2"
        else rng.uniform(-1.0, 1.0, port.shape)
        for port in kernel.inputs[: len(algorithm.required)]
    ]
    found = kernel(*given)
    return found if isinstance(found, tuple) else (found,)


CASES = [
    *((each, "arm") for each in NAMED),
    *((each, "mimics") for each in ("jacobian", "inverse_dynamics", "forward_dynamics")),
    ("jacobian", "chain"),
    *((each, "mixed1") for each in NAMED),
]
EVERYWHERE = ("jacobian", "inverse_dynamics", "forward_dynamics")
"""Algorithms that are compared in each representation; the others are in two."""

QUICK = [case for case in CASES if case[1] != "mixed1" or case[0] == "inverse_dynamics"]


@pytest.mark.parametrize(("algorithm", "name"), mostly_slow(CASES, QUICK))
def test_all_algorithms_are_those_of_a_model_that_was_made_so(algorithm, name):
    bare, algorithm = plain(name), NAMED[algorithm]
    end = "tool" if name == "arm" else bare.body_names[-1]
    model = displaced(bare, [*bare.body_names[::2], end])
    made = replace(model, variable_links=())
    options = {key: x for key, x in algorithm.options.items() if isinstance(x, (str, int))}
    joints = (1, 2) if algorithm.name == "jacobian_derivative" else bare.joint_names[:2]
    more = {"body": end, "joints": joints, "order": 2}
    options |= {key: x for key, x in more.items() if key in algorithm.options}
    others = mbs.REPRESENTATIONS if algorithm.name in EVERYWHERE else ("mixed",)
    for representation in ("auto", *others):
        if "representation" in algorithm.options:
            options["representation"] = representation
        elif representation != "auto":
            break
        expected, found = (results(algorithm, x, **options) for x in (made, model))
        for a, b in zip(found, expected, strict=True):
            assert_close(a, b, 1e-10 * max(1.0, np.abs(b).max(initial=0.0)), representation)
