# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests in a browser."""

import shutil

import pytest


@pytest.fixture(scope="session")
def browser():
    """Start a headless browser; skip where it or the viewer is missing."""
    pytest.importorskip("viser")
    pytest.importorskip("playwright")
    from docs.browser import NAMES, chromium

    if not any(map(shutil.which, NAMES)):
        pytest.skip(f"none of {', '.join(NAMES)} is installed")
    with chromium() as started:
        yield started


@pytest.fixture
def see(browser):
    """Return a function that opens an address; the pages are closed in the end."""
    from page_bench import Seen

    opened = []

    def opens(address):
        opened.append(Seen(browser, address))
        return opened[-1]

    yield opens
    for seen in opened:
        seen.page.close()
