"""To a Ray of one's own on this machine, or to a cluster: nothing is sent to Ray's makers, nothing listens to others.

    with_ray = connect(None, cpus=2)            # or "auto", "ray://HOST:PORT"
    with_ray.ray, with_ray.cpus
    with_ray.close()

A process that is connected already stays so: that Ray is used, and left as it is.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import platform
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sparsezo import __version__
from sparsezo.errors import SparsezoError, UsageError

AUTO, CLIENT = "auto", "ray://"
REACH_SECONDS = 8.0  # in which a cluster must answer
_MOST_SOCKET = 107  # characters in the path of a socket; Ray's own part of it has some 75
_OWN_SOCKET = 80
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # no telemetry
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # silences a remark about graphics cards
    "RAY_CLIENT_INITIAL_CONNECTION_TIMEOUT_S": "2",
    "RAY_CLIENT_MAX_CONNECTION_TIMEOUT_S": "2",
}
# Ray's word for a Ray that is on this machine alone; without it all its ports listen to everybody. Read at import.
_LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}


@dataclass
class Connection:
    ray: Any  # the module
    cpus: int
    own: bool  # whether to part from it at the end
    scratch: str | None = None  # a folder that goes with it

    def close(self) -> None:
        if self.own:
            self.ray.shutdown()
        if self.scratch is not None:
            shutil.rmtree(self.scratch, ignore_errors=True)


def connect(address: str | None, cpus: int) -> Connection:
    """``cpus``: of a Ray of one's own; a cluster has its own."""
    os.environ.update(_QUIET | (_LOOPBACK | _own_token() if address is None else {}))
    import ray

    if ray.is_initialized():
        return Connection(ray, _cpus(ray), own=False)
    if address is None:
        return _start(ray, cpus)
    reach(address)
    with _handlers_kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            ray.init(address=address, log_to_driver=False, logging_level="error")
        except Exception as error:
            raise _unreached(address, error) from None
    return Connection(ray, _cpus(ray), own=True)


def other_version(version: str) -> str | None:
    """What a worker says to a caller of another version; None to one of its own."""
    if version == __version__:
        return None
    return (
        f"the Ray worker on {platform.node()} has sparsezo {__version__}, and this is {version}; "
        "install the same version on all nodes"
    )


def reach(address: str) -> None:
    """Within seconds: is there anything that could be Ray? Ray itself would try for minutes."""
    import grpc

    try:
        place = address.removeprefix(CLIENT) if address.startswith(CLIENT) else _running()
        host, port = place.rsplit(":", 1)
        socket.create_connection((host.strip("[]"), int(port)), REACH_SECONDS).close()
        if os.environ.get("RAY_USE_TLS", "0").lower() in ("0", "false"):
            with grpc.insecure_channel(place) as channel:
                grpc.channel_ready_future(channel).result(REACH_SECONDS / 2)
    except grpc.FutureTimeoutError:
        raise _unreached(address, "what answers there is not Ray") from None
    except (OSError, ValueError) as error:
        raise _unreached(address, error) from None


def _running() -> str:
    """Where the cluster is that this machine is part of, by RAY_ADDRESS or by Ray's own notes."""
    from ray._private.services import canonicalize_bootstrap_address

    try:
        return str(canonicalize_bootstrap_address(AUTO))
    except ConnectionError:
        raise ConnectionError("no Ray is running on this machine; 'ray start --head' starts one") from None


def _unreached(address: str, why: object) -> UsageError:
    words = str(getattr(why, "strerror", None) or why).strip().partition("\n")[0].rstrip(".")
    if "AuthenticationError" in str(getattr(why, "__cause__", None)):
        words = "it asks for a token: set RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
    return UsageError(f"`ray_address` {address}: cannot be reached ({words}); check it, or leave it out")


def _start(ray: Any, cpus: int) -> Connection:
    """A Ray of one's own: it ends with this process, however that ends."""
    folder = tempfile.mkdtemp(prefix="szray-", dir=_short_place())
    try:
        with _handlers_kept(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            context = ray.init(
                address="local",
                num_cpus=cpus,
                include_dashboard=False,
                log_to_driver=False,
                logging_level="error",
                _node_ip_address="127.0.0.1",
                _temp_dir=folder,
            )
        where = context.address_info["node_ip_address"]
        if not ipaddress.ip_address(where).is_loopback:
            ray.shutdown()
            raise SparsezoError(
                f"Ray would listen to others, on {where}; set {'='.join(*_LOOPBACK.items())} before Ray is imported"
            )
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if isinstance(error, SparsezoError) or not isinstance(error, Exception):
            raise
        reason = str(error).strip().partition("\n")[0]
        raise SparsezoError(f"Ray could not be started ({reason}); use `engine` local") from None
    return Connection(ray, cpus, own=True, scratch=folder)


def _own_token() -> dict[str, str]:
    """Whoever else is on this machine cannot use our Ray. Without one, Ray would leave a token in the home folder."""
    if "RAY_AUTH_MODE" in os.environ or "ray" in sys.modules:  # it is read at import
        return {}
    return {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}


def _short_place() -> str | None:
    """Where the paths of sockets are not too long: the usual place for temporary files, or /tmp."""
    usual = tempfile.gettempdir()
    return usual if len(usual) + _OWN_SOCKET < _MOST_SOCKET or not os.path.isdir("/tmp") else "/tmp"


def _cpus(ray: Any) -> int:
    return max(1, int(ray.cluster_resources().get("CPU", 1)))


@contextlib.contextmanager
def _handlers_kept() -> Iterator[None]:
    """Ray takes SIGTERM for itself; it is ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
