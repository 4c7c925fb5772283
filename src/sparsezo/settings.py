"""The settings of a learner: THE list of its options, each with its text, default and check.

>>> Settings(rule="two-point", perturb="score", h=0.001, mu=0.1)
Settings(rule='two-point', perturb='score', h=0.001, mu=0.1, ...)

A combination works or is refused when it is made, with the reason. The command line of train and tune, learners in
TOML, signatures and reports are made from the fields below: a new option is one more of them, and its number in
``step_params`` where the loop needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Self

from sparsezo.errors import UsageError, shown
from sparsezo.kernels import codes
from sparsezo.options import check_option, check_options, described, option
from sparsezo.perturbations import PERTURBATIONS
from sparsezo.raters import parse_error, parse_feedback
from sparsezo.rules import RULES

if TYPE_CHECKING:
    from sparsezo.kernels.loop import StepParams

Defaults = Callable[[str, str, str | None], tuple[float, float]]  # (rule, step, perturb) -> (h, mu)

CRITERIA = {"map": codes.MAP, "annealed": codes.ANNEALED}
STEPS = ("constant", "adagrad")
ABOUT = {"token": codes.ABOUT_TOKEN, "chunk": codes.ABOUT_CHUNK}
ASK = {"unsure": codes.UNSURE, "random": codes.AT_RANDOM}
_OF_ANSWERS = ("about", "ask", "rater_error", "rehearse")  # options of rules that learn from answers, and of no other
_OF_BATCHES = ("batch", "samples", "antithetic")  # options that say how many steps are taken at the same weights
_MOST_REHEARSED = 10_000
_LEAST_OF_USUAL = 0.1  # of Adagrad's h: below it nothing is learned in a usual run
MOST_BATCH = 1_000_000
_OF_PARTS = ("part", "label", "span")  # rules whose questions are about a part of an output


def _but(default: Any, text: str = "{}") -> Callable[[Any], str | None]:
    """A word for a value that is not the plain run's."""
    return lambda value: None if value == default else text.format(value)


def _number(name: str) -> Callable[[Any], str | None]:
    return lambda value: None if value is None else f"{name} {value:g}"


