# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The files of config/ for RViz, PlotJuggler, Foxglove and rqt: their structure and their topics.

The structure is what the readers of these programs take: PlotJuggler 3.16 (plot_docker.cpp,
plotwidget.cpp, mainwindow.cpp), the panels of the Foxglove SDK, and qt_gui 2.8
(perspective_manager.py, plugin_manager.py).
"""

from __future__ import annotations

import ast
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

ROOT = Path(__file__).parents[2]
CONFIG = ROOT / "config"
ARM7 = mbs.Model.from_urdf(robot_path("arm7"))
JOINTS = ARM7.joint_names
DYNAMICS = interface_of("dynamics_node")
TYPES = {one.name: one.type for one in (*DYNAMICS.subscribed, *DYNAMICS.published)}


def message(topic):
    """Return an empty message of the declared type of a topic of dynamics_node."""
    name = topic.lstrip("/").replace("dynamics_node/", "~/")
    declared = TYPES[name.replace(f"/{tools(ARM7)[0]}", "/<body>") if "twist" in name else name]
    package, kind = declared.split("/msg/")
    return getattr(importlib.import_module(f"{package}.msg"), kind)()


def is_numeric(topic, *fields):
    """Return whether a field, after any index, is a number or an array of numbers."""
    names = (re.sub(r"\[\d\]$", "", field) for field in fields)
    value = reduce(getattr, names, message(topic))
    return isinstance(value, float) or value.typecode == "d"


def test_rviz_shows_topics_that_are_published():
    file = yaml.safe_load((CONFIG / "mbs_dynamics.rviz").read_text(encoding="utf-8"))
    displays = file["Visualization Manager"]["Displays"]
    shown = {
        one["Class"]: type(message(one["Topic"]["Value"])).__name__
        for one in displays
        if "Topic" in one
    }
    assert shown == {
        "rviz_default_plugins/MarkerArray": "MarkerArray",
        "rviz_default_plugins/Wrench": "WrenchStamped",
        "rviz_default_plugins/Effort": "JointState",
    }


def test_plotjuggler_plots_fields_of_published_messages():
    root = ElementTree.parse(CONFIG / "plotjuggler.xml").getroot()
    streamer = root.find("previouslyLoaded_Streamer").get("name")
    plugin = root.find("Plugins/plugin")
    assert plugin.get("ID") == streamer == "ROS2 Topic Subscriber"
    selected = plugin.find("selected_topics").get("value").split(";")
    for tab in root.findall("tabbed_widget[@parent='main_window']/Tab"):
        (splitter,) = tab.findall("Container/DockSplitter")
        areas = splitter.findall("DockArea")
        sizes = splitter.get("sizes").split(";")
        assert len(areas) == len(sizes) == int(splitter.get("count"))
        for area in areas:
            (plot,) = area.findall("plot")
            assert plot.get("mode") == "TimeSeries"
            for curve in plot.findall("curve"):
                (topic,) = (t for t in selected if curve.get("name").startswith(f"{t}/"))
                fields = curve.get("name").removeprefix(f"{topic}/").split("/")
                if type(message(topic)).__name__ == "JointState":  # topic/joint/field
                    assert fields.pop(0) in JOINTS
                assert is_numeric(topic, *fields)


def test_foxglove_plots_fields_of_published_messages():
    panels = pytest.importorskip("foxglove.layouts")
    layout = json.loads((CONFIG / "foxglove.json").read_text(encoding="utf-8"))

    def leaves(part):
        if isinstance(part, str):
            return [part]
        assert part["direction"] in ("row", "column")
        return leaves(part["first"]) + leaves(part["second"])

    def keys(kind):
        return set(kind()._to_dict())

    configurations = layout["configById"]
    assert sorted(leaves(layout["layout"])) == sorted(configurations)
    of_panel = {
        "3D": panels.ThreeDeeConfig,
        "Plot": panels.PlotConfig,
        "DiagnosticSummary": panels.DiagnosticsSummaryConfig,
    }
    for panel, configuration in configurations.items():
        title = {"foxglovePanelTitle"}
        assert set(configuration) - title <= keys(of_panel[panel.split("!")[0]])
        for path in configuration.get("paths", ()):
            assert set(path) <= keys(panels.PlotSeries)
            assert is_numeric(*path["value"].split("."))
    assert type(message("/dynamics_node/markers")).__name__ == "MarkerArray"
    assert "/dynamics_node/markers" in configurations["3D!robot"]["topics"]


def test_rqt_plots_fields_of_published_messages():
    perspective = json.loads((CONFIG / "mbs_dynamics.perspective").read_text(encoding="utf-8"))

    def value(group, key):
        stored = group["keys"][key]
        assert stored["type"] == "repr"
        return ast.literal_eval(stored["repr"])

    manager = perspective["groups"]["pluginmanager"]
    running = value(manager, "running-plugins")
    for number_of_plot in running["rqt_plot/Plot"]:
        instance = manager["groups"][f"plugin__rqt_plot__Plot__{number_of_plot}"]
        for path in value(instance["groups"]["plugin"], "topics"):
            topic, _, field = path.rpartition("/")
            assert is_numeric(topic, field)
