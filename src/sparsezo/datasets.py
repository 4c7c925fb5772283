"""The collections that the experiments use: what they are, where they are on this machine, how to get them.

    folder = find("conll2000", Path("../data"))    # the folder with train.txt.gz, or None: --data, SPARSEZO_DATA, cache
    print(describe("rcv1"))                         # what it is, its files, licence and where it comes from
    fetch("conll2000").folder                       # into the user's cache; needs pooch and a network

Every place that is looked at has the same layout: ``DIR/conll2000/train.txt.gz`` and so on (docs/data.md).
"""

from __future__ import annotations

import gzip
import hashlib
import importlib
import os
import tempfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from sparsezo.errors import SparsezoError, UsageError, need
from sparsezo.storage.cache import cache_folder
from sparsezo.storage.files import atomic_write


@dataclass(frozen=True)
class Download:
    """A file to fetch; it is packed with gzip, and ``sha256`` is of what is inside, however it was packed."""

    name: str
    url: str
    sha256: str


@dataclass(frozen=True)
class Collection:
    """A data set: what it is, its files and where they come from."""

    name: str
    task: str
    title: str
    folder: str  # under --data, SPARSEZO_DATA or the cache
    files: tuple[str, ...]  # in folder; each may also be packed, as .gz or .xz
    home: str
    licence: str
    how: tuple[str, ...]  # lines of what to do to have it
    downloads: tuple[Download, ...] = ()

    def missing(self, root: Path) -> list[str]:
        """Those of the files that are not under ``root``."""
        folder = root / self.folder
        return [name for name in self.files if not any((folder / (name + end)).is_file() for end in ("", ".gz", ".xz"))]


_CONLL2000 = "https://www.clips.uantwerpen.be/conll2000/chunking/"
_ALL = (
    Collection(
        name="conll2000",
        task="chunking",
        title="CoNLL-2000 shared task: chunks in Wall Street Journal text, 8,936 sentences to train, 2,012 to test",
        folder="conll2000",
        files=("train.txt.gz", "test.txt.gz"),
        home=_CONLL2000,
        licence="free to download, for research; the text is from the Penn Treebank's Wall Street Journal",
        how=("sparsezo data get conll2000",),
        # The checksums are those of the published files, unpacked.
        downloads=tuple(
            Download(name, _CONLL2000 + name, checksum)
            for name, checksum in (
                ("train.txt.gz", "82033cd7a72b209923a98007793e8f9de3abc1c8b79d646c50648eb949b87cea"),
                ("test.txt.gz", "73b7b1e565fa75a1e22fe52ecdf41b6624d6f59dacb591d44252bf4d692b1628"),
            )
        ),
    ),
    Collection(
        name="rcv1",
        task="text",
        title="RCV1-v2 (LYRL2004): Reuters news as stemmed tokens, with topics; the paper's text data",
        folder="rcv1",
        files=(
            "lyrl2004_tokens_train.dat",
            *(f"lyrl2004_tokens_test_pt{part}.dat" for part in range(4)),
            "rcv1-v2.topics.qrels",
        ),
        home="http://www.jmlr.org/papers/volume5/lewis04a/lyrl2004_rcv1v2_README.htm",
        licence="tokens and topics are open appendices of Lewis et al. 2004; the articles need an agreement (NIST)",
        how=(
            "download the token files (appendix 12) and the topics qrels (appendix 8) from that page into DIR/rcv1",
            "sparsezo train text --train DIR/rcv1 takes the paper's split of them",
        ),
    ),
    Collection(
        name="wmt07",
        task="rerank",
        title="WMT 2007, French to English: n-best lists of News Commentary from a decoder trained on Europarl",
        folder="smt",
        files=(
            *(f"{part}.{end}" for part in ("train", "nc-devtest2007", "nc-test2007") for end in ("nbest.xz", "ref")),
            "weights.out-of-domain",
            "weights.in-domain",
        ),
        home="https://www.statmt.org/wmt07/shared-task.html",
        licence="the texts: see that page; lists are not published, your own decoder makes them",
        how=(
            "decode News Commentary's training text, nc-devtest2007 and nc-test2007 with cdec or Moses into n-best",
            "lists; put NAME.nbest.xz with its references NAME.ref, and the decoder's weights before and after tuning",
            "in the domain (weights.out-of-domain, weights.in-domain), into DIR/smt: reproduce smt reads them there",
        ),
    ),
    Collection(
        name="20news",
        task="text",
        title="20 Newsgroups by date, the four top-level classes comp, rec, sci and talk",
        folder="text",
        files=("20news4.train.tsv.gz", "20news4.test.tsv.gz"),
        home="http://qwone.com/~jason/20Newsgroups/",
        licence="none is stated; the messages are their authors'",
        how=(
            "scikit-learn's fetch_20newsgroups(subset='train'), then 'test', with nothing removed: keep the groups",
            "under comp, rec, sci and talk, and write label TAB text, one document a line, white space as one blank",
            "(docs/data.md has the lines of Python)",
        ),
    ),
)
COLLECTIONS = {collection.name: collection for collection in _ALL}


