# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Algorithms that users write: their arrays are declared by annotation."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import pytest
from numpy.typing import ArrayLike

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm
from mbs_dynamics.representation.tree import Tree
from mbs_dynamics.resources import robot_path

FORCE = np.array([1.0, 2.0, 3.0])


@pytest.fixture
def arm():
    return mbs.Model.from_urdf(robot_path("arm7"))


@algorithm(invariant=True)
def push_torques(model: Tree, q: ArrayLike, force: Annotated[ArrayLike, (3,)], body: str):
    """Return the torques of a force at a body."""
    return mbs.jacobian(model, q, body, representation="hybrid")[3:].T @ force


def test_an_array_that_changes_is_compiled_once(arm):
    q = np.linspace(0.1, 0.7, 7)
    J = mbs.jacobian(arm, q, "link7", representation="hybrid")[3:]
    before = len(arm.compiled.kernels)
    for k in range(1, 6):
        found = push_torques(arm, q, k * FORCE, "link7")
        np.testing.assert_allclose(found, J.T @ (k * FORCE), atol=1e-12)
    forces = np.arange(12.0).reshape(4, 3)
    np.testing.assert_allclose(push_torques(arm, q, forces, "link7"), forces @ J, atol=1e-12)
    assert len(arm.compiled.kernels) == before + 1


def test_arrays_of_any_name_are_compiled_together_and_exported(arm, tmp_path):
    both = mbs.compile_together([(push_torques, {"body": "link7"}), mbs.gravity_torques], arm)
    assert [port.name for port in both.inputs] == ["q", "force", "gravity"]
    q = np.linspace(0.1, 0.7, 7)
    np.testing.assert_allclose(both(q, FORCE)[0], push_torques(arm, q, FORCE, "link7"))


@pytest.mark.parametrize(
    "annotation", [None, ArrayLike, *(Annotated[ArrayLike, x] for x in ("3", ("m",)))]
)
def test_an_array_without_a_valid_shape_is_refused(annotation):
    def push(model, force):
        return force

    if annotation is not None:
        push.__annotations__["force"] = annotation
    with pytest.raises(mbs.ArgumentError, match="force"):
        algorithm(invariant=True)(push)


@pytest.mark.parametrize("force", [FORCE, [1.0, 2.0], 2.0])
def test_floats_in_place_of_an_option_are_refused(arm, force):
    @algorithm(invariant=True)
    def push(model, q: ArrayLike, force: tuple[float, ...]):
        return q

    with pytest.raises(mbs.ArgumentError, match=r"(?s)force is an option.*Annotated\[ArrayLike"):
        push(arm, np.zeros(7), force)


def test_a_float_is_declared_as_an_array_without_axes(arm):
    @algorithm(invariant=True)
    def springs(model, q: ArrayLike, stiffness: Annotated[ArrayLike, ()]):
        return -(stiffness * np.asarray(q))

    q = np.linspace(0.1, 0.7, 7)
    np.testing.assert_array_equal(springs(arm, q, 3.0), -3.0 * q)
    np.testing.assert_array_equal(springs(arm, q, [1.0, 2.0]), [-q, -2.0 * q])
