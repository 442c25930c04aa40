# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Conversions between the four representations: Mueller (kinematics), Tables 3 and 4."""

from typing import Any

import exact
import numpy as np
import pytest
from reference import twist

from mbs_dynamics.lie import se3
from mbs_dynamics.representation import (
    convert_jacobian,
    convert_twist,
    convert_wrench,
    twist_from_rate,
)

NAMES = ("body_fixed", "spatial", "hybrid", "mixed")
PAIRS = [(a, b) for a in NAMES for b in NAMES]
COUNT = 12


def random(*shape: int, seed: int = 40) -> Any:
    return np.random.default_rng(seed).normal(size=shape)


POSES = np.array([exact.exponential(se3.hat(X)) for X in random(COUNT, 6)])
RATES = POSES @ np.array([se3.hat(X) for X in random(COUNT, 6, seed=41)])
FORCES, MOMENTS, PLACES = random(3, COUNT, 3, seed=42)


def defined_wrench(C: Any, force: Any, place: Any, moment: Any, name: str) -> Any:
    """The wrench of a force at a place in space and a free moment."""
    R, r = C[:3, :3], C[:3, 3]
    at_body, at_origin = moment + np.cross(place - r, force), moment + np.cross(place, force)
    return {
        "body_fixed": np.concatenate([R.T @ at_body, R.T @ force]),
        "spatial": np.concatenate([at_origin, force]),
        "hybrid": np.concatenate([at_body, force]),
        "mixed": np.concatenate([R.T @ at_body, force]),
    }[name]


def twists(name: str) -> Any:
    return np.array([twist(C, Cd, name) for C, Cd in zip(POSES, RATES, strict=True)])


def wrenches(name: str) -> Any:
    loads = zip(POSES, FORCES, PLACES, MOMENTS, strict=True)
    return np.array([defined_wrench(C, f, p, t, name) for C, f, p, t in loads])


def close(found: Any, wanted: Any) -> None:
    assert np.shape(found) == np.shape(wanted)
    np.testing.assert_allclose(found, wanted, rtol=0.0, atol=1e-13)


@pytest.mark.parametrize("name", NAMES)
def test_twists_from_the_rate_of_a_pose(name):
    close(twist_from_rate(POSES, RATES, name), twists(name))
    for C, Cd, V in zip(POSES, RATES, twists(name), strict=True):
        close(twist_from_rate(C, Cd, name), V)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_twists(source, target):
    found = convert_twist(twists(source), POSES, source=source, target=target)
    close(found, twists(target))
    for V, C, wanted in zip(twists(source), POSES, twists(target), strict=True):
        close(convert_twist(V, C, source=source, target=target), wanted)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_wrenches(source, target):
    found = convert_wrench(wrenches(source), POSES, source=source, target=target)
    close(found, wrenches(target))
    for W, C, wanted in zip(wrenches(source), POSES, wrenches(target), strict=True):
        close(convert_wrench(W, C, source=source, target=target), wanted)


@pytest.mark.parametrize(("source", "target"), PAIRS)
def test_jacobians_convert_as_their_columns(source, target):
    J = random(COUNT, 6, 5, seed=45)
    found = convert_jacobian(J, POSES, source=source, target=target)
    for k in range(5):
        close(found[..., k], convert_twist(J[..., k], POSES, source=source, target=target))
    assert convert_jacobian(J[0], POSES[0], source=source, target=target).shape == (6, 5)
    assert convert_jacobian(J[:, :, :0], POSES, source=source, target=target).shape == (COUNT, 6, 0)
