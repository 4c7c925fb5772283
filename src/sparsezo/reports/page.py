"""The report as one HTML page: style and figures inline, nothing fetched, folded where it is long.

page(sections)              # str; every name and figure in it is escaped
document(title, body)       # the frame alone
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from sparsezo.experiments.phases import PHASES, RESULT_PHASES
from sparsezo.reports.claims import FAILS, HOLDS, Claim
from sparsezo.reports.figures.sheet import Figure
from sparsezo.reports.results import ReportedExperiment
from sparsezo.reports.tables import NOTHING, Table, about_text, count_text, spread_text

if TYPE_CHECKING:
    from sparsezo.reports.report import Section

STYLE = """
:root { color-scheme: light dark; --text: #1a1a1a; --back: #fcfcfb; --soft: #5c5c5c; --line: #d9d9d6; --shade: #f1f1ee;
  --good: #00664a; --bad: #a33c00; --open: #5c5c5c; --link: #005b8f; }
@media (prefers-color-scheme: dark) { :root { --text: #e8e8e6; --back: #161616; --soft: #a8a8a4; --line: #3a3a38;
  --shade: #222221; --good: #4ec9a0; --bad: #ff9d66; --open: #b4b4b0; --link: #7cc4f0; } }
* { box-sizing: border-box; }
body { margin: 0 auto; padding: 1rem clamp(0.8rem, 4vw, 2rem) 4rem; max-width: 64rem; background: var(--back);
  color: var(--text); font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.6rem; line-height: 1.2; }
h2 { margin-top: 3rem; border-top: 2px solid var(--line); padding-top: 1rem; }
h3 { margin-top: 2rem; } a { color: var(--link); }
nav a { display: inline-block; margin-right: 1rem; padding: 0.3rem 0; }
.wide { overflow-x: auto; margin: 1rem 0; }
table { border-collapse: collapse; font-size: 0.88rem; font-variant-numeric: tabular-nums; }
th, td { padding: 0.3rem 0.6rem; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th:first-child, td:first-child, td.words, th.words { text-align: left; }
thead th { border-bottom: 2px solid var(--soft); } tr.group th { background: var(--shade); text-align: left; }
tr.best td, tr.chosen td { font-weight: 700; }
figure { margin: 1.5rem 0; } figcaption { font-size: 0.9rem; color: var(--soft); margin-top: 0.4rem; }
.card { background: #fff; border: 1px solid var(--line); border-radius: 6px; padding: 0.5rem; overflow-x: auto; }
.card svg { display: block; width: 100%; min-width: 30rem; max-width: 46rem; height: auto; margin: 0 auto; }
code, pre { font-family: ui-monospace, Menlo, Consolas, monospace; font-size: 0.82rem; }
.signature { color: var(--soft); overflow-wrap: anywhere; }
pre { background: var(--shade); padding: 0.7rem; overflow-x: auto; }
.note { color: var(--soft); font-size: 0.9rem; margin: 0.2rem 0; }
.claim { border-left: 4px solid var(--open); padding: 0.1rem 0 0.1rem 0.8rem; margin: 1.2rem 0; }
.claim p { margin: 0.2rem 0; } .verdict { font-weight: 700; color: var(--open); }
.good { border-color: var(--good); } .good .verdict { color: var(--good); }
.bad { border-color: var(--bad); } .bad .verdict { color: var(--bad); }
details { margin: 0.6rem 0; } summary { cursor: pointer; padding: 0.2rem 0; }
.gaps { border: 1px solid var(--line); border-radius: 6px; padding: 0.4rem 1rem; background: var(--shade); }
@media print { .card { border: 0; } details { break-inside: avoid; } }
"""


def page(sections: Sequence[Section], command: str | None = None) -> str:
    links = "".join(f'<a href="#{item.slug}">{escape(item.experiment.title)}</a>' for item in sections)
    intro = (
        "Sparse stochastic zeroth-order optimisation applied to bandit structured prediction: the paper's Table 1, its "
        "figures and its claims, from our runs."
    )
    body = "\n".join(_section(item, command) for item in sections)
    return document(
        "sparsezo: results beside the paper's", f"<p>{intro}</p>\n<nav>{links}</nav>\n{_summary(sections)}\n{body}"
    )


def document(title: str, body: str) -> str:
    """A whole page; ``body`` is HTML."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>\n</body>\n</html>\n"
    )


def _summary(sections: Sequence[Section]) -> str:
    items = "".join(f"<li>{escape(' '.join(item.summary))}</li>" for item in sections)
    return f'<section id="summary"><h2>Summary</h2><ul>{items}</ul></section>'


def _section(section: Section, command: str | None) -> str:
    experiment = section.experiment
    parts = [
        f'<section id="{section.slug}"><h2>{escape(experiment.title)}</h2>',
        _gaps(experiment.gaps),
        "<h3>Test results</h3>",
        _results(section.table),
        "<h3>Figures</h3>",
        *(figure_html(figure) for figure in section.figures),
        "" if section.figures else '<p class="note">There is nothing to draw: no curves and no test results.</p>',
        "<h3>The claims</h3>",
        '<p class="note">A comparison counts where the 95% interval of the difference of means over seeds (Welch) '
        "excludes 0; it is not corrected for the number of comparisons.</p>",
        *(_claim(claim) for claim in section.claims),
        "<h3>How it was made</h3>",
        _making(experiment, command),
        "</section>",
    ]
    return "\n".join(part for part in parts if part)


def _gaps(gaps: Sequence[str]) -> str:
    if not gaps:
        return ""
    items = "".join(f"<li>{escape(gap)}</li>" for gap in gaps)
    if len(gaps) > 6:
        return (
            f'<details class="gaps"><summary>{len(gaps)} things are missing or odd</summary><ul>{items}</ul></details>'
        )
    return f'<div class="gaps"><p>Missing or odd:</p><ul>{items}</ul></div>'


def _results(table: Table) -> str:
    columns = table.columns
    rows = []
    for group, members in table.groups:
        rows.append(f'<tr class="group"><th colspan="{len(columns)}" scope="rowgroup">{escape(group)}</th></tr>')
        for row in members:
            cells = "".join(f"<td>{escape(cell)}</td>" for cell in table.cells(row))
            rows.append(f'<tr class="best">{cells}</tr>' if row.best else f"<tr>{cells}</tr>")
    head = "".join(f'<th scope="col">{escape(column)}</th>' for column in columns)
    notes = "".join(f'<p class="note">{escape(note)}</p>' for note in table.notes)
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead><tbody>{"".join(rows)}</tbody></table></div>\n'
        f"{notes}{_signature(table.signature)}"
    )


def _signature(text: str) -> str:
    return f'<p class="note"><code class="signature">{escape(text)}</code></p>'


def figure_html(figure: Figure) -> str:
    svg = figure.inline_svg().replace("<svg", f'<svg aria-label="{escape(figure.caption)}"', 1)
    caption = f'{escape(figure.caption)}<br><code class="signature">{escape(figure.signature)}</code>'
    return f'<figure><div class="card">{svg}</div><figcaption>{caption}</figcaption></figure>'


def _claim(claim: Claim) -> str:
    kind = {HOLDS: " good", FAILS: " bad"}.get(claim.verdict, "")
    rows = []
    for item in claim.evidence:
        margin = "one seed" if item.margin is None else f"± {item.margin:.4f}"
        figures = (spread_text(item.left_values), item.right, spread_text(item.right_values))
        rows.append((item.left, *figures, f"{item.lead:+.4f}", margin, item.phase, item.verdict, item.aside))
    head = ("better, says the claim", "mean ± sd", "than", "mean ± sd", "lead", "95% interval", "settings", "", "")
    name = claim.evidence[0].quantity.name if claim.evidence else ""
    table = simple_table(head, rows, words=(2, 7, 8))
    count = len(rows)
    figures_of = f"{count} comparison{'s' if count > 1 else ''} of {name}"
    folded = f"<details><summary>{escape(figures_of)}</summary>{table}</details>" if rows else ""
    title = f'<strong>{escape(claim.title)}</strong> <span class="note">({escape(claim.source)})</span>'
    verdict = f'<span class="verdict">{escape(claim.verdict)}</span>: {escape(claim.words)}.'
    return f'<div class="claim{kind}"><p>{title}</p>\n<p>{verdict}</p>{folded}</div>'


def simple_table(
    head: Sequence[str], rows: Iterable[Sequence[str]], words: Sequence[int] = (), chosen: Iterable[int] = ()
) -> str:
    """Any further table; ``words`` are the columns to set flush left, ``chosen`` the rows in bold."""
    kinds = [' class="words"' if place in words else "" for place in range(len(head))]
    top = "".join(f"<th{kind}>{escape(text)}</th>" for kind, text in zip(kinds, head, strict=True))
    bold = set(chosen)
    lines = []
    for number, row in enumerate(rows):
        cells = "".join(f"<td{kind}>{escape(text)}</td>" for kind, text in zip(kinds, row, strict=True))
        lines.append(f'<tr class="chosen">{cells}</tr>' if number in bold else f"<tr>{cells}</tr>")
    return f'<div class="wide"><table><thead><tr>{top}</tr></thead><tbody>{"".join(lines)}</tbody></table></div>'


# How it was made


def _making(experiment: ReportedExperiment, command: str | None) -> str:
    seconds = sum(run.value("seconds") or 0.0 for run in experiment.runs)
    versions = {
        part: ", ".join(sorted({run.versions[part] for run in experiment.runs if part in run.versions}))
        for part in ("sparsezo", "python", "numpy", "numba")
    }
    told = ", ".join(f"{part} {version}" for part, version in versions.items() if version) or "not recorded"
    phases = [f"{sum(run.phase == phase for run in experiment.runs)} {phase}" for phase in PHASES]
    runs = f"{len(experiment.runs)} runs ({', '.join(phases)}), {_duration(seconds)} of learning summed over runs."
    note = experiment.declared.get("note")
    parts = [
        made_by(command),
        f"<p>{escape(f'{runs} Data: {experiment.data}. Versions: {told}.')}</p>",
        _plain_note(f"Note: {note}.") if note else "",
        f"<details><summary>Settings, seeds and speed of every learner</summary>{_settings(experiment)}</details>",
        _tuning(experiment.tuning),
        _declared(experiment.declared_text),
    ]
    return "\n".join(part for part in parts if part)


def made_by(command: str | None) -> str:
    return f"<pre>{escape(command)}</pre>" if command else _plain_note("The command was not recorded.")


def _plain_note(text: str) -> str:
    return f'<p class="note">{escape(text)}</p>'


def _settings(experiment: ReportedExperiment) -> str:
    head = [*("learner", "settings", "step", "criterion", "h", "mu", "seeds", "iterations", "update fraction")]
    head += ["µs a step", "n", "n active", "n score", "seconds"]
    rows = []
    for learner in experiment.learners:
        for phase in RESULT_PHASES:
            runs = learner.runs(phase)
            if not runs:
                continue
            settings = runs[0].settings
            told = [_text(settings.get(name)) for name in ("step", "criterion", "h", "mu")]
            means = {
                name: learner.spread(phase, name)
                for name in ("us_per_iteration", "n", "n_active", "n_score", "seconds")
            }
            figures = [NOTHING if spread is None else f"{spread.mean:,.4g}" for spread in means.values()]
            if times := means["us_per_iteration"]:
                figures[0] = f"{min(times.values):.3g}"
            if means["n"]:
                figures[1] = about_text(means["n"].mean)
            seeds = ", ".join(str(run.seed) for run in runs)
            fraction = spread_text(learner.spread(phase, "update_fraction"), 3)
            rows.append((learner.name, phase, *told, seeds, count_text(runs[0].iterations), fraction, *figures))
    return simple_table(head, rows, words=(1, 2, 3, 6))


def _tuning(tuning: Mapping[str, Any]) -> str:
    """The trials of each learner, the chosen one in bold."""
    if not tuning:
        return _plain_note("No trials of tuning are recorded.")
    rows: list[tuple[str, ...]] = []
    bold = []
    for name, entry in tuning.items():
        if not isinstance(entry, Mapping):
            continue
        chosen = entry.get("chosen") or {}
        note = ", ".join(
            str(part) for part in ("grid widened" if entry.get("widened") else "", entry.get("note")) if part
        )
        for trial in entry.get("trials") or ():
            is_chosen = (trial.get("h"), trial.get("mu")) == (chosen.get("h"), chosen.get("mu"))
            if is_chosen:
                bold.append(len(rows))
            dev = trial.get("dev")
            told = [_text(trial.get("h")), _text(trial.get("mu")), NOTHING if dev is None else f"{dev:.4f}"]
            told += [count_text(trial["iterations"]) if trial.get("iterations") else NOTHING]
            told += [_text(trial.get("seeds"))]
            rows.append((str(name), *told, "chosen" if is_chosen else "", note if is_chosen else ""))
            note = "" if is_chosen else note
    head = ("learner", "h", "mu", "dev", "iterations", "seeds", "", "")
    table = simple_table(head, rows, words=(6, 7), chosen=bold)
    return f"<details><summary>{len(rows)} trials of tuning</summary>{table}</details>"


def _declared(text: str) -> str:
    return f"<details><summary>experiment.toml</summary><pre>{escape(text)}</pre></details>" if text else ""


def _text(value: object) -> str:
    if value is None:
        return NOTHING
    return f"{value:g}" if isinstance(value, float) else str(value)


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
