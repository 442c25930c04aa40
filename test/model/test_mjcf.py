# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Models of MJCF: MuJoCo on the trees of gymnasium, at random, and on URDFs; bad input."""

import sys

import mujoco
import numpy as np
import pytest
from mjcf_trees import differences, gymnasium_files, random_mjcf
from reference import assert_close

import mbs_dynamics as mbs

pytestmark = pytest.mark.filterwarnings("ignore::mbs_dynamics.ModelWarning")
WORLD = "<mujoco>{}<worldbody>{}</worldbody>{}</mujoco>"
BALL = '<geom size="0.1"/>'
TWO = f'<body name="a"><joint name="j"/>{BALL}<body name="b"><joint name="k"/>{BALL}</body></body>'
CONNECT = '<equality><connect name="loop" body1="a" body2="b" anchor="0 0 0"/></equality>'
TENDON = '<tendon><fixed name="cable"><joint joint="j" coef="1"/></fixed></tendon>'
FLEX = '<deformable><flex name="cloth" dim="1" body="a b" element="0 1"/></deformable>'
REFUSED = [("equality", CONNECT, "loop"), ("tendon", TENDON, "cable"), ("flex", FLEX, "cloth")]


@pytest.fixture(autouse=True)
def _where_mujoco_writes_its_log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def mjcf(bodies, options="", after=""):
    return mbs.Model.from_mjcf(WORLD.format(options, bodies, after))


def assert_same(model, m, seed):
    found = differences(model, m, seed)
    assert max(found.values()) < 1e-10, found


@pytest.mark.parametrize("name", gymnasium_files() or [pytest.param("", marks=pytest.mark.skip)])
def test_robots_of_gymnasium_are_those_of_mujoco(name):
    m = mujoco.MjModel.from_xml_path(str(gymnasium_files()[name]))
    model = mbs.Model.from_mjcf(gymnasium_files()[name], leave_out=("tendon",))
    assert_same(model, m, 1)


@pytest.mark.parametrize("seed", range(8))
def test_random_trees_are_those_of_mujoco(seed):
    """Hinges, slides, balls and free joints, up to three in a body, with references."""
    m = mujoco.MjModel.from_xml_string(random_mjcf(seed))
    assert m.nv
    assert_same(mbs.Model.from_mjcf(random_mjcf(seed)), m, seed)


def test_all_that_a_joint_states_arrives():
    model = mjcf(
        '<body name="a"><joint name="turn" range="-90 45" class="strong"/>'
        '<joint name="slide" type="slide" axis="1 0 0" actuatorfrcrange="-3 4"/>'
        f'{BALL}<site name="a" pos="0 0 1"/><body name="b"><site name="tip" pos="0 2 0"/></body>'
        "</body>",
        '<option gravity="0 1 2"/><default><default class="strong"><joint armature="0.1" '
        'damping="0.2" frictionloss="0.3" limited="true"/></default></default>',
        '<actuator><motor joint="turn" gear="50" forcerange="-2 2" forcelimited="true"/>'
        "</actuator>",
    )
    assert model.joint_names == ("turn", "slide")
    assert model.body_names == ("a/turn", "a")
    assert_close(model.armature, [0.1, 0.0])
    assert_close(model.damping, [0.2, 0.0])
    assert_close(model.friction, [0.3, 0.0])
    assert (model.lower[0], model.upper[0]) == pytest.approx((-np.pi / 2, np.pi / 4))
    assert_close(model.effort_limits, [100.0, 4.0])
    assert_close(model.gravity, [0.0, 1.0, 2.0])
    assert model.frames["a_site"].placement[2, 3] == 1.0
    assert model.frames["tip"].placement[1, 3] == 2.0
    notes = [str(note) for note in model.diagnostics]
    assert any("'b'" in note and "merged into link 'a'" in note for note in notes)


def test_names_that_are_missing_are_numbered_and_those_of_sites_unique():
    model = mjcf(f'<body><joint/>{BALL}<site name="body1"/></body>')
    assert model.joint_names == ("joint0",)
    assert model.body_names == ("body1",)
    assert "body1_site" in model.frames


