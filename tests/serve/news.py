"""Made-up news with known names, for pictures of the page: people, places and organisations, in plain English."""

from __future__ import annotations

import random

from sparsezo.tasks.chunking.io.documents import Document, Span

FIRST = "Ada Bela Carla Dario Edith Femi Goran Hana Ivo Jutta Kemal Lena Mika Nadia Otto Priya Ramon Selma Tariq Ute"
LAST = "Almström Brekke Castell Dvorak Eskola Ferrante Grabow Hollis Ito Jansen Kovač Lindqvist Moreau Novak Okoye"
PLACES = ["Altenau", "Port Ellery", "San Telmo", "Vestvik", "Lower Hadley", "Qarabad", "Mirny Log", "Castelrosso"]
FIRMS = ["Halden Bank", "Orbis", "Northgate Rail", "Pella & Sons", "Vantora", "the Harbour Trust", "Kestrel Labs"]
TEMPLATES = [
    "{PER} will open a second office in {LOC} next spring, {ORG} said on Monday.",
    "Shares of {ORG} fell 3.2% after {PER} left the board.",
    "The bridge near {LOC} stays closed, says {PER} of {ORG}.",
    "In {LOC}, nobody could say whether the train from {LOC} would come.",
    "{PER} and {PER} met in {LOC} to sign the contract.",
    "Prices rose again, and few expect that to change before the summer.",
    '"We are not for sale," said {PER}, who has led {ORG} since 2019.',
    "After heavy rain the road between {LOC} and {LOC} was flooded.",
    "{ORG} plans to hire 120 people, most of them in {LOC}.",
    "Asked about the delay, {PER} only shrugged.",
]


def made_news(n: int, seed: int) -> list[Document]:
    """Texts of two or three sentences, with their spans."""
    chance = random.Random(seed)
    found = []
    for k in range(n):
        text, spans = "", []
        for template in chance.sample(TEMPLATES, chance.choice((2, 3))):
            text += " " if text else ""
            for piece in template.replace("{", "\0{").replace("}", "}\0").split("\0"):
                if piece.startswith("{"):
                    name = _name(piece[1:-1], chance)
                    start = len(text) + (4 if name.startswith("the ") else 0)
                    text += name
                    spans.append(Span(start, len(text), piece[1:-1]))
                else:
                    text += piece
        found.append(Document(text, id=f"news-{k + 1}", spans=tuple(spans)))
    return found


def _name(kind: str, chance: random.Random) -> str:
    if kind == "PER":
        return f"{chance.choice(FIRST.split())} {chance.choice(LAST.split())}"
    return chance.choice(PLACES if kind == "LOC" else FIRMS)
