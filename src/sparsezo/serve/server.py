"""The server of an app: uvicorn, with bounds for clients that are slow, idle or many.

serve(session, port=8000, ready=print)         # until SIGINT or SIGTERM; ready gets the address, with the port it has
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import socket
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import uvicorn
from threadpoolctl import threadpool_limits
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from sparsezo.errors import UsageError
from sparsezo.serve.app import LOOPBACK, App
from sparsezo.serve.label_studio import Backend

if TYPE_CHECKING:
    from sparsezo.serve.session import Session

KEEP_ALIVE_SECONDS = 75  # between two requests of a connection: a person may think that long
HEAD_SECONDS = 10.0  # for a request's head to come, from a connection's start or from its first byte
MOST_HEAD_BYTES = 32 * 1024
MOST_CONNECTIONS = 4000  # idle ones too; above this many, 503
_SWITCH_SECONDS = 0.0005  # that a thread may keep others from running: Python's own 5 ms add up where dozens answer
_ANY = ("0.0.0.0", "::", "")  # every address of this machine


class Patient(HttpToolsProtocol):
    """uvicorn waits for a request's head for ever, and httptools keeps as much of one as comes: here are the bounds."""

    _timer: asyncio.TimerHandle | None = None
    _head_bytes = 0

    def _between_requests(self) -> bool:
        return self.cycle is None or bool(self.cycle.response_complete)

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def data_received(self, data: bytes) -> None:
        self._head_bytes += len(data)
        super().data_received(data)
        if not self._between_requests():
            self._head_bytes = 0
            self._stop_timer()
        elif self._head_bytes > MOST_HEAD_BYTES:
            self.transport.close()
        elif self._timer is None:
            self._timer = self.loop.call_later(HEAD_SECONDS, self._too_slow)

    def _too_slow(self) -> None:
        self._timer = None
        if self._between_requests() and not self.transport.is_closing():
            self.transport.close()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        super().connection_lost(exc)


class Server(uvicorn.Server):
    """Listens from the start, at ``url``."""

    def __init__(self, session: Session, host: str = "127.0.0.1", port: int = 0, *, label_studio: bool = False) -> None:
        loopback = host in LOOPBACK or host == "::1"
        super().__init__(
            uvicorn.Config(
                App(session, LOOPBACK if loopback else None, Backend(session) if label_studio else None),
                http=Patient,
                ws="none",
                lifespan="off",
                access_log=False,
                log_config=None,
                server_header=False,
                proxy_headers=False,
                limit_concurrency=MOST_CONNECTIONS,
                timeout_keep_alive=KEEP_ALIVE_SECONDS,
                timeout_graceful_shutdown=5,
            )
        )
        self.socket = _listening(host, port)
        name = socket.gethostname() if host in _ANY else host
        shown = f"[{name}]" if ":" in name else name
        self.url = f"http://{shown}:{self.socket.getsockname()[1]}"


def serve(
    session: Session,
    host: str = "127.0.0.1",
    port: int = 0,
    ready: Callable[[str], object] = lambda url: None,
    *,
    label_studio: bool = False,
) -> None:
    """Until it is stopped. The session stays open: whoever opened it closes it."""
    _more_files()
    sys.setswitchinterval(_SWITCH_SECONDS)
    gc.freeze()  # what is there now stays: else all of it is gone through now and then while everybody waits
    server = Server(session, host, port, label_studio=label_studio)
    with server.socket, threadpool_limits(1):  # BLAS's threads wait for each other by turning in circles
        ready(server.url)  # it listens already: who connects now is answered in a moment
        server.run(sockets=[server.socket])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.create_server(address[:2], family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        raise UsageError(f"cannot listen at `host` {host} `port` {port}: {error}") from None
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it; else a reply may wait 40 ms
    return made


def check_port(host: str, port: int) -> None:
    """Refused in one line where nobody could listen there; before anything is made, that is cheap to find out."""
    _listening(host, port).close()


def _more_files() -> None:
    """As many connections as the system allows, if that is more than it gives by itself."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        wanted = MOST_CONNECTIONS + 500
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        if soft != resource.RLIM_INFINITY and soft < most:
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
