# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""A page served from a thread, and a headless browser that operates it."""

import re
import threading
import time
from contextlib import contextmanager

import pytest
from waiting import TIMEOUT

pytest.importorskip("viser")
pytest.importorskip("playwright")


@contextmanager
def running(page, source):
    """Draw the scenes of a source in a thread."""
    over = threading.Event()
    thread = threading.Thread(target=page.run, args=(source, over.is_set))
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


FEWER_FRAMES = """
const draw = window.requestAnimationFrame.bind(window);
window.requestAnimationFrame = (callback) => setTimeout(() => draw(callback), 100);
"""
"""A page draws ten times a second, and not as often as it can: without a graphics card that takes
both cores."""


class Seen:
    """A page in the browser."""

    def __init__(self, started, address, width=640, height=480):
        self.page = started.new_page(viewport={"width": width, "height": height})
        self.page.set_default_timeout(1e3 * TIMEOUT)
        self.page.add_init_script(FEWER_FRAMES)
        self.requested, self.errors = [], []
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.goto(address)
        self.page.get_by_role("tab", name="Robot").wait_for()

    def tab(self, name):
        self.page.get_by_role("tab", name=name, exact=True).click()

    def box(self, label):
        """Return a checkbox by its label."""
        return self.page.get_by_label(label, exact=True)

    def slide(self, label, value):
        """Type a number beside a slider."""
        words = self.page.get_by_text(label, exact=True).first
        row = words.locator("xpath=ancestor-or-self::div[.//input[@type='text']][1]")
        field = row.locator("input[type='text']").first
        field.fill(str(value))
        field.press("Enter")

    def table(self, name):
        """Return the cells of a table of numbers, row by row."""
        found = self.page.locator(f"table.mbs-{name}")
        found.wait_for()
        html = found.inner_html()
        rows = re.findall(r"<tr>(.*?)</tr>", html)
        return [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]

    def until(self, condition):
        """Wait until a condition holds; return False if it does not in time."""
        end = time.monotonic() + TIMEOUT
        while time.monotonic() < end:
            if condition():
                return True
            self.page.wait_for_timeout(50)
        return False
