// A sentence under review: its spans as they stand, what was set by hand, which words are chosen. Draws nothing.
//
// A correction fixes its tokens, and the service decodes the rest around them. Nobody waits for that: a reply that comes
// after the next correction, or after an undo, is dropped, and without one what was marked simply stands.

const holds = ({ first, last }, at) => first <= at && at <= last;
const touch = (a, b) => a.first <= b.last && b.first <= a.last;
const places = ({ first, last }) => Array.from({ length: last - first + 1 }, (_, k) => first + k);
const inOrder = (spans) => [...spans].sort((a, b) => a.first - b.first);
const same = (a, b) => a?.first === b?.first && a?.last === b?.last && a?.label === b?.label;

/** What is fixed already, without what `made` says anew: of a span that it touches nothing is left, of gaps the rest. */
function without(fixed, made) {
  return fixed.flatMap((each) => {
    if (!touch(each, made)) return [each];
    if (each.label !== null) return [];
    const before = { first: each.first, last: made.first - 1, label: null };
    const after = { first: made.last + 1, last: each.last, label: null };
    return [before, after].filter(({ first, last }) => first <= last);
  });
}

export class Review {
  /** `decode(id, fixed)` resolves to {spans, unsure}; `changed(mended)` when it is to be drawn anew: by hand, or with the spans that the model has changed. */
  constructor(decode, changed) {
    this.decode = decode;
    this.changed = changed;
    this.question = null;
    this.version = 0; // of the state that a reply may speak about
    this.#set({});
  }

  /** `kept`: the state that it was left in. */
  begin(question, kept = null) {
    const { spans, unsure } = question.shown;
    this.question = question;
    this.#set(kept ?? { spans: inOrder(spans), unsure: new Set(unsure) });
    if (!this.decoded) this.#ask();
  }

  end() {
    this.question = null;
    this.#set({});
  }

