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

import contextlib
import json
import os
import sys
import threading
import traceback
from collections import Counter
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol


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


def names_of(item):
    """Return the names that a demand may have for a test, with its parameters and without."""
    return {item.nodeid.removeprefix("test/"), function_of(item)}


def pytest_collection_modifyitems(items):
    """Run the first case of every test, then every second one, and so on: few are then needed."""
    before = Counter()
    for item in items:
        item.rank = before[function_of(item)]
        before[function_of(item)] += 1
    items.sort(key=lambda item: item.rank)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    config, names = item.config, names_of(item)
    demands = {k: places for k, (places, tests) in config.unmet.items() if names & set(tests)}
    if demands:
        met, failed = in_fork(lambda: run(item, demands))
        config.unmet = {k: demand for k, demand in config.unmet.items() if k not in met}
        config.failed += failed
    return True


def pytest_sessionfinish(session):
    config = session.config
    config.option.wanted.write_text(json.dumps([list(config.unmet), config.failed]))


def run(item, demands):
    """Run one test; return which demands it meets, and what failed."""
    remaining, codes = dict(demands), set()

    def enter(frame, event, _):
        if event == "call" and frame.f_code not in codes:
            codes.add(frame.f_code)
            here = place(frame.f_code)
            for k in [k for k, places in remaining.items() if here in places]:
                remaining.pop(k, None)  # another thread may have done so
            if not remaining:
                stop()

    def stop():
        threading.setprofile(None)
        sys.setprofile(None)

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        reports = runtestprotocol(item, nextitem=None, log=False)
    finally:
        stop()
    met = [k for k in demands if k not in remaining]
    return met, [report.longreprtext for report in reports if report.failed]


def in_fork(function):
    """Return what a function returns in a child of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reading)
        status = 1
        with contextlib.suppress(BaseException):
            with os.fdopen(writing, "w") as pipe:
                try:
                    json.dump(function(), pipe)
                except BaseException:
                    json.dump(([], [traceback.format_exc()]), pipe)
            status = 0
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading) as pipe:
        text = pipe.read()
    os.waitpid(child, 0)
    return json.loads(text) if text else ([], ["the process ended"])
