"""predict on many files, by processes and on Ray: the outputs of one process, whole, whoever is killed on the way."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from sparsezo import Chunking, DataError, Model, UsageError, read_conll
from sparsezo.study.engines.base import EngineOptions
from sparsezo.study.engines.tagging import Part, Predictor, find_parts, predict_parts
from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking

N = 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """m.szo, and in/0.txt ... of columns."""
    folder = tmp_path_factory.mktemp("collection")
    (folder / "in").mkdir()
    for k in range(N):
        (folder / f"in/{k}.txt").write_text(chunking_columns(generate_chunking(4, k)))
    task, _ = Chunking.fit(read_conll(folder / "in/0.txt"))
    W = np.random.default_rng(1).normal(size=(task.n_features, task.n_labels)).astype(np.float32)
    Model(task, W, {}, {}).save(folder / "m.szo")
    return folder


@pytest.fixture(scope="module")
def expected(folder) -> dict[str, bytes]:
    """As one process writes them, one after the other."""
    out = folder / "plain"
    parts = find_parts([str(folder / "in")], out)
    assert predict_parts(Predictor(folder / "m.szo", {}), parts, EngineOptions(processes=1)) == []
    return written(out)


def written(out: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(out.rglob("*.pred"))}


class Fragile(Predictor):
    """Whose process is killed at one of the parts, so many times."""

    def __init__(self, *given, part: str, times: int, marks: Path) -> None:
        super().__init__(*given)
        self.part, self.times, self.marks = part, times, marks

    def __call__(self, part: Part) -> str | None:
        if part.input.endswith(self.part):
            for time_ in range(self.times):
                with contextlib.suppress(FileExistsError):
                    (self.marks / f"killed-{time_}").touch(exist_ok=False)
                    os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(part)


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_workers_write_what_one_process_writes_also_where_one_is_killed(folder, expected, engine, request, tmp_path):
    if engine == "ray":
        ray = request.getfixturevalue("own_ray").ray
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    predictor = Fragile(folder / "m.szo", {}, part="3.txt", times=1, marks=tmp_path)
    parts = find_parts([str(folder / "in/*.txt")], tmp_path / "out")
    seen = []
    where = EngineOptions(engine, processes=2)
    assert predict_parts(predictor, parts, where, lambda done, total: seen.append((done, total))) == []
    assert (tmp_path / "killed-0").exists()
    assert written(tmp_path / "out") == expected
    assert seen == [(k, N) for k in range(N + 1)]
    assert not list(tmp_path.rglob(".*.tmp"))


def test_a_part_that_every_process_dies_of_fails_alone(folder, expected, tmp_path):
    predictor = Fragile(folder / "m.szo", {}, part="3.txt", times=99, marks=tmp_path)
    [why] = predict_parts(predictor, find_parts([str(folder / "in")], tmp_path / "out"), EngineOptions(processes=2))
    assert why.startswith(f"{folder}/in/3.txt: its process was killed 3 times; if memory is short")
    assert written(tmp_path / "out") == {name: raw for name, raw in expected.items() if name != "3.txt.pred"}


def test_what_is_done_is_not_done_again_unless_its_input_is_newer(folder, expected, tmp_path):
    parts = find_parts([str(folder / "in")], tmp_path)
    for part in parts:
        Path(part.output).write_text("whole")
    os.utime(parts[2].output, (0, 0))
    os.unlink(parts[4].output)
    assert predict_parts(Predictor(folder / "m.szo", {}), parts, EngineOptions(processes=1)) == []
    redone = {name for name, raw in written(tmp_path).items() if raw != b"whole"}
    assert redone == {"2.txt.pred", "4.txt.pred"}
    assert written(tmp_path)["4.txt.pred"] == expected["4.txt.pred"]


def test_what_becomes_what(tmp_path):
    for name in ("a/x.txt", "a/b/x.txt.gz", "a/.hidden", "a/.git/y", "c/x.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    parts = find_parts([str(tmp_path / "a")], Path("o"))
    assert [part.output for part in parts] == ["o/b/x.txt.pred", "o/x.txt.pred"]
    assert len(find_parts([str(tmp_path / "c/x.txt"), str(tmp_path / "c/*")], Path("o"))) == 1
    with pytest.raises(UsageError, match=r"x\.txt and .*c/x\.txt would both become o/x\.txt\.pred"):
        find_parts([str(tmp_path / "a/x.txt"), str(tmp_path / "c/x.txt")], Path("o"))
    with pytest.raises(DataError, match="no such file, or no file in it"):
        find_parts([str(tmp_path / "*.csv")], Path("o"))
    with pytest.raises(UsageError, match="standard input"):
        find_parts(["-"], Path("o"))


# The command


@pytest.mark.usefixtures("plain")
@pytest.mark.parametrize(
    "words", [pytest.param(["--engine", "ray"], marks=pytest.mark.torture), ["--processes", "2"]], ids=" ".join
)
def test_the_command(folder, expected, program, tmp_path, words, request):
    if "ray" in words:
        request.getfixturevalue("own_ray")
    command = ["predict", folder / "m.szo", folder / "in/*.txt", "-o", tmp_path / "out", *words]
    assert program(*command) == (0, "", f"wrote {N} files in {tmp_path / 'out'}\n")
    assert written(tmp_path / "out") == expected
    assert program("predict", folder / "m.szo", folder / "in/0.txt")[1].encode() == expected["0.txt.pred"]
    before = (tmp_path / "out/1.txt.pred").stat().st_mtime_ns
    assert program(*command)[0] == 0
    assert (tmp_path / "out/1.txt.pred").stat().st_mtime_ns == before


@pytest.mark.usefixtures("plain")
def test_files_that_fail_and_calls_that_are_wrong(folder, program, tmp_path):
    good, bad, out = folder / "in/0.txt", tmp_path / "bad.txt.gz", tmp_path / "out"
    bad.write_bytes(gzip.compress(b"one column\n\nthree columns here\n"))
    code, _, err = program("predict", folder / "m.szo", good, bad, "-o", out)
    assert (code, err.count("failed: "), [*written(out)]) == (1, 1, ["0.txt.pred"])
    assert str(bad) in err
    assert "1 file failed, for the reasons above; the same command tries them again" in err
    assert program("predict", folder / "m.szo", good, bad) == (
        2,
        "",
        "sparsezo: several files become files of a folder: name it with --output\n",
    )
    other = ["predict", folder / "m.szo", good, bad, "-o", out, "--format", "conll"]
    assert "has outputs of another model or with other options" in program(*other)[2]
    for words, said in [
        (["--format", "brat"], "--format brat is a folder"),
        (["--nbest"], "--nbest does not belong to task chunking"),
        (["--ray-address", "auto"], "--ray-address goes with --engine ray"),
    ]:
        code, _, err = program("predict", folder / "m.szo", good, bad, "-o", tmp_path / "new", *words)
        assert code == 2
        assert said in err
    assert not (tmp_path / "new").exists()


@pytest.mark.torture  # seven seconds
def test_a_command_that_is_killed_goes_on_and_leaves_no_process(folder, expected, tmp_path):
    """With the caller gone, its processes end, too."""
    many = tmp_path / "in"
    many.mkdir()
    for k in range(200):
        (many / f"{k}.txt").write_bytes((folder / f"in/{k % N}.txt").read_bytes())
    command = [sys.executable, "-m", "sparsezo", "predict", folder / "m.szo", many, "-o", tmp_path / "out"]
    command += ["--processes", "2"]
    run = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    while len(written(tmp_path / "out")) < 3:
        assert run.poll() is None
        time.sleep(0.001)
    children = [
        child for each in Path(f"/proc/{run.pid}/task").glob("*/children") for child in each.read_text().split()
    ]
    run.kill()
    run.wait()
    assert len(children) >= 2
    until = time.monotonic() + 60
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < until
        time.sleep(0.05)
    subprocess.run(command, check=True, stderr=subprocess.DEVNULL)
    found = written(tmp_path / "out")
    assert len(found) == 200
    assert all(found[f"{k}.txt.pred"] == expected[f"{k % N}.txt.pred"] for k in range(200))
    assert json.loads((tmp_path / "out/predict.json").read_text())["options"] == {}
