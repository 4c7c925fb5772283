"""Help: what each command shows, made from the same fields that the work is done by."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from sparsezo.cli.options import default_texts, parameters
from sparsezo.options import described
from sparsezo.rules import RULES
from sparsezo.settings import SETTINGS
from sparsezo.tasks.registry import kind, names

COMMANDS = [
    "", "train", "train chunking", "train text", "train rerank", "tune", "tune chunking", "tune text", "tune rerank",
    "predict", "evaluate", "reproduce", "demo", "bench", "theory", "data", "data list", "data get", "data path",
    "data make", "serve", "serve chunking", "serve text", "serve rerank", "replay",
]  # fmt: skip
OF_TRAIN = {
    "--train", "--dev", "--test", "--output", "--iterations", "--evaluate-every", "--checkpoint-seconds", "--resume",
    "--force", "--json", "--init", "--insist", "--answers", "--scorer", "--scorer-seconds",
    "--workers", "--engine", "--ray-address", "--from-answers", "--passes",
}  # fmt: skip
OF_TUNE = {
    "--train", "--dev", "--iterations", "--seed", "--seeds", "--grid-h", "--grid-mu", "--grid-gamma", "--full-grid",
    "--processes", "--engine", "--ray-address",
    "--output", "--json", "--insist", "--answers",
}  # fmt: skip
LEARNER = {
    "--rule", "--perturb", "--h", "--mu", "--step", "--criterion", "--gamma", "--baseline", "--seed", "--feedback",
    "--about", "--ask", "--rater-error", "--rehearse", "--batch", "--samples",
    "--antithetic",
}  # fmt: skip
OF_TASK = {
    "chunking": {
        "--column",
        "--scheme",
        "--tags",
        "--only",
        "--order",
        "--template",
        "--features",
        "--clusters",
        "--gazetteer",
        "--split",
        "--init-labels",
        "--format",
        "--min-count",
        "--hash-bits",
        "--stream",
        "--window",
    },
    "text": {
        "--format",
        "--text-column",
        "--label-column",
        "--topics",
        "--classes",
        "--raw-tf",
        "--min-count",
        "--hash-bits",
        "--vectors",
        "--stream",
        "--window",
    },
    "rerank": {"--train-ref", "--dev-ref", "--test-ref", "--init", "--store", "--keep-segmentation"},
}


@pytest.fixture
def shown(program, monkeypatch):
    """A command's help as it stands on a wide screen."""
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("TERMINAL_WIDTH", "400")

    def shown(words: str, flag: str = "--help") -> str:
        code, out, _ = program(*words.split(), flag)
        assert code == 0
        return out

    return shown


def options(command):
    context = command.make_context("sparsezo", [], resilient_parsing=True)
    return [param for param in command.get_params(context) if param.param_type_name == "option"]


def flags(command) -> set[str]:
    return {flag for param in options(command) for flag in param.opts if flag.startswith("--")} - {"--help"}


def test_these_are_all_commands(commands):
    assert sorted(commands) == sorted(COMMANDS)


@pytest.mark.parametrize("task", names())
def test_train_and_tune_have_the_learners_options_and_the_tasks(commands, shown, task):
    """And no other task's."""
    assert flags(commands[f"train {task}"]) == OF_TRAIN | LEARNER | OF_TASK[task]
    of_train_alone = {"--test-ref", "--tags", "--classes", "--init-labels", "--stream", "--window"}
    assert flags(commands[f"tune {task}"]) == OF_TUNE | (LEARNER - {"--h", "--mu"}) | (OF_TASK[task] - of_train_alone)
    text = shown(f"train {task}")
    on_screen = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
    assert on_screen - {"--help"} == OF_TRAIN | LEARNER | OF_TASK[task]
    assert [panel for panel in ("Learner", "Task chunking", "Task text", "Task rerank") if f"─ {panel} ─" in text] == [
        "Learner",
        f"Task {task}",
    ]


@pytest.mark.parametrize("words", COMMANDS)
def test_every_option_and_command_has_a_text(commands, words):
    command = commands[words]
    assert len(command.help) > 10
    params = options(command)
    assert any("--help" in param.opts for param in params)
    for param in params:
        assert len(param.help or "") > 5, param.opts
    for param in command.params:
        assert len(param.help or "") > 5, param.name


@pytest.mark.parametrize("words", COMMANDS)
def test_a_flag_is_a_flag(commands, shown, words):
    """No type stands beside it, as <bool> would."""
    found = [param for param in options(commands[words]) if param.is_flag]
    assert found
    assert [param.metavar for param in found] == [""] * len(found)
    text = shown(words).lower()
    assert "bool" not in text
    assert re.search(r"--help +-h +(<|[a-z]+>)", text) is None


@pytest.mark.parametrize("words", COMMANDS)
def test_help_has_a_short_name(shown, words):
    assert shown(words, "-h") == shown(words, "--help")


@pytest.mark.parametrize(
    ("task", "name", "texts"),
    [
        (
            "chunking",
            "h",
            "0.001 for score, cross-entropy; 0.05 for score adagrad, active adagrad; 0.0003 for active; "
            "0.0001 for all; 0.01 for first-order, supervised; 0.1 for first-order adagrad, supervised adagrad; "
            "0.003 for pairwise; 0.02 for pairwise adagrad; 0.03 for cross-entropy adagrad; "
            "0.2 for part, label, span, pair; 0.5 for rate",
        ),
        ("chunking", "mu", "0.1 for score, active, all; 0.2 for score adagrad, active adagrad"),
        ("text", "mu", "1"),
        ("rerank", "mu", "0.01"),
    ],
)
def test_the_defaults_of_h_and_mu_are_numbers(shown, task, name, texts):
    assert default_texts(kind(task))[name] == texts
    assert f"[default: ({texts})]" in " ".join(re.sub(r"[│\n]", " ", shown(f"train {task}")).split())


