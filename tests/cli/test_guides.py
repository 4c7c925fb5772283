"""README, the first five minutes and the guides: their commands and their Python run, on small files of those names."""

from __future__ import annotations

import gzip
import io
import itertools
import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path

import pytest

from sparsezo.cli import reproduce
from sparsezo.study.plan import builtin

pytestmark = pytest.mark.usefixtures("plain")

ROOT = Path(__file__).parents[2]
GUIDES = sorted((ROOT / "docs" / "guides").glob("*.md"))
PAGES = ["README.md", "docs/first-tagger.md", "docs/training.md", *(f"docs/guides/{page.name}" for page in GUIDES)]
SMALL = {"--iterations": "300", "--evaluate-every": "100", "--answers": "20", "--processes": "1"}
ELSEWHERE = "sparsezo train clicks "  # in tests/test_own_parts.py


def commands(page: str) -> list[str]:
    """Of indented blocks, with their continued lines. What installs, and what make does, is not run here."""
    lines = (ROOT / page).read_text("utf-8").replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if re.match(r"    (zcat \S+ \| )?sparsezo ", line)]


def blocks(page: str) -> list[str]:
    return [part.split("```")[0] for part in (ROOT / page).read_text("utf-8").split("```python\n")[1:]]


@pytest.fixture
def filled(served, program, tmp_path, monkeypatch):
    """A folder with all files that the pages name; names.szo is the model of a short session."""
    monkeypatch.setattr(reproduce, "run_reproduce", lambda name, **given: builtin(name))  # of hours
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    for task, name in (("chunking", "train.txt.gz"), ("text", "train.tsv.gz"), ("rerank", "train.nbest.xz")):
        assert program("data", "make", task, "-o", name, "-n", 60)[0] == 0
        for other in ("dev", "test", "new"):
            shutil.copy(name, name.replace("train", other))
            if task == "rerank":
                shutil.copy("train.ref", f"{other}.ref")
    shutil.copy("train.weights.out-of-domain", "weights.out-of-domain")
    spans = [{"start": 0, "end": 4, "label": label} for label in ("PER", "LOC", "ORG")]
    thumbs = [json.dumps({"text": "Ruth came.", "spans": [span], "feedback": span is spans[0]}) for span in spans]
    mails = [f"the {what} of {k}" for k in range(20) for what in ("order", "complaint")]
    texts = {
        "new.txt": "The DT\ncat NN\n\nA DT\ndog NN\n",
        "more.txt": "The cat sat.\nRuth Okafor came.\n",
        "news/a.txt": "The cat sat.\n",
        "news/b.txt": "A dog came.\n",
        "mails.jsonl": "".join(json.dumps({"text": mail}) + "\n" for mail in mails),
        "lists.nbest": "".join(f"{k} ||| house {j} ||| LM={j} TM={k % 3} ||| 0\n" for k in range(30) for j in range(3)),
        "lists.src": "".join(f"source {k}\n" for k in range(30)),
        "my_metric.py": "while True:\n    input()\n    print('yes', flush=True)\n",
        "thumbs.jsonl": "\n".join(thumbs),
        "later.jsonl": "\n".join(thumbs),
    }
    (tmp_path / "news").mkdir()
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    with gzip.open("mails.csv.gz", "wt") as out:
        out.write("id,body\n" + "".join(f"{k},{mail}\n" for k, mail in enumerate(mails)))
    assert served("chunking", "--inputs", "raw.txt", "--tags", "PER,LOC,ORG", "--log", "first.serve")[0] == 0
    assert program("replay", "first.serve", "-o", "names.szo")[0] == 0
    return tmp_path


def smaller(words: list[str]) -> list[str]:
    """The same command with less to do."""
    found = [
        "20" if before == "--dev" and word.isdigit() else SMALL.get(before, word)
        for before, word in itertools.pairwise(["", *words])
    ]
    return [*found, *(["--iterations", "200", "--processes", "1"] if words[0] == "tune" else [])]


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_the_commands_of_a_page_run(filled, served, program, monkeypatch, page):
    for line in commands(page):
        if line.startswith(ELSEWHERE):
            continue
        words = shlex.split(line, comments=True)
        if words[0] == "zcat":
            unpacked = gzip.decompress(Path(words[1]).read_bytes())
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(unpacked)))
            words = words[words.index("|") + 1 :]
        words, kept = (words[: words.index(">")], words[-1]) if ">" in words else (words, None)
        if words[1] == "replay":
            Path(words[-1]).unlink(missing_ok=True)
        code, out, err = served(*words[2:]) if words[1] == "serve" else program(*smaller(words[1:]))
        assert code == 0, f"{line}\n{err}"
        if kept:
            assert out
            Path(kept).write_text(out, "utf-8")


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page)])
def test_the_python_of_a_page_runs(filled, page):
    for block in blocks(page):
        exec(block, {})


def test_these_pages_have_what_is_tested_above():
    assert sum(len(commands(page)) for page in PAGES) >= 25
    assert sum(len(blocks(page)) for page in PAGES) >= 4
