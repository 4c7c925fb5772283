"""Services for tests: on a free port of this machine, in a thread, stopped at the end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from sparsezo.serve.server import Server


@pytest.fixture
def serving() -> Iterator[Callable]:
    """serving(session) serves it, and gives it an ``url``."""
    running: list[tuple[Server, threading.Thread]] = []

    def serve(session, **options):
        server = Server(session, **options)
        thread = threading.Thread(target=server.run, kwargs={"sockets": [server.socket]})
        thread.start()
        running.append((server, thread))
        session.url = server.url
        return session

    yield serve
    for server, thread in running:
        server.should_exit = True
        thread.join()
        server.socket.close()
