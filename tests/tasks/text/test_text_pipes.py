"""Documents from pipes, which can be opened once and read once: every format, with more than is looked at first."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sparsezo.model import Model
from sparsezo.storage import files
from sparsezo.tasks.text.documents import read_documents
from sparsezo.tasks.text.task import TextClassification

N = 20_000
TEXT = {
    "tsv": "".join(f"c{k % 2}\tword{k}\n" for k in range(N)),
    "text": "".join(f"word{k}\n" for k in range(N)),
    "csv": "text,label\n" + "".join(f"word{k},c{k % 2}\n" for k in range(N)),
    "jsonl": "".join(f'{{"text": "word{k}", "label": "c{k % 2}"}}\n' for k in range(N)),
    "svmlight": "".join(f"c{k % 2} {k + 1}:0.5\n" for k in range(N)),
    "lyrl": "".join(f".I {k}\n.W\nword{k}\n\n" for k in range(N)),
}


def feed(path: str | int, content: bytes) -> threading.Thread:
    def write() -> None:
        with open(path, "wb") as stream:
            stream.write(content)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


@pytest.mark.parametrize("format", [*TEXT])
def test_a_pipe_is_read_from_its_first_line_to_its_last(tmp_path: Path, format: str) -> None:
    content = TEXT[format].encode()
    assert len(content) > 2 * 2**16
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = feed(str(fifo), content)
    documents = read_documents(fifo, labelled=False)
    writer.join()
    assert len(documents) == N
    assert documents.lines.tolist() == [k * 4 + 1 if format == "lyrl" else k + 1 + (format == "csv") for k in range(N)]
    if documents.vectors is not None:
        assert documents.vectors.indices.tolist() == list(range(1, N + 1))
    else:
        assert documents.texts == [f"word{k}" for k in range(N)]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_standard_input(monkeypatch: pytest.MonkeyPatch, pack) -> None:
    reading, writing = os.pipe()
    writer = feed(writing, pack(TEXT["tsv"].encode()))
    with open(reading, "rb") as stream:
        monkeypatch.setattr(files.sys, "stdin", SimpleNamespace(buffer=stream))
        documents = read_documents("-")
    writer.join()
    assert documents.labels == [f"c{k % 2}" for k in range(N)]
    assert documents.where(0) == "-:1"


@pytest.mark.parametrize("name", ["-", "/dev/stdin"])
def test_every_line_of_a_pipe_is_predicted(tmp_path: Path, name: str) -> None:
    """More than is looked at to find the format; a pipe cannot be opened again."""
    (tmp_path / "train").write_text("A\tred\nB\tblue\n")
    task, _ = TextClassification.fit(read_documents(tmp_path / "train"))
    Model(task, np.array([[0, 1], [1, 0]], np.float32), {}, {}).save(tmp_path / "model")  # blue is B, red is A
    lines = 30_000
    done = subprocess.run(
        [sys.executable, "-m", "sparsezo", "predict", str(tmp_path / "model"), name, "--labels-only"],
        input="blue\n" + "red\n" * (lines - 2) + "blue\n",
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "B\n" + "A\n" * (lines - 2) + "B\n"
