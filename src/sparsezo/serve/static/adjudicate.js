// Where two people differ: both versions of the sentence beside each other, to take one of them or to set one right.
import { heard } from "./reviewed.js";
import { rowOf, sentence } from "./show.js";

export const VERSIONS = ["first", "second"];

export const isDecision = (question) => Boolean(question?.shown.versions);

/** The sentence as either leaves it, with the words on which they differ marked. */
export function versions({ shown, names }) {
  const mark = (at) => shown.unsure.includes(at);
  const chunks = (spans) => spans.map(({ first, last, label }) => ({ first, last, type: label }));
  return shown.versions.map((spans) => sentence(rowOf(shown, names), chunks(spans), { mark }));
}

/** The same in words, for who hears it. */
export function bothHeard(question) {
  const { words, unsure } = question.shown;
  const said = question.shown.versions.map((spans) => heard({ question, spans, isOpen: () => false }));
  return `The first: ${said[0]} The second: ${said[1]} They differ on: ${unsure.map((at) => words[at]).join(", ")}.`;
}

/** A sentence to review that begins as one of the two; where they differ is underlined. */
export const startingFrom = (question, version) => ({
  ...question,
  text: `Set the ${VERSIONS[version]} right`,
  shown: { ...question.shown, spans: question.shown.versions[version] },
});
