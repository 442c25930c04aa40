# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The package as ROS users build it: with colcon, into an install space of its own."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from made_once import made_once
from waiting import TIMEOUT, wait_until

pytest.importorskip("colcon_ros")

pytestmark = pytest.mark.process

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ("config", "launch", "mbs_dynamics", "resource", "urdf")
FILES = ("LICENSE", "README.md", "package.xml", "pyproject.toml", "setup.cfg", "setup.py")


@pytest.fixture(
    scope="module", params=["copied", pytest.param("symlinked", marks=pytest.mark.slow)]
)
def prefix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build a copy of the sources and return the prefix the package is installed in."""
    kind = request.param
    folder = made_once(tmp_path_factory, f"workspace_{kind}", lambda x: build(x, kind))
    return folder / "install" / "mbs_dynamics"


def build(workspace: Path, kind: str) -> None:
    """Build a copy of the sources in a workspace."""
    source = workspace / "src" / "mbs_dynamics"
    ignored = shutil.ignore_patterns("__pycache__", "*.pyc")
    for name in SOURCES:
        shutil.copytree(ROOT / name, source / name, ignore=ignored)
    for name in FILES:
        shutil.copy(ROOT / name, source)
    colcon = [str(Path(sys.executable).with_name("colcon")), "build"]
    if kind == "symlinked":
        colcon.append("--symlink-install")
    given = {"cwd": workspace, "env": {**os.environ, "COLCON_HOME": str(workspace)}}
    done = subprocess.run(colcon, capture_output=True, text=True, **given)
    assert done.returncode == 0, done.stdout + done.stderr


def sourced(prefix: Path, command: str) -> list[str]:
    """Return a command line that sources the workspace, as a user does, and becomes the command."""
    return ["bash", "-c", f"source '{prefix.parent}/setup.bash' && exec {command}"]


def run(prefix: Path, command: str) -> str:
    done = subprocess.run(sourced(prefix, command), cwd="/", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_share_holds_what_ros_tools_look_for(prefix: Path) -> None:
    share = prefix / "share"
    assert (share / "ament_index/resource_index/packages/mbs_dynamics").is_file()
    patterns = ("package.xml", "launch/*.py", "config/**/*.yaml", "urdf/*.urdf")
    expected = {path for pattern in patterns for path in ROOT.glob(pattern)}
    assert ROOT / "urdf/arm7.urdf" in expected
    for path in expected:
        installed = share / "mbs_dynamics" / path.relative_to(ROOT)
        assert installed.read_bytes() == path.read_bytes(), path


def test_the_installed_package_is_typed_and_its_command_finds_its_robots(prefix: Path) -> None:
    code = "import mbs_dynamics; print(mbs_dynamics.__file__)"
    package = Path(run(prefix, f"'{sys.executable}' -c '{code}'").strip()).resolve().parent
    assert prefix.parents[1] in package.parents
    assert (package / "py.typed").is_file()
    assert "7 coordinates" in run(prefix, f"'{prefix}/lib/mbs_dynamics/mbs-dynamics' info arm7")


def test_the_node_starts_from_the_install_space_and_stops_when_interrupted(prefix: Path) -> None:
    rclpy = pytest.importorskip("rclpy")
    space = f"/{prefix.parents[1].name}"
    command = f"'{prefix}/lib/mbs_dynamics/dynamics_node' --ros-args -r __ns:={space}"
    output = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    node = subprocess.Popen(sourced(prefix, command), cwd="/", **output)
    context = rclpy.Context()
    rclpy.init(context=context)
    try:
        watcher = rclpy.create_node("test_colcon_watcher", context=context)
        topic = f"{space}/joint_states"
        wait_until(lambda: watcher.count_subscribers(topic) or node.poll() is not None)
        node.send_signal(signal.SIGINT)
        output, _ = node.communicate(timeout=TIMEOUT)
        assert node.returncode == 0, output
    finally:
        node.kill()
        rclpy.shutdown(context=context)
