# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The exported package of a ros2_control controller: its files, its C, and its digest."""

import ctypes
import shutil
import subprocess
from xml.etree import ElementTree

import numpy as np
import pytest
import yaml
from made_once import made_once
from random_periods import ARM as PLAIN_ARM
from random_periods import MODEL, N

import mbs_dynamics as mbs
from mbs_dynamics.bridges.controller_package import (
    check_controller,
    description_digest,
    export_controller,
)
from mbs_dynamics.cli import main
from mbs_dynamics.control.period.function import Period
from mbs_dynamics.control.period.laws import FLOAT, JOINT, LINK
from mbs_dynamics.errors import ArgumentError, ModelError, UnknownJointError
from mbs_dynamics.lie import so3
from mbs_dynamics.ros.compensation.impedance import ImpedanceControlSettings
from mbs_dynamics.settings import parameters_of

ARM = PLAIN_ARM.replace(
    "</robot>",
    """<link name="tool"/><joint name="mount" type="fixed"><parent link="lower"/>
<child link="tool"/><origin xyz="0.1 -0.2 0.3" rpy="0.3 -0.5 0.7"/></joint></robot>""",
)
HEAVIER = ARM.replace('mass value="2"', 'mass value="3"')


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    folder = made_once(
        tmp_path_factory, "controller", lambda x: export_controller(ARM, x, ["elbow", "shoulder"])
    )
    return folder / "three_guarded_controller"


@pytest.mark.long
def test_files_name_the_package_and_are_well_formed(package):
    assert package.name == "three_guarded_controller"
    assert ElementTree.parse(package / "package.xml").findtext("name") == package.name
    library = ElementTree.parse(package / "guarded_controller.xml").getroot()
    assert library.get("path") == package.name
    kind = library.find("class").get("name")
    assert library.find("class").get("type") == kind.replace("/", "::")
    config = yaml.safe_load((package / "config" / "ros2_controllers.yaml").read_text())
    manager = config["controller_manager"]["ros__parameters"]
    assert manager["guarded_controller"]["type"] == kind
    assert set(manager["guarded_controller"]["fallback_controllers"]) < manager.keys()
    holding = config["holding_controller"]["ros__parameters"]
    assert holding["joints"] == ["elbow", "shoulder"]
    compile((package / "launch" / "mock.launch.py").read_text(), "mock.launch.py", "exec")


AMENT = """
macro(generate_parameter_library name)
  add_library(${name} INTERFACE)
endmacro()
macro(pluginlib_export_plugin_description_file category file)
  if(NOT EXISTS "${CMAKE_CURRENT_SOURCE_DIR}/${file}")
    message(FATAL_ERROR "${file} does not exist")
  endif()
endmacro()
macro(ament_add_gtest name)
  add_executable(${name} ${ARGN})
endmacro()
macro(ament_package)
endmacro()
"""


