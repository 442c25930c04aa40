# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Which functions of the package tests enter: a plugin of pytest.

``pytest -p entered --wanted FILE TESTS`` runs each test in a process of its own, forked before any
fixture is made, because what one test has compiled the next one does not trace again. FILE contains
a JSON list of demands, each a pair: places ``file:line`` of functions, of which one is to be
entered, and the test functions, of which one is to enter it. Tests run only as long as they can
meet a demand. FILE is replaced by the indices of the unmet demands, and what failed.
"""

from __future__ import annotations

import json
import multiprocessing
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol

FORK = multiprocessing.get_context("fork")


def place(code):
    """Return the place of a code object as ``file:line``."""
    return f"{code.co_filename}:{code.co_firstlineno}"


def pytest_addoption(parser):
    parser.addoption("--wanted", type=Path, help="the demands, which the unmet ones replace")


def pytest_configure(config):
    config.unmet = dict(enumerate(json.loads(config.option.wanted.read_text())))
    config.failed = []


def function_of(item):
    return item.nodeid.removeprefix("test/").split("[")[0]


def pytest_collection_modifyitems(items):
    """Run the first case of every test, then every second one, and so on: few are then needed."""
    before, rank = Counter(), {}
    for item in items:
        rank[item] = before[function_of(item)]
        before[function_of(item)] += 1
    items.sort(key=rank.get)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item):
    config, names = item.config, {item.nodeid.removeprefix("test/"), function_of(item)}
    demands = {k: places for k, (places, tests) in config.unmet.items() if names & {*tests}}
    if demands:
        entered, failed = in_fork(item)
        for k, places in demands.items():
            if entered & {*places}:
                del config.unmet[k]
        config.failed += failed
    return True


def pytest_sessionfinish(session):
    config = session.config
    config.option.wanted.write_text(json.dumps([list(config.unmet), config.failed]))


def run(item):
    """Run a test; return the places of the functions that it enters, and what failed."""
    codes = set()

    def enter(frame, event, _):
        if event == "call":
            codes.add(frame.f_code)

    threading.setprofile(enter)
    sys.setprofile(enter)
    reports = runtestprotocol(item, nextitem=None, log=False)
    sys.setprofile(None)
    return {place(code) for code in codes}, [x.longreprtext for x in reports if x.failed]


def in_fork(item):
    """Run a test in a child of this process."""
    reading, writing = FORK.Pipe(duplex=False)
    child = FORK.Process(target=lambda: writing.send(run(item)))
    child.start()
    writing.close()
    try:
        return reading.recv()
    except EOFError:
        return set(), [f"the process of {item.nodeid} has ended"]
    finally:
        child.join()
