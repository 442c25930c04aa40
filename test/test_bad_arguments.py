# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Wrong arguments of public functions raise an error of this package that names the argument."""

import inspect
from dataclasses import replace

import numpy as np
import pytest
from mechanisms import TREE, random_mechanism
from urdf_reference import tree

import mbs_dynamics as mbs
from mbs_dynamics.algorithms import algorithm_of
from mbs_dynamics.errors import ArgumentError, BackendError, MbsError, ModelError
from mbs_dynamics.model.dh import DHTable
from mbs_dynamics.model.inertia import Inertia
from mbs_dynamics.model.joints import Connection, joint
from mbs_dynamics.resources import robot_path

MODEL = random_mechanism(31, TREE).model
ARM = mbs.Model.from_urdf(robot_path("arm7"))
q, qd, qdd = MODEL.random_state(0)

OPTIONS = {
    "body": ("body3", ["boddy3", "", 3, ["body3"]]),
    "bodies": (["body3"], [["body3", "boddy"], "body3", 3]),
    "joints": (["joint2"], [["nose"], "joint2"]),
    "order": (2, [-1, 1.5, "2"]),
    "representation": ("hybrid", ["hybird", "body-fixed", "", None]),
    "method": ("udut", ["udu", None]),
    "rows": ("linear", ["lateral", (0, 6), (), None]),
    **dict.fromkeys(("relative_to", "measured_at", "resolved_in"), ("body1", ["nose", 3])),
}
"""A valid value of each option of algorithms, and wrong ones."""

every_algorithm = pytest.mark.parametrize("function", mbs.ALGORITHMS, ids=lambda f: f.__name__)


def required(function):
    """Return arrays and options without defaults, by name, all valid."""
    found = algorithm_of(function)
    options = {k: OPTIONS[k][0] for k, v in found.options.items() if v is inspect.Parameter.empty}
    shapes = {x: found.shape(x, MODEL, {**found.options, **options}) for x in found.required}
    given = {name: np.full(shape, 0.1) for name, shape in shapes.items()}
    damping = {"damping": 1.0} if "damping" in found.arrays else {}
    return given | options | damping


def fails(call, name, value, error=MbsError):
    """Demand an error that names the argument, and quotes the value if it is short."""
    with pytest.raises(error) as raised:
        call()
    said = str(raised.value)
    assert name in said or (isinstance(value, str | int | float) and repr(value) in said)


@every_algorithm
def test_wrong_arrays_of_algorithms_are_named(function):
    given = required(function)
    assert function(MODEL, **given) is not None
    for name in algorithm_of(function).required:
        shape = np.shape(given[name])
        wrong = [np.zeros((*shape[:-1], shape[-1] + 1)), np.zeros(shape) + 0j]
        for value in [*wrong, np.full(shape, "0"), np.full(shape, None), None]:
            with pytest.raises(ArgumentError, match=rf"{function.__name__}.*\b{name}\b"):
                function(MODEL, **given | {name: value})
        rest = {key: x for key, x in given.items() if key != name}
        with pytest.raises(ArgumentError, match=rf"{function.__name__}.*'{name}'"):
            function(MODEL, **rest)


@every_algorithm
def test_wrong_options_of_algorithms_are_named(function):
    given = required(function)
    for option in algorithm_of(function).options:
        for value in OPTIONS[option][1]:
            if value is None and option in ("rows", "body") and option not in given:
                continue
            fails(lambda o=option, v=value: function(MODEL, **given | {o: v}), option, value)
    fails(lambda: function(MODEL, **given, gravity=None), "'gravity'", ())
    fails(lambda: mbs.compile(function, MODEL, colour=1), "'colour'", ())
    for wrong in (None, "panda.urdf", mbs.Model):
        fails(lambda w=wrong: function(w, **given), "model", (), ArgumentError)


