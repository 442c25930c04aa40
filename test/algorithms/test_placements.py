# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Placements of links as inputs of kernels, and a calibration with them."""

import functools
from dataclasses import replace

import numpy as np
import pytest
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


def results(algorithm, model, options):
    """Return the results of a kernel for arguments at random."""
    rng, (q, qd, qdd) = np.random.default_rng(1), model.random_state(2)
    known = {"q": q, "qd": qd, "qdd": qdd, "q2": model.random_state(3).q, "target": np.eye(4)}
    kernel = algorithm.kernel(model, algorithm.required, algorithm.complete(options))
    ports = kernel.inputs[: len(algorithm.required)]
    random = {port.name: rng.uniform(-1.0, 1.0, port.shape) for port in ports}
    found = kernel(*[(random | known)[port.name] for port in ports])
    return found if isinstance(found, tuple) else (found,)


EVERYWHERE = ("jacobian", "inverse_dynamics", "forward_dynamics")
"""Algorithms that are compared in each representation, and on other trees."""

CASES = [
    *((each, "arm") for each in NAMED),
    *((each, name) for each in EVERYWHERE for name in ("mixed1", "mimics")),
]


@pytest.mark.parametrize(("algorithm", "name"), CASES)
def test_all_algorithms_are_those_of_a_model_that_was_made_so(algorithm, name):
    bare, algorithm = plain(name), NAMED[algorithm]
    end = "tool" if name == "arm" else bare.body_names[-1]
    model = displaced(bare, [*bare.body_names[::2], end])
    made = replace(model, variable_links=())
    more = {"body": end, "joints": bare.joint_names[:2], "order": 2, "representation": "mixed"}
    if algorithm.name == "jacobian_derivative":
        more["joints"] = (1, 2)
    options = {key: x for key, x in more.items() if key in algorithm.options}
    every = mbs.REPRESENTATIONS if (algorithm.name, name) in CASES[len(NAMED) :] else ("mixed",)
    for representation in every:
        if "representation" in options:
            options["representation"] = representation
        expected, found = (results(algorithm, x, options) for x in (made, model))
        for a, b in zip(found, expected, strict=True):
            assert_close(a, b, 1e-10 * max(1.0, np.abs(b).max(initial=0.0)), representation)