def collection(name: str) -> Collection:
    """The collection of that name; UsageError where there is none."""
    if name not in COLLECTIONS:
        raise UsageError(f"collection {name}: choose from {', '.join(COLLECTIONS)}")
    return COLLECTIONS[name]


def describe(name: str) -> str:
    """What it is and how to get it, as lines for a person."""
    one = collection(name)
    rows = [("files", f"{one.folder}/: {', '.join(one.files)}"), ("home", one.home), ("licence", one.licence)]
    rows += [("to get" if k == 0 else "", line) for k, line in enumerate(one.how)]
    return "\n".join([one.title, *(f"  {label:<8}{text}" for label, text in rows)])


def places(data: str | os.PathLike[str] | None = None) -> list[Path]:
    """Folders to look in, the first first: ``data`` (--data), SPARSEZO_DATA, the cache."""
    given = [os.fspath(data) if data is not None else "", os.environ.get("SPARSEZO_DATA", "")]
    return list(dict.fromkeys([*map(Path, filter(None, given)), cache_folder("data")]))


def find(name: str, data: str | os.PathLike[str] | None = None) -> Path | None:
    """The collection's own folder in the first place that has all its files; None where no place has."""
    one = collection(name)
    return next((root / one.folder for root in places(data) if not one.missing(root)), None)


def not_found(name: str, data: str | os.PathLike[str] | None = None) -> SparsezoError:
    """The error for a collection that ``find`` does not find; names a file where only some are there."""
    one = collection(name)
    looked = places(data)
    for root in looked:
        if (missing := one.missing(root)) and len(missing) < len(one.files):
            return SparsezoError(f"{name}: {root / one.folder / missing[0]} is missing; {_remedy(one)}")
    where = ", ".join(str(root / one.folder) for root in looked)
    return SparsezoError(f"{name}: is not in {where}; {_remedy(one)}")


def _remedy(one: Collection) -> str:
    get = f"sparsezo data get {one.name} fetches it" if one.downloads else "sparsezo data list says how to get it"
    return f"{get}, `data` DIR or SPARSEZO_DATA names another place"


class Fetched(NamedTuple):
    """Where a collection is now, and what was downloaded for it."""

    folder: Path
    downloaded: tuple[str, ...]  # empty where everything was there and right


def fetch(name: str, say: Callable[[str], None] = lambda line: None) -> Fetched:
    """Download into the cache what is not there or not right. All files are checked before the first is put there."""
    one = collection(name)
    if not one.downloads:
        raise UsageError(f"{name} cannot be fetched; sparsezo data list says how to get it")
    folder = cache_folder("data") / one.folder
    needed = [download for download in one.downloads if not _is_right(folder / download.name, download)]
    if needed:
        need("data")
        pooch = importlib.import_module("pooch")
        packed = [_fetched(pooch, one, download, say) for download in needed]
        folder.mkdir(parents=True, exist_ok=True)
        for download, raw in zip(needed, packed, strict=True):
            with atomic_write(folder / download.name) as stream:
                stream.write(raw)
    return Fetched(folder, tuple(download.name for download in needed))


def _is_right(path: Path, download: Download) -> bool:
    return path.exists() and _unpacked_hash(path.read_bytes()) == download.sha256


def _fetched(pooch: ModuleType, one: Collection, download: Download, say: Callable[[str], None]) -> bytes:
    say(f"fetching {download.url}")
    unreachable = importlib.import_module("requests").exceptions.RequestException
    pooch.get_logger().setLevel("WARNING")  # it would print a hash of the packed file
    with tempfile.TemporaryDirectory(prefix="sparsezo-") as folder:
        try:
            path = pooch.retrieve(
                download.url,
                known_hash=None,  # another packing is no other file: what is inside is checked below
                fname=download.name,
                path=folder,
                downloader=pooch.HTTPDownloader(timeout=20.0),  # seconds without a byte
            )
        except unreachable as error:
            answer, why = getattr(error, "response", None), "cannot be reached (is there a network?)"
            why = why if answer is None else f"answers with {answer.status_code}"
            raise SparsezoError(f"{download.url}: {why}; {_instead(one)}") from error
        raw = Path(path).read_bytes()
    if _unpacked_hash(raw) != download.sha256:
        raise SparsezoError(f"{download.url}: is not the published file (checksum), nothing is kept; {_instead(one)}")
    # A server that declares the packing as a content encoding has it undone on the way.
    return raw if _is_gzip(raw) else gzip.compress(raw, mtime=0)


def _instead(one: Collection) -> str:
    return (
        f"try again later, or put {' and '.join(one.files)} into DIR/{one.folder} and use `data` DIR or SPARSEZO_DATA"
    )


def _is_gzip(raw: bytes) -> bool:
    return raw.startswith(b"\x1f\x8b")


def _unpacked_hash(raw: bytes) -> str | None:
    try:
        return hashlib.sha256(gzip.decompress(raw) if _is_gzip(raw) else raw).hexdigest()
    except (OSError, EOFError, zlib.error):
        return None
