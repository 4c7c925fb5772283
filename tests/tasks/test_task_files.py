"""From files to a task and its data: what train, dev and test are, and every option of a task."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from sparsezo import messages
from sparsezo.errors import SparsezoError, UsageError
from sparsezo.tasks.chunking.io import files as chunking
from sparsezo.tasks.chunking.io.conll import read_conll
from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking
from sparsezo.tasks.loading import Files
from sparsezo.tasks.rerank.io import files as rerank
from sparsezo.tasks.text.io import files as text
from sparsezo.tasks.text.io.documents import read_documents


@pytest.fixture(scope="module")
def sentences(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("chunking")
    (folder / "train").write_text(chunking_columns(generate_chunking(20, 1)))
    return folder


@pytest.fixture
def lists(tmp_path) -> Path:
    (tmp_path / "x.nbest").write_text(LISTS)
    (tmp_path / "x.ref").write_text("a small house\nwe go home now\n")
    (tmp_path / "weights").write_text("TM -0.5\nLM 0.25\nUnseen 4\n")
    return tmp_path


LISTS = """\
0 ||| the small house ||| LM=1.5 TM=0.25 ||| 0
0 ||| a small house ||| LM=-2 TM=0.5 Extra=3 ||| 0
1 ||| we go home now ||| TM=2 ||| 0
1 ||| go we home ||| LM=1 TM=-1 ||| 0
"""


def test_dev_is_a_number_only_where_no_such_file_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Files(dev="12").held_out() == 12
    assert Files(dev=None).held_out() is None
    assert Files(dev="12.txt").held_out() is None
    Path("12").touch()
    assert Files(dev="12").held_out() is None
    with pytest.raises(UsageError, match=r"^`dev` 0: hold out at least one input, or leave `dev` out$"):
        Files(dev="0").held_out()
    assert Files(dev="1").held_out() == 1
    assert Files(dev="007").held_out() == 7
    for other in ("²", "١٢", "４", "1²"):  # digits to Python, and to nobody's shell
        assert Files(dev=other).held_out() is None
    assert Files(dev="9" * 5000).held_out() is None


def test_chunking_reads_what_the_options_say(sentences, tmp_path):
    (tmp_path / "template").write_text("U00:%x[0,1]\n")
    train = (str(sentences / "train"),)
    loaded = chunking.load(Files(train, "5", None, {"template": str(tmp_path / "template")}))
    rest = {
        line.split()[1] for part in (sentences / "train").read_text().split("\n\n")[5:] for line in part.splitlines()
    }
    assert (len(loaded.data.dev), len(loaded.data.train), loaded.data.test, loaded.W) == (5, 15, None, None)
    assert len(loaded.task.index) == len(rest)
    assert [str(each) for each in loaded.task.index.templates] == ["U00:%x[0,1]"]
    assert loaded.data.train.columns[0][0] == read_conll(train[0])[5:].columns[0][0]
    assert loaded.task.order == 2
    first = chunking.load(Files(train, None, None, {"order": 1, "min_count": 3, "only": "NP"}))
    assert (first.task.order, first.task.only, first.data.dev) == (1, "NP", None)
    assert len(first.task.index) < len(chunking.load(Files(train)).task.index)
    with pytest.raises(UsageError, match=r"^`raw_tf` does not belong to task chunking$"):
        chunking.load(Files(train, None, None, {"raw_tf": True}))
    with pytest.raises(UsageError, match=r"^chunking takes one `train` file, not 2$"):
        chunking.load(Files(train * 2))
    with pytest.raises(UsageError) as caught:
        chunking.load(Files(train, "20"))
    assert str(caught.value) == f"`dev` 20: {train[0]} has only 20 sentences; hold out fewer, or name a file"


def test_chunking_keeps_one_type_in_dev_and_test_too(tmp_path):
    (tmp_path / "file").write_text("a DT B-NP\nb VB B-VP\n\nc DT B-NP\n")
    path = str(tmp_path / "file")
    loaded = chunking.load(Files((path,), path, path, {"only": "NP"}))
    for part in (loaded.data.train, loaded.data.dev, loaded.data.test, chunking.read(loaded.task, path, {})):
        assert list(part.tags) == ["B-NP", "O", "B-NP"]


COLUMNS = "the DT B-NP\nman NN E-NP\nran VBD O\n\nhe PRP S-NP\nran VBD O\n\nhe PRP S-NP\nwon VBD O\n"


@pytest.fixture
def model():
    """A task as a model that predicts these outputs."""

    def model(task, *tags: str) -> SimpleNamespace:
        outputs = np.array([task.tags.index(tag) for tag in tags], np.int32)
        return SimpleNamespace(task=task, predict=lambda corpus: outputs)

    return model


def test_chunking_writes_the_files_own_scheme(tmp_path, model):
    (tmp_path / "file").write_text(COLUMNS)
    path = str(tmp_path / "file")
    with messages.gathered() as said:
        loaded = chunking.load(Files((path,), "1", path))
    assert said == []
    assert (loaded.task.scheme, loaded.data.train.tags) == ("bioes", ["B-NP", "O"] * 2)
    assert loaded.data.dev.tags == ["B-NP", "I-NP", "O"]
    assert (
        loaded.data.test.tags == chunking.read(loaded.task, path, {}).tags == ["B-NP", "I-NP", "O", *["B-NP", "O"] * 2]
    )
    written = "".join(chunking.predict(model(loaded.task, *["B-NP", "I-NP"] * 3, "O"), path, {}))
    tags = ["B-NP B-NP", "E-NP E-NP", "O S-NP", "S-NP S-NP", "O S-NP", "S-NP S-NP", "O O"]
    assert [line.partition(" ")[2].partition(" ")[2] for line in written.split("\n") if line] == tags
    first = chunking.load(Files((path,), None, None, {"scheme": "iob1"}))
    assert (first.task.scheme, first.data.train.tags) == ("iob1", loaded.data.test.tags)


def test_a_broken_tag_is_said_once_for_each_file(tmp_path):
    """Also where dev is cut off: the file is looked at as a whole."""
    (tmp_path / "train").write_text("a DT B-NP\n\nb DT B-NP\n\nc DT I-NP\n\nd DT B-NP\ne NN I-NP\n\nf DT I-NP\n")
    (tmp_path / "test").write_text("a DT B-NP\n\nb DT O\nc DT I-NP\n")
    train, test = str(tmp_path / "train"), str(tmp_path / "test")
    with messages.gathered() as said:
        chunking.load(Files((train,), "3", test))
    assert said == [
        f"{train}:5: tag 'I-NP' breaks IOB2, the first of 2 that do; read as conlleval reads them",
        f"{test}:4: tag 'I-NP' breaks IOB2; read as conlleval reads it",
    ]


def test_chunking_reads_the_column_that_the_training_file_had(tmp_path, model):
    (tmp_path / "file").write_text(COLUMNS)
    (tmp_path / "words").write_text("he\nran\n")
    path = str(tmp_path / "file")
    with messages.gathered() as said:
        loaded = chunking.load(Files((path,), path, path, {"column": "2"}))
    task = loaded.task
    assert (task.scheme, task.n_columns, task.column, task.order) == ("plain", 1, "2", 2)
    assert len(said) == 2  # plain tags, and features for words alone
    pos = ["DT", "NN", "VBD", "PRP", "VBD", "PRP", "VBD"]
    for part in (loaded.data.train, loaded.data.dev, loaded.data.test, chunking.read(task, path, {})):
        assert part.tags == pos
    assert chunking.read(task, path, {"column": "2"}).tags == pos
    assert "".join(chunking.predict(model(task, "PRP", "VBD"), str(tmp_path / "words"), {})) == "he PRP\nran VBD\n\n"
    written = "".join(chunking.predict(model(task, *pos), path, {}))
    assert written.startswith("the DT DT\nman NN NN\nran VBD VBD\n\n")
    with pytest.raises(UsageError, match=r"^`column` POS: give a number from 2"):
        chunking.load(Files((path,), path, path, {"column": "POS"}))


def test_conllu_in_and_out(tmp_path, put, model):
    rows = [
        "# text = he ran",
        "1\the\t_\tPRON\tPRP\t_\t2\tnsubj\t_\t_",
        "2\tran\t_\tVERB\tVBD\t_\t0\troot\t_\t_",
        "",
        "",
    ]
    path = put("a.conllu", "\n".join(rows))
    with messages.gathered():
        task = chunking.load(Files((str(path),), str(path), str(path), {"column": "xpos"})).task
    assert (task.tags, task.column, task.n_columns) == (("PRP", "VBD"), "XPOS", 1)
    assert chunking.read(task, str(path), {}).tags == ["PRP", "VBD"]
    assert chunking.read(task, str(path), {"column": "UPOS"}).tags == ["PRON", "VERB"]
    written = "".join(chunking.predict(model(task, "VBD", "PRP"), str(path), {}))
    assert written == path.read_text().replace("PRP", "?").replace("VBD", "PRP").replace("?", "VBD")
    (tmp_path / "plain").write_text("he\nran\n")
    written = "".join(chunking.predict(model(task, "VBD", "PRP"), str(tmp_path / "plain"), {}))
    assert written == "he VBD\nran PRP\n\n"


DOCUMENTS = "A\tred red red blue\nB\tblue green\nA\tred\n"


@pytest.fixture
def documents(tmp_path) -> str:
    (tmp_path / "documents").write_text(DOCUMENTS)
    return str(tmp_path / "documents")


def test_options_reach_the_features(documents):
    """green is in one document, blue in two, red in two."""
    for options in ({}, {"raw_tf": False}, {"raw_tf": True}):
        task = text.load(Files((documents,), None, None, options)).task
        assert task.vectoriser.settings["sublinear_tf"] is not options.get("raw_tf", False)
    assert [text.load(Files((documents,), None, None, o)).task.n_features for o in ({}, {"min_count": 2})] == [3, 2]


def test_all_parts_are_read_in_the_same_way(documents, monkeypatch):
    seen = []

    def read(paths, **reading):
        seen.append((paths, reading))
        return read_documents(documents)

    monkeypatch.setattr(text, "read_documents", read)
    reading = {"format": "csv", "topics": "q", "text_column": "a", "label_column": "2"}
    text.load(Files(("a", "b"), "dev", "test", {**reading, "min_count": 1, "raw_tf": True}))
    assert seen == [(("a", "b"), reading), ("dev", reading), ("test", reading)]


def test_text_reads_what_the_options_say(documents, tmp_path):
    loaded = text.load(Files((documents, documents), "1", documents, {"format": "tsv"}))
    assert [len(part) for part in (loaded.data.train, loaded.data.dev, loaded.data.test)] == [5, 1, 3]
    assert list(loaded.data.train.documents.labels[:2]) == ["B", "A"]
    assert list(loaded.data.dev.documents.labels) == ["A"]
    assert loaded.W is None
    named = text.load(Files((documents,), documents))
    assert (len(named.data.dev), len(named.data.train), named.data.test) == (3, 3, None)
    for place in ({"train": (documents,)}, {"train": (documents,), "dev": documents, "test": documents}):
        with pytest.raises(SparsezoError):  # read as what it is not
            text.load(Files(**place, options={"format": "svmlight"}))
    with pytest.raises(UsageError, match=r"^`order` does not belong to task text$"):
        text.load(Files((documents,), None, None, {"order": 1}))
    with pytest.raises(UsageError) as caught:
        text.load(Files((documents, documents), "6"))
    assert str(caught.value) == (
        f"`dev` 6: {documents}, {documents} has only 6 documents; hold out fewer, or name a file"
    )


def test_a_folder_is_rcv1_and_has_its_own_split(tmp_path, documents, monkeypatch):
    parts = [read_documents(documents).take(slice(0, n)) for n in (3, 2, 1)]
    seen = []

    def read_rcv1(folder):
        seen.append(folder)
        return tuple(parts)

    monkeypatch.setattr(text, "read_rcv1", read_rcv1)
    folder = str(tmp_path)
    loaded = text.load(Files((folder,)))
    assert seen == [folder]
    assert [len(part) for part in (loaded.data.train, loaded.data.dev, loaded.data.test)] == [3, 2, 1]
    for more in ({"dev": "1"}, {"test": documents}):
        with pytest.raises(UsageError) as caught:
            text.load(Files((folder,), **more))
        assert str(caught.value) == "`train` with RCV1's folder takes the paper's split; leave out `dev` and `test`"


def test_rerank_reads_what_the_options_say(lists, tmp_path):
    path = str(lists / "x.nbest")
    for name in ("r1", "r2", "r3"):
        (lists / name).write_text(f"{name} house\n{name} home\n")
    references = {"train_ref": [str(lists / "r1")], "dev_ref": [str(lists / "r2")], "test_ref": [str(lists / "r3")]}
    loaded = rerank.load(Files((path,), path, path, {**references, "store": str(lists / "store")}))
    for part, name in ((loaded.data.train, "r1"), (loaded.data.dev, "r2"), (loaded.data.test, "r3")):
        assert [list(each) for each in part.references] == [[f"{name} house", f"{name} home"]]
    np.testing.assert_array_equal(loaded.W, np.zeros((3, 1)))
    bare = rerank.load(Files((path,), None, None, {"store": str(lists / "store")}))
    assert (bare.data.dev, bare.data.test) == (None, None)
    assert [list(each) for each in bare.data.train.references] == [["a small house", "we go home now"]]
    with pytest.raises(UsageError, match=r"^`only` does not belong to task rerank$"):
        rerank.load(Files((path,), None, None, {"only": "NP"}))
    with pytest.raises(UsageError, match=r"^`dev` 5: rerank takes an n-best file as its dev set$"):
        rerank.load(Files((path,), "5"))
    with pytest.raises(UsageError, match=r"^rerank takes one `train` file, not 2$"):
        rerank.load(Files((path, path)))
