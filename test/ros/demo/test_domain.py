# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The choice of a ROS domain in which nobody else on this machine is."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager

import pytest

pytest.importorskip("rclpy")

from mbs_dynamics.ros.demo import plan as domain

SOMEBODY = """
import sys, rclpy
rclpy.init(domain_id=int(sys.argv[1]))
node = rclpy.create_node("somebody")
print("there", flush=True)
sys.stdin.read()
"""


@contextmanager
def participant(number):
    """Keep a participant of a domain, in a process of its own: each takes the first port there."""
    command = [sys.executable, "-c", SOMEBODY, str(number)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, text=True, **pipes) as process:
        assert process.stdout.readline() == "there\n"
        yield
        process.stdin.close()
        assert process.wait(20.0) == 0


def test_a_domain_with_a_participant_is_not_chosen(monkeypatch):
    quiet = domain.unused_domain()
    assert domain._is_unused(quiet)
    with participant(quiet):
        assert not domain._is_unused(quiet)
        other = domain.unused_domain()
        monkeypatch.setattr(domain, "DOMAINS", range(min(quiet, other), max(quiet, other) + 1))
        assert all(domain.unused_domain() != quiet for _ in range(20))
        monkeypatch.setattr(domain, "DOMAINS", range(quiet, quiet + 1))
        assert domain.unused_domain() == quiet  # there is no other
    assert domain._is_unused(quiet)
