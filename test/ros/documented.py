# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What docs/ros.md says of a node, and what the node is found to have."""

from __future__ import annotations

import re
from pathlib import Path

from mbs_dynamics.ros.interface import parameters_of

PAGE = (Path(__file__).parents[2] / "docs" / "ros.md").read_text(encoding="utf-8")

EVERY_NODE = {"/rosout", "/parameter_events"}
"""Topics that rclpy itself has."""


def section(name):
    """Return the part of the page about one node."""
    return re.search(rf"^# {name}\n(.*?)(?=^# |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]


def says(name, what):
    """Return whether the part of the page about one node has something in code quotes."""
    return f"`{what}`" in " ".join(section(name).split())


def missing_parameters(name, settings):
    """Return the parameters that the page lacks, or tells another default of."""
    missing = []
    for item in parameters_of(settings):
        full = item.full_name
        default = list(item.default) if isinstance(item.default, tuple) else item.default
        said = (str(default) if isinstance(default, str) else str(default).lower()) or '""'
        when = "no" if item.read_only else "yes"
        row = rf"^\| `{full}` \| [a-z ]+ \| `{re.escape(said)}` \| {when} \|"
        if not re.search(row, section(name), re.MULTILINE):
            missing.append(item.name)
    return missing


def rows(name):
    """Yield topic or service, type, and the text of the row, of all tables about one node."""
    row = r"^\| `([~/\w<>]+)` \| `(\w+)/(\w+)` \|(.*)$"
    for topic, package, kind, rest in re.findall(row, section(name), re.MULTILINE):
        yield topic, f"{package}/{kind}", rest


def found(probe, kind):
    """Return topics or services of the probed node, by the names of the page, with their types."""
    return {shortened(probe, name): re.sub(r"/(msg|srv)/", "/", t) for name, t in raw(probe, kind)}


def raw(probe, kind):
    """Yield the full names of topics or services of the probed node, and their types."""
    namespace, name = probe.target.name.rsplit("/", 1)
    node = probe.informed()
    ask = {
        "publishers": node.get_publisher_names_and_types_by_node,
        "subscribers": node.get_subscriber_names_and_types_by_node,
        "services": node.get_service_names_and_types_by_node,
    }[kind]
    answers = [None]

    def same():
        answers.append(ask(name, namespace))
        return answers[-1] == answers[-2]

    probe.until(same, every=0.2)  # endpoints are made known one by one
    for topic, types in answers[-1]:
        if not (topic in EVERY_NODE or re.search(r"/(\w*parameter\w*|get_type_desc\w+)$", topic)):
            yield topic, types[0]


def shortened(probe, topic):
    """Return the name of a topic or service as the page has it."""
    short = topic.replace(f"{probe.target.name}/", "~/", 1)
    short = re.sub(r"^(~/(?:twist|velocity|jacobian))/\w+", r"\1/<body>", short)
    short = re.sub(r"^(~/joint_wrench)/\w+", r"\1/<joint>", short)
    return short.removeprefix(f"{probe.target.namespace}/")


def qualities(probe, kind):
    """Return the reliability and durability of topics of the probed node, in words."""
    node = probe.informed()
    ask = {
        "publishers": node.get_publishers_info_by_topic,
        "subscribers": node.get_subscriptions_info_by_topic,
    }[kind]
    told = {}
    for topic, _ in raw(probe, kind):
        for end in ask(topic):
            if f"{end.node_namespace}/{end.node_name}" == probe.target.name:
                words = [end.qos_profile.reliability.name, end.qos_profile.durability.name]
                told[shortened(probe, topic)] = ", ".join(words).lower().replace("_", " ")
    return told
