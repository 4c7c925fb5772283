"""train from no labels, with a scorer: end to end, failing and going on."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import numpy as np
import pytest

from sparsezo.model import load_model
from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking

EXAMPLE = Path(__file__).parents[2] / "examples" / "keyword_scorer.py"
pytestmark = pytest.mark.usefixtures("plain")


def scorer(path):
    return f"{shlex.quote(sys.executable)} {shlex.quote(str(path))}"


@pytest.fixture
def raw(tmp_path):
    path = tmp_path / "raw.txt"
    about = {"sci": ("orbit", "rocket", "energy"), "talk": ("tax", "law", "debate")}
    words = [about[name][k % 3] for k in range(30) for name in about]
    path.write_text("".join(f"of the {word} and more of it\n" for word in words))
    return path


def test_the_example_teaches_from_documents_without_labels(program, tmp_path, raw):
    model = tmp_path / "m.szo"
    words = ["train", "text", "--train", raw, "--classes", "sci,talk", "--rule", "preference", "--vectors", "none"]
    code, out, err = program(*words, "--answers", 150, "--scorer", scorer(EXAMPLE), "-o", model, "--json")
    assert code == 0, err
    assert f"{raw}: 60 documents without labels, texts" in err
    result = json.loads(out.splitlines()[-1])
    assert (result["answers"], result["dev"], result["scorer"]) == (150, None, scorer(EXAMPLE))
    code, out, _ = program("predict", model, raw, "--labels-only")
    assert out.split() == ["sci", "talk"] * 30


def test_a_scorer_that_dies_leaves_a_checkpoint_from_which_the_run_goes_on(program, tmp_path, raw):
    """The program ends at its eleventh question, but only the first time."""
    code = EXAMPLE.read_text().replace("for line in sys.stdin:", "for count, line in enumerate(sys.stdin):")
    mark = tmp_path / "mark"
    dying = f"""
    if count == 10 and not __import__("os").path.exists({str(mark)!r}):
        open({str(mark)!r}, "w").close()
        sys.exit("no more of this")
"""
    path = tmp_path / "dying.py"
    path.write_text(code.replace("    question =", dying + "    question =", 1))
    words = ["train", "text", "--train", raw, "--classes", "sci,talk", "--rule", "two-point", "--iterations", 300]
    words += ["--scorer", scorer(path)]
    code, _, err = program(*words, "-o", tmp_path / "m.szo")
    assert code == 1
    last = err.splitlines()[-1]
    assert last.startswith(f"sparsezo: scorer '{scorer(path)[:40]}")
    assert "ended with exit code 1 after 10 answers; its last error: 'no more of this'; stopped at step " in last
    assert last.endswith("and the same command with --resume goes on from there")
    assert not (tmp_path / "m.szo").exists()
    assert program(*words, "-o", tmp_path / "m.szo", "--resume")[0] == 0
    assert program(*words, "-o", tmp_path / "whole.szo")[0] == 0
    whole, resumed = (load_model(tmp_path / f"{name}.szo").W for name in ("whole", "m"))
    np.testing.assert_array_equal(whole, resumed)
    assert (whole != 0).any()


def test_a_tagger_from_running_text(program, tmp_path):
    sentences = generate_chunking(40, 1)
    labelled = tmp_path / "dev.txt"
    labelled.write_text("".join(chunking_columns([each]) for each in sentences))
    blocks = labelled.read_text().strip().split("\n\n")
    raw = tmp_path / "raw.txt"
    raw.write_text("".join(" ".join(line.split()[0] for line in each.splitlines()) + "\n" for each in blocks))
    dev = tmp_path / "two.txt"
    dev.write_text("\n\n".join("\n".join(f"{l.split()[0]} {l.split()[2]}" for l in b.splitlines()) for b in blocks))
    judge = tmp_path / "judge.py"
    judge.write_text("""import json, sys
for line in sys.stdin:
    question = json.loads(line)
    print("yes" if question["tag"] == "O" else "no", flush=True)
""")
    words = ["train", "chunking", "--train", raw, "--dev", dev, "--tags", "NP", "--only", "NP", "--rule", "part"]
    code, out, err = program(*words, "--answers", 40, "--scorer", scorer(judge), "-o", tmp_path / "m.szo", "--json")
    assert code == 0, err
    assert f"{raw}: raw text, 40 documents" in err
    assert json.loads(out.splitlines()[-1])["dev"] is not None
    code, out, _ = program("predict", tmp_path / "m.szo", raw)
    assert [json.loads(line)["text"] for line in out.splitlines()] == raw.read_text().splitlines()


def test_lists_without_references_and_a_function(program, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert program("data", "make", "rerank", "-o", "train.nbest", "-n", 8)[0] == 0
    Path("train.ref").unlink()
    Path("shortest_of_a_test.py").write_text("def judge(question): return [len(h) for h in question['hypotheses']]\n")
    words = ["train", "rerank", "--train", "train.nbest", "--rule", "comparison", "--iterations", 50, "-o", "r.szo"]
    code, _, err = program(*words, "--scorer", "shortest_of_a_test:judge")
    assert code == 0, err
    assert "train.ref is not there, so these are lists without references" in err
    code, _, err = program(*words, "--force")
    assert code == 1
    assert "its lists have no references to compare with; name their file, or train with a --scorer" in err


@pytest.mark.parametrize(
    ("more", "code", "why"),
    [
        ([], 1, "has no labels; write label TAB text, one document a line, or train with a --scorer"),
        (["--scorer", "no-such-program"], 1, "scorer 'no-such-program': cannot be started: there is no program"),
        (["--scorer", "no_such_module:f"], 1, "scorer no_such_module:f: no_such_module cannot be imported"),
        (["--scorer", "cat 'x"], 2, "--scorer cat 'x: No closing quotation"),
        (["--scorer", "cat", "--scorer-seconds", "0"], 2, "--scorer-seconds 0.0: must be positive"),
        (["--scorer", "cat", "--rule", "supervised"], 2, "rule supervised learns from correct outputs"),
        (["--scorer", "cat", "--dev", "3"], 2, "--dev 3: "),
        (["--scorer", "cat"], 1, ": feedback {"),  # it says what it was asked
    ],
)
def test_what_is_wrong_is_one_line(program, tmp_path, raw, more, code, why):
    words = ["train", "text", "--train", raw, "--classes", "sci,talk", "--iterations", 20, "-o", tmp_path / "m.szo"]
    found, _, err = program(*words, *more)
    assert found == code
    assert why in err.splitlines()[-1]
    assert "Traceback" not in err
