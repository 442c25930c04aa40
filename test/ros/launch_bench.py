# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Launch files in a process, and an installation for them to find."""

import importlib.util
import os
import signal
import sys
from pathlib import Path

from ros_bench import NodeProcess

from mbs_dynamics.ros.entry_points import INTERFACES

CHECKOUT = Path(__file__).parents[2]
ROS2 = "import sys; from ros2cli.cli import main; sys.exit(main())"


def launch_file(name):
    return CHECKOUT / "launch" / f"{name}.launch.py"


def launch_command(name, namespace, *arguments):
    """Return the command that runs a launch file of this package."""
    command = [sys.executable, "-c", ROS2, "launch", str(launch_file(name))]
    return [*command, f"namespace:={namespace}", *arguments]


class Launched(NodeProcess):
    """A node that a launch file starts, with arguments of the launch file."""

    def __init__(self, name, executable, *arguments):
        self.file = name
        super().__init__(executable, *arguments)

    def command(self, *arguments):
        return launch_command(self.file, self.namespace, *arguments)


def declared_arguments(name):
    """Return the arguments that a launch file declares."""
    spec = importlib.util.spec_from_file_location(f"{name}_launch", launch_file(name))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.generate_launch_description().get_launch_arguments()


def make_installation(folder, monkeypatch):
    """Make an ament prefix, as an installation does, that runs this checkout."""
    share, lib = folder / "share", folder / "lib" / "mbs_dynamics"
    index = share / "ament_index" / "resource_index" / "packages"
    for made in (index, share / "mbs_dynamics", lib):
        made.mkdir(parents=True)
    (index / "mbs_dynamics").touch()
    for linked in ("config", "launch", "urdf"):
        (share / "mbs_dynamics" / linked).symlink_to(CHECKOUT / linked)
    for name in INTERFACES:
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


def left_running(folder):
    """End processes whose command names a folder, and return these commands."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            command = (process / "cmdline").read_text().replace("\0", " ")
            if str(folder) in command:
                os.kill(int(process.name), signal.SIGKILL)
                found.append(command)
        except (FileNotFoundError, ProcessLookupError):  # it has just ended
            continue
    return found
