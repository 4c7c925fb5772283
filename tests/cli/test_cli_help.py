"""Help: what each command shows, made from the same fields that the work is done by."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from sparsezo.cli.options import default_texts
from sparsezo.rules import RULES
from sparsezo.tasks.registry import names, task_spec

COMMANDS = [
    "", "train", "train chunking", "train text", "train rerank", "tune", "tune chunking", "tune text", "tune rerank",
    "predict", "evaluate", "reproduce", "demo", "bench", "theory", "data", "data list", "data get", "data path",
    "data make", "doctor", "serve", "serve chunking", "serve text", "serve rerank", "join", "convert", "replay",
]  # fmt: skip


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
    text = shown(words, "-h").lower()
    assert "bool" not in text
    assert re.search(r"--help +-h +(<|[a-z]+>)", text) is None


@pytest.mark.parametrize(
    ("task", "name", "texts"),
    [
        (
            "chunking",
            "h",
            "0.001 for score, cross-entropy; 0.05 for score adagrad, active adagrad; auto for active, "
            "comparison score adagrad, preference score adagrad, baseline score adagrad, span; 0.0001 for all; "
            "0.0003 for comparison active, preference active, baseline active; 0.01 for first-order, supervised; "
            "0.1 for first-order adagrad, supervised adagrad, review; "
            "0.003 for pairwise; 0.02 for pairwise adagrad; 0.03 for cross-entropy adagrad; "
            "0.2 for part, label, pair; 0.5 for rate",
        ),
        ("chunking", "mu", "0.1 for score, active, all; 0.2 for score adagrad, active adagrad"),
        ("text", "mu", "1"),
        ("rerank", "mu", "0.01"),
    ],
)
def test_the_defaults_of_h_and_mu_are_numbers(shown, task, name, texts):
    assert default_texts(task_spec(task))[name] == texts
    assert f"[default: ({texts})]" in " ".join(re.sub(r"[│\n]", " ", shown(f"train {task}")).split())


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


def test_the_commands_of_everyday_use_come_first(shown):
    found = re.findall(r"^│ (\w+) ", shown("").split("Commands")[1], re.MULTILINE)
    wanted = "train serve join tune predict evaluate convert replay reproduce demo bench theory doctor data"
    assert found == wanted.split()
    assert re.findall(r"^│ (\w+) ", shown("train").split("Commands")[1], re.MULTILINE) == names()


@pytest.mark.parametrize("option", ["--install-completion", "--show-completion"])
def test_a_shell_can_complete(commands, shown, option):
    assert option in flags(commands[""])
    assert option in shown("")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("sparsezo tr", {"train"}),
        ("sparsezo train chunking --or", {"--order"}),
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