@pytest.mark.process
@pytest.mark.skipif(None in map(shutil.which, ("cmake", "g++")), reason="needs cmake and g++")
def test_cmake_configures_the_package_with_what_its_manifest_declares(package, tmp_path):
    """With stubs of the packages that package.xml depends on; targets of others do not exist."""
    tags = ("buildtool_depend", "depend", "test_depend")
    manifest = ElementTree.parse(package / "package.xml").getroot()
    declared = [one.text for tag in tags for one in manifest.findall(tag)]
    for name in ("TinyXML2", *declared):
        target = "tinyxml2" if name == "TinyXML2" else name
        config = tmp_path / "stubs" / name / f"{name}Config.cmake"
        config.parent.mkdir(parents=True)
        stub = f"add_library({target}::{target} INTERFACE IMPORTED)\n"
        config.write_text(stub + AMENT * (name == "ament_cmake"))
    given = ["cmake", "-S", package, "-B", tmp_path / "build", "-DBUILD_TESTING=ON"]
    options = [f"-DCMAKE_PREFIX_PATH={tmp_path / 'stubs'}", "--no-warn-unused-cli", "-Wno-dev"]
    done = subprocess.run([*given, *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr


def test_parameters_are_those_in_python(package):
    """With their names, defaults and ranges, except where a control loop differs."""
    stated = yaml.safe_load((package / "src" / "parameters.yaml").read_text())["guarded_controller"]
    declared = {one.name: one for one in parameters_of(ImpedanceControlSettings)}
    joints, fixed = stated.pop("fixed_joints"), stated.pop("fixed_positions")
    assert joints["default_value"] == fixed["default_value"] == []  # of which Python makes pairs
    assert stated.keys() <= declared.keys()
    for name, row in stated.items():
        one, default = declared[name], row.get("default_value")
        if name == "on_fault":
            assert default is None  # whether a controller can hold the arm is for users to say
            continue
        if name == "mode":
            assert default in one.choices
        elif one.per == "joint" or name == "joints":
            assert default == []
        elif name == "stale_timeout":
            assert default == 0.0  # counted in periods, which a node does not know
            assert row["validation"]["bounds<>"] == [0.0, one.range[1]]
            continue
        else:
            assert default == (list(one.default) if row["type"] == "double_array" else one.default)
        checked = row.get("validation", {})
        bounds = checked.get("bounds<>", checked.get("element_bounds<>"))
        assert bounds is None or tuple(bounds) == one.range, name


def test_mock_hardware_has_the_interfaces_of_the_joints(package):
    system = ElementTree.parse(package / "urdf" / "mock.urdf").getroot().find("ros2_control")
    commands = {
        joint.get("name"): {one.get("name") for one in joint.findall("command_interface")}
        for joint in system.findall("joint")
    }
    both = {"position", "effort"}
    assert commands == {"shoulder": both, "elbow": both, "wrist": set()}


DRIVER = """
#include <algorithm>
#include "frames.hpp"
#include "words.hpp"

using namespace three;

extern "C" const char * load_on(const char * link, double * load)
{
  static std::string message;
  message.clear();
  try {
    Load given;
    std::copy_n(load, 10, given.begin());
    std::copy_n(load_parameters(moving_link(link), given).begin(), 10, load);
  } catch (const std::exception & error) {
    message = error.what();
  }
  return message.c_str();
}

extern "C" const char * axes(const double * quaternion, double * axes)
{
  const auto given = axes_of(quaternion[0], quaternion[1], quaternion[2], quaternion[3]);
  std::copy_n(given[0].begin(), 9, axes);
  return "";
}

extern "C" const char * fault(const guarded_State * state)
{
  static std::string words;
  words = fault_of(*state);
  return words.c_str();
}
"""
"""The C++ of the package that needs no ROS, for Python."""


@pytest.fixture(scope="module")
def library(package, tmp_path_factory):
    folder = made_once(tmp_path_factory, "controller_code", lambda x: compile_code(package, x))
    return ctypes.CDLL(str(folder / "code.so"))


def compile_code(package, folder):
    warns = ["-pedantic", "-Wall", "-Wextra", "-Werror", "-fPIC"]
    sources, period = package / "src", folder / "period.o"
    (folder / "driver.cpp").write_text(DRIVER)
    given = ["gcc", "-std=c99", *warns, "-c", sources / "guarded_period.c", "-o", period]
    subprocess.run(given, check=True)
    given = ["g++", "-std=c++17", *warns, "-shared", "-DGUARDED_PACKAGE=three", "-I", sources]
    files = [folder / "driver.cpp", sources / "frames.cpp", sources / "words.cpp", period, "-lm"]
    subprocess.run([*given, *files, "-o", folder / "code.so"], check=True)


def pointer(array):
    return array.ctypes.data_as(ctypes.c_void_p)


COMPILERS = shutil.which("gcc") and shutil.which("g++")
needs_compilers = pytest.mark.skipif(not COMPILERS, reason="needs gcc and g++")


@pytest.mark.process
@needs_compilers
def test_the_period_in_c_gives_the_test_vectors(package, library):
    """The vectors are of Python; the gtest of the package makes the same comparison."""
    code, layouts = library, Period(MODEL)  # whose records are the same
    code.fault.restype = ctypes.c_char_p
    words = set()
    kind = ctypes.c_double * layouts.state.size
    state = np.array(kind.in_dll(code, "guarded_initial"))
    output, verdict = np.zeros(layouts.output.size), np.zeros(layouts.verdict.size)
    rows = np.loadtxt(package / "test" / "vectors.txt")
    for row in rows:
        request, sample = np.split(row[: -N - 2], [layouts.request.size])
        after = np.zeros_like(state)
        given = map(pointer, (state, sample.copy(), request.copy()))
        results = map(pointer, (after, output, verdict))
        code.guarded_period(*given, code.guarded_settings, *results)
        state = after
        words.add(code.fault(pointer(state)).decode())
        found = layouts.state.unpacked(state)
        np.testing.assert_array_equal([found.mode, found.fault], row[-N - 2 : -N])
        np.testing.assert_allclose(output[:N], row[-N:], atol=1e-9)
    modes, torques = rows[:, -N - 2], rows[:, -N:]
    assert words == {"", (package / "test" / "fault.txt").read_text().strip()}
    assert set(modes) == {0.0, 1.0, 2.0, 3.0, 4.0, 5.0}
    assert np.all(np.any(torques != 0.0, axis=0) == [True, True, False])
    assert set(rows[:, layouts.request.places["law"].start]) == {FLOAT, JOINT, LINK}


@pytest.mark.process
@needs_compilers
@pytest.mark.parametrize("link", ["hand", "tool"])
def test_loads_in_cpp_are_those_in_python(library, link):
    library.load_on.restype = ctypes.c_char_p
    model = mbs.Model.from_urdf(ARM)
    com, upper = [0.1, -0.2, 0.05], [0.01, 0.003, -0.002, 0.02, 0.001, 0.025]
    load, inertia = np.array([0.7, *com, *upper]), np.zeros((3, 3))
    inertia[np.triu_indices(3)] = inertia.T[np.triu_indices(3)] = upper
    expected = model.with_payload(link, 0.7, com, inertia).payloads[0].parameters
    assert library.load_on(link.encode(), pointer(load)) == b""
    np.testing.assert_allclose(load, expected, atol=1e-12)


@pytest.mark.process
@needs_compilers
@pytest.mark.parametrize(
    ("link", "load", "message"),
    [
        ("base", [1.0], "'base' is not a link that moves; valid: upper, lower, hand, tool"),
        ("hand", [-1.0], "the mass is negative, or"),
        ("hand", [1.0, 0, 0, 0, 0.1, 0.5, 0, 0.1, 0, 0.1], "is not positive semidefinite"),
        ("hand", [0.0, 0, 0, 0, 0.1, 0, 0, 0.1, 0, 0.1], "no inertia without mass"),
        ("hand", [np.nan], "nan is too large"),
        ("hand", [1.0, 50.0], "centre of mass or the radius of gyration is too large"),
        ("hand", [1.0, 0, 0, 0, 1e3, 0, 0, 1e3, 0, 1e3], "radius of gyration is too large"),
    ],
)
def test_loads_that_cannot_be_right_are_refused_in_cpp(library, link, load, message):
    library.load_on.restype = ctypes.c_char_p
    given = np.zeros(10)
    given[: len(load)] = load
    assert message in library.load_on(link.encode(), pointer(given)).decode()


@pytest.mark.process
@needs_compilers
def test_orientations_in_cpp_are_those_in_python(library):
    angle = np.array([0.4, -1.2, 0.7])
    size = np.linalg.norm(angle)
    quaternion = np.array([*np.sin(size / 2) * angle / size, np.cos(size / 2)])
    axes = np.zeros((3, 3))
    library.axes(pointer(quaternion), pointer(axes))
    np.testing.assert_allclose(axes.T, so3.exp(angle), atol=1e-12)


def test_digest_is_of_what_the_torques_depend_on(package):
    assert check_controller(ARM, package) == ""
    same = ARM.replace('<link name="base"/>', '<!-- c --><link name="base"><visual/></link>')
    assert description_digest(same.replace('"0.2 0 0"', '"+.20 -0 0"')) == description_digest(ARM)
    assert "Export it anew" in check_controller(HEAVIER, package)
    others = ('upper="2"', 'upper="1.9"'), ('"0 1 0"', '"0 0 1"'), ('"revolute"', '"prismatic"')
    for other in others:
        assert description_digest(ARM.replace(*other)) != description_digest(ARM)
    with pytest.raises(ArgumentError, match="guarded_robot"):
        check_controller(ARM, package / "src")


@pytest.mark.long
def test_export_replaces_all_but_what_users_change(tmp_path):
    given = ARM, tmp_path, ["elbow", "shoulder"]
    package = export_controller(*given, modes=["floating"])
    config, source = package / "config" / "ros2_controllers.yaml", package / "src" / "words.cpp"
    written = source.read_text()
    config.write_text("mine: 1\n")
    source.write_text("")
    export_controller(*given, modes=["floating"])
    assert config.read_text() == "mine: 1\n"
    assert source.read_text() == written


def test_refuses_robots_that_it_could_not_hold(tmp_path):
    with pytest.raises(UnknownJointError, match="knee"):
        export_controller(ARM, tmp_path, ["knee"])
    clamped = ARM.replace("</joint>", '<safety_controller k_velocity="0"/></joint>', 1)
    with pytest.raises(ArgumentError, match="joint 'shoulder' has a safety_controller"):
        export_controller(clamped, tmp_path)
    unwatched = ARM.replace('velocity="3"', 'velocity="0"', 1)
    with pytest.raises(ArgumentError, match="has a velocity limit of 0, so that"):
        export_controller(unwatched, tmp_path)
    with pytest.raises(ArgumentError, match="dance"):
        export_controller(ARM, tmp_path, modes=["dance"])
    with pytest.raises(ArgumentError, match="'base' does not move"):
        export_controller(ARM, tmp_path, link="base")
    ball = ARM.replace('type="continuous"', 'type="floating"')
    with pytest.raises(ModelError, match="degrees of freedom"):
        export_controller(ball, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.long
def test_command_writes_and_checks_a_package(tmp_path, capsys):
    urdf = tmp_path / "arm.urdf"
    urdf.write_text(ARM)
    given = ["export", "controller", str(urdf), "--out", str(tmp_path), "--modes", "floating"]
    assert main([*given, "--joints", "shoulder", "elbow"]) == 0
    written = capsys.readouterr().out.strip()
    assert "GUARDED_LAWS 1\n" in (tmp_path / written / "src" / "guarded_robot.h").read_text()
    assert main([*given, "--name", "left"]) == 0
    assert capsys.readouterr().out.strip().endswith("left_guarded_controller")
    check = ["export", "controller", str(urdf), "--out", written, "--check"]
    assert main(check) == 0
    urdf.write_text(HEAVIER)
    assert main(check) == 1
    assert main(["export", str(urdf), "--out", str(tmp_path)]) == 1
    assert "--functions" in capsys.readouterr().err
