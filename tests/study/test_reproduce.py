"""reproduce() from Python: which plans, where to, in which order; given weights are started from; bounds."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from sparsezo.errors import SparsezoError, UsageError
from sparsezo.model import load_model
from sparsezo.storage.checksummed import read_checksummed
from sparsezo.study import reproduce as module
from sparsezo.study.engines import local as local_module
from sparsezo.study.engines.base import Failure, Overview
from sparsezo.study.plan import builtin, parse_experiment, read_experiment
from sparsezo.study.reports.reading import read_experiment as read_reported
from sparsezo.study.reproduce import Overrides, Reproduced, Watch, reproduce
from sparsezo.study.sources import Source
from sparsezo.study.tuning import Trial, Tuned
from sparsezo.tasks.chunking.synthetic import chunking_columns, generate_chunking
from sparsezo.tasks.loading import Files
from sparsezo.tasks.metrics import bleu
from sparsezo.tasks.registry import task_spec
from sparsezo.tasks.rerank.metric import corpus_bleu


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """No data and no cache but the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("SPARSEZO_DATA", raising=False)


@pytest.fixture
def calls(monkeypatch):
    """Put a recorder in the place of a function: its calls as (arguments, keywords)."""

    def record(name: str, answer: object = None) -> list[tuple[tuple, dict]]:
        seen: list[tuple[tuple, dict]] = []

        def recorder(*args, **keywords):
            seen.append((args, keywords))
            return answer(*args, **keywords) if callable(answer) else answer

        monkeypatch.setattr(module, name, recorder)
        return seen

    return record


@pytest.fixture
def watched():
    """A watch that writes down what a person would see."""
    lines: list[str] = []

    @contextmanager
    def follow(title):
        yield lambda now: lines.append(f"{title}: {now.done} of {now.runs}")

    watch = Watch(lines.append, follow, lambda: lines.append("before work"))
    return SimpleNamespace(lines=lines, watch=watch)


# Which plans, and where to


@pytest.fixture
def staged(calls):
    """reproduce() without the runs: what each experiment was called with."""
    stage = SimpleNamespace(failures=[], seen=[])

    def record(plan, folder, source, options, watch):
        phases = plan.phases_of(options.phases)
        stage.seen.append(SimpleNamespace(plan=plan, folder=folder, phases=phases, options=options, watch=watch))
        return list(stage.failures)

    calls("_reproduce", record)
    stage.sources = calls("_source", lambda plan, folder, data, watch: f"source of {plan.name} in {folder} from {data}")
    return stage


def test_one_experiment_goes_into_its_folder(staged):
    assert reproduce("smt", "D") == Reproduced([Path("results/smt")], [])
    (seen,) = staged.seen
    assert (seen.plan, seen.folder) == (builtin("smt"), Path("results/smt"))
    assert seen.phases == ("fixed", "tuned", "speed", "gamma")
    assert (seen.options, seen.watch) == (Overrides(), Watch())
    watch, more = Watch(print), {"full_grid": True, "processes": 3, "engine": "local", "phases": ["tuned"]}
    assert reproduce("smt", "D", out=Path("o"), watch=watch, **more).folders == [Path("o")]
    assert (staged.seen[1].folder, staged.seen[1].phases) == (Path("o"), ("tuned",))
    assert (staged.seen[1].options, staged.seen[1].watch) == (Overrides(**more), watch)
    assert staged.sources[1][0][1:] == (Path("o"), "D", watch)


@pytest.mark.parametrize("out", [None, Path("o")])
def test_all_are_the_papers_three_in_folders_of_their_own(staged, out):
    """Each task's, and not the one about noise."""
    done = reproduce("all", "D", out=out)
    ran = [seen.plan.name for seen in staged.seen]
    assert sorted(ran) == ["chunking", "smt", "text"]
    assert done.folders == [(out or Path("results")) / name for name in ran]


def test_failures_of_all_experiments_are_collected(staged):
    staged.failures = [Failure("first run", "it broke"), Failure("second run", "so did it")]
    assert reproduce("all", "D").failures == staged.failures * 3


