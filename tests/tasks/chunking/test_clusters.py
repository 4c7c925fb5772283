"""Clusters of words: where they come from, what they make of words, and that a model has them in it."""

from __future__ import annotations

import gzip
import json
import types
from dataclasses import replace

import numpy as np
import pytest

from sparsezo import Learner, Settings, load_model, messages, training
from sparsezo.errors import DamagedError, DataError, NotInstalledError, UsageError
from sparsezo.model import Model
from sparsezo.tasks.chunking.features import clusters
from sparsezo.tasks.chunking.features import columns as columns_module
from sparsezo.tasks.chunking.features.clusters import Clusters, learned, packaged, read_clusters
from sparsezo.tasks.chunking.features.columns import Columns, chosen_columns
from sparsezo.tasks.chunking.features.gazetteer import Gazetteer
from sparsezo.tasks.chunking.features.templates import parse_templates
from sparsezo.tasks.chunking.io.conll import Corpus
from sparsezo.tasks.chunking.task import Chunking

TABLE = {"dog": "0010", "cat": "0011", "Oslo": "1100", "Rome": "1101", "Lima": "111", "the": "01"}


def corpus_of(sentences: list[str], tags: list[str] | None = None) -> Corpus:
    cut = [sentence.split() for sentence in sentences]
    words = [word for sentence in cut for word in sentence]
    flat = None if tags is None else [tag for each in tags for tag in each.split()]
    return Corpus("f.txt", (words,), flat, np.cumsum([0, *map(len, cut)]))


# Words to paths


@pytest.mark.parametrize(
    ("word", "path"),
    [
        ("Dog", "0010"),  # in lower case
        ("DOG", "0010"),
        ("OSLO", "1100"),  # with one capital
        ("oslo", ""),  # never with more capitals than it has
        ("oSLO", ""),
        ("É", ""),
    ],
)
def test_a_word_in_other_case(word, path):
    assert Clusters.of(TABLE).paths_of([word]) == [path]


def test_the_word_as_it_is_comes_first():
    both = Clusters.of({"Rose": "1", "rose": "0"})
    assert both.paths_of(["Rose", "rose", "ROSE"]) == ["1", "0", "0"]


def test_a_word_in_composed_and_decomposed_letters():
    assert Clusters.of({"Bogot\u00e1": "10"}).paths_of(["Bogota\u0301"]) == ["10"]


def test_arrays_come_back_and_others_are_refused():
    arrays = Clusters.of(TABLE).to_arrays()
    again = Clusters.from_arrays(arrays)
    assert again.paths_of([*TABLE, "x"]) == [*TABLE.values(), ""]
    for numbers in (np.zeros(5, np.uint16), np.full(6, 6, np.uint16), np.zeros(6, np.int64)):
        with pytest.raises(ValueError, match="clusters whose numbers do not fit the words"):
            Clusters.from_arrays({**arrays, "numbers": numbers})


# Files


@pytest.mark.parametrize("ending", ["", ".gz", ".xz"])
def test_a_file_of_paths(put, ending):
    text = "0010\tdog\t17\n0011\tcat\n\n1\tsan\u00a0jos\u00e9\t3\n0010\tdog\n"
    path = put(f"paths{ending}", text)
    assert read_clusters(path).paths_of(["dog", "cat", "san\u00a0jos\u00e9", "17"]) == ["0010", "0011", "1", ""]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("0010 dog\n", ":1: '0010 dog' is not a path of 0 and 1, a TAB and a word"),
        ("01\ta\n12\tb\n", ":2: '12\\tb' is not a path of 0 and 1, a TAB and a word"),
        ("01\t\n", ":1: '01\\t' is not a path of 0 and 1, a TAB and a word"),
        ("01\ta\n00\ta\n", ":2: 'a' is there twice, with different paths; keep one"),
        ("\n", ": holds no word; expected lines such as 0110 TAB word"),
    ],
)
def test_files_that_are_no_paths(put, text, message):
    path = put("paths", text)
    with pytest.raises(DataError) as error:
        read_clusters(path)
    assert str(error.value) == f"{path}{message}"


