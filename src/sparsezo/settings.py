"""The settings of a learner: THE list of its options, each with its text, default and check.

>>> Settings(rule="two-point", perturb="score", h=0.001, mu=0.1)
Settings(rule='two-point', perturb='score', h=0.001, mu=0.1, ...)

A combination works or is refused when it is made, with the reason. The command line of train and tune, learners in
TOML, signatures and reports are made from the fields below: a new option is one more of them, and its number in
``step_params`` where the loop needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING, Self

from sparsezo.errors import UsageError, shown
from sparsezo.kernels import codes
from sparsezo.options import Json, Values, check_option, check_options, described, gone, make_options, option
from sparsezo.raters import parse_error, parse_feedback
from sparsezo.rules import PERTURBATIONS, QUERY, RULES, ZEROTH_ORDER, Rule

if TYPE_CHECKING:
    from sparsezo.kernels.loop import StepParams

AUTO = "auto"  # in the place of a number: h by what a learner sees (steps.py)
AUTO_ADAGRAD = 0.4  # h of Adagrad's steps is then so many mu
Rate = float | str  # h: a number, or AUTO
Defaults = Callable[[str, str, str | None], tuple[Rate, float]]  # (rule, step, perturb) -> (h, mu)

CRITERIA = {"map": codes.MAP, "annealed": codes.ANNEALED}
STEPS = ("constant", "adagrad")
ABOUT = {"token": codes.ABOUT_TOKEN, "chunk": codes.ABOUT_CHUNK}
REVIEW = {"all": codes.ABOUT_TOKEN, "marked": codes.ABOUT_MARKED, "auto": codes.ABOUT_EITHER}
SECONDS = {  # of a review: each one, a token of a whole one, a marked part of another, a correction expected
    "ours": (0.5, 0.12, 0.7, 2.5),
    "literature": (2.4, 0.12, 0.7, 4.7),  # whole sentences with names marked by hand; of marked parts nothing is known
    "slow": (1.0, 0.3, 1.2, 4.0),
}
ASK = {"unsure": codes.UNSURE, "random": codes.AT_RANDOM}
_GONE = {"batch": 1, "samples": 1, "antithetic": False}  # settings of earlier versions, and what they were by default
_MOST_REHEARSED = 10_000
_PERTURBING, _ASKING = (ZEROTH_ORDER,), (QUERY,)
_OF_REVIEWS = ("review", "seconds")
Seconds = tuple[float, float, float, float]


def _but(default: object, text: str = "{}") -> Callable[[object], str | None]:
    """A word for a value that is not the plain run's."""
    return lambda value: None if value == default else text.format(value)


def _number(name: str) -> Callable[[Rate | None], str | None]:
    return lambda value: None if value is None else f"{name} {rate_text(value)}"


def rate_text(h: Rate) -> str:
    """A learning rate as people read it.

    >>> rate_text(0.0001), rate_text("auto")
    ('0.0001', 'auto')
    """
    return h if isinstance(h, str) else f"{h:g}"


