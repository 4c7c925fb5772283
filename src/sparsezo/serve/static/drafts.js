// Sentences under review that were corrected and not yet taken. Kept in the browser's storage by session, person and
// question, so that a page that is loaded anew goes on from there. What was said is the outbox's: of it the state is
// only remembered by this page, to be shown again where the answer is taken back.
import { keysFrom, parsed, store, stored } from "./outbox.js";

const isId = /^q\d{1,15}$/;
const isPlace = (at, n) => Number.isInteger(at) && at >= 0 && at < n;
const arePlaces = (all, n) => Array.isArray(all) && all.every((at) => isPlace(at, n));

/** Spans in order, none over another, with labels that the question has; where `gaps`, also with none. */
function areSpans(all, { shown, labels }, gaps) {
  if (!Array.isArray(all)) return false;
  let free = 0;
  return all.every((each) => {
    const known = each !== null && typeof each === "object" && (labels.includes(each.label) || (gaps && each.label === null));
    if (!known || !isPlace(each.first, shown.words.length) || !isPlace(each.last, shown.words.length)) return false;
    const fits = free <= each.first && each.first <= each.last;
    free = each.last + 1;
    return fits;
  });
}

const plain = ({ unsure, touched, past, ...rest }) => ({ ...rest, unsure: [...unsure], touched: [...touched], past: (past ?? []).map(plain) });

/** A state as `plain` made it; null: it is damaged, or of another sentence. */
function restored(kept, question, depth = 0) {
  const n = question.shown.words.length;
  const { spans, unsure, fixed, touched, decoded, past } = kept ?? {};
  if (!areSpans(spans, question, false) || !areSpans(fixed, question, true)) return null;
  if (!arePlaces(unsure, n) || !arePlaces(touched, n) || typeof decoded !== "boolean" || !Array.isArray(past)) return null;
  const before = depth ? [] : past.map((each) => restored(each, question, 1)); // what is past has no past of its own
  if (before.includes(null)) return null;
  return { spans, unsure: new Set(unsure), fixed, touched: new Set(touched), decoded, past: before };
}

export class Drafts {
  constructor() {
    this.states = new Map(); // by question, of this page
    this.prefix = null; // until it is known whose they are
    this.last = null; // the spans that were kept last
  }

  open({ session, person }) {
    this.prefix = `sparsezo.review.${encodeURIComponent(session)}.${encodeURIComponent(person)}.`;
  }

  /** Questions with corrections from before, the newest first. */
  get waiting() {
    const found = keysFrom(this.prefix).map((key) => ({ id: key.slice(this.prefix.length), at: Number(parsed(stored(key))?.at) }));
    return found.filter(({ id, at }) => isId.test(id) && at > 0).sort((a, b) => b.at - a.at).map(({ id }) => id);
  }

  /** How a question was left; null: as it comes. */
  of(question) {
    const mine = this.states.get(question.id);
    if (mine) return { ...mine, decoded: true }; // as it was said: the service may not have taken the answer back yet
    return restored(parsed(stored(this.prefix + question.id))?.state, question);
  }

  /** Of a sentence on which two differ, which version was being set right; null: neither. */
  versionOf({ id }) {
    const found = this.states.get(id)?.version ?? parsed(stored(this.prefix + id))?.version;
    return found === 0 || found === 1 ? found : null;
  }

  /** A review as it stands; without any correction there is nothing to keep. `version`: as `versionOf` gives it. */
  keep(review, version = null) {
    if (review.spans === this.last) return; // words were chosen, no more
    this.last = review.spans;
    const { id } = review.question;
    if (!review.touched.size) {
      this.drop(id);
      return;
    }
    this.states.set(id, { ...review.state, version });
    store(this.prefix + id, { at: Date.now(), version, state: plain(review.state) });
  }

  /** Said, or skipped: this page alone remembers it. */
  close(id) {
    this.last = null;
    store(this.prefix + id, null);
  }

  drop(id) {
    this.states.delete(id);
    this.close(id);
  }
}
