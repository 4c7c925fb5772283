"""Pages from the templates of this folder: style and figures stand in them, nothing is fetched, all else is escaped.

    render("scaling.html.j2", title=title, figure=figure, words=words, exponents=table, command=command)

Jinja2 is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from sparsezo.errors import UsageError
from sparsezo.reports.figures.sheet import Figure

if TYPE_CHECKING:
    from jinja2 import Environment
    from markupsafe import Markup

PACKAGE = "sparsezo.reports"


@dataclass(frozen=True)
class PlainTable:
    """A table of texts under one row of headings."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: tuple[int, ...] = ()  # columns to set flush left
    chosen: frozenset[int] = frozenset()  # rows in bold


def need_jinja2() -> None:
    """Before any work: a report without its page is none."""
    try:
        import jinja2  # noqa: F401
    except ImportError:
        raise UsageError("pages need jinja2; install it with: pip install jinja2") from None


def render(template: str, **context: Any) -> str:
    """The page that ``template`` makes of plain data."""
    return _environment().get_template(template).render(context)


@cache
def _environment() -> Environment:
    need_jinja2()
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader(PACKAGE),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )

    def inline_svg(figure: Figure) -> Markup:
        return Markup(figure.inline_svg())

    # All that goes into a page as it is: our stylesheet, and figures as they were drawn
    environment.globals["style"] = Markup(files(PACKAGE).joinpath("templates", "style.css").read_text("utf-8"))
    environment.filters["inline_svg"] = inline_svg
    return environment
