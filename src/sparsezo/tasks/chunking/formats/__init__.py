"""Files of documents with spans, read and written: Python's, brat's, spaCy's, Prodigy's, Label Studio's, Hugging
Face's.

    for document in read_documents("export.json"): ...          # the format is found by name and content
    write_documents(documents, "spacy", "names.spacy")
    write_documents(read_documents("brat/"), "jsonl", sys.stdout)

=============  =========================================================================================================
jsonl          ours: an object a line, text and spans; also what doccano and spaCy's old trainer have
conll          a token and its IOB2 tag a line; read: any column file (conll.py), a document for each sentence
brat           a folder, or .zip, of NAME.txt and NAME.ann
spacy          a DocBin, what ``spacy train`` reads
prodigy        Prodigy's JSON lines
label-studio   tasks of Label Studio, with annotations and predictions
datasets       tokens and ner_tags: JSON lines, .parquet, .arrow and folders of Hugging Face's ``datasets``
=============  =========================================================================================================

docs/data.md says what each of them keeps. Offsets are checked wherever a file is read or written: they lie within the
text, and where the file has the span's own text, it is what stands there. Files may be packed as .gz and .xz.
"""

from __future__ import annotations

from sparsezo.tasks.chunking.formats.detecting import COLUMNS, CRFSUITE, TABLE, TEXT, UNKNOWN, detect_format
from sparsezo.tasks.chunking.formats.files import FORMATS, read_documents, write_documents

__all__ = [
    "COLUMNS",
    "CRFSUITE",
    "FORMATS",
    "TABLE",
    "TEXT",
    "UNKNOWN",
    "detect_format",
    "read_documents",
    "write_documents",
]
