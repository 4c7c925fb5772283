// A question's input, drawn: sentences with their spans in brackets, documents, two outputs side by side.
import { differing } from "./diff.js";
import { el, unseen } from "./dom.js";

const HUES = 8;
const types = []; // in the order in which questions name them

/** The classes that a question names get colours of their own, as long as there are enough. */
export function learnHues({ kind, labels, choices }) {
  for (const name of (kind === "label" ? choices : (labels ?? [])).map(typeOf)) if (name && name !== "O" && !types.includes(name)) types.push(name);
}

/** A colour for a class, the same everywhere. */
export function hue(name) {
  if (name === "O") return "hue-none";
  if (name === "") return "hue-0";
  const at = types.indexOf(name);
  if (at >= 0) return `hue-${at % HUES}`;
  let sum = 7;
  for (const letter of name) sum = (sum * 31 + letter.codePointAt(0)) % 1009;
  return `hue-${sum % HUES}`;
}

const typeOf = (tag) => (/^[BIES]-/.test(tag) ? tag.slice(2) : tag === "B" || tag === "I" ? "" : tag);
const isChunk = (tag) => /^[BIES](-|$)/.test(tag);

/** [{first, last, type}] of a row of tags. */
export function spans(tags) {
  const found = [];
  tags.forEach((tag, at) => {
    if (!isChunk(tag)) return;
    const open = found.at(-1);
    if (tag[0] === "I" && open?.last === at - 1 && open.type === typeOf(tag)) open.last = at;
    else found.push({ first: at, last: at, type: typeOf(tag) });
  });
  return found;
}

export const badge = (name, words = name) => el("span", { class: `badge ${hue(name)}` }, words);

export const bracket = (text) => el("span", { class: "bracket", "aria-hidden": "true" }, text);

/** A sentence's words: its tokens, what stands between them (spaces, unless the text says otherwise), what types are called. */
export const rowOf = ({ words, gaps }, names = {}) => ({ words, gap: (at) => gaps?.[at] ?? " ", called: (type) => names[type] ?? type });

/** Words in a row with what stands between them; `mark(at)` may wrap one. Each knows its place, to be chosen by. */
function words(row, first, last, mark) {
  const made = [];
  for (let at = first; at <= last; at++) {
    if (at > first) made.push(row.gap(at - 1));
    made.push(el(mark?.(at) ? "b" : "span", { class: mark?.(at) ? "differs" : "word", "data-at": String(at) }, row.words[at]));
  }
  return made;
}

/** A sentence with its chunks; `part` is what the question is about. */
export function sentence(row, chunks, { part = null, mark = null } = {}) {
  const made = el("p", { class: "sentence chunked", dir: "auto" });
  const pieces = [...chunks.filter((each) => !part || each.last < part.first || each.first > part.last)];
  if (part) pieces.push(part);
  pieces.sort((a, b) => a.first - b.first);
  let at = 0;
  for (const piece of pieces) {
    if (piece.first > at) made.append(...words(row, at, piece.first - 1, mark), row.gap(piece.first - 1));
    made.append(piece === part ? asked(row, part) : chunk(row, piece, mark), row.gap(piece.last));
    at = piece.last + 1;
  }
  if (at < row.words.length) made.append(...words(row, at, row.words.length - 1, mark));
  return made;
}

function chunk(row, { first, last, type }, mark) {
  const inside = words(row, first, last, mark);
  return el("span", { class: `chunk ${hue(type)}` }, bracket("["), ...together(inside, bracket("]"), type ? badge(type, row.called(type)) : null));
}

/** The last word, its bracket and its badge stay on one line. */
function together(inside, ...after) {
  const last = inside.pop();
  return [...inside, el("span", { class: "together" }, last, ...after)];
}

function asked(row, { first, last, type, opens, closes, name }) {
  return el(
    "mark",
    { class: `asked ${hue(type)}` },
    unseen("(in question: "),
    opens ? bracket("[") : null,
    ...together(words(row, first, last), closes ? bracket("]") : null, name ? badge(name, row.called(name)) : null),
    unseen(")"),
  );
}

