"""A cluster of two Ray nodes on loopback: one is stopped in mid-sweep, and the results are those of one machine.

Long: make torture.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest
from sweeps import HANGS, results

pytestmark = pytest.mark.torture

PLAN = """
task = "chunking"
iterations = 800_000
seeds = 6
[data]
train = "train.txt"
dev = 30
test = "test.txt"
options = { only = "NP" }
[[learner]]
rule = "two-point"
step = "constant"
[[learner]]
rule = "comparison"
step = "constant"
"""
LOOPBACK = "127.0.0.2"  # Ray takes 127.0.0.1 for the address by which others reach this machine


def free_port() -> int:
    with socket.create_server((LOOPBACK, 0)) as found:
        return int(found.getsockname()[1])


class Cluster:
    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        self.nodes: list[subprocess.Popen] = []
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        inherited = {
            name: value for name, value in os.environ.items() if not name.startswith("RAY_")
        }  # one machine's own
        self.environment = inherited | token | {"RAY_USAGE_STATS_ENABLED": "0"}
        self._add(self._head)
        self._add(lambda: (f"--address={self.environment['RAY_ADDRESS']}",))

    def _head(self) -> tuple[str, ...]:
        port, clients = free_port(), free_port()
        self.environment["RAY_ADDRESS"] = f"{LOOPBACK}:{port}"
        ports = (f"--port={port}", f"--ray-client-server-port={clients}")
        return ("--head", *ports, f"--temp-dir={self.folder}", "--include-dashboard=false")

    def _add(self, words: Callable[[], tuple[str, ...]]) -> None:
        """A port may be taken between finding it and using it: a node that ends at once is started anew."""
        self.nodes.append(self._start(*words()))
        until, again = time.monotonic() + HANGS, 2
        while (log := self.log.read_text()).count("Ray runtime started.") < len(self.nodes):
            ended = self.nodes[-1].poll() is not None
            if time.monotonic() > until or (ended and not again):
                self.end()
                pytest.fail(log)
            if ended:
                again -= 1
                self.nodes[-1] = self._start(*words())
            time.sleep(0.1)

    def _start(self, *words: str) -> subprocess.Popen:
        ray = Path(sys.executable).with_name("ray")
        usual = ("--num-cpus=1", f"--node-ip-address={LOOPBACK}", "--disable-usage-stats", "--block")
        environment = {name: value for name, value in self.environment.items() if name != "RAY_ADDRESS"}
        with open(self.log, "a") as log:
            command = [str(ray), "start", *usual, *words]
            return subprocess.Popen(command, env=environment, stdout=log, stderr=log, start_new_session=True)

    def stop(self, node: int) -> None:
        """All that the node has started is in its group, or ends with what is."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.nodes[node].pid, signal.SIGKILL)  # asked kindly, Ray lets runs go on for half a minute
        self.nodes[node].wait(HANGS)

    def end(self) -> None:
        for node in reversed(range(len(self.nodes))):
            self.stop(node)
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def cluster():
    if find_spec("ray") is None or find_spec("grpc") is None:
        pytest.skip("needs sparsezo[ray]")
    # sockets have short names
    made = Cluster(Path(tempfile.mkdtemp(prefix="szcluster-", dir="/tmp")))
    yield made
    made.end()


def test_a_node_is_stopped_in_mid_sweep_and_the_table_is_the_same(cluster, tmp_path):
    (tmp_path / "plan.toml").write_text(PLAN)
    words = [sys.executable, "-m", "sparsezo", "reproduce", str(tmp_path / "plan.toml"), "--data", "generated", "-o"]
    subprocess.run([*words, str(tmp_path / "here")], check=True)
    there = tmp_path / "there"
    command = [*words, str(there), "--engine", "ray", "--ray-address", "auto", "--processes", "2"]
    sweep = subprocess.Popen(command, env=cluster.environment, stderr=subprocess.PIPE, text=True)
    until = time.monotonic() + HANGS
    while len(list(there.glob("runs/*/run.json"))) < 3:
        assert sweep.poll() is None, sweep.communicate()
        assert time.monotonic() < until
        time.sleep(0.05)
    cluster.stop(1)
    said = sweep.communicate(timeout=HANGS)[1]
    assert sweep.returncode == 0, said
    assert "its worker died (" in said
    assert len(results(there)) == 12
    assert results(there) == results(tmp_path / "here")
