"""Training from a stream: a window in memory, each input once in a pass; stopped anywhere it goes on bit for bit."""

from __future__ import annotations

import gzip
import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sparsezo import messages
from sparsezo.errors import DataError, UsageError
from sparsezo.kernels.random import INPUTS, input_at
from sparsezo.settings import Settings
from sparsezo.tasks.chunking.io.conll import read_conll, write_conll
from sparsezo.tasks.chunking.synthetic import chunking_corpus
from sparsezo.tasks.chunking.task import Chunking
from sparsezo.tasks.loading import Files
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.streams import StreamOptions
from sparsezo.tasks.text.io.documents import read_documents
from sparsezo.tasks.text.synthetic import generate_texts
from sparsezo.tasks.text.task import TextClassification
from sparsezo.training import StreamedTraining

SETTINGS = Settings("two-point", "score", 0.01, 0.1, seed=4)
BITS = {"hash_bits": 10}
N, WINDOW = 50, 20


def sentences(path, n=N, seed=1):
    corpus = chunking_corpus(n, seed=seed)
    write_columns(path, corpus)
    return corpus


def write_columns(path, corpus):
    """Words, parts of speech and tags; packed by the name's ending."""
    write_conll(path, replace(corpus, tags=None), corpus.tags)


@pytest.fixture
def train(tmp_path):
    sentences(tmp_path / "train.txt.gz")
    return str(tmp_path / "train.txt.gz")


def streamed(path, window=WINDOW, dev=None, **options):
    return task_spec("chunking").stream(Files((str(path),), dev, None, {**BITS, **options}), window)


def looked_at(run, steps):
    """(window, input) of each step, as the compiled loop draws them."""
    found = []
    for step in range(steps):
        run._hold(step)
        params = run.learner._params
        x = int(input_at(params.keys[INPUTS], params.shift, step, len(run.problem)))
        found.append((run._held % len(run.stream.sizes), x))
    return found


# What is read


def test_a_stream_is_the_file_window_after_window(train) -> None:
    stream = streamed(train).stream
    whole = stream.task.seen(read_conll(train))
    parts = list(stream.read())
    assert [len(part) for part in parts] == list(stream.sizes) == [20, 20, 10]
    assert [tag for part in parts for tag in part.tags] == whole.tags
    assert [word for part in parts for word in part.columns[0]] == whole.columns[0]


@pytest.mark.parametrize("scheme", ["auto", "plain"])
def test_the_task_of_a_stream_is_that_of_the_whole_file(train, scheme) -> None:
    """Tags that only one window has are found, and of plain tags the one that most sentences end with."""
    stream = streamed(train, window=7, scheme=scheme).stream
    with messages.gathered():
        whole, _ = Chunking.fit(read_conll(train), scheme=scheme, **BITS)
    assert stream.task.to_arrays() == whole.to_arrays()


def test_inputs_that_are_held_out_are_dev_and_no_part_of_the_stream(train) -> None:
    found = streamed(train, dev="12")
    whole = read_conll(train)
    assert found.dev.columns[0] == whole[:12].columns[0]
    assert sum(found.stream.sizes) == N - 12
    assert next(found.stream.read()).columns[0] == whole[12:32].columns[0]


def test_a_stream_of_documents_is_the_task_of_all_of_them(tmp_path) -> None:
    paths = []
    texts = list(generate_texts(60, seed=2))
    for name, some in (("a.tsv", texts[:35]), ("b.tsv.gz", texts[35:])):
        data = "".join(f"{label}\t{text}\n" for label, text in some).encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        paths.append(str(tmp_path / name))
    found = task_spec("text").stream(Files(tuple(paths), "40", None, BITS), 8)
    documents = read_documents(paths)
    whole, prepared = TextClassification.fit(documents.take(slice(40, None)), **BITS)
    assert found.stream.task.classes == whole.classes
    matrices = [part.matrix.toarray() for part in found.stream.read()]
    assert list(map(len, matrices)) == list(found.stream.sizes) == [8, 8, 4]
    assert np.array_equal(np.concatenate(matrices), prepared.matrix.toarray())
    assert found.dev.documents.texts == documents.take(slice(0, 40)).texts


