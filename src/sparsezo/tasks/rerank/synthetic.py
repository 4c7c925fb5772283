"""Generated n-best lists with references: a decoder's output for reranking (paper Sec. 5, SMT), as cdec writes it.

A candidate is the reference with words substituted, dropped, added and swapped. Half of the features tell, through
noise, how many of which error it has; others are its length, noise, or mostly 0. The decoder that wrote the lists, best
model score first, had ``OUT_OF_DOMAIN``: it trusts features that tell little in this domain and likes long outputs.
``IN_DOMAIN`` are weights that fit. List i is a pure function of (seed, i), so a longer file begins with the shorter.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsezo.errors import UsageError
from sparsezo.storage.files import bare_name, write_packed
from sparsezo.tasks.rerank.io.importing import default_references
from sparsezo.tasks.spec import ExperimentFiles
from sparsezo.tasks.text.synthetic import spell

_WEIGHTS = {  # in domain, out of domain
    "PhraseForward": (0.5, 0.1),
    "PhraseBackward": (0.25, 0.25),
    "LexicalForward": (0.4, 0.05),
    "LexicalBackward": (0.2, 0.2),
    "LanguageModel": (0.5, 0.3),
    "LanguageModel_OOV": (-1.0, -1.0),
    "WordPenalty": (-0.45, -0.7),
    "Distortion": (0.3, 0.3),
    "PhraseCount": (0.0, 0.4),
    "GlueRules": (0.0, 0.2),
    "RuleCount": (0.0, -0.3),
    "IsSingleton": (0.0, 0.0),
    "SampleCount": (0.0, 0.4),
    "PassThrough": (-1.0, -1.0),
}
IN_DOMAIN, OUT_OF_DOMAIN = ({name: pair[k] for name, pair in _WEIGHTS.items()} for k in (0, 1))
ENDING = ".nbest"
SIZE = 300
FORMATS: tuple[str, ...] = ()
_PARTS = (300, 150, 300)  # lists of an experiment's train, dev and test
_WORDS = 600


@dataclass(frozen=True)
class GeneratedNBest:
    lists: tuple[tuple[str, ...], ...]  # lines of each list
    references: tuple[str, ...]

    def nbest(self) -> str:
        return "".join(f"{line}\n" for lines in self.lists for line in lines)

    def ref(self) -> str:
        return "".join(f"{line}\n" for line in self.references)


def generate_nbest(n_sentences: int, seed: int, *, candidates: int = 50) -> GeneratedNBest:
    """Lists of at most ``candidates`` different hypotheses."""
    for name, value, least in (("n_sentences", n_sentences, 1), ("seed", seed, 0), ("candidates", candidates, 1)):
        if value < least:
            raise UsageError(f"{name} is {value}; give {least} or more")
    chance = 1 / (np.arange(_WORDS) + 3.0)
    law = np.cumsum(chance / chance.sum())  # Zipf; a distribution function
    lists, references = zip(*(_list(i, seed, candidates, law) for i in range(n_sentences)), strict=True)
    return GeneratedNBest(lists, references)


def weights_text(weights: dict[str, float]) -> str:
    return "".join(f"{name} {value!r}\n" for name, value in weights.items())


def paths(target: Path, weights: Path) -> list[Path]:
    """The files that ``write`` makes: lists, references, and both domains' weights."""
    if not bare_name(target).endswith(ENDING):
        raise UsageError(f"-o {target}: name it NAME.nbest, .nbest.gz or .nbest.xz, or a folder with a / behind it")
    domains = (weights.with_name(weights.name + domain) for domain in ("out-of-domain", "in-domain"))
    return [target, default_references(target), *domains]


def write(target: Path, weights: Path, n: int, seed: int, format: str | None) -> None:
    lists = generate_nbest(n, seed)
    texts = (lists.nbest(), lists.ref(), weights_text(OUT_OF_DOMAIN), weights_text(IN_DOMAIN))
    for file, text in zip(paths(target, weights), texts, strict=True):
        write_packed(file, [text])