def test_seeds_iterations_and_settings_are_overridden(staged):
    reproduce("chunking", "D", seeds=5, iterations=2000, at={"chunking": (0.5, 0.25), "text": (7.0, 8.0)})
    plan = staged.seen[0].plan
    assert plan.seeds == (0, 1, 2, 3, 4)
    assert (plan.iterations, plan.evaluate_every, plan.interval) == (2000, None, 20)
    before = builtin("chunking")
    for spec, was in zip(plan.learners, before.learners, strict=True):
        assert spec == (replace(was, h=0.5, mu=0.25) if was.perturb else was)
    assert replace(plan, seeds=before.seeds, iterations=before.iterations, learners=before.learners) == before


def test_the_papers_figures_say_nothing_about_generated_data(staged):
    reproduce("smt", "generated")
    reproduce("smt", "D")
    generated, real = (seen.plan for seen in staged.seen)
    assert {spec.paper for spec in generated.learners} == {None}
    assert [replace(spec, paper=None) for spec in real.learners] == list(generated.learners)
    assert real.learners[0].paper == 0.273


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("parsing", {}, "experiment parsing: choose from chunking, text, smt, noise, answers-chunking, answers-words, "
            "answers-clusters, answers-names, answers-names-clusters, answers-text, answers-rerank, all, answers, or "
            "name a .toml file"),
        ("smt", {"seeds": 0}, "`seeds` 0: must be at least 1"),
        ("smt", {"phases": ["fixed", "warm"]}, "`phases` fixed,warm: choose from fixed, undivided, tuned, "
            "speed, gamma, or several with commas"),
        ("smt", {"phases": []}, "`phases`: name at least one of fixed, undivided, tuned, speed, gamma"),
    ],
)  # fmt: skip
def test_calls_that_are_refused(staged, name, options, message):
    with pytest.raises(UsageError) as caught:
        reproduce(name, "D", **options)
    assert str(caught.value) == message
    assert staged.seen == []


def test_tuning_without_dev_is_refused_before_the_work(staged):
    plan = parse_experiment(PLAN.replace("dev = 5\n", ""), "")
    with pytest.raises(UsageError, match=r"^mine: tuning looks at dev, and data has none; give it, or use `phases`"):
        reproduce(plan, "D")
    assert staged.seen == []
    reproduce(plan, "D", phases=["fixed"])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seeds": 10**8}, "mine: 100,000,000 seeds, more than 10,000"),
        ({"seeds": 3400}, "mine: 10,210 runs, more than 10,000"),
        ({"iterations": 10**11}, "mine: 100,000,000,000 iterations in one run, more than 10,000,000,000"),
    ],
)
def test_sizes_that_can_only_be_a_mistake(staged, change, message):
    plan = parse_experiment(PLAN, "")
    with pytest.raises(SparsezoError) as caught:
        reproduce(plan, "D", **change)
    assert str(caught.value) == f"{message}; if it is meant, add `insist`"
    assert staged.seen == []


def test_a_look_after_every_step_of_a_long_run_is_a_mistake(staged):
    plan = replace(parse_experiment(PLAN, ""), iterations=200_000, evaluate_every=1)
    with pytest.raises(SparsezoError, match=r"^mine: 200,000 looks at dev in one run, more than 100,000; if"):
        reproduce(plan, "D")


def test_a_plan_of_ones_own_is_a_file(staged, tmp_path, monkeypatch):
    (tmp_path / "mine.toml").write_text(PLAN)
    (tmp_path / "plan").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    for name in ("mine.toml", "./plan"):
        reproduce(name, "D")
        assert staged.seen[-1].plan == replace(parse_experiment(PLAN, ""), title="mine")
        assert staged.seen[-1].folder == Path("results/mine")


# One experiment

PLAN = """
name = "mine"
task = "chunking"
iterations = 40
seeds = [3, 1]
[data]
train = "train.txt"
dev = 5
test = "test.txt"
options = { only = "NP" }
[fixed]
h = 0.01
mu = 0.1
step = "constant"
[[learner]]
rule = "two-point"
perturb = "score"
grid = { h = [0.01], mu = [0.1] }
[[learner]]
rule = "supervised"
"""


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "sentences"
    folder.mkdir()
    for name, n, seed in [("train.txt", 25, 1), ("test.txt", 8, 3)]:
        (folder / name).write_text(chunking_columns(generate_chunking(n, seed)))
    return folder