@pytest.mark.parametrize("task", names())
@pytest.mark.parametrize("name", ["h", "mu"])
def test_every_number_that_h_and_mu_can_be_by_default_is_shown(task, name):
    """And no other: the words are looked up one by one in what the task itself says."""
    said = default_texts(kind(task))[name]
    for part in said.split("; "):
        number, _, whom = part.partition(" for ")
        for each in filter(None, whom.split(", ")):
            words = each.split()
            asks = words[0] in ("part", "label", "pair", "rate")
            step = "adagrad" if words[-1] == "adagrad" or asks else "constant"
            named = asks or (words[0] in RULES and not RULES[words[0]].zeroth_order)
            rules = [words[0]] if named else ["two-point", "comparison"]
            perturb = words[0] if words[0] in ("all", "active", "score") else None
            found = [kind(task).defaults(rule, step, perturb)[name == "mu"] for rule in rules]
            assert float(number) in found, each


def test_a_default_is_shown_as_the_field_has_it(shown):
    text = " ".join(re.sub(r"[│\n]", " ", shown("train chunking")).split())
    for words in (
        f"--rule {'|'.join(RULES)}",
        "[default: (two-point)]",
        "--perturb all|active|score",
        "[default: (score; nothing for rules that perturb nothing)]",
        "Temperature of the annealed criterion. [default: (1)]",
        "--order 1|2",
        "[default: (2; 1 with more than 5 tags)]",
        "--template FILE",
        "[default: (built in)]",
        "How many steps at most: 4M, 300k, 1e6, ... [default: (1M; no end with --answers)]",
        "Steps (with --answers: answers) between looks at dev. [default: (a hundredth of the run)]",
        "Seconds between checkpoints. [default: 30.0]",
    ):
        assert words in text, words
    assert "Keep one chunk type, such as NP. --order" in text  # which has none


@pytest.mark.parametrize(
    ("task", "held_out", "several"), [("chunking", True, True), ("text", True, True), ("rerank", False, False)]
)
def test_what_train_and_dev_may_be(shown, task, held_out, several):
    for words in (f"train {task}", f"tune {task}"):
        text = shown(words)
        assert ("or N: the first N inputs of train" in text) == held_out
        assert ("one or several." in next(line for line in text.splitlines() if " --train " in line)) == several


def test_a_command_is_made_of_the_fields(commands):
    for task in names():
        by_name = {param.name: param for param in commands[f"train {task}"].params}
        for name, each in (SETTINGS | described(kind(task).train_options)).items():
            assert by_name[name].help.startswith(each.about.help)
            assert by_name[name].opts == [each.flag]
            assert by_name[name].is_flag == (each.kind is bool)
            assert by_name[name].multiple == each.several


def test_nothing_is_given_unless_it_is_typed():
    """Defaults are the fields' own: a command's are empty."""
    made = parameters(SETTINGS, "Learner")
    assert [each.name for each in made] == list(SETTINGS)
    assert {each.name: each.default for each in made} == dict.fromkeys(SETTINGS) | {
        "baseline": False,
        "antithetic": False,
    }


def test_the_commands_of_everyday_use_come_first(shown):
    found = re.findall(r"^│ (\w+) ", shown("").split("Commands")[1], re.MULTILINE)
    assert found == [
        "train",
        "serve",
        "tune",
        "predict",
        "evaluate",
        "replay",
        "reproduce",
        "demo",
        "bench",
        "theory",
        "data",
    ]
    assert re.findall(r"^│ (\w+) ", shown("train").split("Commands")[1], re.MULTILINE) == names()


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_a_shell_can_complete(commands, shown, option):
    assert option in flags(commands[""])
    assert option in shown("")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sparsezo tr", {"train"}),
        ("sparsezo train ", set(names())),
        ("sparsezo train chunking --or", {"--order"}),
        ("sparsezo train text --raw", {"--raw-tf"}),
        ("sparsezo train text --or", set()),
    ],
)
def test_completion_offers_what_is_there(typed, offered):
    environment = {
        "_SPARSEZO_COMPLETE": "complete_zsh",
        "_TYPER_COMPLETE_ARGS": typed,
        "PATH": "",
        "PYTHONPATH": ":".join(filter(None, sys.path)),
    }
    code = "from sparsezo.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert set(re.findall(r'^"?([\w-]+)"?:', done.stdout.replace("_arguments '*: :((", ""), re.MULTILINE)) == offered


@pytest.mark.parametrize("words", [["--help"], ["train", "chunking", "--help"], ["tune", "rerank", "--help"]])
def test_help_needs_nothing_heavy(words):
    heavy = ["jinja2", "matplotlib", "numba", "numpy", "scipy", "sklearn"]
    code = (
        f"import sys; sys.argv = {['sparsezo', *words]!r}\n"
        "from sparsezo.cli import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: sparsezo" in done.stdout
    assert done.stdout.splitlines()[-1] == "[]"
