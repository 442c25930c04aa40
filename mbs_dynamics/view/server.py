# Copyright 2026 The mbs_dynamics authors
# SPDX-License-Identifier: Apache-2.0
"""The server of a page: its port, and the check of requests."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import io
import re
import secrets
import socket
import threading
from collections.abc import Iterator
from email.message import Message

from mbs_dynamics.errors import ArgumentError, missing_extra, quoted

try:
    import viser
except ImportError as error:
    raise missing_extra("the viewer needs viser and trimesh", "view", error) from error

HOST = "127.0.0.1"
"""Address of the server, reachable from this machine only."""

OWN_HOST = re.compile(r"(127\.0\.0\.1|localhost|\[::1\])(:[0-9]+)?", re.IGNORECASE)
"""Valid values of the header Host. Any port is valid, since ssh may forward another one."""

PORTS = range(8080, 8100)
"""Ports tried by default."""


class Server:
    """A viser server behind a check of each connection.

    Pages of other sites can send requests to this machine, and if their names resolve to its
    address, they can read the answers (DNS rebinding). Viser has no option against this.
    Connections whose request has another Host or Origin are therefore refused, and the others are
    passed on to viser, which listens on a random loopback address that such pages cannot know.
    """

    def __init__(self, port: int | None, label: str) -> None:
        """Serve at a port: None for the first free one of PORTS, 0 for any free one.

        Raises ArgumentError if the port is invalid or taken.
        """
        self._socket = _listening(port)
        inner = _inner_address()
        with quietly():
            self.viser = viser.ViserServer(host=inner, port=0, label=label, verbose=False)
        self._inner = inner, self.viser.get_port()
        self.port: int = self._socket.getsockname()[1]
        ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve(ready)), daemon=True)
        self._thread.start()
        ready.wait()

    def close(self) -> None:
        """Stop both servers."""
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join()
        with quietly():
            self.viser.stop()

    async def _serve(self, ready: threading.Event) -> None:
        self._loop, self._closing = asyncio.get_running_loop(), asyncio.Event()
        server = await asyncio.start_server(self._answer, sock=self._socket)
        ready.set()
        await self._closing.wait()
        server.close()  # open connections are cancelled at the end of the event loop

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Check the first request of a connection, and forward the connection or refuse it."""
        ended = asyncio.IncompleteReadError, asyncio.LimitOverrunError, asyncio.CancelledError
        with contextlib.suppress(OSError, *ended):
            head = await reader.readuntil(b"\r\n\r\n")
            problem = foreign(http.client.parse_headers(io.BytesIO(head.partition(b"\r\n")[2])))
            if problem:
                text = f"refused: {problem}\n".encode()
                writer.write(b"HTTP/1.1 403 Forbidden\r\nConnection: close\r\n")
                writer.write(b"Content-Length: %d\r\n\r\n%b" % (len(text), text))
                await writer.drain()
            else:
                answers, requests = await asyncio.open_connection(*self._inner)
                requests.write(head)
                await asyncio.gather(_copy(reader, requests), _copy(answers, writer))
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Copy a stream until its end."""
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    finally:
        writer.close()


def foreign(headers: Message) -> str:
    """Return why HTTP headers are not those of a page of this server; empty if they are."""
    host, origins = ", ".join(headers.get_all("Host", [])), headers.get_all("Origin", [])
    if not OWN_HOST.fullmatch(host):
        return f"Host is {quoted(host)}; valid: 127.0.0.1, localhost and [::1], with a port"
    if origins and origins != [f"http://{host}"]:
        return f"Origin is {quoted(', '.join(origins))}; must be 'http://{host}', or none"
    return ""


def _listening(port: int | None) -> socket.socket:
    """Return a socket that listens at a port; raise ArgumentError if it is invalid or taken."""
    if port is not None and not 0 <= port <= 65535:
        raise ArgumentError(f"the port must be 0 to 65535; got {port}")
    for each in (*PORTS, 0) if port is None else (port,):
        with contextlib.suppress(OSError):
            return socket.create_server((HOST, each))
    raise ArgumentError(f"port {port} is taken; --port 0 chooses a free one")


def _inner_address() -> str:
    """Return a random loopback address, or the only one of macOS."""
    address = ".".join(str(part) for part in (127, *secrets.token_bytes(2), 2))
    with contextlib.suppress(OSError):
        socket.create_server((address, 0)).close()
        return address
    return HOST


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Suppress the output of viser, since the command prints the address."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield
