# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The files of config/ for RViz, PlotJuggler, Foxglove and rqt name topics that are published."""

from __future__ import annotations

import importlib
import json
import re
from functools import reduce
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml

pytest.importorskip("rclpy")

import mbs_dynamics as mbs
from mbs_dynamics.model.orders import tools
from mbs_dynamics.resources import robot_path
from mbs_dynamics.ros.entry_points import interface_of

CONFIG = Path(__file__).parents[2] / "config"
ARM7 = mbs.Model.from_urdf(robot_path("arm7"))
DYNAMICS = interface_of("dynamics_node")
TYPES = {one.name: one.type for one in (*DYNAMICS.subscribed, *DYNAMICS.published)}


def message(topic):
    """Return an empty message of the declared type of a topic of dynamics_node."""
    name = topic.lstrip("/").replace("dynamics_node/", "~/")
    declared = TYPES[name.replace(f"/{tools(ARM7)[0]}", "/<body>") if "twist" in name else name]
    package, kind = declared.split("/msg/")
    return getattr(importlib.import_module(f"{package}.msg"), kind)()


def text(file):
    return (CONFIG / file).read_text(encoding="utf-8")


def rviz():
    displays = yaml.safe_load(text("mbs_dynamics.rviz"))["Visualization Manager"]["Displays"]
    for one in displays:
        if "Topic" in one:
            kind = type(message(one["Topic"]["Value"])).__name__.removesuffix("Stamped")
            assert one["Class"].endswith("/Effort" if kind == "JointState" else f"/{kind}")
            yield one["Topic"]["Value"], ()


def plotjuggler():
    root = ElementTree.fromstring(text("plotjuggler.xml"))
    selected = root.find("Plugins/plugin/selected_topics").get("value").split(";")
    for curve in root.iter("curve"):
        (topic,) = (t for t in selected if curve.get("name").startswith(f"{t}/"))
        fields = curve.get("name").removeprefix(f"{topic}/").split("/")
        if type(message(topic)).__name__ == "JointState":  # topic/joint/field
            assert fields.pop(0) in ARM7.joint_names
        yield topic, fields


def foxglove():
    for panel in json.loads(text("foxglove.json"))["configById"].values():
        yield from ((topic, ()) for topic in panel.get("topics", ()) if "dynamics_node" in topic)
        for path in panel.get("paths", ()):
            topic, *fields = path["value"].split(".")
            yield topic, fields


def rqt():
    for topic, field in re.findall(r"(/dynamics_node/[\w/]+)/(\w+(?:\[\d\])?)'", RQT):
        yield topic, [field]


RQT = text("mbs_dynamics.perspective")


@pytest.mark.parametrize("shown", [rviz, plotjuggler, foxglove, rqt])
def test_topics_are_published_and_their_fields_are_numbers(shown):
    found = list(shown())
    assert len(found) >= 2
    for topic, fields in found:
        names = (re.sub(r"\[\d\]$", "", field) for field in fields)
        value = reduce(getattr, names, message(topic))
        assert not fields or isinstance(value, float) or value.typecode == "d"
