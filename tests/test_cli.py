"""The command line as scripts and people use it: results, exit codes, one line for what is wrong."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from sparsezo.cli import show
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.generate import chunking_columns, generate_chunking

PROGRAM = [sys.executable, "-m", "sparsezo"]


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("chunking")
    for name, n, seed in [("train", 300, 1), ("dev", 60, 2), ("test", 80, 3)]:
        (folder / name).write_text(chunking_columns(generate_chunking(n, seed)))
    return folder


def last_json(out: str) -> dict[str, object]:
    return json.loads(out.splitlines()[-1])


def test_train_evaluate_predict(program, files, tmp_path):
    model = tmp_path / "model.szo"
    data = ["--train", files / "train", "--dev", files / "dev", "--test", files / "test"]
    code, out, _ = program("train", "chunking", *data, "--iterations", "30k", "--h", 0.01, "-o", model, "--json")
    assert code == 0
    trained = last_json(out)
    assert out.count("\n") == 1
    assert trained["iterations"] == 30_000
    assert trained["test"] > 0.6
    assert [p.name for p in tmp_path.iterdir()] == ["model.szo"]

    code, out, _ = program("evaluate", model, files / "test", "--json")
    assert code == 0
    evaluated = last_json(out)
    assert evaluated["f1"] == trained["test"]
    assert {"precision", "recall"} <= set(evaluated)

    code, out, _ = program("predict", model, files / "test")
    assert code == 0
    rows = [line.split(" ") for line in out.splitlines()]
    given = [line.split(" ") for line in (files / "test").read_text().splitlines()]
    assert [row[:3] for row in rows if row != [""]] == [row for row in given if row != [""]]
    assert {row[3] for row in rows if row != [""]} <= {"B-NP", "I-NP", "O"}
    untagged = tmp_path / "untagged"
    untagged.write_text("".join(" ".join(row[:2]) + "\n" for row in given))
    code, out, _ = program("predict", model, untagged, "-o", tmp_path / "predicted")
    assert code == 0
    assert out == ""
    written = (tmp_path / "predicted").read_text().splitlines()
    assert [line.split(" ")[-1] for line in written] == [row[-1] for row in rows]


def test_dev_as_a_number_is_the_start_of_train(program, files, tmp_path):
    """--dev N must be the same run as the two files cut by hand."""
    lines = (files / "train").read_text().split("\n\n")
    (tmp_path / "dev").write_text("\n\n".join(lines[:50]) + "\n\n")
    (tmp_path / "rest").write_text("\n\n".join(lines[50:]))
    common = ["--iterations", "2k", "--json", "-o", tmp_path / "m"]
    _, number, _ = program("train", "chunking", "--train", files / "train", "--dev", 50, *common)
    _, two, _ = program("train", "chunking", "--train", tmp_path / "rest", "--dev", tmp_path / "dev", *common)
    timings = {"seconds", "us_per_iteration"}
    first, second = ({k: v for k, v in last_json(out).items() if k not in timings} for out in (number, two))
    assert first == second


def test_people_get_a_table(program, files, tmp_path):
    code, out, err = program("train", "chunking", "--train", files / "dev", "--iterations", "100", "-o", tmp_path / "m")
    assert code == 0
    assert "average_loss" in out
    assert "wrote" in err


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "file: no such file; check the path"),
        ("", "file: holds no token"),
        ("a DT B-NP\nb NN\n", "file:2: has 2 columns where line 1 has 3"),
        ("a\nb\n", "file:1: has 1 column where at least 2 are needed; the last one must be the tag"),
        ("a DT S-NP\n", "file:1: tag 'S-NP' is not IOB1 or IOB2"),
        ("a DT O\n", "file: has no chunk, every tag is O"),
        ("a DT B-NP\n\nb \udcff O\n", "file:3: is not UTF-8"),
    ],
)
def test_bad_training_files(program, tmp_path, content, message):
    if content is not None:
        (tmp_path / "file").write_bytes(content.encode("utf-8", "surrogateescape"))
    code, out, err = program("train", "chunking", "--train", tmp_path / "file", "-o", tmp_path / "model")
    assert code == 1
    assert out == ""
    assert err.startswith("sparsezo: ")
    assert message in err
    assert err.count("\n") == 1
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--dev", "300"], "--dev 300: "),
        (["--dev", "0"], "--dev 0: hold out at least one"),
        (["--h", "nan"], "--h nan: must be positive and finite"),
        (["--h", "-0.1"], "--h -0.1: must be positive"),
        (["--mu", "inf"], "--mu inf: must be positive and finite"),
        (["--mu", "0"], "--mu 0.0: must be positive"),
        (["--rule", "best"], "--rule best: choose from two-point"),
        (["--perturb", "all", "--step", "adagrad"], "adagrad with --perturb all"),
        (["--rule", "first-order", "--mu", "1"], "first-order perturbs nothing"),
        (["--criterion", "annealed", "--gamma", "0"], "--gamma 0.0: must be positive"),
        (["--iterations", "0"], "--iterations 0: must be a whole number"),
        (["--iterations", "4Q"], "--iterations 4Q: must be a whole number"),
        (["--only", "XP"], "no chunk of type 'XP'; the types in it are: NP"),
        (["--order", "3"], "--order 3: must be 1"),
        (["--min-count", "0"], "--min-count 0: must be at least 1"),
    ],
)
def test_bad_calls(program, files, tmp_path, words, message):
    code, out, err = program("train", "chunking", "--train", files / "train", "-o", tmp_path / "model", *words)
    assert code == 2
    assert out == ""
    assert message in err
    assert err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_other_bad_calls(program, files, tmp_path):
    code, _, err = program("train", "parsing", "--train", files / "train", "-o", tmp_path / "m")
    assert (code, "task parsing: choose from chunking" in err) == (2, True)
    code, _, err = program("train", "chunking", "--train", files / "train", "-o", tmp_path / "no" / "m")
    assert (code, "there is no folder" in err) == (1, True)
    code, _, err = program("evaluate", files / "train", files / "test")
    assert (code, "is not a sparsezo model" in err) == (1, True)
    code, _, err = program("train", "chunking", "--train", files / "train")
    assert (code, "Missing option" in err) == (2, True)
    code, _, err = program("bench", "parsing")
    assert (code, "choose from chunking" in err) == (2, True)


def test_scores_that_run_away(program, files, tmp_path):
    words = ["--train", files / "dev", "--h", "1e38", "--iterations", "1000", "-o", tmp_path / "m"]
    code, _, err = program("train", "chunking", *words)
    assert code == 1
    assert "the scores or the loss are not finite; h 1e+38" in err
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk(files, tmp_path):
    """A real one, or nearly: the system lets the process write only 10 kB a file."""
    words = ["train", "chunking", "--train", str(files / "dev"), "--iterations", "100", "-o"]
    subprocess.run(
        [*PROGRAM, *words, str(tmp_path / "first")], check=True, capture_output=True
    )  # compiled code is there
    (tmp_path / "first").unlink()
    done = subprocess.run(
        [*PROGRAM, *words, str(tmp_path / "m")],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
    )
    assert done.returncode == 1
    assert "cannot be written (File too large); free some space" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_help_needs_nothing_heavy():
    code = (
        "import sys; sys.argv = ['sparsezo', '--help']\n"
        "from sparsezo.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "sys.exit(bool({'numba', 'numpy', 'scipy', 'sklearn'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0
    for command in ("train", "predict", "evaluate", "demo", "bench"):
        assert command in done.stdout


def test_a_second_process_compiles_nothing(files, tmp_path):
    command = [*PROGRAM, "train", "chunking", "--train", str(files / "dev"), "--dev", "10", "--iterations", "200"]
    environment = {**os.environ, "NUMBA_DEBUG_CACHE": "1"}
    for name in ("first", "second"):
        done = subprocess.run(
            [*command, "-o", str(tmp_path / name)], capture_output=True, text=True, check=True, env=environment
        )
    assert "data loaded" in done.stdout
    assert "saved" not in done.stdout


# demo and bench


def test_every_option_of_demo_and_bench_arrives(program, monkeypatch):
    from sparsezo.cli import bench, demo

    seen = []
    monkeypatch.setattr(demo, "run_demo", lambda *args, **keywords: seen.append((args, keywords)))
    monkeypatch.setattr(bench, "run_bench", lambda *args, **keywords: seen.append((args, keywords)))
    monkeypatch.delenv("SPARSEZO_DATA", raising=False)
    for words in (
        ["demo"],
        ["demo", "--seconds", "2.5", "--no-report", "--json"],
        ["demo", "-o", "there"],
        ["bench", "text"],
        ["bench", "rerank", "--data", "D", "--rounds", "7", "--json"],
    ):
        assert program(*words) == (0, "", "")
    monkeypatch.setenv("SPARSEZO_DATA", "E")
    assert program("bench", "chunking") == (0, "", "")
    assert seen == [
        ((30.0, Path("demo-report")), {"as_json": False}),
        ((2.5, None), {"as_json": True}),
        ((30.0, Path("there")), {"as_json": False}),
        (("text", None, 5), {"as_json": False}),
        (("rerank", Path("D"), 7), {"as_json": True}),
        (("chunking", Path("E"), 5), {"as_json": False}),
    ]


@pytest.fixture
def quick(monkeypatch):
    """A demo whose trainings only say what they are; the later ones are the better ones."""
    from sparsezo.cli import demo

    asked = []

    class Quick:
        def __init__(self, task, data, settings, iterations, *, evaluate_every):
            asked.append(
                (settings, iterations, evaluate_every, [len(each) for each in (data.train, data.dev, data.test)])
            )
            self.result = settings.as_dict() | {
                "test": len(asked) / 100,
                "average_loss": 0.25,
                "us_per_iteration": 12.34,
                "iterations": iterations,
            }

        def go(self, progress):
            return SimpleNamespace(result=self.result)

    monkeypatch.setattr(demo, "Training", Quick)
    monkeypatch.setattr(demo, "_SENTENCES", {"train": (20, 1), "dev": (6, 2), "test": (8, 3)})
    monkeypatch.setattr(show, "note_compiling", lambda: None)
    monkeypatch.setattr(show, "output", Console(highlight=False, force_terminal=False, width=120))
    return asked


def test_demo_runs_every_rule_with_every_perturbation(program, quick):
    code, out, err = program("demo", "--seconds", "2.5", "--no-report", "--json")
    assert code == 0
    assert "17 learners, 10,000 steps each, on GENERATED sentences (20 to learn from)" in err
    fields = last_json(out)
    assert {name: fields[name] for name in ("data", "iterations", "report")} == {
        "data": "generated",
        "iterations": 10_000,
        "report": None,
    }
    zeroth_order = ("two-point", "symmetric", "comparison", "preference", "baseline")
    h = {"all": 1e-4, "active": 3e-4, "score": 1e-3}
    expected = [Settings(rule, perturb, h[perturb], 0.1) for rule in zeroth_order for perturb in h]
    expected += [Settings(rule, None, 0.01, None) for rule in ("first-order", "supervised")]
    assert [settings for settings, *_ in quick] == expected
    assert {tuple(map(str, rest)) for _, *rest in quick} == {("10000", "500", "[20, 6, 8]")}
    shown = [(each["rule"], each["perturb"]) for each in fields["learners"]]
    assert shown == [(each.rule, each.perturb) for each in reversed(expected)]
    assert program("demo", "--seconds", "0.1", "--no-report")[0] == 0
    assert quick[-1][1:3] == (1000, 50)


def test_demo_for_people_is_a_table_and_a_report(program, quick, monkeypatch, tmp_path):
    from sparsezo.cli import experiments

    seen = []
    monkeypatch.setattr(experiments, "run_reproduce", lambda *args, **keywords: seen.append((args, keywords)))
    code, out, _ = program("demo", "-o", tmp_path)
    assert code == 0
    assert "NP chunking, generated data, 120,000 steps, one seed, best on dev" in out
    rows = [line.replace("│", " ").split() for line in out.splitlines() if line.startswith("│")]
    assert rows[0] == ["1", "supervised", "-", "0.1700", "0.2500", "12.3", "0.01", "-"]
    assert rows[2] == ["3", "baseline", "score", "0.1500", "0.2500", "12.3", "0.001", "0.1"]
    assert f"also on generated data: {tmp_path.resolve() / 'report' / 'report.html'}" in out
    settings = {"chunking": (0.003, 0.1), "smt": (0.001, 0.1)}
    small = {"seeds": 2, "iterations": "50k", "phases": "fixed", "out": tmp_path, "at": settings}
    assert seen == [(("all", "generated"), small)]


def test_a_bench_measures_and_shows(program, monkeypatch):
    from sparsezo.bench import rerank as bench_rerank

    fields = {
        "bench": "rerank",
        "data": "60 generated lists",
        "candidates": 5000.0,
        "features": 14,
        "numpy_us": 20.0,
        "learners": {"two-point active": {"us": 12.345, "ratio": 0.61725}},
    }
    seen = []
    monkeypatch.setattr(bench_rerank, "measure", lambda *args: seen.append(args) or fields)
    monkeypatch.setattr(show, "output", Console(highlight=False, force_terminal=False, width=120))
    monkeypatch.delenv("SPARSEZO_DATA", raising=False)
    code, out, _ = program("bench", "rerank", "--rounds", "3", "--json")
    assert (code, last_json(out)) == (0, fields)
    code, out, err = program("bench", "rerank", "--data", "D")
    assert code == 0
    assert err == "60 generated lists: 5,000 candidates a list, 14 features\n"
    assert ["two-point", "active", "12.35", "0.617"] in [line.replace("│", " ").split() for line in out.splitlines()]
    assert "to NumPy's 20.0 us" in out
    assert seen == [(None, 3), (Path("D"), 5)]


def test_the_best_of_all_rounds_counts_and_all_take_turns(capsys):
    from sparsezo.cli.bench import best_of

    order, times = [], {"a": [3.0, 1.0, 2.0], "b": [5.0, 6.0, 4.0]}

    def timed(name):
        order.append(name)
        return times[name].pop(0)

    assert best_of(3, {"a": lambda: timed("a"), "b": lambda: timed("b")}) == {"a": 1.0, "b": 4.0}
    assert order == ["a", "b"] * 3
    assert capsys.readouterr().err.splitlines() == [f"round {number} of 3" for number in (1, 2, 3)]


def test_compiling_is_said_only_where_it_is_done(monkeypatch, tmp_path, capsys):
    from sparsezo.kernels import jit

    monkeypatch.setattr(jit, "CACHE", tmp_path)
    show.note_compiling()
    assert capsys.readouterr().err == "compiling the training loop: about half a minute, once on this machine\n"
    (tmp_path / "kernels").mkdir()
    (tmp_path / "kernels" / "loop.run-1.py311.nbi").touch()
    show.note_compiling()
    assert capsys.readouterr().err == ""
