"""Collections: found in the right order; fetched whole and checked, or not at all."""

from __future__ import annotations

import gzip
import hashlib
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sparsezo import datasets
from sparsezo.datasets import COLLECTIONS, Download, describe, fetch, find, not_found, places
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.storage.cache import cache_folder

CONTENT = {"train.txt.gz": b"the DT B-NP\ncat NN I-NP\n\n", "test.txt.gz": b"dogs NNS B-NP\n\n"}


@pytest.fixture(autouse=True)
def machine(tmp_path, monkeypatch) -> Path:
    """A machine without data: the cache is in tmp_path, and nothing else is set."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARSEZO_DATA", raising=False)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    return tmp_path


def put(root: Path, name: str, files: tuple[str, ...] | None = None) -> Path:
    folder = root / COLLECTIONS[name].folder
    folder.mkdir(parents=True)
    for file in COLLECTIONS[name].files if files is None else files:
        (folder / file).write_bytes(b"")
    return folder


# Finding


def test_places_are_looked_at_in_order(machine, monkeypatch):
    assert find("conll2000") is None
    cached = put(cache_folder("data"), "conll2000")
    assert find("conll2000") == cached
    by_variable = put(machine / "variable", "conll2000")
    monkeypatch.setenv("SPARSEZO_DATA", str(machine / "variable"))
    assert find("conll2000") == by_variable
    given = put(machine / "given", "conll2000")
    assert find("conll2000", machine / "given") == given
    assert find("conll2000", machine / "elsewhere") == by_variable
    assert places(machine / "given") == [machine / "given", machine / "variable", cache_folder("data")]


def test_a_collection_is_found_whole(machine):
    put(machine, "wmt07", COLLECTIONS["wmt07"].files[:-1])
    assert find("wmt07", machine) is None
    assert "smt/weights.in-domain is missing" in str(not_found("wmt07", machine))
    assert "data get conll2000" in str(not_found("conll2000", machine))
    assert str(machine / "conll2000") in str(not_found("conll2000", machine))


def test_files_may_be_packed(machine):
    folder = put(machine, "rcv1", tuple(f"{name}.gz" for name in COLLECTIONS["rcv1"].files))
    assert find("rcv1", machine) == folder


@pytest.mark.parametrize("name", COLLECTIONS)
def test_each_is_described(name):
    text = describe(name)
    assert all(part in text for part in (*COLLECTIONS[name].files, COLLECTIONS[name].home, "licence", "to get"))
    assert all(len(line) <= 200 for line in text.splitlines())


def test_an_unknown_name_is_a_mistake():
    for call in (find, describe, fetch):
        with pytest.raises(UsageError, match="collection conll2003: choose from conll2000, rcv1, wmt07, 20news"):
            call("conll2003")


def test_the_layout_is_the_one_that_experiments_read():
    from sparsezo.study.plan import builtin

    for name, plan in (("conll2000", "chunking"), ("wmt07", "smt"), ("20news", "text")):
        one, data = COLLECTIONS[name], builtin(plan).data
        wanted = {*data.train, *([data.test] if data.test else [])}
        assert wanted <= {f"{one.folder}/{file}" for file in one.files}


@pytest.mark.data
def test_the_checksums_are_of_the_published_files(real_data):
    one = COLLECTIONS["conll2000"]
    for download in one.downloads:
        raw = (real_data / one.folder / download.name).read_bytes()
        assert hashlib.sha256(gzip.decompress(raw)).hexdigest() == download.sha256


# Fetching


@dataclass
class Site:
    """A web site on this machine: what it serves, and what it was asked for."""

    address: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    encoding: str | None = None
    asked: list[str] = field(default_factory=list)


@pytest.fixture
def site(monkeypatch) -> Iterator[Site]:
    pytest.importorskip("pooch")
    site = Site(files={name: gzip.compress(content) for name, content in CONTENT.items()})

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.lstrip("/")
            site.asked.append(name)
            body = site.files.get(name)
            self.send_response(404 if body is None else 200)
            if site.encoding:
                self.send_header("Content-Encoding", site.encoding)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        site.address = f"http://127.0.0.1:{server.server_port}/"
        at(site.address, monkeypatch)
        yield site
        server.shutdown()
        thread.join()


def at(address: str, monkeypatch) -> None:
    downloads = tuple(
        Download(name, address + name, hashlib.sha256(content).hexdigest()) for name, content in CONTENT.items()
    )
    monkeypatch.setitem(COLLECTIONS, "conll2000", replace(COLLECTIONS["conll2000"], downloads=downloads))


def unpacked(folder: Path) -> dict[str, bytes]:
    return {file.name: gzip.decompress(file.read_bytes()) for file in folder.iterdir()}


def test_fetched_once(site, machine):
    said: list[str] = []
    fetched = fetch("conll2000", said.append)
    assert fetched.folder == find("conll2000") == machine / "cache/sparsezo/data/conll2000"
    assert fetched.downloaded == ("train.txt.gz", "test.txt.gz")
    assert unpacked(fetched.folder) == CONTENT
    assert said == [f"fetching {site.address}{name}" for name in CONTENT]
    assert fetch("conll2000").downloaded == ()
    assert site.asked == list(CONTENT)


def test_only_what_is_not_right_is_fetched_again(site):
    folder = fetch("conll2000").folder
    (folder / "test.txt.gz").write_bytes(b"\x1f\x8bcut off")
    assert fetch("conll2000").downloaded == ("test.txt.gz",)
    assert unpacked(folder) == CONTENT


def test_another_packing_is_the_same_file(site):
    site.files = {name: gzip.compress(content, 1, mtime=1) for name, content in CONTENT.items()}
    assert unpacked(fetch("conll2000").folder) == CONTENT


def test_a_server_that_declares_the_packing(site):
    """Then the library unpacks on the way; the file is packed again."""
    site.encoding = "gzip"
    assert unpacked(fetch("conll2000").folder) == CONTENT
    assert fetch("conll2000").downloaded == ()


@pytest.mark.parametrize(
    "body",
    [gzip.compress(b"other"), b"<html>log in first</html>", b"\x1f\x8bcut", b""],
    ids=["other", "page", "cut", "empty"],
)
def test_another_file_is_not_kept(site, machine, body):
    site.files["test.txt.gz"] = body
    with pytest.raises(SparsezoError, match=r"test\.txt\.gz: is not the published file .* nothing is kept"):
        fetch("conll2000")
    assert not (machine / "cache").exists()


def test_a_file_that_is_gone(site, machine):
    del site.files["test.txt.gz"]
    with pytest.raises(SparsezoError, match=r"test\.txt\.gz: answers with 404; .*SPARSEZO_DATA"):
        fetch("conll2000")
    assert not (machine / "cache").exists()


def test_no_network(machine, monkeypatch):
    pytest.importorskip("pooch")
    with socket.socket() as closed:  # bound but not listening: nobody else has the port, and nobody answers
        closed.bind(("127.0.0.1", 0))
        at(f"http://127.0.0.1:{closed.getsockname()[1]}/", monkeypatch)
        with pytest.raises(SparsezoError, match=r"cannot be reached \(is there a network\?\); .*`data` DIR") as failure:
            fetch("conll2000")
    assert "\n" not in str(failure.value)
    assert failure.value.exit_code == 1
    assert not (machine / "cache").exists()


def test_without_pooch(monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(UsageError, match=r"pip install pooch"):
        fetch("conll2000")


def test_what_is_there_needs_no_pooch(machine, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    at("http://127.0.0.1:9/", monkeypatch)
    folder = put(cache_folder("data"), "conll2000")
    for name, content in CONTENT.items():
        (folder / name).write_bytes(gzip.compress(content))
    assert fetch("conll2000") == datasets.Fetched(folder, ())


def test_what_has_no_download_cannot_be_fetched():
    with pytest.raises(UsageError, match="rcv1 cannot be fetched; sparsezo data list"):
        fetch("rcv1")