/** `marked`: where the person has put the ends, of a question about a span. */
function tagged(question, marked) {
  const { tag, tags } = question.shown;
  const row = rowOf(question.shown, question.names);
  const { first, last } = marked ?? question.shown;
  const blind = question.kind === "label"; // a suggestion must not sway the answer
  const whole = question.kind === "span" || last > first || question.text.startsWith("Is '");
  const type = blind ? "O" : typeOf(tag ?? "");
  const known = !blind && isChunk(tag ?? "");
  const part = {
    first,
    last,
    type,
    opens: known && (whole || tag[0] === "B"),
    closes: known && whole,
    name: blind ? "" : type || tag || "",
  };
  return [sentence(row, spans(tags ?? []), { part })];
}

function outputsOf(question) {
  const { shown } = question;
  if (shown.outputs && shown.words) {
    const [a, b] = shown.outputs;
    const mark = (at) => a[at] !== b[at];
    return shown.outputs.map((tags) => sentence(rowOf(shown, question.names), spans(tags), { mark }));
  }
  const texts = shown.hypotheses ?? shown.classes ?? (shown.outputs ?? []).map(String);
  if (!shown.hypotheses && shown.classes) return texts.map((name) => el("p", { class: "sentence" }, badge(name)));
  const rows = texts.map((text) => text.split(/\s+/).filter(Boolean));
  return rows.map((row, k) => {
    const marks = rows.filter((_, other) => other !== k).map((other) => differing(row, other)[0]); // not the same in all
    return el("p", { class: "sentence", dir: "auto" }, ...words(rowOf({ words: row }), 0, row.length - 1, (at) => marks.some((each) => each[at])));
  });
}

const text = (content, label) =>
  el("div", { class: "document", tabindex: "0", role: "region", "aria-label": label, dir: "auto" }, content);

/** The nodes of a question's input, above its answers. */
export function input(question, marked = null) {
  const { shown, kind } = question;
  const made = [];
  if (typeof shown.source === "string") {
    made.push(el("div", { class: "source" }, el("h2", {}, "Source"), el("p", { dir: "auto" }, shown.source)));
  }
  if (typeof shown.document === "string") made.push(text(shown.document, "Document"));
  if (kind === "pair" || kind === "best") return made;
  if (shown.words && Number.isInteger(shown.first)) made.push(...tagged(question, marked));
  else if (shown.words) made.push(sentence(rowOf(shown, question.names), spans(shown.outputs?.[0] ?? shown.tags ?? [])));
  for (const hypothesis of shown.hypotheses ?? []) made.push(el("p", { class: "sentence", dir: "auto" }, hypothesis));
  const names = kind === "label" ? [] : [shown.class, ...(shown.classes ?? [])].filter(Boolean);
  if (names.length) made.push(el("p", { class: "classes" }, ...names.map(badge)));
  return made;
}

/** Of a pair, or of some of which the best is asked for: the outputs as they are to be shown, in their order. */
export const outputs = (question) => outputsOf(question);

/** The text of the words first to last, in one line. */
export function textOf({ words: row, gaps }, first, last) {
  const pieces = row.slice(first, last + 1).map((word, k) => word + (first + k < last ? (gaps?.[first + k] ?? " ") : ""));
  return pieces.join("").replace(/\s+/g, " ");
}

/** The sentence that asks, with the part in question set apart: the one shown, or the one that the person has marked. */
export function sentenceOf(question, marked = null) {
  const { words: row, first, last } = question.shown;
  const part = row && Number.isInteger(first) ? (question.shown.part ?? textOf(question.shown, first, last)) : null;
  const at = part ? question.text.indexOf(`'${part}'`) : -1;
  if (at < 0) return [question.text];
  const shown = marked ? textOf(question.shown, marked.first, marked.last) : part;
  return [question.text.slice(0, at), el("em", {}, shown), question.text.slice(at + part.length + 2)];
}