def test_calls_that_do_not_fit_the_signature():
    for call, name in (
        (lambda: mbs.gravity_torques(MODEL, q, q=q), "'q'"),
        (lambda: mbs.jacobian(MODEL, q, "body3", body="body3"), "'body'"),
        (lambda: mbs.gravity_torques(MODEL, q, "spatial"), "'spatial'"),
        (lambda: mbs.forward_kinematics(MODEL, q, "body3"), "'body3'"),
        (lambda: mbs.bias_torques(MODEL, np.zeros((3, 7)), np.zeros((4, 7))), "qd (4, 7)"),
        (lambda: mbs.compile(np.sin, MODEL), "'sin'"),
        (lambda: mbs.compile("gravity_torque", MODEL), "'gravity_torques'"),
        (lambda: mbs.compile(mbs.bias_torques, MODEL, wrenches=True), "'wrenches'"),
        (lambda: mbs.compile(mbs.gravity_torques, MODEL, backend="lvm"), "'lvm'"),
    ):
        fails(call, name, ())
    before = mbs.gravity_torques(MODEL, q)  # a wrong call leaves the right one as it was
    fails(lambda: mbs.gravity_torques(MODEL, q[:3]), "q", ())
    np.testing.assert_array_equal(mbs.gravity_torques(MODEL, q), before)


EYE, TURNED = np.eye(4), np.diag([1.0, 1.0, -1.0, 1.0])
M = mbs.spatial_inertia(1.0, (0.1, 0.0, 0.0), np.eye(3))
SCREWS = dict(
    parents=[-1, 0], homes=[EYE] * 2, screws=[[0, 0, 1, 0, 0, 0.0]] * 2, M_body=[M] * 2,
)  # fmt: skip
ROW = {"a": 0.1, "d": 0.2, "alpha": 0.3, "mass": 1.0}
AXLE = joint("revolute")
LINK = Connection(name="j", joint=AXLE, body="b", M_body=M)
IN = {"model": ARM, "body": "link7"}
POINTS = {"q": np.zeros(7), **IN}

