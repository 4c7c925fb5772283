"""For all tests: the real data, compiling once, and no silent skipping."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from compiling import JOBS, compile_once
from sparsezo import messages

if TYPE_CHECKING:
    from sparsezo.study.engines.ray import Connection

_skipped: list[str] = []
_TORTURE_SECONDS = 3600  # for each of the long tests; the others have pyproject.toml's


@pytest.fixture(scope="session")
def real_data() -> Path:
    """The folder that SPARSEZO_DATA names. Where it is not set, or empty, a test that asks for it is skipped."""
    folder = os.environ.get("SPARSEZO_DATA")
    if not folder:
        pytest.skip("needs the real data; set SPARSEZO_DATA to its folder")
    if not Path(folder).is_dir():
        pytest.fail(f"SPARSEZO_DATA is {folder}, and there is no such folder", pytrace=False)
    return Path(folder)


@pytest.fixture(scope="session")
def own_ray() -> Iterator[Connection]:
    """A real Ray with two CPUs, started once. Where it is not installed, its tests are skipped, or fail."""
    if find_spec("ray") is None or find_spec("grpc") is None:
        if os.environ.get("SPARSEZO_RAY") == "must":
            pytest.fail("these tests need sparsezo[ray]", pytrace=False)
        pytest.skip("these tests need sparsezo[ray]; with SPARSEZO_RAY=must they fail without it")
    from sparsezo.study.engines.ray import connect

    before = signal.getsignal(signal.SIGTERM)
    connection = connect(None, 2)
    assert signal.getsignal(signal.SIGTERM) is before
    yield connection
    connection.close()
    assert connection.scratch is not None
    assert not Path(connection.scratch).exists()


@pytest.fixture(scope="session")
def small_tasks(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Any, Any]]:
    """name -> (task, data), a few inputs of each task."""
    from sparsezo.tasks.chunking.synthetic import chunking_corpus
    from sparsezo.tasks.chunking.task import Chunking
    from sparsezo.tasks.registry import task_spec
    from sparsezo.tasks.rerank.io.importing import import_nbest
    from sparsezo.tasks.rerank.task import Reranking
    from sparsezo.tasks.text.synthetic import generate_text
    from sparsezo.tasks.text.task import TextClassification

    folder = tmp_path_factory.mktemp("lists")
    task_spec("rerank").synthetic().write(folder / "train.nbest", folder / "weights", 40, 1, None)
    store = import_nbest(folder / "train.nbest", store_dir=folder / "stores")
    return {
        "chunking": Chunking.fit(chunking_corpus(150, 1), only="NP"),
        "text": TextClassification.fit(generate_text(300, 1, vocabulary=2000, words=30).documents()),
        "rerank": (Reranking.fit(store), store),
    }


@pytest.fixture(autouse=True)
def _remarks_go_where_they_went(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line, run in this process, points them at its own output."""
    monkeypatch.setattr(messages, "_sayer", messages._sayer)


@pytest.fixture
def program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str, str]]:
    """Run the program in this process: (exit code, standard output, standard error)."""
    from sparsezo.cli import main

    def run(*words: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["sparsezo", *map(str, words)])
        before = signal.getsignal(signal.SIGTERM)
        try:
            main()
            code = 0
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        finally:
            signal.signal(signal.SIGTERM, before)
        out, err = capsys.readouterr()
        return code, out, err

    return run


_folder: tempfile.TemporaryDirectory[str] | None = None  # of the process that starts the workers


def pytest_configure(config: pytest.Config) -> None:
    """With several workers, what most tests need is compiled here first, on two cores: otherwise all would wait."""
    global _folder
    if hasattr(config, "workerinput"):
        compile_once(Path(config.workerinput["locks"]))
    elif getattr(config.option, "numprocesses", None):
        _folder = tempfile.TemporaryDirectory()
        script = [sys.executable, str(Path(__file__).parent / "compiling.py"), f"{_folder.name}/locks"]
        compiling = [subprocess.Popen([*script, *jobs]) for jobs in JOBS]
        codes = [each.wait() for each in compiling]
        if any(codes):
            pytest.exit("the training loops do not compile", returncode=1)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    assert _folder is not None
    node.workerinput["locks"] = f"{_folder.name}/locks"


def pytest_unconfigure() -> None:
    if _folder is not None:
        _folder.cleanup()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    # those that need Ray one after the other, and the browser's: of several test processes one starts it, once
    items.sort(key=lambda item: not {"own_ray", "programs"} & {*getattr(item, "fixturenames", ())})
    for item in items:
        if item.get_closest_marker("torture") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(_TORTURE_SECONDS))


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.skipped and "data" in report.keywords and os.environ.get("SPARSEZO_DATA"):
        _skipped.append(report.nodeid)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A test of the real data that was skipped although the data is there has not passed."""
    if _skipped:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if _skipped:
        terminalreporter.write_line(f"SKIPPED ALTHOUGH SPARSEZO_DATA IS SET: {', '.join(_skipped)}", red=True)
