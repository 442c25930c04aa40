# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The package as a whole: headers, optional dependencies, metadata, installed files."""

import ast
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

import mbs_dynamics
from mbs_dynamics.resources import UnknownRobotError, robot_path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "mbs_dynamics"
FOLDERS = ("mbs_dynamics", "test", "launch", "benchmarks", "simulated", "docs", "tools")
SOURCES = [ROOT / "setup.py", *(path for name in FOLDERS for path in (ROOT / name).rglob("*.py"))]
HEADER = """\
# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""

ROS_MODULES = (
    "builtin_interfaces", "diagnostic_msgs", "geometry_msgs", "lifecycle_msgs", "nav_msgs",
    "rcl_interfaces", "rclpy", "rosgraph_msgs", "sensor_msgs", "std_msgs", "std_srvs",
    "trajectory_msgs",
)  # fmt: skip
DECLARED_AS = {  # where the key in package.xml is not the module's name
    "lxml": "python3-lxml",
    "numpy": "python3-numpy",
    "scipy": "python3-scipy",
    "yaml": "python3-yaml",
}


def python(code: str, **environment: str) -> str:
    """Run code in a Python of its own, outside the checkout, and return what it printed."""
    command, given = [sys.executable, "-c", code], {**os.environ, **environment}
    done = subprocess.run(command, cwd="/", env=given, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def without(*modules: str) -> str:
    """Return a line of code after which these modules cannot be found, as if not installed."""
    return f"import sys; sys.modules.update(dict.fromkeys({modules!r}))\n"


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> set[str]:
    """Return the top-level names of all that a file imports, inside functions too."""
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.append(node.module)
    return {name.partition(".")[0] for name in names}


LEFT_OUT = ("ros", "bridges.controller.", "bridges.jax", "bridges.torch")
"""Modules that need ROS or another library, and files of the package that is generated."""
CORE = [
    name
    for name in sorted(module_name(path) for path in PACKAGE.rglob("*.py"))
    if not name.startswith(tuple(f"mbs_dynamics.{each}" for each in LEFT_OUT))
]


def test_every_source_file_starts_with_the_license() -> None:
    without = [path for path in SOURCES if not path.read_text().startswith(HEADER)]
    assert not without


@pytest.mark.process
def test_importing_the_package_loads_no_optional_or_slow_dependency() -> None:
    optional = {*ROS_MODULES, "casadi", "llvmlite", "lxml", "sympy", "xml.etree"}
    code = f"import sys, mbs_dynamics; print(*sorted({optional!r} & set(sys.modules)))"
    assert python(code).split() == []


@pytest.mark.process
def test_without_llvmlite_and_ros_the_core_computes_the_same() -> None:
    code = """
import json, mbs_dynamics as mbs
from mbs_dynamics.resources import robot_path
from mbs_dynamics.compiler import default_backend
arm = mbs.Model.from_urdf(robot_path("arm7"))
q, qd, qdd = ([x + 0.1 * i for i in range(arm.n)] for x in (0.2, -0.3, 0.4))
print(json.dumps([default_backend(), mbs.inverse_dynamics(arm, q, qd, qdd).tolist()]))
"""
    everything = f"import {', '.join(CORE)}\n"
    missing = without("llvmlite", *ROS_MODULES)
    backend, tau = json.loads(python(missing + everything + code, MBS_BACKEND=""))
    assert backend == "python"
    pytest.importorskip("llvmlite")
    backend, expected = json.loads(python(code, MBS_BACKEND="llvm"))
    assert backend == "llvm"
    np.testing.assert_allclose(tau, expected, rtol=1e-12, atol=1e-12)


def test_the_version_is_the_same_everywhere() -> None:
    def found(pattern: str, name: str) -> str:
        match = re.search(pattern, (ROOT / name).read_text(), re.MULTILINE)
        assert match is not None, f"no version in {name}"
        return match.group(1)

    version = mbs_dynamics.__version__
    assert found(r"<version>(.*)</version>", "package.xml") == version
    assert found(r"^version: (.*)", "CITATION.cff") == version
    assert found(r"^## \[?([\d.]+)", "CHANGELOG.md") == version
    assert importlib.metadata.version("mbs_dynamics") == version


@pytest.mark.long
def test_the_manifest_declares_every_import() -> None:
    manifest = ElementTree.parse(ROOT / "package.xml").getroot()
    declared = {tag.text for tag in manifest.iter("exec_depend")}
    standard = {*sys.stdlib_module_names, "mbs_dynamics"}
    # no ROS or Ubuntu package of the first exists; matplotlib draws figures, when asked to, and the
    # others identify and show robots
    optional = {
        *("casadi", "jax", "llvmlite", "matplotlib", "mujoco", "pyarrow"),
        *("rosbags", "sympy", "torch", "trimesh", "viser", "websockets"),
    }
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "launch").glob("*.py")]
    imported = set().union(*(imports_of(path) for path in files)) - standard - optional
    assert {DECLARED_AS.get(name, name) for name in imported} <= declared


def test_every_command_can_be_loaded() -> None:
    commands = importlib.metadata.distribution("mbs_dynamics").entry_points
    assert {"mbs-dynamics", "dynamics_node"} <= {command.name for command in commands}
    for command in commands:
        if command.value.startswith("mbs_dynamics.ros"):
            pytest.importorskip("rclpy")
        assert callable(command.load())


def test_a_shipped_robot_is_found_in_the_checkout() -> None:
    assert robot_path("arm7") == ROOT / "urdf" / "arm7.urdf"


def test_a_shipped_robot_is_found_in_a_sourced_workspace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    robots = tmp_path / "share" / "mbs_dynamics" / "urdf"
    robots.mkdir(parents=True)
    (robots / "crane.urdf").touch()
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join(["/nowhere", str(tmp_path)]))
    assert robot_path("crane") == robots / "crane.urdf"
    monkeypatch.delenv("AMENT_PREFIX_PATH")
    with pytest.raises(UnknownRobotError):
        robot_path("crane")