WRONG = [
    # builders
    (mbs.Model.from_screws, SCREWS | {"frame": "body_fixed"}, {
        "frame": ["spatail"], "parents": [3, [-1, None], [-1, 1], []], "gravity": [9.81, (0, 0)],
        "homes": [EYE, "here", [EYE, TURNED]], "M_body": [np.eye(6), [M, -M]],
        "screws": [np.eye(6), [[0, 0, 2, 0, 0, 0]] * 2, np.zeros((2, 6))],
        "body_names": [["a"], "ab"], "joint_names": [["a", ""]],
    }),
    (mbs.Model.from_dh, {"table": [ROW]}, {
        "table": [7, [7], [{"a": 1.0}], [ROW | {"d": "long"}], [ROW | {"kind": "Revolute"}],
                  [ROW | {"mass": -1.0}], [ROW | {"gear_ratio": 0}], [ROW | {"weight": 1.0}],
                  [ROW | {"position_limits": (2, 1)}], [ROW | {"effort_limit": -5}]],
        "gravity": [(0, 9.81)],
    }),
    (mbs.Model.from_joints, {"connections": [LINK]}, {
        "connections": [None, [{"name": "j"}], [replace(LINK, joint="free")]],
        "gravity": [(0, 1)],
    }),
    (mbs.Model.from_mjcf, {"source": "<mujoco><worldbody><body><joint/><geom size='.1'/></body>"
                                     "</worldbody></mujoco>"}, {
        "source": [7], "leave_out": [["contact"], "tendons"], "gravity": [(0, 1)],
    }),
    (mbs.Model.from_urdf, {"source": tree()}, {
        "source": [None, 7, ["<robot/>"]], "gravity": [(9.81,)], "tip": ["elbow", 3],
        "root": ["elbow", ""],
    }),
    (joint, {"kind": "planar"}, {
        "kind": ["ball", 3], "axis": [[0, 0, 2], [0, 0, 0], [0, 1], [0, 0, np.nan]], "pitch": [0.1],
    }),
    (joint, {"kind": "screw", "pitch": 0.1}, {"pitch": [np.inf, "fine"]}),
    (joint, {"kind": "translation"}, {"axes": [[[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]]]}),
    (mbs.spatial_inertia, {"mass": 1.0, "com": (0, 0, 0), "inertia_at_com": np.eye(3)}, {
        "mass": ["heavy", [1.0], np.nan, -0.5], "com": [(0, 0), (0, 0, np.inf)],
        "inertia_at_com": [np.eye(6), np.nan * np.eye(3), np.triu(np.ones((3, 3))), -np.eye(3)],
    }),
    (Inertia.from_matrix, {"M_body": M}, {
        "M_body": [np.eye(3), np.nan * M, M + np.eye(6, k=3), M - 9.0 * np.eye(6)],
    }),
    # changes of models
    (ARM.with_payload, {"link": "tool", "mass": 1.0}, {
        "link": ["tol", "base_link"], "mass": [-1.0, np.nan, None, [1.0]], "com": [(0, 0)],
        "inertia_at_com": [np.triu(np.ones((3, 3)))],
    }),
    (ARM.with_gravity, {"gravity": (0, 0, 0)}, {"gravity": [(0, 0), 9.81, (0, 0, np.inf), "down"]}),
    (ARM.with_armature, {"by_joint": {"joint1": 0.1}}, {
        "by_joint": [[0.1] * 7], "joint1": [{"joint1": -0.1}, {"joint1": np.nan}],
        "joint9": [{"joint9": 0.1}],
    }),
    (ARM.with_placements, {"poses": {"tool": EYE}}, {
        "poses": [[EYE]], "nose": [{"nose": EYE}], "link2": [{"link2": 2 * EYE}],
    }),
    (ARM.with_frame, {"name": "tcp", "parent": "tool", "pose": EYE}, {
        "parent": ["tol"], "pose": [np.ones((4, 4)), np.eye(3)], "name": ["", "link2"],
    }),
    (ARM.locked, {"positions": {"joint1": 0.0}}, {
        "positions": [["joint1"]], "joint9": [{"joint9": 0.0}], "joint1": [{"joint1": np.nan}],
    }),
    (ARM.attached, {"tool": MODEL, "to": "tool"}, {"to": ["tol"], "placement": [np.eye(3)]}),
    (ARM.vector, {"values": {"joint1": 0.0}}, {
        "values": [[1.0, 2.0]], "joint9": [{"joint9": 1.0}], "joint1": [{"joint1": np.nan}],
    }),
    (ARM.joint, {"name": "joint1"}, {"name": ["jiont1", 3]}),
    (ARM.screws, {}, {"frame": ["body"]}),
    # functions of models
    (mbs.inverse_kinematics, {"target": EYE, **IN}, {
        "target": [np.zeros(7), 1.0, None, "home", 1j * EYE, TURNED, np.nan * EYE],
        "q0": [np.zeros(6), np.full(7, np.nan)], "starts": [0, 1.5, True], "seed": [-1],
        "max_iterations": [0], "angular_tolerance": [0.0, np.nan], "linear_tolerance": [-1e-3],
        "weights": [(1, 1, 1), (1, 1, -1, 1, 1, 1), np.zeros(6)], "body": ["hand", None],
        "point": [(0, 1)],
    }),
    (mbs.inverse_differential_kinematics, {"V": np.zeros(6), "damping": 0.1, **POINTS}, {
        "q": [[0.0] * 6, [np.nan] * 7], "V": [[0.0] * 5, "fast"], "damping": [-0.1, np.nan],
        "twist_weights": [[1.0] * 5, [-1.0] * 6], "joint_weights": [[0.0] * 7],
        "null_space_velocity": [[0.0] * 6], "body": ["hand"], "representation": ["world"],
    }),
    (mbs.manipulability, POINTS, {
        "q": [np.zeros(3), [np.nan] * 7, None], "body": ["hand", "base_link"], "model": [()],
        "rows": ["none", (0, 6), (0, 0), ()],
    }),
    *((f, {name: np.zeros((6, 6)), "C": EYE, "source": "hybrid", "target": "mixed"}, {
        "source": ["auto", "world"], "target": ["xy"], name: [np.zeros(5)], "C": [np.eye(3)],
    }) for f, name in ((mbs.convert_twist, "V"), (mbs.convert_wrench, "W"),
                       (mbs.convert_jacobian, "J"))),
    (mbs.twist_from_rate, {"C": EYE, "Cd": EYE, "representation": "hybrid"}, {
        "representation": ["auto"], "Cd": [np.zeros(4)],
    }),
    (mbs.change_of_body_frame, {"C": EYE, "S": EYE, "representation": "hybrid"}, {
        "C": [np.eye(3)], "S": [np.eye(6)], "representation": ["auto"],
    }),
    (mbs.inverse_dynamics, {"model": MODEL, "q": q, "qd": qd, "qdd": qdd}, {
        "wrenches": [np.zeros((6, 6)), np.zeros(42)], "base_twist": [np.zeros(3)],
        "base_acceleration": [np.zeros((2, 3))], "body9": [{"body9": np.zeros(6)}],
    }),
    (mbs.operational_space_inertia, {"model": ARM, "q": np.full(7, 0.3), "body": "tool"}, {
        "damping": [-0.1, np.nan, "little"], "body": ["base_link"],
    }),
]  # fmt: skip
"""Functions, valid arguments, and wrong values by argument, or by the key that is wrong in one."""


