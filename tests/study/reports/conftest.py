"""For tests of reports: figures that are not drawn, or looked at before they are saved."""

from __future__ import annotations

import pytest

from sparsezo.study.reports import figures, noise, report, scaling


@pytest.fixture
def undrawn(monkeypatch):
    """Figures take a second each; most tests are not about them."""
    monkeypatch.setattr(report, "draw_figures", lambda experiment, folder, slug: [])


@pytest.fixture
def drawings(monkeypatch):
    """The figures by name, as drawn and before they are saved, to look at what they show."""
    seen = {}

    def keep(drawing, folder, name):
        seen[name] = drawing
        return "<svg/>"

    for module in (figures, noise, scaling):
        monkeypatch.setattr(module, "save", keep)
    return seen