@pytest.fixture
def machinery(monkeypatch):
    """An engine and a search that only write down what they are asked, in order."""
    told: list[tuple] = []

    class Engine:
        def __init__(self, out, load, processes, *, say):
            self.out, self.say = out, say
            told.append(("engine", out, load.func, load.args, load.keywords, processes))

        def __enter__(self):
            return self

        def __exit__(self, *_):
            told.append(("home",))

        def run(self, runs, progress):
            if progress:
                progress(NOW)
            told.append(("run", runs))
            return SimpleNamespace(failures=(Failure(str(runs), "broke"),))

    def tune(plan, engine, identity, *, full_grid, speed, progress, say):
        if progress:
            progress(NOW)
        say("searching")
        told.append(("tune", plan, identity, full_grid, speed))
        return {spec.name: FOUND for spec in plan.learners if spec.grid_h}

    monkeypatch.setattr(local_module, "LocalEngine", Engine)
    monkeypatch.setattr(module, "tune", tune)
    monkeypatch.setattr(module, "fixed_runs", lambda plan, identity: ("fixed", plan.name, identity))
    monkeypatch.setattr(module, "undivided_runs", lambda plan, identity: ("undivided", plan.name, identity))
    for name in ("tuned_runs", "fastest_runs", "gamma_runs"):

        def found(plan, identity, tuned, name=name):
            return (name.removesuffix("_runs"), plan.name, identity, tuned)

        monkeypatch.setattr(module, name, found)
    return told


NOW = Overview(runs=4, done=1, failed=0, steps=2_000_000, steps_done=500_000, seconds_left=None, now=())
FOUND = Tuned("two-point score", (0.02, 0.3), 0.75, (Trial(0.02, 0.3, 40, 0.75, 0.5),), 0, "")


def source_of(folder: Path) -> Source:
    paths = [str(folder / name) for name in ("train.txt", "test.txt")]
    return Source("chunking", (paths[0],), "5", paths[1], {"only": "NP"})


def do(plan, out, source, phases, *, watch=None, **options):
    return module._reproduce(plan, out, source, Overrides(phases=phases, **options), watch or Watch())


def test_an_experiment_is_its_fixed_runs_its_search_and_its_tuned_runs(machinery, folder, tmp_path, watched):
    plan, source, out = parse_experiment(PLAN, ""), source_of(folder), tmp_path / "out"
    known = source.identity
    failures = do(plan, out, source, ("fixed", "tuned"), full_grid=True, processes=3, watch=watched.watch)
    claimed = replace(plan, origin="files", identity=known)
    found = {"two-point score": FOUND}
    files = Files(source.train, "5", source.test, {"only": "NP"})
    assert machinery == [
        ("engine", out, task_spec("chunking").load, (files,), {}, 3),
        ("run", ("fixed", "mine", known)),
        ("tune", claimed, known, True, False),
        ("run", ("tuned", "mine", known, found)),
        ("home",),
    ]
    assert [failure.run for failure in failures] == [
        str(("fixed", "mine", known)),
        str(("tuned", "mine", known, found)),
    ]
    assert parse_experiment((out / "experiment.toml").read_text(), "") == claimed
    assert read_checksummed(out / "tuning.json") == {
        "two-point score": {
            "trials": [{"h": 0.02, "mu": 0.3, "dev": 0.75, "iterations": 40, "seeds": 1}],
            "chosen": {"h": 0.02, "mu": 0.3},
            "dev": 0.75,
            "widened": 0,
            "note": "",
            "seeds": [],
        }
    }
    assert not (out / "bounds.json").exists()
    how_far = "1 of 4"
    assert watched.lines == [
        "before work",
        f"mine, fixed settings: {how_far}",
        f"mine, tuning: {how_far}",
        "searching",
        f"mine, tuned settings: {how_far}",
        f"mine: results are in {out}",
    ]


