# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Installs what ROS looks for in share/; nearly everything else is in pyproject.toml."""

from glob import glob

from setuptools import setup

SHARE = "share/mbs_dynamics"

setup(
    name="mbs_dynamics",  # colcon reads it here
    license="Apache-2.0",  # old and new setuptools differ on it in pyproject.toml
    python_requires=">=3.10",  # from pyproject.toml, colcon cannot read it
    data_files=[
        ("share/ament_index/resource_index/packages", ["resource/mbs_dynamics"]),
        (SHARE, ["package.xml"]),
        (f"{SHARE}/launch", sorted(glob("launch/*.py"))),
        (f"{SHARE}/config", sorted(glob("config/*.*"))),
        (f"{SHARE}/config/arms", sorted(glob("config/arms/*"))),
        (f"{SHARE}/urdf", sorted(glob("urdf/*.urdf"))),
    ],
)
