# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Access by names of joints and links, added frames, and the text of a model."""

import numpy as np
import pytest
from mechanisms import ARM_URDF
from reference import assert_close

import mbs_dynamics as mbs
from mbs_dynamics.errors import MbsError
from mbs_dynamics.lie import se3
from mbs_dynamics.model.model import body_wrenches

ARM = mbs.Model.from_urdf(ARM_URDF)
WRENCH = np.array([0.1, -0.2, 0.3, 1.0, 2.0, -3.0])


def test_wrenches_by_link_add_up():
    W = body_wrenches(ARM, {"tool": WRENCH, "upper": WRENCH})
    tool, lower = (body_wrenches(ARM, {link: WRENCH}) for link in ("tool", "lower"))
    same_body = body_wrenches(ARM, {"tool": WRENCH, "lower": WRENCH})
    np.testing.assert_allclose(same_body, tool + lower)
    several = body_wrenches(ARM, {"tool": np.array([WRENCH, 2.0 * WRENCH]), "upper": WRENCH})
    np.testing.assert_allclose(several[0], W)
    two, three = np.array([WRENCH] * 2), np.array([WRENCH] * 3)
    for wrong in ({"tool": two, "upper": three}, {"base": WRENCH}, WRENCH, {"tool": WRENCH[:5]}):
        with pytest.raises(MbsError, match=r"'base'|by_link|tool"):
            body_wrenches(ARM, wrong)


@pytest.mark.parametrize("representation", ["auto", *mbs.REPRESENTATIONS])
def test_algorithms_take_wrenches_by_link_in_any_representation(representation):
    """The torques that hold them are J^T W with the Jacobian of the link, whatever its body."""
    rng, batch = np.random.default_rng(1), (3,)
    q, qd, qdd = rng.normal(size=(3, *batch, ARM.n))
    by_link = {"tool": rng.normal(size=(*batch, 6)), "upper": WRENCH}
    expected = mbs.inverse_dynamics(ARM, q, qd, qdd)
    for link, W in by_link.items():
        expected = expected - np.einsum("...ij,...i->...j", mbs.jacobian(ARM, q, link), W)
    options = {"representation": representation}
    tau = mbs.inverse_dynamics(ARM, q, qd, qdd, by_link, **options)
    np.testing.assert_allclose(tau, expected, atol=1e-11)
    found = mbs.forward_dynamics(ARM, q, qd, tau=tau, wrenches=by_link, **options)
    np.testing.assert_allclose(found, qdd, atol=1e-10)


@pytest.mark.parametrize("parent", ["tool", "upper"])
def test_a_frame_that_is_added_is_one_of_its_body(parent):
    pose = se3.exp(np.array([0.3, -0.4, 0.2, 0.1, 0.2, 0.3]))
    model, state = ARM.with_frame("tcp", parent, pose), ARM.random_state(2)
    q, qd, qdd = state
    C = mbs.forward_kinematics(ARM, q, bodies=[parent])[0] @ pose
    np.testing.assert_allclose(mbs.forward_kinematics(model, q, bodies=["tcp"])[0], C, atol=1e-14)
    to_tcp = se3.Ad(se3.inverse(pose))
    J = mbs.jacobian(model, q, "tcp")
    np.testing.assert_allclose(J, to_tcp @ mbs.jacobian(ARM, q, parent), atol=1e-13)
    rate = mbs.accelerations(model, q, qd, qdd, bodies=["tcp"])[0]
    expected = to_tcp @ mbs.accelerations(ARM, q, qd, qdd, bodies=[parent])[0]
    np.testing.assert_allclose(rate, expected, atol=1e-12)
    hessian = mbs.kinematic_hessian(model, q, "tcp")
    expected = np.einsum("ab,bjk->ajk", to_tcp, mbs.kinematic_hessian(ARM, q, parent))
    np.testing.assert_allclose(hessian, expected, atol=1e-12)
    again = model.with_frame("tip", "tcp", se3.inverse(pose))
    assert_close(again.frames["tip"].placement, ARM.frames[parent].placement, 1e-14)
    loaded = model.with_payload("tcp", 2.0)
    moved = ARM.with_payload(parent, 2.0, com=pose[:3, 3])
    assert_close(mbs.gravity_torques(loaded, q), mbs.gravity_torques(moved, q), 1e-12)


def test_the_text_shows_the_tree():
    held = ARM.with_payload("tool", 1.5)
    _, _, *rows, load = str(held).splitlines()
    assert [row.split()[0] for row in rows] == list(ARM.body_names)
    assert [row.split()[1] for row in rows] == list(ARM.joint_names)
    assert "tool: 1.5 kg" in load
    assert held.total_mass == pytest.approx(ARM.total_mass + 1.5)