def test_phases_that_need_a_search_have_one_for_all(machinery, folder, tmp_path):
    plan = parse_experiment(PLAN, "")
    do(plan, tmp_path / "out", source_of(folder), ("undivided", "tuned", "speed", "gamma"))
    assert [(each[0], *each[1][:1]) if each[0] == "run" else each[0] for each in machinery] == [
        *("engine", ("run", "undivided"), "tune", ("run", "tuned"), ("run", "fastest"), ("run", "gamma"), "home")
    ]
    assert machinery[2][-2:] == (False, True)  # not the full grid; for speed, too


@pytest.mark.parametrize(("phase", "expected"), [("fixed", ["run"]), ("tuned", ["tune", "run"])])
def test_one_phase_alone(machinery, folder, tmp_path, phase, expected):
    plan = parse_experiment(PLAN, "")
    failures = do(plan, tmp_path / "out", source_of(folder), (phase,))
    assert [each[0] for each in machinery] == ["engine", *expected, "home"]
    assert machinery[0][-1] is None
    assert len(failures) == 1
    if phase == "tuned":
        assert machinery[1][-2:] == (False, False)
    else:
        assert not (tmp_path / "out/tuning.json").exists()


def test_data_under_the_results_is_generated(machinery, folder, tmp_path):
    out = folder.parent / "out"
    (out / "data").mkdir(parents=True)
    for name in ("train.txt", "test.txt"):
        (out / "data" / name).write_bytes((folder / name).read_bytes())
    do(parse_experiment(PLAN, ""), out, source_of(out / "data"), ("fixed",))
    assert read_experiment(out / "experiment.toml").origin == "generated"


def test_a_folder_of_another_plan_is_left_alone(machinery, folder, tmp_path):
    out, source = tmp_path / "out", source_of(folder)
    plan = parse_experiment(PLAN, "")
    do(plan, out, source, ("fixed",))
    do(replace(plan, seeds=(9,)), out, source, ("fixed",))  # more of the same
    before = (out / "experiment.toml").read_bytes()
    machinery.clear()
    with pytest.raises(UsageError) as caught:
        do(replace(plan, iterations=41), out, source, ("fixed",))
    assert str(caught.value) == (f"{out}: holds runs of another plan (iterations differs); name another folder with -o")
    (folder / "train.txt").write_text((folder / "train.txt").read_text() + "\nx NN O\n")
    with pytest.raises(UsageError, match=r"holds runs of another plan \(identity differs\)"):
        do(plan, out, source, ("fixed",))
    assert machinery == []
    assert (out / "experiment.toml").read_bytes() == before


