"""Reranking n-best lists of a decoder (paper Sec. 5, "Statistical Machine Translation"; domain adaptation).

    store = import_nbest("train.nbest.xz")                              # references: train.ref
    task = Reranking.fit(store, read_weights("weights.out-of-domain"))  # start from the decoder's own weights
    problem, gold = task.problem(store), task.gold(store)
    learner = Learner(problem, Settings(h=1e-4, mu=1e-2), task.initial_weights())
    learner.run(gold, steps=800_000)
    task.export("adapted", learner.weights())                           # adapted.weights (cdec), adapted.ini (Moses)

The features are dense, but not in every list: a feature that is 0 for all candidates of a list is not active in it
(eq. zero-norm), and its weight is perturbed by all, not by active.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sparsezo import messages
from sparsezo.errors import DivergedError, SparsezoError, UsageError, some
from sparsezo.kernels.inputs.dense import dense_inputs, dots, read_only
from sparsezo.kernels.simd import PADDED
from sparsezo.questions import PLACES, WHICH
from sparsezo.tasks.base import AnyArray, Arrays, Json, Problem, Scores
from sparsezo.tasks.rerank.io.decoder_weights import write_cdec_weights, write_moses_weights
from sparsezo.tasks.rerank.io.importing import NBestStore
from sparsezo.tasks.rerank.io.nbest import NBestList
from sparsezo.tasks.rerank.kernels.task import RankGold, rank_task
from sparsezo.tasks.rerank.metric import bleu_from_statistics, corpus_bleu, corpus_bleu_from_statistics
from sparsezo.tasks.rerank.spec import defaults

_BLOCK = 1 << 18  # candidates that are put in order at a time
_HELD = 1000  # lists that may pass before one has a feature that the model knows


@dataclass(frozen=True, eq=False)
class Reranking:
    """Feature names, in the order of the weights, and the weights to start from.

    First the training lists' features, as their store has them, then those that only the initial weights name: these
    keep their weight, which counts where other lists have the feature. A feature that neither knows has no weight;
    it counts as 0 in every list.
    """

    names: tuple[str, ...]
    init: tuple[float, ...]

    name = "rerank"
    metric = "bleu"
    defaults = staticmethod(defaults)
    n_labels = 1

    @classmethod
    def fit(cls, train: NBestStore, init: Mapping[str, float] | None = None) -> Reranking:
        """The task of training lists; ``init``: a decoder's weights, 0 for features that it does not name."""
        start = dict(init or {})
        if start and not any(name in start for name in train.names):
            raise UsageError(
                f"no feature of the training lists has an initial weight: they have {some(train.names)}, "
                f"the weights are for {some(tuple(start))}; is it another decoder's file?"
            )
        known = set(train.names)
        missing = tuple(name for name in train.names if name not in start)
        if start and missing:
            verb = "has no initial weight and starts" if len(missing) == 1 else "have no initial weight and start"
            messages.say(f"{train.source}: {some(missing)} {verb} at 0")
        names = (*train.names, *(name for name in start if name not in known))
        return cls(names, tuple(float(start.get(name, 0.0)) for name in names))

    @property
    def n_features(self) -> int:
        return len(self.names)

    def initial_weights(self) -> NDArray[np.float64]:
        """M x 1."""
        return np.array(self.init, np.float64).reshape(-1, 1)

    def features(self, data: NBestStore) -> NDArray[np.float32]:
        """The lists' features in the order of the weights: as they lie on disk where that is it, else a copy."""
        if data.names == self.names[: len(data.names)]:
            return data.features
        columns = data.columns_of(self.names)
        known = np.flatnonzero(columns >= 0)
        if not known.size:
            raise self._foreign(data.source, data.names)
        out = np.zeros((data.n_candidates, self.n_features), np.float32)
        for begin in range(0, data.n_candidates, _BLOCK):
            out[begin : begin + _BLOCK, known] = data.features[begin : begin + _BLOCK][:, columns[known]]
        return out

    def _foreign(self, where: str, names: tuple[str, ...]) -> SparsezoError:
        found = some(names) if names else "no features"
        return SparsezoError(f"{where}: its lists have {found}, none of the model's features, {some(self.names)}")

    def known(self, where: str, lists: Iterable[NBestList]) -> Iterator[NBestList]:
        """The lists of a file as they are read; none of them where they share no feature with the model."""
        remaining, held, own = iter(lists), list[NBestList](), set(self.names)
        for nbest in itertools.islice(remaining, _HELD):
            held.append(nbest)
            if not own.isdisjoint(nbest.names):
                return itertools.chain(held, remaining)
        raise self._foreign(where, held[-1].names if held else ())

    def problem(self, data: NBestStore, *, learn: bool = True, risk: bool = False, asks: bool = False) -> Problem:
        """``asks``: steps as if every feature had spread 1 within lists."""
        inputs = dense_inputs(self.features(data), data.offsets, learn, scaled=asks)
        N, M = len(data), inputs.features.shape[1]
        return Problem(
            inputs=inputs,
            task=rank_task(data.offsets),
            n_features=self.n_features,
            n_labels=1,
            output_start=np.arange(N + 1, dtype=np.int64),
            n_active=np.diff(inputs.col_start) if learn else np.zeros(N, np.int64),
            max_rows=int(np.diff(data.offsets).max(initial=0)),
            max_columns=M,
            dtype=np.float64,
            questions={("pair", "token"): WHICH, ("best", "token"): PLACES},
            learn=learn,
        )

    def gold(self, data: NBestStore) -> RankGold:
        data.require_references()
        return RankGold(data.offsets, np.asarray(data.losses), np.asarray(data.statistics))

    def quality(self, problem: Problem, gold: RankGold, outputs: NDArray[np.int32]) -> float:
        """Corpus BLEU, from the chosen candidates' statistics."""
        return corpus_bleu_from_statistics(gold.statistics[gold.offsets[:-1] + outputs])

    def scores(self, data: NBestStore, outputs: NDArray[np.int32]) -> Scores:
        """sacrebleu's own score of the texts. Sentence BLEU, the loss, likes longer outputs: see the length ratio."""
        data.require_references()
        result = corpus_bleu(self.words(data, outputs), data.references)
        statistics = np.array(data.statistics[data.offsets[:-1] + outputs])
        sentence_bleu = bleu_from_statistics(statistics)
        report: Json = {
            "bleu": result.bleu,
            "signature": result.signature,
            "length_ratio": result.length_ratio,
            "sentence_bleu": float(sentence_bleu.mean()),
            "sentences": len(data),
        }
        return Scores(self.metric, result.bleu, report, statistics)

    def words(self, data: NBestStore, outputs: NDArray[np.int32]) -> list[str]:
        """The chosen hypotheses; an output is the candidate's place in its list."""
        return [data.hypothesis(j) for j in (data.offsets[:-1] + outputs).tolist()]

    def order(self, nbest: NBestList, W: AnyArray) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """(places from the best candidate to the worst, the score of each candidate) of a list as it was read."""
        names, features = nbest.names, nbest.features
        weights = np.asarray(W, np.float64).reshape(-1)
        if weights.size != len(self.names):
            raise UsageError(f"{weights.size} weights for {len(self.names)} features; give one for each")
        w, column = np.zeros((len(names), 1)), {name: k for k, name in enumerate(names)}
        for name, value in zip(self.names, weights.tolist(), strict=True):
            if name in column:
                w[column[name]] = value
        totals = np.empty((len(features), 1))
        dots(read_only(features), 0, len(features), w, np.empty(PADDED), totals)
        if not (np.isfinite(weights).all() and np.isfinite(totals).all()):
            raise DivergedError("the model's weights give scores that are not finite; train it again with a smaller h")
        return np.argsort(-totals[:, 0], kind="stable"), totals[:, 0]

    def reranked(self, nbest: NBestList, W: AnyArray) -> Iterator[str]:
        """A list's candidates as cdec writes them, ``id ||| hypothesis ||| features ||| score``, best score first."""
        order, totals = self.order(nbest, W)
        for j in order.tolist():
            # str of a float32 is short and reads back as the same number
            pairs = zip(nbest.names, nbest.features[j], strict=True)
            values = " ".join(f"{name}={value!s}" for name, value in pairs if value != 0)
            yield f"{nbest.id} ||| {nbest.hypotheses[j]} ||| {values} ||| {totals[j]:.9g}"

    def export(self, path: str | os.PathLike[str], W: AnyArray) -> list[Path]:
        """PATH.weights as cdec and Joshua read it, PATH.ini as Moses does; returns both."""
        cdec, moses = Path(f"{os.fspath(path)}.weights"), Path(f"{os.fspath(path)}.ini")
        w = np.asarray(W, np.float64).reshape(-1)
        write_cdec_weights(cdec, self.names, w)
        write_moses_weights(moses, self.names, w)
        return [cdec, moses]

    def feature_names(self) -> tuple[str, ...]:
        return self.names

    def label_names(self) -> tuple[str, ...]:
        return ("score",)

    def to_arrays(self) -> tuple[Json, Arrays]:
        return {"names": list(self.names)}, {"init": np.array(self.init, np.float64)}

    @classmethod
    def from_arrays(cls, settings: Json, arrays: Arrays) -> Reranking:
        """ValueError or TypeError where they are not what ``to_arrays`` gave."""
        names, init = settings["names"], arrays["init"]
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise TypeError("the features' names are not words")
        if not names or len(set(names)) < len(names):
            raise ValueError("features without names of their own")
        if init.shape != (len(names),) or init.dtype.kind != "f" or not np.isfinite(init).all():
            raise ValueError("the weights to start from are not a finite number for each feature")
        return cls(tuple(names), tuple(init.astype(np.float64).tolist()))