# Steps


def test_windows_one_after_the_other_and_in_each_all_of_its_inputs(train) -> None:
    run = StreamedTraining(streamed(train), SETTINGS, 1)
    seen = looked_at(run, 2 * N)
    for start in (0, N):
        windows = [w for w, _ in seen[start : start + N]]
        assert windows == [0] * 20 + [1] * 20 + [2] * 10
        for w, size in enumerate((20, 20, 10)):
            assert sorted(x for v, x in seen[start : start + N] if v == w) == list(range(size))
    assert seen[:N] != seen[N:]  # every pass in an order of its own


def test_a_step_learns_from_the_input_it_looks_at(tmp_path) -> None:
    """Documents of one word each, supervised: after a pass every word has moved, and none before its turn."""
    path = tmp_path / "t.tsv"
    path.write_text("".join(f"{'ab'[k % 2]}\tword{k:03}\n" for k in range(30)))
    files = Files((str(path),), None, None, {"hash_bits": 16})
    found = task_spec("text").stream(files, 8)
    run = StreamedTraining(found, Settings("supervised", None, 0.1, None), 30)
    rows = np.concatenate([part.matrix.indices for part in found.stream.read()])
    assert len(set(rows.tolist())) == 30
    for done in (5, 8, 11, 29, 30):
        run._advance(done - run.learner.step, None)
        moved = run.learner.state.W[rows].any(axis=1)
        assert moved.sum() == done
        assert moved[: done // 8 * 8].all()  # whole windows


@pytest.mark.parametrize(
    "settings",
    [SETTINGS, Settings("two-point", "all", 0.003, 0.1), Settings("first-order", None, 0.1, None, step="adagrad")],
    ids=str,
)
def test_stopped_anywhere_a_run_goes_on_bit_for_bit(train, tmp_path, settings) -> None:
    def run(**more):
        return StreamedTraining(streamed(train, dev="5"), settings, 170, evaluate_every=30, **more)

    whole = run()
    model = whole.learn()
    checkpoint = tmp_path / "checkpoint"
    for stop in (1, 20, 42, 45, 70, 130):  # within windows, at their ends, at the end of a pass, in later passes
        first = run(checkpoint=checkpoint)
        first._evaluate()
        while first.learner.step < stop:
            first._advance(min(stop, first._due) - first.learner.step, None)
            if first.learner.step == first._due - 30 and first.learner.step < stop + 1:
                first._evaluate()
        first._save()
        second = run(checkpoint=checkpoint, resume=True)
        assert second.learner.step == stop
        again = second.learn()
        assert np.array_equal(second.learner.state.W, whole.learner.state.W)
        assert np.array_equal(again.W, model.W)
        assert second.learner.average_loss == whole.learner.average_loss
        checkpoint.unlink()


def test_a_checkpoint_of_another_file_or_window_is_refused(train, tmp_path) -> None:
    checkpoint = tmp_path / "checkpoint"
    run = StreamedTraining(streamed(train), SETTINGS, 60, checkpoint=checkpoint)
    run._save()
    sentences(tmp_path / "other.txt", seed=2)
    smaller = streamed(train, window=10)
    same_hash = replace(smaller, stream=replace(smaller.stream, known_by=run.stream.known_by))  # not by what was read
    for other in (smaller, same_hash, streamed(tmp_path / "other.txt")):
        with pytest.raises(UsageError, match="is of a run with other train"):
            StreamedTraining(other, SETTINGS, 60, checkpoint=checkpoint, resume=True)


def test_memory_is_the_windows_whatever_the_files_size(tmp_path) -> None:
    peaks = []
    for n in (300, 1200):
        sentences(tmp_path / f"{n}.txt", n)
        tracemalloc.start()
        run = StreamedTraining(streamed(tmp_path / f"{n}.txt", window=100), SETTINGS, n)
        run._advance(n, None)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.25 * peaks[0]


# What is refused


def test_a_file_that_changes_under_way_ends_the_run(train) -> None:
    run = StreamedTraining(streamed(train), SETTINGS, 100)
    sentences(train, n=45)
    with pytest.raises(DataError, match="changed while it was read"):
        run._advance(100, None)


def test_a_file_that_is_cut_off_is_refused_before_learning(train, tmp_path) -> None:
    packed = tmp_path / "cut.txt.gz"
    packed.write_bytes(Path(train).read_bytes()[:-200])
    with pytest.raises(DataError, match="is the file cut off"):
        streamed(packed)
    plain = tmp_path / "cut.txt"
    text = gzip.decompress(Path(train).read_bytes()).decode().rstrip()
    plain.write_text(text[: text.rindex(" ")])  # within a sentence, before its last tag
    with pytest.raises(DataError, match=r"cut\.txt:\d+: has 2 columns where"):
        streamed(plain)


def test_an_empty_file_and_one_that_is_all_held_out_are_refused(train, tmp_path) -> None:
    (tmp_path / "empty.txt").write_text("\n\n")
    with pytest.raises(DataError, match="holds no token"):
        streamed(tmp_path / "empty.txt")
    with pytest.raises(DataError, match="no more than the 50 inputs that are held out"):
        streamed(train, dev="50")
    (tmp_path / "empty.tsv").write_text("")
    with pytest.raises(DataError, match="is empty"):
        task_spec("text").stream(Files((str(tmp_path / "empty.tsv"),), None, None, BITS), 5)


def test_what_cannot_be_read_twice_is_refused(tmp_path) -> None:
    with pytest.raises(UsageError, match="standard input can be read only once"):
        streamed("-")
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is no regular file"):
        streamed(tmp_path / "pipe")


def test_a_stream_needs_hash_bits(train) -> None:
    for task in ("chunking", "text"):
        with pytest.raises(UsageError, match="`stream` needs `hash_bits`: a vocabulary would have"):
            task_spec(task).stream(Files((train,)), WINDOW)


def test_formats_and_settings_that_do_not_go_with_a_stream(train, tmp_path) -> None:
    (tmp_path / "t.svm").write_text("1 3:0.5 7:2\n-1 4:1\n")
    with pytest.raises(UsageError, match="read from tsv, csv, jsonl, and this is svmlight"):
        task_spec("text").stream(Files((str(tmp_path / "t.svm"),), None, None, BITS), 5)
    (tmp_path / "t.crfsuite").write_text("B-NP\tw=a\n" * 4 + "\n")
    with pytest.raises(UsageError, match="from column files, not from crfsuite"):
        streamed(tmp_path / "t.crfsuite")
    with pytest.raises(UsageError, match="leave one of them out"):
        streamed(train, tags="NP")
    found = streamed(train)
    asking = Settings("part", None, 0.1, None, step="adagrad")
    for settings, more in ((asking, {}), (SETTINGS, {"scorer": object()})):
        with pytest.raises(UsageError, match="leave"):
            StreamedTraining(found, settings, 10, **more)
    with pytest.raises(UsageError, match="task rerank has no `stream`"):
        task_spec("rerank").stream(Files(), 5)
    with pytest.raises(UsageError, match="`window` 5: belongs to `stream`"):
        StreamOptions(window=5)
    with pytest.raises(UsageError, match="`window` 0: must be"):
        StreamOptions(stream=True, window=0)


def test_remarks_about_tags_are_made_once_not_for_every_window(tmp_path) -> None:
    path = tmp_path / "t.txt"
    path.write_text("a X O\nb X I-NP\n\na X O\nb X B-NP\n\n" * 6)  # no scheme has both
    with messages.gathered() as said:
        found = streamed(path, window=2)
        list(found.stream.read())
    assert len(said) == 1
