# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Installs mbs_dynamics, with pip or with colcon.

The tests compare the version and the dependencies with those in package.xml.
"""

from glob import glob

from setuptools import find_packages, setup

NAME = "mbs_dynamics"
SHARE = f"share/{NAME}"

setup(
    name=NAME,
    version="0.1.0",
    description="Kinematics and dynamics of multibody systems on Lie groups, for ROS 2",
    classifiers=[
        "Development Status :: 4 - Beta",
        "Intended Audience :: Science/Research",
        "Operating System :: OS Independent",
        "Programming Language :: Python :: 3 :: Only",
        "Topic :: Scientific/Engineering",
        "Typing :: Typed",
    ],
    author="The mbs_dynamics authors",
    maintainer="The mbs_dynamics authors",
    maintainer_email="maintainers@mbs-dynamics.invalid",
    license="Apache-2.0",
    license_files=["LICENSE"],
    keywords=["robotics", "ROS", "multibody dynamics", "Lie groups", "screw theory"],
    packages=find_packages(include=[NAME, f"{NAME}.*"]),
    package_data={NAME: ["py.typed", "ros/*.xml", "ros/controller/*.*", "ros/controller/*/*.*"]},
    data_files=[
        ("share/ament_index/resource_index/packages", [f"resource/{NAME}"]),
        (SHARE, ["package.xml"]),
        (f"{SHARE}/launch", sorted(glob("launch/*.py"))),
        (f"{SHARE}/config", sorted(glob("config/*.*"))),
        (f"{SHARE}/config/arms", sorted(glob("config/arms/*"))),
        (f"{SHARE}/urdf", sorted(glob("urdf/*.urdf"))),
    ],
    zip_safe=False,
    python_requires=">=3.10",
    install_requires=["numpy>=1.26"],
    extras_require={
        # Machine code. Without it the plain Python back end does the same, more slowly.
        "fast": ["llvmlite>=0.45"],
        # Figures and animations of motions.
        "plot": ["matplotlib>=3.7"],
        # Robots in the browser; pycollada reads meshes in .dae.
        "view": ["viser>=1.0", "trimesh>=4.5", "pycollada"],
        # Identification, and smooth trajectories, from recordings; rosbags reads bags without ROS,
        # lxml writes URDF files, matplotlib draws the report.
        "identify": ["scipy>=1.11", "rosbags>=0.10", "pyyaml", "lxml", "matplotlib>=3.7"],
        # Datasets of LeRobot, in Parquet files.
        "lerobot": ["pyarrow>=14"],
        # Models of MJCF, which MuJoCo's own compiler reads.
        "mjcf": ["mujoco>=3.2"],
        # ROS 2 Jazzy as wheels, for machines where no ROS 2 is installed (x86-64 Linux).
        "ros": [
            "ros-jazzy-rclpy",
            "ros-jazzy-rmw-fastrtps-cpp",
            "ros-jazzy-sensor-msgs",
            "ros-jazzy-geometry-msgs",
            "ros-jazzy-std-msgs",
            "ros-jazzy-std-srvs",
            "ros-jazzy-diagnostic-msgs",
            "ros-jazzy-lifecycle-msgs",
            "ros-jazzy-rosgraph-msgs",
            "ros-jazzy-nav-msgs",
            "ros-jazzy-trajectory-msgs",
            "ros-jazzy-visualization-msgs",
            "pyyaml",
            "scipy>=1.11",  # teaching_node
        ],
        # Algorithms in other systems, a module of mbs_dynamics.bridges each.
        "casadi": ["casadi>=3.6"],
        "jax": ["jax>=0.4.34"],
        "sympy": ["sympy>=1.12"],
        "torch": ["torch>=2.1"],
        "test": [
            # References and runner.
            "pytest>=7.4",
            "pytest-xdist>=3.5",
            "hypothesis",
            "coverage>=7",
            "pin",
            "mujoco",
            "lxml",
            "urdfdom-py",
            "example-robot-data",
            "gymnasium",  # small, with MJCF of fourteen robots
            "xacro",
            "matplotlib>=3.7",
            "pyarrow>=14",
            "scipy>=1.11",
            "rosbags>=0.10",
            "casadi>=3.6",
            "sympy>=1.12",
            # The viewer, and what opens its page in a browser without a screen.
            "viser>=1.0",
            "trimesh>=4.5",
            "pycollada",
            "playwright",
            "imageio",
            # Describes the configuration of Foxglove's panels.
            "foxglove-sdk>=0.30",
            "sphinx>=8.1",
            "myst-parser>=4",
            "furo",
            "sphinx-copybutton",
            "sphinx-design",
            "latex2mathml",
            # Linters; ruff and mypy are held so that a new release of theirs breaks nothing here.
            "ruff~=0.17.5",
            "mypy~=2.4",
            "import-linter>=2.4",
            # The build that ROS users run.
            "colcon-core",
            "colcon-ros",
            "colcon-bash",
        ],
        # `make docs`; the newest for Python 3.11 and later, Sphinx 8.1 for 3.10.
        "docs": [
            "sphinx>=8.1",
            "myst-parser>=4",
            "furo",
            "sphinx-copybutton",
            "sphinx-design",
            "latex2mathml",
            "matplotlib>=3.7",
        ],
        # `make dist`
        "dist": ["build>=1.2", "twine>=6"],
        # What `make bench` has beside; Drake has wheels for 64-bit Linux and macOS.
        "bench": [
            "matplotlib",
            'drake; platform_machine == "x86_64" and sys_platform == "linux"',
        ],
    },
    entry_points={
        "console_scripts": [
            f"mbs-dynamics = {NAME}.cli:main",
            f"command_watchdog_node = {NAME}.ros.entry_points:command_watchdog_node",
            f"dynamics_node = {NAME}.ros.entry_points:dynamics_node",
            f"gravity_compensation_node = {NAME}.ros.entry_points:gravity_compensation_node",
            f"impedance_control_node = {NAME}.ros.entry_points:impedance_control_node",
            f"simulator_node = {NAME}.ros.entry_points:simulator_node",
            f"teaching_node = {NAME}.ros.entry_points:teaching_node",
            f"wrench_compensation_node = {NAME}.ros.entry_points:wrench_compensation_node",
        ],
    },
)