def test_sources_are_paths_text_and_compiled_models(tmp_path):
    text = WORLD.format("", TWO, "")
    (tmp_path / "part.xml").write_text(f"<mujoco>{TWO}</mujoco>")
    (tmp_path / "whole.xml").write_text(WORLD.format("", '<include file="part.xml"/>', ""))
    m = mujoco.MjModel.from_xml_string(text)
    mujoco.mj_saveModel(m, str(tmp_path / "m.mjb"), None)
    expected = mbs.Model.from_mjcf(text)
    for source in (m, tmp_path / "whole.xml", str(tmp_path / "m.mjb")):
        assert mbs.Model.from_mjcf(source) == expected
    heavy = mbs.Model.from_mjcf(m, gravity=(0.0, 0.0, -1.62))
    assert heavy == expected.with_gravity((0.0, 0.0, -1.62))


@pytest.mark.parametrize(("kind", "after", "name"), REFUSED)
def test_what_no_tree_has_is_refused_by_name_or_left_out_with_a_warning(kind, after, name):
    with pytest.raises(mbs.ModelError, match=f"{name}.*leave_out.*{kind}"):
        mjcf(TWO, after=after)
    with pytest.warns(mbs.ModelWarning, match=name):
        model = mbs.Model.from_mjcf(WORLD.format("", TWO, after), leave_out=[kind])
    assert mbs.mass_matrix(model, [0.1, 0.2]).shape == (2, 2)


LIMITED = f'<body><joint name="s" type="ball" range="0 1" limited="true"/>{BALL}</body>'


@pytest.mark.parametrize(
    ("bodies", "options", "said"),
    [
        (TWO.replace('name="k"', 'name="k" stiffness="2"'), "", "springs.*k"),
        (TWO.replace('name="b"', 'name="b" gravcomp="1"'), "", "gravity compensation.*b"),
        (TWO, '<option density="1000"/>', "fluid.*density"),
        (LIMITED, "", "s.*r"),
    ],
)
def test_passive_forces_that_are_left_out_are_listed(bodies, options, said):
    with pytest.warns(mbs.ModelWarning, match=said):
        mjcf(bodies, f"{options}<compiler angle='radian'/>")


def test_armature_of_free_joints():
    """The angular part is in the body; the linear one is in the world in MuJoCo, so in M alone."""
    body = f'<body><joint type="free" name="f" armature="1"/>{BALL}</body>'
    m = mujoco.MjModel.from_xml_string(WORLD.format("", body, ""))
    for k, armature in enumerate(([0, 0, 0, 2, 3, 4], [5, 5, 5, 2, 3, 4], [7, 5, 5, 2, 3, 4])):
        m.dof_armature[:] = armature
        mujoco.mj_setConst(m, mujoco.MjData(m))
        if k == 0:
            assert_same(mbs.Model.from_mjcf(m), m, 0)
        elif k == 1:
            with pytest.warns(mbs.ModelWarning, match=r"'f'.*linear armature"):
                assert differences(mbs.Model.from_mjcf(m), m, 0)["mass matrix"] < 1e-10
        else:
            with pytest.raises(mbs.ModelError, match=r"'f'.*7\.0"):
                mbs.Model.from_mjcf(m)


def test_without_mujoco_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(mbs.BackendError, match="mjcf"):
        mbs.Model.from_mjcf("<mujoco/>")


def test_states_convert_there_and_back_in_batches():
    model = mbs.Model.from_mjcf(random_mjcf(3))
    assert {"free", "spherical"} <= {joint.kind for joint in model.joints}
    q = np.stack([model.random_state(k).q for k in range(4)])
    qd, qdd, tau = np.random.default_rng(0).normal(size=(3, 4, model.n))
    there = mbs.to_mujoco(model, q, qd, qdd, tau)
    for back, given in zip(mbs.from_mujoco(model, *there), (q, qd, qdd, tau), strict=True):
        assert_close(back, given)
    assert_close((there.qfrc * there.qvel).sum(-1), (tau * qd).sum(-1))  # power
    one = mbs.to_mujoco(model, q[0], qd[:2])
    assert one.qpos.shape == (2, model.nq)
    assert_close(one.qvel[0], there.qvel[0])
    with pytest.raises(mbs.ArgumentError, match=r"qdd.*qd"):
        mbs.to_mujoco(model, q, qdd=qdd)
    with pytest.raises(mbs.ArgumentError, match=r"qpos.*\(3,\)"):
        mbs.from_mujoco(model, np.zeros(3))
    planar = mbs.joints.joint("planar")
    other = mbs.Model.from_joints([mbs.joints.Connection(name="slide", joint=planar, body="body")])
    with pytest.raises(mbs.ModelError, match="'slide'"):
        mbs.to_mujoco(other, np.zeros(3))
