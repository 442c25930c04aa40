# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""What the page of a node and its interface state, and what a running node is found to have."""

from __future__ import annotations

import re
from pathlib import Path

from mbs_dynamics.ros.entry_points import interface_of

NODES = Path(__file__).parents[2] / "docs" / "reference" / "nodes"

EVERY_NODE = {"/rosout", "/parameter_events"}
"""Topics that rclpy itself has."""


def says(name, what):
    """Return whether the page about a node has something in code quotes."""
    page = (NODES / f"{name}.md").read_text(encoding="utf-8")
    return f"`{what}`" in " ".join(page.split())


def declared(name, **parameters):
    """Return the declared topics and services of a node by name, with parameters as names."""
    interface = interface_of(name)
    entries = (*interface.subscribed, *interface.published, *interface.services)
    return {parameters.get(one.name.strip("<>"), one.name): one for one in entries}


def types(entries):
    """Return the types of declared topics and services, as :func:`found` does."""
    return {name: re.sub(r"/(msg|srv)/", "/", one.type) for name, one in entries.items()}


def quality(one):
    """Return the reliability and durability of a declared topic, as :func:`qualities` does."""
    return f"{one.quality.reliability}, {one.quality.durability}".replace("_", " ")


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