def test_the_packages_table(tmp_path, monkeypatch):
    """A number's lowest bit is the first of the path; 0 is no cluster; all paths are as long as the longest."""
    (tmp_path / "data").mkdir()
    with gzip.open(tmp_path / "data" / "de_lexeme_cluster.json.gz", "wt") as stream:
        json.dump({"Hund": 0b110, "Katze": 0b10110, "der": 1, "x": 0, "\n": 7}, stream)
    spec = types.SimpleNamespace(submodule_search_locations=[str(tmp_path)])
    monkeypatch.setattr(clusters, "find_spec", lambda name: spec)
    found = packaged("de")
    assert len(found) == 3
    assert found.paths_of(["Hund", "Katze", "der", "x"]) == ["01100", "01101", "10000", ""]
    with pytest.raises(DataError, match=r"es_lexeme_cluster\.json\.gz: cannot be read"):
        packaged("es")


def test_the_real_package():
    """Prefixes of 4, 6 and 10 bits are the number's lowest bits, as Spanish has them in the package."""
    found = packaged("es")
    assert 450_000 < len(found) < 550_000
    madrid, bogota, juan, unknown = found.paths_of(["Madrid", "Bogotá", "Juan", "xyzzyx"])
    number = 0b11100100110
    assert [int(madrid[:n][::-1], 2) for n in (4, 6, 10)] == [number & 15, number & 63, number & 1023]
    assert len(madrid) == 16
    assert madrid[:10] == bogota[:10] != juan[:10]
    assert unknown == ""
    assert sum(each.nbytes for each in found.to_arrays().values()) < 4e6


# Learned


def made_text(seed: int, sentences: int) -> list[str]:
    """Names, places and verbs, each word of a kind in the same surroundings."""
    chance = np.random.default_rng(seed)
    kinds = {
        "person": [f"Per{k}" for k in range(30)],
        "place": [f"Loc{k}" for k in range(30)],
        "verb": [f"verb{k}" for k in range(30)],
        "thing": [f"thing{k}" for k in range(30)],
    }
    patterns = ["Mr person verb the thing", "the thing verb in place .", "from place Mr person verb ,"]
    chosen = chance.integers(len(patterns), size=sentences)
    return [
        " ".join(str(chance.choice(kinds[word])) if word in kinds else word for word in patterns[k].split())
        for k in chosen
    ]


def test_words_of_like_use_are_together():
    """Two words of a kind share more of their paths than two words of different kinds."""
    words = [f"{kind}{k}" for kind in ("Per", "Loc", "verb", "thing") for k in range(30)]
    found = dict(zip(words, learned(corpus_of(made_text(0, 4000))).paths_of(words), strict=True))
    assert all(found.values())

    def shared(one: str, other: str) -> int:
        return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), 0)

    alike = [shared(found[f"Per{k}"], found[f"Per{k + 1}"]) for k in range(29)]
    unlike = [shared(found[f"Per{k}"], found[f"{kind}{k}"]) for k in range(30) for kind in ("Loc", "verb", "thing")]
    assert np.mean(alike) > 2 * np.mean(unlike)
    assert max(unlike) <= 2


def test_learned_clusters_are_the_same_for_a_seed():
    corpus = corpus_of(made_text(1, 800))
    first, second = (learned(corpus, seed=3).to_arrays() for _ in range(2))
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_rare_words_are_left_out():
    corpus = corpus_of([*made_text(2, 300), *["rare often"] * 4, "often"])
    assert clusters.LEAST == 5
    rare, often = learned(corpus).paths_of(["rare", "often"])
    assert (rare, bool(often)) == ("", True)


def test_too_little_to_learn_from():
    with pytest.raises(DataError, match=r"f\.txt: `clusters` learned: too little text"):
        learned(corpus_of(["a b c"]))


# In a model


TRAIN = corpus_of(
    ["the dog saw Oslo", "the cat saw Rome", "Oslo saw the dog", "Rome saw the cat"] * 5,
    ["O O O B-LOC", "O O O B-LOC", "B-LOC O O O", "B-LOC O O O"] * 5,
)
UNSEEN = corpus_of(["the dog saw Lima", "LIMA saw the Cat"])