  #set({ spans = [], unsure = new Set(), fixed = [], touched = new Set(), decoded = true, past = [] }) {
    Object.assign(this, { spans, unsure, fixed, touched, decoded, past });
    this.version += 1;
    this.chosen = null; // {anchor, head, exact: these words, not the span that they are in}
    this.tapped = null; // {first, last} of the first of two taps
    this.moving = null; // the span whose border is held: {old, made}
  }

  /** To come back to. */
  get state() {
    const { spans, unsure, fixed, touched, decoded, past } = this;
    return { spans, unsure, fixed, touched, decoded, past };
  }

  get plain() {
    return this.question.shown.plain === true;
  }

  get count() {
    return this.question.shown.words.length;
  }

  /** As they are to be drawn: with the border where it is held. */
  get drawn() {
    if (!this.moving) return this.spans;
    const { old, made } = this.moving;
    return inOrder([...this.spans.filter((each) => !same(each, old) && !touch(each, made)), made]);
  }

  /** Words to look at: those that the question is about, or that the model is not sure of, and not yet set by hand. */
  isOpen(place) {
    const { about } = this.question.shown;
    return about ? about.includes(place) && !this.touched.has(place) : this.unsure.has(place);
  }

  at(place) {
    return this.spans.find((each) => holds(each, place)) ?? null;
  }

  get answer() {
    if (!this.touched.size) return "right";
    const spans = this.spans.map(({ first, last, label }) => ({ first, last, label }));
    return { spans, corrected: [...this.touched].sort((a, b) => a - b) };
  }

  // Choosing words

  /** {first, last} of what a label would be given to: the words chosen, or the span that the chosen word is in. */
  get target() {
    if (!this.chosen) return null;
    const { anchor, head, exact } = this.chosen;
    const span = exact || anchor !== head ? null : this.at(head);
    return span ? { first: span.first, last: span.last } : { first: Math.min(anchor, head), last: Math.max(anchor, head) };
  }

  /** Spans that removing would remove. */
  get removable() {
    const target = this.plain ? null : this.target;
    return target ? this.spans.filter((each) => touch(each, target)) : [];
  }

  choose(anchor, head = anchor, exact = false) {
    if (anchor === this.chosen?.anchor && head === this.chosen.head && exact === this.chosen.exact) return;
    this.chosen = { anchor, head, exact };
    this.changed();
  }

  leave() {
    this.tapped = null;
    if (!this.chosen) return;
    this.chosen = null;
    this.changed();
  }

  extend(head) {
    if (this.chosen) this.choose(this.chosen.anchor, head, true);
    else this.choose(head);
  }

  /** By so many words, from where the cursor is or from outside. */
  walk(by, extend) {
    const from = this.chosen?.head ?? (by > 0 ? -1 : this.count);
    const to = Math.max(0, Math.min(this.count - 1, from + by));
    if (extend) this.extend(to);
    else this.choose(to);
  }

  /** To the next word that is to be looked at, or the one before. */
  walkOpen(by) {
    let to = this.chosen?.head ?? (by > 0 ? -1 : this.count);
    do to += by;
    while (to >= 0 && to < this.count && !this.isOpen(to));
    if (to >= 0 && to < this.count) this.choose(to);
  }

  /** A finger: the first tap chooses a word or the span that it is in, a second one elsewhere all up to there. */
  tap(at) {
    const first = this.tapped;
    const span = this.at(at);
    if (first && !holds(first, at)) {
      this.tapped = null;
      this.choose(Math.min(first.first, at), Math.max(first.last, at), true);
    } else if (first && first.first === first.last) this.leave();
    else if (span && !first) {
      this.tapped = { first: span.first, last: span.last };
      this.choose(at);
    } else {
      this.tapped = { first: at, last: at };
      this.choose(at, at, true);
    }
  }

  // Corrections

  /** What is chosen gets this label. Null: nothing is chosen. Else what was done, in words. */
  mark(label) {
    const target = this.target;
    if (!target) return null;
    const made = this.plain ? places(target).map((at) => ({ first: at, last: at, label })) : [{ ...target, label }];
    this.#correct(made, this.spans.filter((each) => touch(each, target)));
    this.#stay(target.last);
    return made;
  }

  /** Null: there is no span. */
  remove() {
    const gone = this.removable;
    if (!gone.length) return null;
    const at = this.chosen.head;
    const made = gone.map(({ first, last }) => ({ first, last, label: null }));
    this.#correct(made, gone);
    this.#stay(at);
    return made;
  }

  /** The border of a span, while it is held. */
  hold(old, first, last) {
    const before = this.moving?.made ?? old;
    this.moving = { old, made: { first, last, label: old.label } };
    if (!same(before, this.moving.made)) this.changed();
  }

  /** And let go; null where it is as it was. */
  drop(keep = true) {
    const { old, made } = this.moving ?? {};
    this.moving = null;
    if (!old) return null;
    if (!keep || same(old, made) || !this.spans.some((each) => same(each, old))) {
      this.changed();
      return null;
    }
    this.#correct([made], this.spans.filter((each) => same(each, old) || touch(each, made)));
    this.#stay(made.last);
    return [made];
  }

  /** The last correction; false: there is none. */
  undo() {
    const before = this.past.at(-1);
    if (!before) return false;
    this.#set({ ...before, past: this.past.slice(0, -1) });
    if (!this.decoded) this.#ask();
    this.changed();
    return true;
  }

  /** `gone` makes way for `made`. All of their tokens were touched; only what was made is fixed, the rest is the model's again. */
  #correct(made, gone) {
    const { past, ...before } = this.state;
    const fixed = made.reduce(without, this.fixed.filter((each) => !gone.some((other) => same(each, other))));
    this.#set({
      spans: inOrder([...this.spans.filter((each) => !gone.includes(each)), ...made.filter(({ label }) => label !== null)]),
      unsure: new Set([...this.unsure].filter((at) => !made.some((each) => holds(each, at)))),
      fixed: inOrder([...fixed, ...made]),
      touched: new Set([...this.touched, ...[...made, ...gone].flatMap(places)]),
      decoded: false,
      past: [...past, before],
    });
    this.#ask();
  }

  #stay(at) {
    this.chosen = { anchor: at, head: at, exact: false };
    this.changed();
  }

  async #ask() {
    const version = this.version;
    let reply;
    try {
      reply = await this.decode(this.question.id, this.fixed);
    } catch (error) {
      if (!("passing" in error)) throw error;
      return; // what was marked stands
    }
    if (version === this.version) this.#merge(reply);
  }

  #merge({ spans, unsure }) {
    const free = (each) => !this.fixed.some((other) => touch(each, other));
    const byHand = this.fixed.filter(({ label }) => label !== null);
    const before = this.spans;
    const known = (each, among) => among.some((other) => same(each, other));
    const wasUnsure = [...this.unsure].sort().join();
    this.spans = inOrder([...byHand, ...spans.filter(free)]);
    this.unsure = new Set(unsure.filter((at) => free({ first: at, last: at })));
    this.decoded = true;
    const come = this.spans.filter((each) => !known(each, before));
    const gone = before.filter((each) => !known(each, this.spans) && !come.some((other) => touch(each, other)));
    const mended = [...come, ...gone.map((each) => ({ ...each, label: null }))];
    if (mended.length || [...this.unsure].sort().join() !== wasUnsure) this.changed(mended);
  }
}
