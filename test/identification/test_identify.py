# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Identification of an arm whose truth is known, and what is refused."""

import re
import warnings
from dataclasses import replace

import numpy as np
import pytest
from identification_bench import (
    COULOMB,
    JOINTS,
    MOTORS,
    OFFSETS,
    TRUE,
    VISCOUS,
    motion,
    recorded,
    torques,
    with_still_joints,
    wrong,
)

import mbs_dynamics as mbs
from mbs_dynamics.identification import identified_urdf, identify, node_parameters, report
from mbs_dynamics.identification.estimation import base_estimate, least_squares_residual
from mbs_dynamics.identification.signals import cutoff_of, filtered
from mbs_dynamics.identification.torque_model import TorqueModel
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.entry_points import interface_of
from mbs_dynamics.timeseries import TimeSeries, TimeSeriesError


@pytest.fixture(scope="module")
def found():
    return identify(wrong(), [recorded(1), recorded(2)], recorded(3))


@pytest.mark.long
def test_torques_are_right_on_motions_that_were_not_learned_from(found):
    assert found.errors.description > 0.1
    assert found.errors.description_with_friction > 0.05
    assert found.errors.identified < 0.01
    assert found.better
    t = np.linspace(0.0, 10.0, 200)
    q, qd, qdd = motion(t, 4)
    tau, expected = (mbs.inverse_dynamics(m, q, qd, qdd) for m in (found.model, TRUE))
    error = np.linalg.norm(tau - expected - MOTORS * qdd) / np.linalg.norm(expected)
    assert error < 0.02


def test_every_link_can_exist_and_friction_is_found(found):
    assert found.consistent
    for body in found.model.bodies:
        assert not body.inertia.violations()
    coulomb, viscous = (
        np.array([one[term] for one in found.joint_parameters.values()])
        for term in ("coulomb", "viscous")
    )
    np.testing.assert_allclose(coulomb, COULOMB, atol=0.03)
    np.testing.assert_allclose(viscous, VISCOUS, atol=0.03)
    assert found.model.joint("joint2").friction == coulomb[1]


def test_columns_that_are_zero_but_for_rounding_are_not_fitted():
    rng = np.random.default_rng(0)
    X, b = rng.normal(size=(50, 2, 3)), rng.normal(size=(50, 2))
    expected = least_squares_residual(X, b)
    for rounding in (0.0, 1e-15 * b[..., None]):
        columns = np.concatenate([X, np.zeros((50, 2, 1)) + rounding], axis=-1)
        np.testing.assert_allclose(least_squares_residual(columns, b), expected, atol=1e-9)


def test_base_parameters_are_those_of_the_truth_within_what_is_stated():
    """In more trials by benchmarks/identification.py."""
    model, inside, count = wrong(), 0, 0
    for seed in range(4):
        recording = recorded(10 + seed, noise=0.02)
        cutoff = cutoff_of([recording])
        torque_model = TorqueModel(model, JOINTS, 0.05)
        equations = torque_model.equations(filtered(recording, cutoff), cutoff)
        base = base_estimate(torque_model, [equations])
        own = [COULOMB, VISCOUS, MOTORS, OFFSETS]
        truth = np.concatenate([mbs.inertial_parameters(TRUE), np.stack(own, axis=1).ravel()])
        errors = (base.values - base.combination @ truth) / base.deviations
        inside += int((np.abs(errors) < 3.0).sum())
        count += errors.size
        assert np.isfinite(base.deviations).all()
    assert inside >= 0.95 * count


def test_what_the_motion_does_not_show_stays_near_the_description():
    """Only the last three joints move; the first link is not seen at all."""
    recording = recorded(5)
    q, qd, qdd = with_still_joints(recording, slice(4))
    still = replace(recording, q=q, qd=qd, tau=torques(q, qd, qdd))
    model = wrong()
    found = identify(model, [still])
    assert found.consistent
    assert found.base.rank < len(found.base.values)
    assert np.isinf(found.base.deviations).any()
    first = model.bodies[0].inertia
    np.testing.assert_allclose(found.inertial[0][0], first.mass, rtol=1e-6)


def test_the_written_description_has_the_identified_torques_and_nothing_else_changes(
    found, tmp_path
):
    source = robot_path("arm7")
    written = identified_urdf(source, found)
    path = tmp_path / "identified.urdf"
    path.write_bytes(written)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = mbs.Model.from_urdf(path)
    rng = np.random.default_rng(3)
    q, qd, qdd = rng.normal(size=(3, 20, 7))
    expected = mbs.inverse_dynamics(found.model, q, qd, qdd)
    back = back.with_armature(
        dict(zip(found.model.joint_names, found.model.armature.tolist(), strict=True))
    )  # which no URDF states
    np.testing.assert_allclose(mbs.inverse_dynamics(back, q, qd, qdd), expected, atol=1e-9)
    assert [j.friction for j in back.joints] == [j.friction for j in found.model.joints]

    def others(data):
        lines = data.decode().splitlines()
        words = ("<inertia", "<mass", "</inertial", "<origin", "<dynamics")
        return [line for line in lines if not line.strip().startswith(words)]

    assert others(written) == others(source.read_bytes())


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "latin-1"])
@pytest.mark.parametrize("prefix", ["", "r:"])
def test_descriptions_in_other_encodings_and_with_prefixes_are_written_readable(
    found, encoding, prefix, tmp_path
):
    text = re.sub(r"<(/?)(?=[a-z])", rf"<\1{prefix}", robot_path("arm7").read_text("utf-8"))
    text = text.replace(f"<{prefix}robot", f'<{prefix}robot xmlns:r="urn:of_robots"', 1)
    text = text.replace("<?" + prefix, "<?").replace('name="arm7"', 'name="Ärmchen"')
    stated = "iso-8859-1" if encoding == "latin-1" else encoding[:6]
    text = f'<?xml version="1.0" encoding="{stated}"?>\n' + re.sub(r"^<\?xml.*?\?>\s*", "", text)
    source, out = tmp_path / "source.urdf", tmp_path / "out.urdf"
    source.write_bytes(text.encode(encoding))
    out.write_bytes(identified_urdf(source, found))
    back = mbs.Model.from_urdf(out)
    assert back.name == "Ärmchen"
    q = np.random.default_rng(3).normal(size=(20, 7))
    expected = mbs.gravity_torques(found.model, q)
    np.testing.assert_allclose(mbs.gravity_torques(back, q), expected, atol=1e-9)
    assert [j.damping for j in back.joints] == [j.damping for j in found.model.joints]