def test_a_folder_that_cannot_be_made_is_said(machinery, folder, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(SparsezoError) as caught:
        do(parse_experiment(PLAN, ""), tmp_path / "file/a/b", source_of(folder), ("fixed",))
    assert str(caught.value) == (
        f"{tmp_path / 'file/a/b'}: cannot be made (Not a directory); name another folder with -o"
    )
    do(parse_experiment(PLAN, ""), tmp_path / "new/a/b", source_of(folder), ("fixed",))
    assert (tmp_path / "new/a/b/experiment.toml").exists()


# For real: the weights that are started from, and the bounds

SMT = """
name = "small"
task = "rerank"
iterations = 20
seeds = [4]
init = "w.out"
[data]
train = "train.nbest"
dev = "dev.nbest"
test = "test.nbest"
[bounds]
out-of-domain = "w.out"
in-domain = "w.in"
[[learner]]
rule = "two-point"
perturb = "active"
h = 1e-12
mu = 1e-6
grid = { h = [1e-12], mu = [1e-6] }
[[learner]]
rule = "supervised"
h = 1e-12
"""
LISTS = """\
0 ||| the small house is old ||| LM=1 TM=1 ||| 0
0 ||| a small house is old ||| LM=2 ||| 0
0 ||| a tiny house is gold ||| LM=3 TM=-1 Odd=5 ||| 0
1 ||| we all go home right now ||| LM=-1 TM=2 ||| 0
1 ||| now we all go home ||| TM=1 ||| 0
"""
REFERENCES = "the small house is old\nnow we all go home\n"


@pytest.fixture
def decoder(tmp_path) -> Path:
    """Lists and two sets of weights: by w.out the third and the second candidate are best, by w.in the first ones."""
    folder = tmp_path / "decoder"
    folder.mkdir()
    for name, lines, references in (("train", 5, 2), ("dev", 3, 1), ("test", 5, 2)):
        (folder / f"{name}.nbest").write_text("".join(LISTS.splitlines(keepends=True)[:lines]))
        (folder / f"{name}.ref").write_text("".join(REFERENCES.splitlines(keepends=True)[:references]))
    (folder / "w.out").write_text("LM 1.0\nTM 0.25\nRare 3\n")
    (folder / "w.in").write_text("TM 2.0\nLM 0.5\n")
    (folder / "plan.toml").write_text(SMT)
    return folder


START = {"LM": 1.0, "TM": 0.25, "Odd": 0.0, "Rare": 3.0}


def weights(path: Path) -> dict[str, float]:
    model = load_model(path)
    return dict(zip(model.task.names, model.W[:, 0].tolist(), strict=True))


def test_reproduce_starts_from_the_initial_weights(decoder, tmp_path):
    """h is so small that the weights that come out are those that went in, in both phases and for every rule."""
    out = tmp_path / "out"
    reproduce(str(decoder / "plan.toml"), str(decoder), out=out, processes=1)
    models = sorted(out.glob("runs/*/model.szo"))
    records = [read_checksummed(model.parent / "run.json") for model in models]
    assert {(record["phase"], record["learner"]) for record in records} >= {
        ("fixed", "two-point active"),
        ("fixed", "supervised"),
        ("tuned", "two-point active"),
    }
    for model in models:
        assert weights(model) == pytest.approx(START, abs=1e-6)


def test_bounds_are_the_test_lists_by_the_weights_as_they_are(decoder, tmp_path):
    """By w.out, LM + TM / 4: the third candidate and the second. By w.in, LM / 2 + 2 TM: the first and the first.

    The oracle has the first and the second. A feature without a weight counts as 0: Odd decides nothing.
    """
    out = tmp_path / "out"
    reproduce(str(decoder / "plan.toml"), str(decoder), out=out, processes=1, phases=["fixed"])
    bounds = read_checksummed(out / "bounds.json")
    references = [REFERENCES.splitlines()]
    chosen = {
        "out-of-domain": ["a tiny house is gold", "now we all go home"],
        "in-domain": ["the small house is old", "we all go home right now"],
        "oracle": ["the small house is old", "now we all go home"],
    }
    assert list(bounds) == list(chosen)
    for name, texts in chosen.items():
        assert bounds[name]["bleu"] == pytest.approx(corpus_bleu(texts, references).bleu), name
        assert bounds[name]["sentences"] == 2
    assert len({bound["bleu"] for bound in bounds.values()}) == 3
    counts = read_reported(out).bound_counts  # list by list, of the weights that test sets are drawn for
    assert {name: float(bleu(each.sum(axis=0))) for name, each in counts.items()} == {
        name: pytest.approx(bounds[name]["bleu"]) for name in ("out-of-domain", "in-domain")
    }
    assert bounds["oracle"]["bleu"] == pytest.approx(1)


def test_damaged_counts_of_bounds_are_named_and_left_out(decoder, tmp_path):
    out = tmp_path / "out"
    reproduce(str(decoder / "plan.toml"), str(decoder), out=out, processes=1, phases=["fixed"])
    assert not any("bounds" in gap for gap in read_reported(out).gaps)
    whole = (out / "bounds.counts").read_bytes()
    for damaged in (b"", whole[:-3], b"junk"):
        (out / "bounds.counts").write_bytes(damaged)
        found = read_reported(out)
        assert found.bound_counts == {}
        assert [gap for gap in found.gaps if gap.startswith("bounds.counts: is damaged (it cannot be read)")]


def test_bounds_need_test_lists(decoder):
    loaded = task_spec("rerank").load(Files((str(decoder / "train.nbest"),)))
    with pytest.raises(UsageError, match=r"^bounds are of the test lists; give data\.test$"):
        module.bounds(loaded, Source("rerank", ()))