@dataclass(frozen=True)
class Settings:
    rule: str = option("two-point", "What a learner makes of its feedback.", choices=RULES, word=str)
    perturb: str | None = option(
        "score",
        "Which weights are perturbed: all of them, those active in the input, or what its scores can see of these.",
        choices=PERTURBATIONS,
        word=lambda value: value,
        shown="score; nothing for rules that perturb nothing",
    )
    h: float = option(0.001, "Learning rate.", positive=True, sign=_number("h"))
    mu: float | None = option(0.1, "Size of the perturbation.", positive=True, sign=_number("mu"))
    step: str = option(
        "constant",
        "How long a step is: the same for all weights, or the shorter the more a weight has moved.",
        choices=STEPS,
        word=_but("constant"),
    )
    criterion: str = option(
        "map",
        "What is minimised: the loss of the best output, or the expected loss.",
        choices=CRITERIA,
    )
    gamma: float = option(1.0, "Temperature of the annealed criterion.", positive=True)
    baseline: bool = option(
        False,
        "first-order: subtract the mean loss so far.",
        word=lambda value: "with baseline" if value else None,
        sign=lambda value: "baseline" if value else None,
    )
    seed: int = option(0, "Same seed, same run, bit for bit.", sign=lambda value: f"seed {value}")
    feedback: str = option(
        "exact",
        "How the simulated rater answers: exact, binary, flip:P (an answer wrong with probability P), "
        "rating:K[,NOISE,BIAS] (K grades).",
        word=_but("exact"),
        sign=_but("exact", "feedback {}"),
    )
    about: str = option(
        "token",
        "part, label: what a question is about: the smallest part there is (a token, a document), or a chunk.",
        choices=ABOUT,
        word=_but("token", "about a {}"),
        shown="token; chunk for span",
    )
    ask: str = option(
        "unsure",
        "part, label, span, pair, rate: ask where the model is unsure (a tenth at random), or at random.",
        choices=ASK,
        word=_but("unsure", "asked at {}"),
    )
    rater_error: str = option(
        "0",
        "part, label, span, pair: how often raters are believed to err: E; part also E0,E1 (a wrong yes, a wrong no).",
        word=_but("0", "error {}"),
    )
    rehearse: int | None = option(
        None,
        "part, label, span, pair, rate: earlier answers gone over again after each new one.",
        least=0,
        word=lambda value: f"rehearsing {value}",
        shown=f"{RULES['part'].rehearse}; {RULES['pair'].rehearse} for pair",
    )
    batch: int = option(
        1,
        "Steps that are all evaluated at the same weights, then applied in their order (docs/scaling.md).",
        least=1,
        word=_but(1, "batch {}"),
        shown="as many as `samples`",
    )
    samples: int = option(
        1,
        "Perturbations of each input: so many steps look at it, and the weights move by the mean of their directions "
        "(docs/scaling.md).",
        least=1,
        word=_but(1, "{} samples"),
    )
    antithetic: bool = option(
        False,
        "With `samples`: every second perturbation is the one before with its sign changed.",
        word=lambda value: "antithetic" if value else None,
    )

    def __post_init__(self) -> None:
        check_options(self)
        if not (isinstance(self.seed, int) and 0 <= self.seed < 2**63):
            raise UsageError(f"`seed` {shown(self.seed)}: must be a whole number from 0 to 2^63 - 1")
        rule = RULES[self.rule]
        if rule.asks and self.rehearse is None:
            object.__setattr__(self, "rehearse", rule.rehearse)
        if self.rule == "span":
            object.__setattr__(self, "about", "chunk")
        if rule.zeroth_order:
            if self.perturb is None or self.mu is None:
                raise UsageError(f"rule {self.rule} perturbs the weights: give `perturb` and `mu`")
        elif self.perturb is not None or self.mu is not None:
            raise UsageError(f"rule {self.rule} perturbs nothing: leave out `perturb` and `mu`")
        elif self.criterion != "map" and self.rule != "supervised":
            raise UsageError(f"rule {self.rule} has a criterion of its own: leave out `criterion` {self.criterion}")
        if self.step == "adagrad" and self.perturb == "all":
            raise UsageError(
                "`step` adagrad with `perturb` all would move every weight at every step; use active or score"
            )
        if self.baseline and self.rule != "first-order":
            raise UsageError(f"`baseline` belongs to rule first-order, not to {self.rule}")
        self._check_rater()
        self._check_questions()
        self._check_batch()

    def _check_rater(self) -> None:
        model, rule = parse_feedback(self.feedback).model, RULES[self.rule]
        chooses = rule.chooses or (rule.asks and rule.name != "rate")
        if model == "flip" and not chooses:
            raise UsageError(f"`feedback` {self.feedback} is of comparisons; rule {self.rule} asks for losses")
        if model in ("rating", "binary") and rule.asks and chooses:
            raise UsageError(f"`feedback` {self.feedback} is of losses; rule {self.rule} takes {rule.feedback}")
        if model != "exact" and self.rule == "supervised":
            raise UsageError(f"`feedback` {self.feedback}: rule supervised sees the correct output, no rater")

    def _check_questions(self) -> None:
        rule, (e0, e1) = RULES[self.rule], parse_error(self.rater_error)
        given = [name for name in _OF_ANSWERS if getattr(self, name) != SETTINGS[name].default]
        if given and not rule.asks:
            raise UsageError(f"`{given[0]}` belongs to part, label, span, pair and rate, not to rule {self.rule}")
        if self.about != "token" and self.rule not in _OF_PARTS:
            raise UsageError(f"`about` {self.about} belongs to part and label; rule {self.rule} shows whole outputs")
        if (self.rehearse or 0) > _MOST_REHEARSED:
            raise UsageError(f"`rehearse` {shown(self.rehearse)}: must be at most {_MOST_REHEARSED:,}")
        if self.rule == "rate" and e0 + e1 > 0:
            raise UsageError(f"`rater_error` {self.rater_error}: rule rate takes losses, which are not right or wrong")
        if self.rule != "part" and e0 != e1:
            raise UsageError(f"`rater_error` {self.rater_error}: only part has yes and no to err in; give one number")

    def _check_batch(self) -> None:
        for name in ("samples", "batch"):
            if (steps := getattr(self, name)) > MOST_BATCH:
                raise UsageError(f"`{name}` {shown(steps)}: must be at most {MOST_BATCH:,}")
            if steps > 1 and not RULES[self.rule].zeroth_order:
                raise UsageError(
                    f"`{name}` {steps}: the direction of rule {self.rule} depends on the weights, which have moved "
                    "when a batch is applied; use a rule that perturbs the weights"
                )
            if steps > 1 and self.perturb == "all":
                raise UsageError(
                    f"`{name}` {steps}: with `perturb` all, sleeping weights are owed their share of every step "
                    "before the next; use active or score"
                )
        if self.batch == 1:
            object.__setattr__(self, "batch", self.samples)
        if self.batch % self.samples:
            raise UsageError(f"`batch` {self.batch}: must be a multiple of `samples`, {self.samples}: whole inputs")
        if self.antithetic and self.samples % 2:
            raise UsageError(f"`antithetic` perturbations come in pairs: `samples` must be even, not {self.samples}")
        if self.antithetic and self.rule == "symmetric":
            raise UsageError("`antithetic`: rule symmetric looks both ways at every step; leave it out")

    def check_start(self, step: int) -> None:
        """Whether a run may go on from here: half of an input's samples would be at other weights."""
        if step % self.samples:
            raise UsageError(
                f"step {step}: a run that ended within the {self.samples} `samples` of an input does not go on; "
                f"let it end at a multiple of {self.samples}"
            )

    def refuse_batch(self, why: str) -> None:
        """Where steps are taken one by one."""
        for name in ("samples", "batch"):
            if getattr(self, name) > 1:
                raise UsageError(f"`{name}` {getattr(self, name)}: {why}")

    @classmethod
    def complete(
        cls,
        given: Mapping[str, Any],
        defaults: Defaults | None = None,
        usual_step: str = "constant",
        constant_steps: Collection[str | None] = ("all",),
    ) -> Self:
        """What was given, with the rest by default: h and mu by ``defaults(rule, step, perturb)``, a task's own.

        Without ``defaults`` they are those of ``Settings()``.

        ``usual_step``: the task's own, too, but for the perturbations in ``constant_steps``. An h that is given without
        a step and is less than a tenth of Adagrad's default is for constant steps, and gets these (``step_for_h``);
        rules that learn from answers have Adagrad's whatever h is.
        """
        names = [each.name for each in fields(cls)]
        for name in given:
            if name not in names:
                raise UsageError(f"`{shown(name)}` is no setting of a learner; there are {', '.join(names)}")
        for name in ("rule", "perturb", "step"):  # before the task looks up what goes with them
            if name in given:
                check_option(SETTINGS[name], given[name])
        rule = given.get("rule", cls.rule)
        perturbs = rule not in RULES or RULES[rule].zeroth_order
        perturb = given.get("perturb", cls.perturb if perturbs else None)
        asks = rule in RULES and RULES[rule].asks
        usual = "adagrad" if asks else "constant" if perturb in constant_steps else usual_step
        step = given.get("step", usual)
        if defaults is None:
            h, mu = cls.h, cls.mu
        else:
            h, mu = defaults(rule, step, perturb)
            if "step" not in given and not asks and usual == "adagrad" and _small(given.get("h"), h):
                step = "constant"
                h, mu = defaults(rule, step, perturb)
        return cls(**{"perturb": perturb, "h": h, "mu": mu if perturbs else None, "step": step, **given})

    def losses(self, steps: int) -> int:
        """Asked for in so many steps of a rule that perturbs: of each candidate, and of what it is compared with.

        F(w) is the same for all samples of an input, and asked for once.
        """
        inputs = -(-steps // self.samples)
        return steps + {"w": inputs, "w - mu u": steps}.get(RULES[self.rule].incumbent or "", 0)

    @property
    def scale_free(self) -> bool:
        """Only h / mu^2 counts, for weights that start at 0 (docs/theory.md, "Scale")."""
        return RULES[self.rule].zeroth_order and self.criterion == "map" and self.step == "constant"

    def step_params(self) -> StepParams:
        """As the compiled loop wants them."""
        import numpy as np

        from sparsezo.kernels import loop, random

        rater, (e0, e1) = parse_feedback(self.feedback), parse_error(self.rater_error)
        return loop.StepParams(
            rule=RULES[self.rule].code,
            perturbation=PERTURBATIONS[self.perturb].code if self.perturb else codes.SCORE,
            criterion=CRITERIA[self.criterion],
            control=int(self.baseline),
            h=float(self.h),
            mu=float(self.mu or 0.0),
            gamma=float(self.gamma),
            feedback=rater.code,
            noise=float(rater.noise),
            bias=float(rater.bias),
            levels=rater.levels,
            about=ABOUT[self.about],
            ask=ASK[self.ask],
            e0=e0,
            e1=e1,
            rehearse=self.rehearse or 0,
            batch=self.batch,
            samples=self.samples,
            antithetic=int(self.antithetic),
            keys=np.array([random.stream_key(self.seed, stream) for stream in random.STREAMS], np.uint64),
        )

    def as_dict(self) -> dict[str, Any]:
        """Without what the rule has no use for."""
        none: tuple[str, ...] = () if RULES[self.rule].asks else _OF_ANSWERS
        # runs of earlier versions are known by the same settings
        none += tuple(name for name in _OF_BATCHES if getattr(self, name) == SETTINGS[name].default)
        return {name: value for name, value in asdict(self).items() if name in SETTINGS and name not in none}

    def __str__(self) -> str:
        """The signature that tables, plots and saved models carry."""
        return ", ".join(_words(asdict(self), "annealed gamma {:g}", signature=True))

    @property
    def name(self) -> str:
        """What a learner is called: its signature without h, mu and seed."""
        return learner_name(asdict(self))


def _small(h: object, usual: float) -> bool:
    """Whether nothing would be learned with this h and Adagrad's steps, whose usual one is given."""
    return isinstance(h, int | float) and 0 < h < _LEAST_OF_USUAL * usual


def step_for_h(
    given: Mapping[str, Any],
    defaults: Defaults,
    usual_step: str = "constant",
    constant_steps: Collection[str | None] = ("all",),
) -> str | None:
    """Of what ``Settings.complete`` takes: a remark where h was given without a step, and Adagrad's would be usual.

    It says which step is taken where h is too small for that; None where there is nothing to say.
    """
    made = Settings.complete(given, defaults, usual_step, constant_steps)
    asks = RULES[made.rule].asks
    adagrad = asks or (usual_step == "adagrad" and made.perturb not in constant_steps)
    if "step" in given or "h" not in given or not adagrad:
        return None
    usual, _ = defaults(made.rule, "adagrad", made.perturb)
    if not _small(made.h, usual):
        return None
    if asks:
        return (
            f"`h` {made.h:g} is small for Adagrad's steps, which rule {made.rule} has: little may be learned; "
            f"it is usually {usual:g}"
        )
    constant, _ = defaults(made.rule, "constant", made.perturb)
    return (
        f"`h` {made.h:g} is for constant steps (usually {constant:g}), and these are taken; with `step` adagrad it is "
        f"usually {usual:g}"
    )


SETTINGS = described(Settings)  # name -> what the option is

LEARNER_KEYS = tuple(name for name in SETTINGS if name != "seed")  # of a learner in TOML


def learner_name(values: Mapping[str, Any], gamma: bool = True) -> str:
    """The name of a learner with these settings, wherever they come from; what is missing is as by default.

    Without ``gamma`` one that is searched for is not named.
    """
    return " ".join(_words(values, "annealed {:g}" if gamma else "annealed", signature=False))


def usually_rehearsed(values: Mapping[str, Any]) -> int:
    """By the rule of these settings."""
    rule = values.get("rule", Settings.rule)
    return RULES[rule].rehearse if rule in RULES else 0


def _usual(name: str, values: Mapping[str, Any]) -> Any:
    """What goes without saying where it is not the option's own default."""
    usual = {"rehearse": usually_rehearsed(values), "batch": values.get("samples", 1)}
    if values.get("rule") == "span":
        usual["about"] = "chunk"
    return usual.get(name, ...)


def _words(values: Mapping[str, Any], annealed: str, *, signature: bool) -> list[str]:
    words = []
    for name in (*LEARNER_KEYS, "seed"):
        about, value = SETTINGS[name].about, values.get(name, SETTINGS[name].default)
        if name == "gamma":  # criterion and gamma are one thing to say
            word = annealed.format(value) if values.get("criterion") == "annealed" else None
        elif value == _usual(name, values):
            word = None
        else:
            say = about.sign if signature and about.sign is not None else about.word
            word = None if value is None else say(value)
        words.append(word)
    return [word for word in words if word]
