# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The server of a page: its port, and the requests that it answers."""

from __future__ import annotations

import contextlib
import io
import re
import socket
import threading
from collections.abc import Iterator
from http import HTTPStatus
from typing import Any

from mbs_dynamics.errors import ArgumentError, BackendError, quoted

try:
    import viser
    import websockets.asyncio.server
except ImportError as error:
    raise BackendError(
        "the viewer needs viser and trimesh: install the extra 'view' of this package"
    ) from error

HOST = "127.0.0.1"
"""Address of the server, reachable from this machine only."""

OWN_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?", re.IGNORECASE)
"""Valid values of the header Host. Ports may differ: ssh forwards them."""

PORTS = range(8080, 8100)
"""Ports tried by default."""


def check_port(port: int | None) -> None:
    """Raise ArgumentError for a port that is invalid or taken; None and 0 are neither."""
    if port is not None and not 0 <= port <= 65535:
        raise ArgumentError(f"the port must be 0 to 65535; got {port}")
    if port and not _is_free(port):
        raise ArgumentError(f"port {port} is taken; --port 0 chooses a free one")


def serve(port: int | None, label: str) -> viser.ViserServer:
    """Return a server at a port, None for the first free one of PORTS, 0 for any free one.

    Raises ArgumentError if the port is invalid or taken.
    """
    check_port(port)
    if port is None:
        port = next(filter(_is_free, PORTS), 0)
    with quietly(), _refusing_foreign_pages():
        return viser.ViserServer(host=HOST, port=port or _any_port(), label=label, verbose=False)


_starting = threading.Lock()


@contextlib.contextmanager
def _refusing_foreign_pages() -> Iterator[None]:
    """Let servers that are started meanwhile refuse requests of the pages of other sites.

    viser has no option for it. Other sites can send requests to this machine, and those whose names
    resolve to its address can read the answers (DNS rebinding).
    """
    checked = []

    def checking(*args: Any, process_request: Any = None, **options: Any) -> Any:
        def process(connection: Any, request: Any) -> Any:
            problem = _foreign(request.headers)
            if problem:
                return connection.respond(HTTPStatus.FORBIDDEN, f"refused: {problem}\n")
            return process_request(connection, request) if process_request else None

        checked.append(True)
        return unchecked(*args, process_request=process, **options)

    with _starting:
        unchecked = websockets.asyncio.server.serve
        websockets.asyncio.server.serve = checking  # type: ignore[assignment, misc]
        try:
            yield
        finally:
            websockets.asyncio.server.serve = unchecked  # type: ignore[misc]
    if not checked:
        raise BackendError(
            f"the viewer cannot check requests with viser {viser.__version__}; install viser 1.1"
        )


def _foreign(headers: Any) -> str:
    """Return why HTTP headers are not those of a page of this server; empty if they are."""
    host, origins = ", ".join(headers.get_all("Host")), headers.get_all("Origin")
    if not OWN_HOST.fullmatch(host):
        return f"Host is {quoted(host)}; valid are 127.0.0.1, localhost and [::1], with a port"
    if origins and origins != [f"http://{host}"]:
        return f"Origin is {quoted(', '.join(origins))}; valid is 'http://{host}', or none"
    return ""


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
        except OSError:
            return False
    return True


def _any_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Suppress the output of viser; the command prints the address itself."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
