"""What the figures of a report share: the sheet with its signature, colours and markers, saving as SVG and PNG.

    with drawing_style():
        sheet, axes = new_sheet(3.6, rows_below=4, mark=signature)
        svg = save(sheet, folder, "loss-chunking")

A colour and a marker for each rule, for grey print and the colour-blind. matplotlib is imported when it is needed.
"""

from __future__ import annotations

import io
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sparsezo.errors import UsageError
from sparsezo.storage.files import atomic_write

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Drawing

# Okabe and Ito's colours, which stay apart for the colour-blind; the yellow is too light for lines
RULE_STYLES: dict[str, tuple[str, str]] = {
    "two-point": ("#0072B2", "o"),
    "baseline": ("#E69F00", "^"),
    "comparison": ("#009E73", "s"),
    "symmetric": ("#D55E00", "D"),
    "preference": ("#CC79A7", "v"),
    "first-order": ("#000000", "*"),
    "supervised": ("#7F7F7F", "P"),
    # rules that learn from what an answer says, whose pages do not show those above that have the same colour
    "part": ("#0072B2", "h"),
    "label": ("#009E73", "p"),
    "pair": ("#D55E00", "d"),
    "rate": ("#E69F00", "<"),
    "pairwise": ("#882255", ">"),
    "cross-entropy": ("#44AA99", "H"),
}
OTHER_RULE = ("#56B4E9", "X")
WIDTH = 7.0  # inches
MOST_LETTERS = 34  # of a learner's name
_ROW = 0.175  # of a legend or a signature, inches
_RC: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "svg.fonttype": "path",  # looks the same wherever it is opened
    "svg.hashsalt": "sparsezo",  # the same results make the same file
    "text.parse_math": False,
}


@dataclass(frozen=True)
class Figure:
    name: str  # of its files, without the ending
    title: str
    caption: str
    signature: str
    svg: str

    def inline_svg(self) -> str:
        """To stand in HTML beside others: no prolog, no addresses, its caption as label, and no id that another has."""
        svg = self.svg[self.svg.index("<svg") :]
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
        svg = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", svg).replace("xlink:href", "href")
        prefix = f"{self.name}-"
        svg = re.sub(r'\bid="', f'id="{prefix}', svg)
        svg = svg.replace("url(#", f"url(#{prefix}").replace('href="#', f'href="#{prefix}')
        svg = re.sub(r'<svg\b(.*?)\s+width="[^"]*"', r'<svg\1 role="img"', svg, count=1, flags=re.DOTALL)
        svg = svg.replace(' height="', ' data-height="', 1)
        return svg.replace("<svg", f'<svg aria-label="{escape(self.caption)}"', 1)


def shortened(name: str, most: int = MOST_LETTERS) -> str:
    """Cut in the middle: names that are long differ at their ends, too."""
    end = (most - 1) * 2 // 3
    return name if len(name) <= most else f"{name[: most - 1 - end].rstrip()}…{name[-end:].lstrip()}"


def need_matplotlib() -> None:
    """Before any work: a report without its figures is none."""
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UsageError("figures need matplotlib; install it with: pip install matplotlib") from None


@contextmanager
def drawing_style() -> Iterator[None]:
    need_matplotlib()
    import matplotlib

    with matplotlib.rc_context(_RC), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a learner's name may hold any letter
        yield


def save(drawing: Drawing, folder: Path, name: str) -> str:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(drawing)
    svg, png = io.BytesIO(), io.BytesIO()
    drawing.savefig(svg, format="svg", metadata={"Date": None})
    drawing.savefig(png, format="png", dpi=150, metadata={"Software": None})
    for ending, stream in ((".svg", svg), (".png", png)):
        with atomic_write(folder / (name + ending)) as out:
            out.write(stream.getvalue())
    return svg.getvalue().decode("utf-8")


def new_sheet(
    plot_height: float, rows_below: int, mark: str, left: float = 0.75, right: float = 0.25
) -> tuple[Drawing, Axes]:
    """A figure with its signature at the foot and room for ``rows_below`` rows of legend above it."""
    from matplotlib.figure import Figure as Drawing

    spaced = mark.replace("|", " |\N{NO-BREAK SPACE}").replace(";", "; ")  # a bar stays with what follows
    lines = textwrap.wrap(spaced, 132)
    foot, legend, axis, top = 0.08 + 0.13 * len(lines), _ROW * rows_below + 0.1, 0.5, 0.35
    height = foot + legend + axis + plot_height + top
    drawing = Drawing(figsize=(WIDTH, height), facecolor="white")
    bottom = (foot + legend + axis) / height
    axes = drawing.add_axes((left / WIDTH, bottom, (WIDTH - left - right) / WIDTH, plot_height / height))
    drawing.text(0.1 / WIDTH, 0.05 / height, "\n".join(lines), fontsize=6.5, color="#555555", va="bottom")
    return drawing, axes
