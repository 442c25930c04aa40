# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the tests of the launch files share: launch in a process, and an installation to find."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from launch.actions import DeclareLaunchArgument

CHECKOUT = Path(__file__).parents[2]
NODES = (
    "simulator_node",
    "gravity_compensation_node",
    "dynamics_node",
    "command_watchdog_node",
)

LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource

file, *arguments = sys.argv[1:]
included = IncludeLaunchDescription(
    PythonLaunchDescriptionSource(file),
    launch_arguments=[argument.split(":=", 1) for argument in arguments],
)
service = LaunchService(argv=[])
service.include_launch_description(LaunchDescription([included]))
sys.exit(service.run())
"""


def launch_command(name, namespace, *arguments):
    """Return the command that runs a launch file of this package."""
    file = str(CHECKOUT / "launch" / f"{name}.launch.py")
    return [sys.executable, "-c", LAUNCH, file, f"namespace:={namespace}", *arguments]


def declared_arguments(name):
    """Return the names of a launch file's arguments as it lists them, and what it declares."""
    path = CHECKOUT / "launch" / f"{name}.launch.py"
    spec = importlib.util.spec_from_file_location(f"{name}_launch", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    entities = module.generate_launch_description().entities
    declared = [one for one in entities if isinstance(one, DeclareLaunchArgument)]
    return module.ARGUMENTS, declared


def make_installation(folder, monkeypatch):
    """Make an ament prefix, as an installation does, that runs this checkout."""
    share, lib = folder / "share", folder / "lib" / "mbs_dynamics"
    index = share / "ament_index" / "resource_index" / "packages"
    for made in (index, share / "mbs_dynamics", lib):
        made.mkdir(parents=True)
    (index / "mbs_dynamics").touch()
    for linked in ("config", "urdf"):
        (share / "mbs_dynamics" / linked).symlink_to(CHECKOUT / linked)
    for name in NODES:
        script = lib / name
        script.write_text(
            f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(CHECKOUT)!r})\n"
            f"from mbs_dynamics.ros.{name} import main\nsys.exit(main())\n",
            encoding="utf-8",
        )
        script.chmod(0o755)
    prefixes = [str(folder), os.environ.get("AMENT_PREFIX_PATH", "")]
    monkeypatch.setenv("AMENT_PREFIX_PATH", os.pathsep.join(filter(None, prefixes)))
    monkeypatch.setenv("ROS_LOG_DIR", str(folder / "log"))
