"""The built-in sets of templates, which the option ``features`` chooses from.

``chunking`` is CRF++'s own for CoNLL-2000: with it, chunking has the 2.8 million weights of DESIGN's Sec. 2. ``ner``
is for names: affixes and shapes besides words, clusters of words and lists of names (columns.py). Templates of a column
that the data does not have are left out.
"""

from __future__ import annotations

from collections.abc import Collection

from sparsezo.tasks.chunking.templates import Template, has_column, parse_templates

CHUNKING = """\
# words in a window of two, and their bigrams
U00:%x[-2,0]
U01:%x[-1,0]
U02:%x[0,0]
U03:%x[1,0]
U04:%x[2,0]
U05:%x[-1,0]/%x[0,0]
U06:%x[0,0]/%x[1,0]

# parts of speech in a window of two, their bigrams and trigrams
U10:%x[-2,1]
U11:%x[-1,1]
U12:%x[0,1]
U13:%x[1,1]
U14:%x[2,1]
U15:%x[-2,1]/%x[-1,1]
U16:%x[-1,1]/%x[0,1]
U17:%x[0,1]/%x[1,1]
U18:%x[1,1]/%x[2,1]
U20:%x[-2,1]/%x[-1,1]/%x[0,1]
U21:%x[-1,1]/%x[0,1]/%x[1,1]
U22:%x[0,1]/%x[1,1]/%x[2,1]
"""

CAPITAL = r'u:capital=%t[-1,0,"^."]/%t[0,0,"^\u"]'  # whether it stands inside of a sentence, and has a capital
BIAS = "u:bias="  # of order 2: a row that every token has, for tag bigrams; order 1 has rows of its own for them

NER = f"""\
{CAPITAL}

# words in a window of two, and their bigrams
u:word-2=%x[-2,0]
u:word-1=%x[-1,0]
u:word=%x[0,0]
u:word+1=%x[1,0]
u:word+2=%x[2,0]
u:words-1=%x[-1,0]/%x[0,0]
u:words+1=%x[0,0]/%x[1,0]

# in lower case
u:lower-1=%X[-1,0]
u:lower=%X[0,0]
u:lower+1=%X[1,0]

# affixes of up to four characters
u:prefix1=%m[0,0,"^.?"]
u:prefix2=%m[0,0,"^.?.?"]
u:prefix3=%m[0,0,"^.?.?.?"]
u:prefix4=%m[0,0,"^.?.?.?.?"]
u:suffix1=%m[0,0,".?$"]
u:suffix2=%m[0,0,".?.?$"]
u:suffix3=%m[0,0,".?.?.?$"]
u:suffix4=%m[0,0,".?.?.?.?$"]

# shapes: Xxxx-dd, and without repetitions: Xx-d
u:shape-1=%s[-1,0]
u:shape=%s[0,0]
u:shape+1=%s[1,0]
u:form-2=%S[-2,0]
u:form-1=%S[-1,0]
u:form=%S[0,0]
u:form+1=%S[1,0]
u:form+2=%S[2,0]
u:forms-1=%S[-1,0]/%S[0,0]
u:forms+1=%S[0,0]/%S[1,0]
u:forms=%S[-1,0]/%S[0,0]/%S[1,0]
u:word-1form=%X[-1,0]/%S[0,0]
u:formword+1=%S[0,0]/%X[1,0]

# further columns, such as parts of speech and chunks
u:second-2=%x[-2,1]
u:second-1=%x[-1,1]
u:second=%x[0,1]
u:second+1=%x[1,1]
u:second+2=%x[2,1]
u:seconds-1=%x[-1,1]/%x[0,1]
u:seconds+1=%x[0,1]/%x[1,1]
u:third-1=%x[-1,2]
u:third=%x[0,2]
u:third+1=%x[1,2]

# clusters: the first 4, 6 and 10 bits of the path (all of it adds nothing), and pairs
u:cluster4-2=%m[-2,cluster,"^.?.?.?.?"]
u:cluster4-1=%m[-1,cluster,"^.?.?.?.?"]
u:cluster4=%m[0,cluster,"^.?.?.?.?"]
u:cluster4+1=%m[1,cluster,"^.?.?.?.?"]
u:cluster4+2=%m[2,cluster,"^.?.?.?.?"]
u:cluster6-2=%m[-2,cluster,"^.?.?.?.?.?.?"]
u:cluster6-1=%m[-1,cluster,"^.?.?.?.?.?.?"]
u:cluster6=%m[0,cluster,"^.?.?.?.?.?.?"]
u:cluster6+1=%m[1,cluster,"^.?.?.?.?.?.?"]
u:cluster6+2=%m[2,cluster,"^.?.?.?.?.?.?"]
u:cluster10-2=%m[-2,cluster,"^.?.?.?.?.?.?.?.?.?.?"]
u:cluster10-1=%m[-1,cluster,"^.?.?.?.?.?.?.?.?.?.?"]
u:cluster10=%m[0,cluster,"^.?.?.?.?.?.?.?.?.?.?"]
u:cluster10+1=%m[1,cluster,"^.?.?.?.?.?.?.?.?.?.?"]
u:cluster10+2=%m[2,cluster,"^.?.?.?.?.?.?.?.?.?.?"]
u:clusters-1=%m[-1,cluster,"^.?.?.?.?.?.?"]/%m[0,cluster,"^.?.?.?.?.?.?"]
u:clusters+1=%m[0,cluster,"^.?.?.?.?.?.?"]/%m[1,cluster,"^.?.?.?.?.?.?"]

# lists of names
u:list-1=%x[-1,list]
u:list=%x[0,list]
u:list+1=%x[1,list]
u:listform=%x[0,list]/%S[0,0]
"""

FEATURE_SETS = {"chunking": CHUNKING, "ner": NER}


def usual_features(n_columns: int) -> str:
    """The set for data with so many columns before the tag: a single one is of words."""
    return "ner" if n_columns == 1 else "chunking"


def built_in(name: str, n_columns: int, names: Collection[str] = (), order: int = 1) -> tuple[Template, ...]:
    """A set of FEATURE_SETS, without the templates that read other columns than the data's and the derived ones."""
    lines = FEATURE_SETS[name].splitlines() + [BIAS] * (name == "ner" and order == 2)
    templates = parse_templates(lines, f"the built-in templates for {name}")
    return tuple(each for each in templates if all(has_column(part, n_columns, names) for part in each.parts))
