// The ends of a span that is asked about: the person may put them elsewhere, by keys or by choosing words.

export class Marking {
  /** `changed` is called when the ends are other ones. */
  constructor(changed) {
    this.changed = changed;
    this.question = null;
    this.ends = null; // {first, last}
    this.from = null; // the word that was chosen first, while the second is awaited
  }

  begin(question) {
    const { first, last } = question.shown;
    this.question = question.kind === "span" ? question : null;
    this.ends = this.question ? { first, last } : null;
    this.from = null;
  }

  /** Whether the ends are not those that were asked about. */
  get moved() {
    const { shown } = this.question ?? {};
    return this.question !== null && (shown.first !== this.ends.first || shown.last !== this.ends.last);
  }

  /** One end or the other, by so many words. */
  move(first, last) {
    if (this.question) this.#put(this.ends.first + first, this.ends.last + last);
  }

  /** A word: the span is that word, and with the next word that is chosen all from the one to the other. */
  choose(at, extend) {
    if (!this.question) return;
    const from = extend ? this.ends.first : this.from;
    this.from = from === null ? at : null;
    if (from === null) this.#put(at, at, true);
    else this.#put(Math.min(from, at), Math.max(from, at));
  }

  /** It stays in the sentence, and touches what was asked about; the first word that is chosen may be beside it. */
  #put(first, last, beside = false) {
    const { words, ...shown } = this.question.shown;
    if (first < 0 || last >= words.length || first > last) return;
    if (!beside && (first > shown.last || last < shown.first)) return;
    this.ends = { first, last };
    this.changed();
  }

  /** What is said of the span that is marked now: by its ends too, where these were moved; null: it is elsewhere. */
  answer(said) {
    if (!this.moved) return said;
    const { labels, shown } = this.question;
    const nothing = labels.at(-1);
    if (said === nothing) return said; // nothing is there: of what was asked about
    const label = said === "yes" ? shown.tag.slice(2) || "chunk" : said;
    return this.ends.first <= shown.last && this.ends.last >= shown.first ? { ...this.ends, label } : null;
  }
}