@dataclass(frozen=True)
class Settings:
    """What a learner is: its rule, and the numbers of that. Zeroth-order rules have ``perturb`` and ``mu``, which are
    None for the others; rules that ask questions have ``about``, ``ask``, ``rater_error`` and ``rehearse``.

    >>> str(Settings("part", None, h=0.2, mu=None, step="adagrad", rater_error="0.1"))
    'part, h 0.2, adagrad, error 0.1, seed 0'
    >>> Settings("first-order", perturb="score")
    Traceback (most recent call last):
        ...
    sparsezo.errors.UsageError: rule first-order perturbs nothing: leave out `perturb` and `mu`
    """

    rule: str = option("two-point", "What a learner makes of its feedback.", choices=RULES, word=str)
    perturb: str | None = option(
        "score",
        "Which weights are perturbed: all of them, those active in the input, or what its scores can see of these.",
        choices=PERTURBATIONS,
        families=_PERTURBING,
        word=lambda value: value,
        shown="score; nothing for rules that perturb nothing",
    )
    h: float | str = option(
        0.001,
        "Learning rate: a number, or auto, by what the learner sees (docs/steps.md).",
        positive=True,
        words=(AUTO,),
        sign=_number("h"),
    )
    mu: float | None = option(0.1, "Size of the perturbation.", families=_PERTURBING, positive=True, sign=_number("mu"))
    step: str = option(
        "constant",
        "How long a step is: the same for all weights, or the shorter the more a weight has moved.",
        choices=STEPS,
        word=_but("constant"),
    )
    criterion: str = option(
        "map", "What is minimised: the loss of the best output, or the expected loss.", choices=CRITERIA
    )
    gamma: float = option(1.0, "Temperature of the annealed criterion.", positive=True)
    baseline: bool = option(
        False,
        "first-order: subtract the mean loss so far.",
        word=_but(False, "with baseline"),
        sign=_but(False, "baseline"),
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
        families=_ASKING,
        choices=ABOUT,
        word=_but("token", "about a {}"),
        shown="token; chunk for span",
    )
    review: str = option(
        "all",
        "review: what an answer speaks about: the whole output, what was marked as unsure and what was corrected, or "
        "each time what is worth more by the second.",
        families=_ASKING,
        choices=REVIEW,
        word=lambda value: {"all": None, "marked": "of what is marked"}.get(value, f"of {value}"),
    )
    seconds: str = option(
        "ours",
        "review: a person's time, by which inputs are chosen: ours, literature, slow, or seconds for each review, a "
        "token of a whole one, a marked part and a correction: 0.5,0.12,0.7,2.5.",
        families=_ASKING,
        word=_but("ours", "seconds {}"),
    )
    ask: str = option(
        "unsure",
        "part, label, span, review, pair, best, rate: ask where the model is unsure (a tenth at random), or at random.",
        families=_ASKING,
        choices=ASK,
        word=_but("unsure", "asked at {}"),
    )
    rater_error: str = option(
        "0",
        "part, label, span, review, pair, best: how often raters are believed to err: E; also E0,E1: part (a wrong "
        "yes, a wrong no) and review (what was left standing, what was set by hand).",
        families=_ASKING,
        word=_but("0", "error {}"),
    )
    rehearse: int | None = option(
        None,
        "part, label, span, review, pair, best, rate: earlier answers gone over again after each new one.",
        families=_ASKING,
        least=0,
        word=lambda value: f"rehearsing {value}",
        shown=f"{RULES['part'].rehearse}; review {RULES['review'].rehearse}, pair and best {RULES['pair'].rehearse}",
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
        if self.h == AUTO and rule.asks and self.step != "adagrad":
            raise UsageError(f"`h` auto of rule {self.rule} is for Adagrad's steps: leave out `step`, or give a number")
        if self.baseline and self.rule != "first-order":
            raise UsageError(f"`baseline` belongs to rule first-order, not to {self.rule}")
        model = parse_feedback(self.feedback).model
        chooses = rule.chooses or (rule.asks and rule.name != "rate")
        if model == "flip" and not chooses:
            raise UsageError(f"`feedback` {self.feedback} is of comparisons; rule {self.rule} asks for losses")
        if model in ("rating", "binary") and rule.asks and chooses:
            raise UsageError(f"`feedback` {self.feedback} is of losses; rule {self.rule} takes {rule.feedback}")
        if model != "exact" and self.rule == "supervised":
            raise UsageError(f"`feedback` {self.feedback}: rule supervised sees the correct output, no rater")
        e0, e1 = parse_error(self.rater_error)
        for name in _of_others(rule):
            if getattr(self, name) != SETTINGS[name].default:
                raise UsageError(
                    f"`{name}` belongs to part, label, span, review, pair, best and rate, not to rule {self.rule}"
                )
        if self.about != "token" and self.rule not in ("part", "label", "span"):
            raise UsageError(f"`about` {self.about} belongs to part and label; rule {self.rule} shows whole outputs")
        if (self.rehearse or 0) > _MOST_REHEARSED:
            raise UsageError(f"`rehearse` {shown(self.rehearse)}: must be at most {_MOST_REHEARSED:,}")
        if self.rule == "rate" and e0 + e1 > 0:
            raise UsageError(f"`rater_error` {self.rater_error}: rule rate takes losses, which are not right or wrong")
        for name in _OF_REVIEWS:
            if self.rule != "review" and getattr(self, name) != SETTINGS[name].default:
                raise UsageError(f"`{name}` {getattr(self, name)} belongs to rule review, not to {self.rule}")
        parse_seconds(self.seconds)
        if self.rule not in ("part", "review") and e0 != e1:
            raise UsageError(
                f"`rater_error` {self.rater_error}: only part and review have two kinds of error; give one number"
            )

    @classmethod
    def from_dict(cls, given: Values, what: str) -> Self:
        """Settings as ``as_dict`` gave them, here or in an earlier version; ``what`` they are of, for messages."""
        return make_options(cls, without_gone(given), what)

    @classmethod
    def complete(
        cls,
        given: Values,
        defaults: Defaults | None = None,
        usual_step: str = "constant",
        constant_steps: Collection[str | None] = ("all",),
    ) -> Self:
        """What was given, with the rest by default: h and mu by ``defaults(rule, step, perturb)``, a task's own, or
        those of ``Settings()``.

        ``usual_step``: the task's own, too, but for the perturbations in ``constant_steps``. An h that is given without
        a step and is less than a tenth of Adagrad's default is for constant steps, and gets these (``step_for_h``);
        rules that learn from answers have Adagrad's whatever h is.
        """
        given = without_gone(given)
        names = [each.name for each in fields(cls)]  # those of a subclass, too
        for name in given:
            if name not in names:
                raise UsageError(f"`{shown(name)}` is no setting of a learner; there are {', '.join(names)}")
        for name in ("rule", "perturb", "step"):  # before the task looks up what goes with them
            if name in given:
                check_option(SETTINGS[name], given[name])
        rule = given.get("rule", cls.rule)
        perturbs, asks = RULES[rule].zeroth_order, RULES[rule].asks
        perturb = given.get("perturb", cls.perturb if perturbs else None)
        usual = "adagrad" if asks else "constant" if perturb in constant_steps else usual_step
        step = given.get("step", usual)
        like = RULES[rule].usual
        h, mu = (cls.h, cls.mu) if defaults is None else defaults(like, step, perturb)
        if (
            defaults
            and "step" not in given
            and not asks
            and usual == "adagrad"
            and _small(given.get("h"), h, mu or 0.0)
        ):
            step = "constant"
            h, mu = defaults(like, step, perturb)
        return cls(**{"perturb": perturb, "h": h, "mu": mu if perturbs else None, "step": step, **given})

    @property
    def scale_free(self) -> bool:
        """Only h / mu^2 counts, for weights that start at 0 (docs/theory.md, "Scale")."""
        rule = RULES[self.rule]  # what somebody's own does is not known
        known = rule.zeroth_order and rule.coefficient is None
        return known and self.criterion == "map" and self.step == "constant"

    def step_params(self) -> StepParams:
        """As the compiled loop wants them."""
        import numpy as np

        from sparsezo.kernels import loop, random

        rater, (e0, e1) = parse_feedback(self.feedback), parse_error(self.rater_error)
        rule = RULES[self.rule]
        return loop.StepParams(
            rule=rule.code,
            perturbation=PERTURBATIONS[self.perturb].code if self.perturb else codes.SCORE,
            criterion=CRITERIA[self.criterion],
            control=int(self.baseline or rule.coefficient is not None),  # which is told the mean
            h=0.0 if isinstance(self.h, str) else float(self.h),  # auto: a learner's, as steps.automatic has it
            mu=float(self.mu or 0.0),
            gamma=float(self.gamma),
            feedback=rater.code,
            noise=float(rater.noise),
            bias=float(rater.bias),
            levels=rater.levels,
            about=REVIEW[self.review] if self.rule == "review" else ABOUT[self.about],
            ask=ASK[self.ask],
            e0=e0,
            e1=e1,
            rehearse=self.rehearse or 0,
            seconds=parse_seconds(self.seconds),
            keys=np.array([random.stream_key(self.seed, stream) for stream in random.STREAMS], np.uint64),
            points=np.array(rule.points, np.float64),
            first=float(rule.points[0]) if rule.points else 1.0,
            second=float(rule.points[1]) if len(rule.points) > 1 else 0.0,
            own=rule.compiled(),
        )

    def as_dict(self) -> Json:
        """By name, as files have them: without what only questions have, where the rule asks none."""
        none = [*_of_others(RULES[self.rule]), *(_OF_REVIEWS if self.rule != "review" else ())]
        return {name: value for name, value in asdict(self).items() if name in SETTINGS and name not in none}

    def __str__(self) -> str:
        """The signature that tables, plots and saved models carry."""
        return ", ".join(_words(asdict(self), "annealed gamma {:g}", signature=True))

    @property
    def name(self) -> str:
        """What a learner is called: its signature without h, mu and seed."""
        return learner_name(asdict(self))


def parse_seconds(given: str | Sequence[float]) -> Seconds:
    """A table of seconds: its name, its four numbers in a text, or the numbers themselves.

    >>> parse_seconds("slow"), parse_seconds("0.4,0.2,1,3")
    ((1.0, 0.3, 1.2, 4.0), (0.4, 0.2, 1.0, 3.0))
    """
    if isinstance(given, str) and given in SECONDS:
        return SECONDS[given]
    try:
        each, token, part, correction = map(float, given.split(",") if isinstance(given, str) else given)
        if each > 0 and all(0 <= number < 1e6 for number in (each, token, part, correction)):
            return each, token, part, correction
    except (TypeError, ValueError, OverflowError):
        pass
    raise UsageError(
        f"`seconds` {shown(given)}: give {', '.join(SECONDS)}, or four numbers, none below 0 and the first above it: "
        "seconds for each review, a token of a whole one, a marked part, a correction"
    )


def _of_others(rule: Rule) -> list[str]:
    """The options of questions, where a rule asks none."""
    return [] if rule.asks else [name for name, each in SETTINGS.items() if each.about.families == _ASKING]


def _small(h: object, usual: Rate, mu: float) -> bool:
    """Whether nothing would be learned with this h and Adagrad's steps, whose usual h and mu are given."""
    return isinstance(h, int | float) and 0 < h < 0.1 * (AUTO_ADAGRAD * mu if isinstance(usual, str) else usual)


def step_for_h(
    given: Values, defaults: Defaults, usual_step: str = "constant", constant_steps: Collection[str | None] = ("all",)
) -> str | None:
    """Of what ``Settings.complete`` takes: a remark where h is given without a step and is too small for Adagrad's."""
    made = Settings.complete(given, defaults, usual_step, constant_steps)
    asks = RULES[made.rule].asks
    adagrad = asks or (usual_step == "adagrad" and made.perturb not in constant_steps)
    like = RULES[made.rule].usual
    usual, mu = defaults(like, "adagrad", made.perturb) if adagrad else (0.0, 0.0)
    if "step" in given or "h" not in given or not _small(made.h, usual, mu):
        return None
    if asks:
        said = f"small for Adagrad's steps, which rule {made.rule} has: little may be learned; it is"
    else:
        constant, _ = defaults(like, "constant", made.perturb)
        said = f"for constant steps (usually {rate_text(constant)}), and these are taken; with `step` adagrad it is"
    return f"`h` {rate_text(made.h)} is {said} usually {rate_text(usual)}"


def without_gone(given: Values) -> Values:
    """What a file or a caller gives, without options of earlier versions, which may only be as they were by default."""
    for name, default in _GONE.items():
        if given.get(name, default) != default:
            raise gone(f"`{name}`")
    return {name: value for name, value in given.items() if name not in _GONE}


SETTINGS = described(Settings)  # name -> what the option is

LEARNER_KEYS = tuple(name for name in SETTINGS if name != "seed")  # of a learner in TOML


def learner_name(values: Values, gamma: bool = True) -> str:
    """The name of a learner with these settings, wherever they come from; what is missing is as by default.

    Without ``gamma`` one that is searched for is not named.
    """
    return " ".join(_words(values, "annealed {:g}" if gamma else "annealed", signature=False))


def usually_rehearsed(values: Values) -> int:
    """By the rule of these settings."""
    rule = values.get("rule", Settings.rule)
    return RULES[rule].rehearse if rule in RULES else 0


def _words(values: Values, annealed: str, *, signature: bool) -> list[str]:
    words = []
    unsaid = {"rehearse": usually_rehearsed(values)} | ({"about": "chunk"} if values.get("rule") == "span" else {})
    for name in (*LEARNER_KEYS, "seed"):
        about, value = SETTINGS[name].about, values.get(name, SETTINGS[name].default)
        if name == "gamma":  # criterion and gamma are one thing to say
            word = annealed.format(value) if values.get("criterion") == "annealed" else None
        elif value is None or value == unsaid.get(name, ...):
            word = None
        else:
            word = about.sign(value) if signature and about.sign is not None else about.word(value)
        words.append(word)
    return [word for word in words if word]