@pytest.mark.filterwarnings("ignore::mbs_dynamics.ModelWarning")
@pytest.mark.parametrize(
    ("function", "good", "wrong"), WRONG, ids=lambda f: getattr(f, "__name__", "")
)
def test_wrong_arguments_are_named(function, good, wrong):
    parameters = inspect.signature(function).parameters
    for name, values in wrong.items():
        argument = name if name in parameters else next(
            x for x in (*parameters, "by_joint") if x in ("by_joint", "poses", "positions",
                                                          "values", "wrenches", "matrix", "M")
        )  # fmt: skip
        for value in values:
            fails(lambda a=argument, x=value: function(**good | {a: x}), name, value)


def test_names_of_a_model_are_unique_and_tables_are_whole():
    for call, said in (
        (lambda: mbs.Model.from_screws(**SCREWS, frame="spatial", body_names=["a", "a"]), "'a'"),
        (lambda: mbs.Model.from_joints([LINK, replace(LINK, body="c")]), "joint names"),
        (lambda: mbs.Model.from_dh(DHTable((ROW,), body_names=("a", "b"))), "body_names"),
        (lambda: mbs.Model.from_dh(DHTable((ROW,), convention="craig")), "'craig'"),
        (lambda: ARM.attached(ARM, "tool"), "base_link"),
        (lambda: mbs.Model.from_dh([]), "body that moves"),
    ):
        with pytest.raises(MbsError, match=said):
            call()


def test_errors_are_of_this_package_and_of_the_kind_that_callers_expect():
    unknown = mbs.UnknownRepresentationError, mbs.UnknownBackendError
    expected = dict.fromkeys((ArgumentError, ModelError, *unknown), ValueError)
    expected |= {mbs.UnknownBodyError: LookupError, BackendError: RuntimeError}
    for error, builtin in expected.items():
        assert issubclass(error, MbsError)
        assert issubclass(error, builtin)


def test_a_misspelled_backend_in_the_environment(monkeypatch):
    model = random_mechanism(32, [-1, 0, 1]).model
    monkeypatch.setenv("MBS_BACKEND", "pyhton")
    with pytest.raises(mbs.UnknownBackendError, match=r"'pyhton'.*'python'"):
        mbs.gravity_torques(model, np.zeros(3))