def trained(**how) -> Model:
    task, train = Chunking.fit(TRAIN, **how)
    learner = Learner(task.problem(train), Settings("supervised", perturb=None, mu=None, step="adagrad", h=0.1))
    learner.run(task.gold(train), 400)
    return Model(task, learner.weights(), {}, {}, {})


COLUMNS = Columns(Clusters.of(TABLE), Gazetteer.of({"LOC": ["Rome", "Buenos Aires"]}))
TEMPLATES = parse_templates(
    ['u:c=%m[0,cluster,"^.?.?"]', "u:l=%x[0,list]", "b:l=%x[0,list]/%x[-1,cluster]"], "my.template"
)


@pytest.mark.parametrize("how", [{}, {"hash_bits": 14}, {"templates": TEMPLATES, "order": 1}])
def test_a_model_has_its_columns_in_it(tmp_path, how):
    model = trained(columns=COLUMNS, **how)
    expected = model.task.words(model.predict(UNSEEN), UNSEEN.offsets)
    assert expected == ["O", "O", "O", "B-LOC", "B-LOC", "O", "O", "O"]  # by its cluster: no template saw Lima
    model.save(tmp_path / "m.szo")
    again = load_model(tmp_path / "m.szo")
    assert again.task.words(again.predict(UNSEEN), UNSEEN.offsets) == expected
    assert again.task.index.columns.names == ("cluster", "list")
    for one, other in zip(again.task.index.columns.derived(UNSEEN), COLUMNS.derived(UNSEEN), strict=True):
        assert one == other
    assert again.task.n_columns == 1


def test_a_model_without_columns_is_as_it_was():
    settings, arrays = Chunking.fit(TRAIN)[0].to_arrays()
    assert not [name for name in arrays if name.startswith("columns_")]
    assert set(settings) == {"tags", "order", "only", "n_columns", "scheme", "column", "templates"}
    task = Chunking.from_arrays(settings, arrays)
    assert task.index.columns.names == ()


def test_a_model_whose_columns_are_missing_is_damaged(tmp_path):
    model = trained(columns=COLUMNS)
    settings, arrays = model.task.to_arrays()
    rest = {name: each for name, each in arrays.items() if not name.startswith("columns_list")}
    model.task.__class__.from_arrays(settings, arrays)
    with pytest.raises(DataError, match="reads the column 'list', which is not made"):
        Chunking.from_arrays(settings, rest)
    broken = types.SimpleNamespace(name="chunking", to_arrays=lambda: (settings, rest))
    Model(broken, model.W, {}, {}, {}).save(tmp_path / "m.szo")
    with pytest.raises(DamagedError):
        load_model(tmp_path / "m.szo")


def test_clusters_are_names_of_features():
    names = Chunking.fit(TRAIN, columns=COLUMNS)[0].feature_names()
    assert {"u:cluster4=1100", "u:cluster4-1=01", "u:list=B-LOC", "u:list=O"} <= set(names)


def test_a_start_from_a_model_with_other_clusters_is_refused():
    """Their features have the same names, and mean other words."""
    model = trained(columns=COLUMNS)
    same, other = Columns(Clusters.of(TABLE)), Columns(Clusters.of({**TABLE, "dog": "0011"}))
    task, _ = Chunking.fit(TRAIN, columns=same)
    assert training.joined(model, task).features == len(task.feature_names())
    training.joined(model, Chunking.fit(TRAIN)[0])
    with pytest.raises(UsageError, match="the model to start from has other clusters of words"):
        training.joined(model, Chunking.fit(TRAIN, columns=other)[0])


# Which ones


SPANISH = ["los niños y las niñas que viven en la casa no fueron al cine porque había mucha gente .", "fue muy bueno"]
LATIN = ["lorem ipsum dolor sit amet consectetur"]


def said(*how, **more) -> tuple[Columns, list[str]]:
    with messages.gathered() as remarks:
        columns = chosen_columns(*how, **more)
    return columns, remarks