@pytest.mark.long
def test_links_without_elements_get_them(tmp_path):
    text = """<?xml version='1.0'?>
<!-- before -->
<robot name="two">
  <link name="base"/>
  <link name="arm"/>
  <link name="tool"><inertial><origin xyz="0 0 0.1"/><mass value="0.1"/>
    <inertia ixx="1e-4" iyy="1e-4" izz="1e-4" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 1 0"/>
    <limit lower="-2" upper="2" effort="50" velocity="3"/></joint>
  <joint name="flange" type="fixed"><parent link="arm"/><child link="tool"/>
    <origin xyz="0 0 0.5"/></joint>
</robot>
"""
    path = tmp_path / "two.urdf"
    path.write_text(text, encoding="utf-8")
    model = mbs.Model.from_urdf(path)
    heavy = model.with_payload("arm", 3.0, (0.0, 0.05, 0.3), 0.02 * np.eye(3)).loaded()
    t = np.arange(0.0, 15.0, 0.005)
    q = np.stack([1.5 * np.sin(1.3 * t) * np.cos(0.4 * t)], axis=1)
    qd = np.gradient(q, t, axis=0)
    tau = mbs.inverse_dynamics(heavy, q, qd, np.gradient(qd, t, axis=0)) + 0.4 * qd
    stated = TimeSeries(t, ("hinge",), q, qd, tau=tau, declared=frozenset({"tau"}))
    found = identify(model, [stated])
    assert found.errors.identified < 0.05  # the description has a thirtieth of the mass
    out = tmp_path / "out.urdf"
    out.write_bytes(identified_urdf(path, found))
    written = out.read_text(encoding="utf-8")
    assert "<!-- before -->" in written
    assert '<link name="arm">\n    <inertial>' in written
    # the hinge shows moments, not the mass: the body without the tool's own could not exist
    assert written.count("<inertial>") == 1
    assert "<dynamics damping=" in written
    back = mbs.Model.from_urdf(out)
    g = mbs.gravity_torques(back, [[0.3], [1.0]])
    np.testing.assert_allclose(g, mbs.gravity_torques(found.model, [[0.3], [1.0]]), atol=1e-9)
    np.testing.assert_allclose(g, mbs.gravity_torques(heavy, [[0.3], [1.0]]), rtol=0.1)


@pytest.mark.long
def test_node_parameters_and_the_report(found):
    yaml = pytest.importorskip("yaml")
    given = yaml.safe_load(node_parameters(found))
    assert len(given) == 2
    for node, groups in given.items():
        known = {one.name for one in interface_of(node.rpartition("/")[2]).parameters}
        assert set(groups["ros__parameters"]) <= known
    armature = given["/**/impedance_control_node"]["ros__parameters"]["armature"]
    assert armature["joint1"] == pytest.approx(
        found.joint_parameters["joint1"]["inertia"], rel=1e-5
    )
    assert len(given["/**/simulator_node"]["ros__parameters"]["joint_damping"]) == 7
    page = report(found, "arm <7>")
    assert "arm &lt;7&gt;" in page
    assert page.count("<svg") == 1
    assert all(f"<!-- {name}: " in page for name in JOINTS)
    assert page.count("<!-- N m -->") == 7
    assert page.index("What to record next") < page.index("Identifiable parameters")
    assert mbs.__version__ in page
    assert not re.search(r"""(src|href)=["']https?:""", page.replace("xlink:href", "xlink"))


def test_without_velocities_it_is_nearly_as_good():
    found = identify(wrong(), [recorded(1, velocities=False)])
    assert found.errors.identified < 0.015
    assert any("three tenths were held out" in note for note in found.notes)


def test_recordings_of_different_joints_are_refused():
    one = recorded(1, duration=12.0)
    fewer = one.of_joints(JOINTS[:6])
    for recordings in (([one, fewer],), ([one], fewer), ([],)):
        with pytest.raises(TimeSeriesError):
            identify(TRUE, *recordings)


def test_what_is_too_short_for_the_filter_is_refused():
    short = recorded(1, duration=0.4)
    with pytest.raises(TimeSeriesError, match=r"0\.395 s"):
        identify(TRUE, [short])


@pytest.mark.long
def test_a_description_without_inertials_is_identified_and_said():
    bodies = tuple(replace(body, inertia=Inertia.zero()) for body in TRUE.bodies)
    found = identify(replace(TRUE, bodies=bodies), [recorded(1)], recorded(2))
    assert any("states no mass of link1, link2" in note for note in found.notes)
    assert found.errors.description == pytest.approx(1.0)
    assert found.errors.identified < 0.05
    assert found.consistent