def write_source(source: ExperimentFiles) -> None:
    for path, size, seed in zip((source.train[0], source.dev, source.test), _PARTS, (1, 2, 3), strict=True):
        if path:
            lists = generate_nbest(size, seed)
            write_packed(Path(path), [lists.nbest()])
            write_packed(default_references(path), [lists.ref()])
    for name, path in source.bounds.items():
        write_packed(Path(path), [weights_text(OUT_OF_DOMAIN if "out" in name else IN_DOMAIN)])
    if "init" in source.options:
        write_packed(Path(str(source.options["init"])), [weights_text(OUT_OF_DOMAIN)])


def _list(i: int, seed: int, candidates: int, law: NDArray[np.float64]) -> tuple[tuple[str, ...], str]:
    rng = np.random.default_rng([seed, i])
    reference = _words(int(rng.integers(8, 22)), rng, law)
    found: dict[str, tuple[float, str]] = {}
    for rate in rng.uniform(0.2, 0.8, candidates):
        words, errors = _corrupt(reference, rate, rng, law)
        text = " ".join(map(spell, words.tolist()))
        features = _features(words.size, errors, rng)
        score = sum(OUT_OF_DOMAIN[name] * value for name, value in features.items())
        pairs = " ".join(f"{name}={value:g}" for name, value in features.items() if value != 0)
        found.setdefault(text, (score, f"{i} ||| {text} ||| {pairs} ||| {score:.6g}"))
    lines = tuple(line for _, line in sorted(found.values(), key=lambda pair: -pair[0]))
    return lines, " ".join(map(spell, reference.tolist()))


def _words(n: int, rng: np.random.Generator, law: NDArray[np.float64]) -> NDArray[np.int64]:
    return np.minimum(np.searchsorted(law, rng.random(n), side="right"), _WORDS - 1)


def _corrupt(
    reference: NDArray[np.int64], rate: float, rng: np.random.Generator, law: NDArray[np.float64]
) -> tuple[NDArray[np.int64], tuple[int, int, int, int]]:
    """A hypothesis, and how many words in it are wrong, dropped, added and swapped."""
    n = reference.size
    wrong = rng.random(n) < 0.6 * rate
    words = np.where(wrong, _words(n, rng, law), reference)
    swaps = np.flatnonzero(rng.random(n - 1) < 0.3 * rate)
    for k in swaps.tolist():
        words[[k, k + 1]] = words[[k + 1, k]]
    dropped = rng.random(n) < 0.25 * rate
    dropped[rng.integers(n)] = False  # never all of them
    added = np.flatnonzero(rng.random(n) < 0.35 * rate)
    longer = np.insert(words, added, _words(added.size, rng, law))
    kept = ~np.insert(dropped, added, False)
    return longer[kept], (int(wrong.sum()), int(dropped.sum()), int(added.size), int(swaps.size))


def _features(length: int, errors: tuple[int, int, int, int], rng: np.random.Generator) -> dict[str, float]:
    wrong, dropped, added, swapped = errors
    noise = rng.standard_normal(12)
    unknown = int(rng.binomial(wrong, 0.1))
    values = {
        "PhraseForward": -(wrong + dropped) + 1.2 * noise[0],
        "PhraseBackward": -0.7 * (wrong + added) + 1.6 * noise[1],
        "LexicalForward": -0.8 * wrong + 1.2 * noise[2],
        "LexicalBackward": -0.8 * added + 1.6 * noise[3],
        "LanguageModel": -0.9 * length - 0.7 * (wrong + swapped) + 1.2 * noise[4],
        "LanguageModel_OOV": unknown,
        "WordPenalty": -length,
        "Distortion": -swapped + noise[5],
        "PhraseCount": round(0.5 * length + 2 * noise[6]),
        "GlueRules": round(abs(2 * noise[7])),
        "RuleCount": 0.3 * length + 2 * noise[8],
        "IsSingleton": int(noise[9] > 1.5),
        "SampleCount": 2 * noise[10],
        "PassThrough": int(unknown > 0 and noise[11] > 0),
    }
    return {name: float(f"{value:.5g}") for name, value in values.items()}
