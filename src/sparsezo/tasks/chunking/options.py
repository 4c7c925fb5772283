"""Chunking's own options."""

from __future__ import annotations

from dataclasses import dataclass

from sparsezo.errors import UsageError
from sparsezo.options import check_options, option
from sparsezo.tasks.hash_bits import check_hash_bits, hash_bits

AUTO, PLAIN = "auto", "plain"
SPLITS = ("sentences", "lines", "spaces")  # segmentation.py knows them
SPAN_FORMATS = ("jsonl", "brat", "spacy", "prodigy", "label-studio", "datasets")  # formats/ has them; and conll
LEARNED, NO_CLUSTERS = "learned", "none"
SCHEMES = (AUTO, "iob1", "iob2", "bioes", "bilou", "bmes", PLAIN)  # tags.py knows them
_COLUMN = "The tag's column: its number from 1, or its name in CoNLL-U, such as UPOS."


@dataclass(frozen=True)
class ChunkingOptions:
    """Of train and tune."""

    column: str | None = option(None, _COLUMN, shown="the last; UPOS of .conllu")
    scheme: str = option(AUTO, "What the tags are: chunks in one of these schemes, or plain.", choices=SCHEMES)
    tags: str | None = option(
        None,
        "Train has no tags: learn these types of spans, as in PER,LOC or PER=person,LOC=place; with --scheme plain "
        "these tags.",
        shown="train's",
        unlabelled=True,
    )
    only: str | None = option(None, "Keep one chunk type, such as NP.")
    order: int | None = option(
        None,
        "2: weights for tag bigrams (the paper); 1: for tags, plus bigrams.",
        choices=(1, 2),
        shown="2; 1 with more than 5 tags",
    )
    features: str | None = option(
        None,
        "Built-in templates: for chunks, for names, or for names and of the words alone, whatever else there is.",
        choices=("chunking", "ner", "words"),
        shown="ner for words alone",
    )
    clusters: str = option(
        AUTO, "Clusters of words as features: of en, de or es, a FILE of bits TAB word, learned from train, or none."
    )
    gazetteer: tuple[str, ...] | None = option(
        None, "A list of names as a feature, one a line, as in LOC=cities.txt; may be given again."
    )
    vectors: str | None = option(
        None,
        "A frozen encoder as features: module:function, from the tokens of a sentence to an array tokens x columns.",
        shown="none",
    )
    template: str | None = option(
        None, "Feature templates in CRF++'s or Wapiti's notation.", file=True, shown="built in"
    )
    format: str | None = option(
        None,
        "What train is: columns, CRFsuite's attributes, raw text, or texts with spans in another tool's format.",
        choices=("columns", "crfsuite", "text", *SPAN_FORMATS),
        shown="by content",
    )
    split: str = option(
        "sentences",
        "Raw text: split it into sentences and tokens; or one sentence a line; or that and tokens at white space.",
        choices=SPLITS,
    )
    init_labels: str | None = option(
        None,
        "Texts with spans that are labelled already, in any format of spans: learned from first.",
        file=True,
        unlabelled=True,
        shown="none",
    )
    min_count: int = option(1, "Leave out features seen less often.", least=1)
    hash_bits: int | None = hash_bits()

    def __post_init__(self) -> None:
        check_options(self)
        check_hash_bits(self.hash_bits, self.min_count)
        if self.template is not None and self.features is not None:
            raise UsageError("`template` and `features` both say what the templates are; give one of them")
        if self.format == "text" and self.tags is None:
            raise UsageError(
                "`format` text has no tags; name the types of spans to learn with `tags`, as in PER,LOC,ORG"
            )


@dataclass(frozen=True)
class ReadingOptions:
    """Of evaluate."""

    column: str | None = option(None, _COLUMN, shown="as in training")


@dataclass(frozen=True)
class PredictOptions(ReadingOptions):
    """Of predict."""

    format: str | None = option(
        None,
        "What is written: texts with spans and their probabilities, or tokens with tags.",
        choices=("jsonl", "conll", *SPAN_FORMATS[1:]),
        shown="jsonl for raw text; of columns, these with the tag",
    )
    threshold: float = option(0.0, "Raw text: leave out spans that are less likely.")

    def __post_init__(self) -> None:
        check_options(self)
        if not 0 <= self.threshold <= 1:
            raise UsageError(f"`threshold` {self.threshold:g}: give a probability from 0 to 1")
