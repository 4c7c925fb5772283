// A sentence under review, drawn: every word can be chosen, spans have brackets to hold them by and their name behind them.
import { el } from "./dom.js";
import { badge, bracket, hue, rowOf, textOf } from "./show.js";

const MENDED_MS = 2500; // how long what the model has changed is lit up; style.css fades it in the same time

const mended = { spans: [], since: 0, timer: 0 };

/** What the model has changed is lit up for a moment. */
export function light(spans) {
  clearTimeout(mended.timer);
  Object.assign(mended, { spans, since: performance.now() });
  if (spans.length) mended.timer = setTimeout(unlight, MENDED_MS);
}

function unlight() {
  mended.spans = [];
  for (const each of document.querySelectorAll(".mended")) each.classList.remove("mended");
}

/** The words of a screen reader for one word: what it is, what is unsure about it, and where it is to be looked at. */
function said(review, row, at, span) {
  const size = span ? span.last - span.first + 1 : 1;
  const place = size > 1 ? `, word ${at - span.first + 1} of ${size}` : "";
  const sure = !review.isOpen(at) ? "" : review.question.shown.about ? ", asked about" : ", not sure";
  return `${row.words[at]}${span ? `: ${row.called(span.label)}${place}` : ""}${sure}`;
}

/** The sentence as it stands. */
export function reviewed(review) {
  const { shown, names } = review.question;
  const row = rowOf(shown, names);
  const target = review.target;
  const cursor = review.chosen?.head ?? 0;
  const isChosen = (at) => target !== null && target.first <= at && at <= target.last;
  const isLit = (at) => mended.spans.some(({ first, last }) => first <= at && at <= last);
  const isOpen = (at) => review.isOpen(at);
  const classes = (at, next) => {
    const both = (is) => is(at) && is(next);
    const together = review.at(at) === review.at(next);
    return `${both(isChosen) ? " chosen-word" : ""}${together && both(isOpen) ? " unsure" : ""}${together && both(isLit) ? " mended" : ""}`;
  };
  const lit = (made) => {
    if (made.classList.contains("mended")) made.style.animationDelay = `${mended.since - performance.now()}ms`;
    return made;
  };
  const word = (at, span) =>
    lit(
      el(
        "span",
        {
          class: `word${classes(at, at)}`,
          "data-at": String(at),
          role: "option",
          tabindex: at === cursor ? "0" : "-1",
          "aria-selected": String(isChosen(at)),
          "aria-label": said(review, row, at, span),
        },
        row.words[at],
      ),
    );
  const gap = (at) => lit(el("span", { "data-behind": String(at), class: `gap${at + 1 < row.words.length ? classes(at, at + 1) : ""}`, "aria-hidden": "true" }, row.gap(at)));
  const inside = (span) => {
    const made = [];
    const begin = review.plain ? [] : [handle("first", span)];
    for (let at = span.first; at < span.last; at++) {
      made.push(at === span.first ? el("span", { class: "together" }, ...begin, word(at, span)) : word(at, span), gap(at));
    }
    const name = badge(span.label, row.called(span.label));
    name.dataset.at = String(span.first);
    name.setAttribute("aria-hidden", "true");
    const end = review.plain ? [] : [handle("last", span)];
    const alone = span.first === span.last ? begin : [];
    return [...made, el("span", { class: "together" }, ...alone, word(span.last, span), ...end, name)];
  };
  const handle = (side, { first, last }) => {
    const made = bracket(side === "first" ? "[" : "]");
    made.classList.add("handle");
    Object.assign(made.dataset, { side, first, last, at: side === "first" ? first : last });
    return made;
  };
  const made = el("p", { class: "sentence chunked review", role: "listbox", "aria-multiselectable": "true", "aria-label": "The sentence, word by word", dir: "auto" });
  let at = 0;
  for (const span of [...review.drawn, null]) {
    for (; at < (span?.first ?? row.words.length); at++) made.append(word(at, null), gap(at));
    if (span === null) break;
    const sure = Number.isFinite(span.p) ? `the model: ${Math.round(100 * span.p)}%` : null;
    made.append(el("span", { class: `chunk ${hue(span.label)}`, title: sure }, ...inside(span)), gap(span.last));
    at = span.last + 1;
  }
  return made;
}

/** "Ana Botín: person; Monday: nothing" of what was done. */
export function inWords(spans, { shown, names = {} }) {
  return spans.map(({ first, last, label }) => `${textOf(shown, first, last)}: ${label === null ? "nothing" : (names[label] ?? label)}`).join("; ");
}

/** The whole of it in one line, for who hears it: "The mayor of San Sebastián (place) left. Not sure: Sebastián." */
export function heard(review) {
  const { question, spans } = review;
  const row = rowOf(question.shown, question.names);
  const ends = new Map(spans.map((each) => [each.last, row.called(each.label)]));
  const words = row.words.map((word, at) => word + (ends.has(at) ? ` (${ends.get(at)})` : "") + (at + 1 < row.words.length ? row.gap(at) : ""));
  const open = row.words.filter((_, at) => review.isOpen(at));
  return words.join("") + (open.length ? ` ${question.shown.about ? "Asked about" : "Not sure"}: ${open.join(", ")}.` : "");
}
