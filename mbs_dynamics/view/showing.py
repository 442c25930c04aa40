# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""Robots and motions in the browser, for scripts and notebooks."""

from __future__ import annotations

import threading
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from mbs_dynamics.checks import FloatArray
from mbs_dynamics.errors import ArgumentError, MbsError
from mbs_dynamics.model.model import Model
from mbs_dynamics.timeseries import TimeSeries
from mbs_dynamics.view.options import PageOptions

if TYPE_CHECKING:
    from mbs_dynamics.view.page import Page
    from mbs_dynamics.view.playback import Playback
    from mbs_dynamics.view.posing import Posing

HEIGHT = 600
"""Height in pixels of a page in a notebook."""


class HasSeries(Protocol):
    """The result of a simulation."""

    @property
    def series(self) -> TimeSeries:
        """Motion data of the simulation."""


class View:
    """A page in the browser, served to this machine until it is closed or the program ends.

    In a notebook it is shown below the cell that returns it.
    """

    def __init__(self, page: Page, source: Posing | Playback) -> None:
        self._page, self._source = page, source
        self.address = page.address
        """Address of the page, such as ``http://127.0.0.1:8080``."""
        self.problems = page.problems
        """Messages about shapes that are not shown."""
        self._over = threading.Event()
        page.refresh(source)
        self._thread = threading.Thread(
            target=page.run, args=(source, self._over.is_set), daemon=True
        )
        self._thread.start()

    def move(self, q: ArrayLike) -> None:
        """Show the robot at the positions q (nq,). Raises ArgumentError on a page of a motion."""
        from mbs_dynamics.view.posing import Posing

        if not isinstance(self._source, Posing):
            raise ArgumentError("move needs a page of view.show; this one plays a motion")
        self._source.move(_state("q", q, len(self._source.q)))

    def save(self, path: str | Path) -> None:
        """Write the page as one .html file, and close it.

        Raises ArgumentError for another kind of file, or if it cannot be written.
        """
        from mbs_dynamics.view.playback import write_html

        self._stop()
        try:
            write_html(self._page, self._source, Path(path))
        finally:
            self._page.close()

    def wait(self, *, browse: bool = True) -> None:
        """Print the address, open the page in the browser if ``browse``, serve it until Ctrl+C."""
        try:
            announce(self._page, browse)
            self._over.wait()
        except KeyboardInterrupt:
            print()
        self.close()

    def close(self) -> None:
        """Stop serving the page."""
        if not self._over.is_set():
            self._stop()
            self._page.close()

    def _stop(self) -> None:
        self._over.set()
        self._thread.join()

    def __repr__(self) -> str:
        """Return the name of the robot and the address."""
        return f"<View of {self._page.name} at {self.address}>"

    def _repr_html_(self) -> str:
        return f'<iframe src="{self.address}" width="100%" height="{HEIGHT}"></iframe>'


def show(
    model: Model,
    q: ArrayLike | None = None,
    qd: ArrayLike | None = None,
    *,
    options: PageOptions | None = None,
) -> View:
    """Show a robot in the browser, and return its page.

    ``q`` (nq,) and ``qd`` (n,) are the initial positions and rates, in SI units. By default the
    robot is at rest with its joints at zero, or at the limit nearest to it.

    Raises BackendError without the extra ``view``, UnknownBodyError for geometry on another link,
    ArgumentError for q or qd of another shape, for an unknown layer, and if the port is taken.
    """
    from mbs_dynamics.view.page import Page
    from mbs_dynamics.view.posing import Posing

    at = None if q is None else _state("q", q, model.nq)
    rates = None if qd is None else _state("qd", qd, model.n)
    page = Page(model, options)
    return View(page, Posing(page, at, rates))


def play(
    model: Model, motion: TimeSeries | HasSeries, *, options: PageOptions | None = None
) -> View:
    """Play motion data or a simulated motion in the browser, and return its page.

    Raises the errors of :func:`show`, and ArgumentError for a motion without joints of the robot.
    """
    from mbs_dynamics.view.page import Page
    from mbs_dynamics.view.playback import Playback

    page = Page(model, options)
    try:
        source = Playback(page, motion if isinstance(motion, TimeSeries) else motion.series)
    except MbsError:
        page.close()
        raise
    view = View(page, source)
    source.play()
    return view


def announce(page: Page, browse: bool) -> None:
    """Print the address of a page, and open it in the browser if ``browse``."""
    print(f"{page.name}: {page.address} (Ctrl+C ends)", flush=True)
    if browse:
        webbrowser.open(page.address)


def _state(name: str, x: ArrayLike, count: int) -> FloatArray:
    values = np.asarray(x, dtype=float)
    if values.shape != (count,) or not np.isfinite(values).all():
        raise ArgumentError(f"{name} must be {count} finite numbers; got {x!r}")
    return values