def test_auto_takes_the_languages_table(monkeypatch):
    asked: list[str] = []
    monkeypatch.setattr(columns_module, "packaged", lambda language: asked.append(language) or Clusters.of(TABLE))
    corpus = corpus_of(SPANISH * 20)
    columns, remarks = said(corpus, "auto", None)
    assert (asked, columns.names) == (["es"], ("cluster",))
    assert remarks == ["f.txt: `clusters` es, by the text's language: 6 words"]
    for how in ({"features": "chunking"}, {"templates": parse_templates(["U1:%x[0,0]"], "t")}):  # nothing reads them
        columns, remarks = said(corpus, "auto", None, **how)
        assert (columns.names, remarks) == ((), [])
    two = Corpus("f.txt", (*corpus.columns, corpus.columns[0]), None, corpus.offsets)
    assert said(two, "auto", None, features="ner")[0].names == ()
    assert asked == ["es"]
    assert said(two, "es", None, features="ner")[0].names == ("cluster",)


def test_auto_says_what_the_package_would_bring(monkeypatch):
    monkeypatch.setattr(clusters, "find_spec", lambda name: None)
    columns, (remark,) = said(corpus_of(SPANISH * 20), "auto", None)
    assert columns.names == ()
    assert remark.startswith("f.txt: no `clusters`; those of es, the text's language, bring ")
    assert remark.endswith(": pip install spacy-lookups-data")


def test_auto_learns_nothing_by_itself():
    """What learned clusters bring was within noise: who wants them names them."""
    much = corpus_of(["ala bila cila dila"] * 20_000)
    assert said(much, "auto", None)[0].names == ()
    assert said(replace(much, tags=None), "auto", None)[0].names == ()


def test_named_clusters(tmp_path):
    (tmp_path / "paths").write_text("10\tlorem\n")
    (tmp_path / "cities.txt").write_text("Rome\n")
    corpus = corpus_of(LATIN * 100)
    columns, remarks = said(corpus, str(tmp_path / "paths"), (f"LOC={tmp_path / 'cities.txt'}",))
    assert (columns.names, remarks) == (("cluster", "list"), [])
    assert columns.derived(corpus)[0][:2] == ["10", ""]
    assert said(corpus, "learned", None)[0].derived(corpus)[0][0] != ""
    assert said(corpus_of(SPANISH * 20), "none", None)[0].names == ()


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            ("fr", None),
            "`clusters` fr: there is no such file; name one, or choose from auto, en, de, es, learned, none",
        ),
        (("es", None, None, "chunking"), "`clusters` es: no template reads them; use `features` ner, or a `template` "),
        (("none", ("LOC=x",), None, "chunking"), "`gazetteer` LOC=x: no template reads it; use `features` ner, or "),
    ],
)
def test_what_cannot_be(how, message):
    with pytest.raises(UsageError) as error:
        chosen_columns(corpus_of(LATIN), *how)
    assert str(error.value).startswith(message)


def test_nothing_is_learned_from_a_beginning():
    with pytest.raises(UsageError, match="`clusters` learned: needs all of the text, which a `stream` never has"):
        chosen_columns(corpus_of(LATIN * 100), "learned", None, whole=False)


def test_without_the_package(monkeypatch):
    monkeypatch.setattr("sparsezo.errors.find_spec", lambda name: None)
    with pytest.raises(NotInstalledError) as error:
        packaged("es")
    assert str(error.value) == "this needs spacy-lookups-data; install with: pip install spacy-lookups-data"


# Words alone


def test_words_alone_get_the_features_for_names():
    with messages.gathered() as remarks:
        task, _ = Chunking.fit(TRAIN)
    assert any(str(template).startswith("u:suffix3=") for template in task.index.templates)
    assert remarks == ["f.txt: words alone, so `features` ner is the default: affixes and shapes of words, too"]
    two = Corpus("f.txt", (*TRAIN.columns, TRAIN.columns[0]), TRAIN.tags, TRAIN.offsets)
    for corpus, how in ((two, {}), (TRAIN, {"features": "chunking"})):
        with messages.gathered() as remarks:
            task, _ = Chunking.fit(corpus, **how)
        assert all(str(template).startswith("U") for template in task.index.templates)
        assert remarks == []


# Real data
