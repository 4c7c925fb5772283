// What a person has said and the service has not yet confirmed. Kept in the browser's storage until it has, by session
// and person, so that any link of theirs finds it; sent one after the other, in order, again and again where the
// connection fails. Each has a nonce: twice sent counts once. Only what the service says is saved, is; what it refuses
// for good is kept as well, until the person has seen it.

const WAITS = [300, 1000, 2000, 4000, 8000]; // ms
const FINAL = ["late", "not-yours", "already-answered", "unknown-question", "bad-answer", "bad-request", "too-large"];
const NO_ACCESS = ["no-token", "link-replaced", "not-admin"];
const WHO = "sparsezo.who.";

export const isNoAccess = (error) => NO_ACCESS.includes(error.code);

/** A name for a token that does not tell it (FNV-1a, 53 bits): storage outlives the tab. */
function nameOf(token) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(token)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return (hash >> 11n).toString(36);
}

/** Of several tabs one sends at a time; where browsers have no locks (no https), each does. */
const alone = (name, work) => (navigator.locks ? navigator.locks.request(name, work) : work());

// Storage may be switched off, full or damaged: then there is what this page holds, and leaving it warns
export function stored(key) {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

export function store(key, value) {
  try {
    if (value === null) localStorage.removeItem(key);
    else localStorage.setItem(key, JSON.stringify(value));
    return value !== null;
  } catch {
    return false;
  }
}

export function parsed(text) {
  try {
    const found = JSON.parse(text);
    return typeof found === "object" ? found : null;
  } catch {
    return null;
  }
}

export function keysFrom(prefix) {
  try {
    return Array.from({ length: localStorage.length }, (_, k) => localStorage.key(k)).filter((key) => key.startsWith(prefix)).sort();
  } catch {
    return [];
  }
}

export class Outbox {
  /** tell: {sent(entry, reply), refused(entry, error), noAccess(error), changed(), idle()} */
  constructor(api, tell) {
    this.api = api;
    this.tell = tell;
    this.entries = []; // what waits: {key, path, body, words, tries, kept}
    this.lost = []; // what was refused for good: {key, words, reason}
    this.opened = false; // whose it is, is known
    this.barred = false; // this link opens nothing
    this.running = false;
    this.torn = false; // the last try failed
    this.count = 0;
    addEventListener("storage", (event) => this.#elsewhere(event));
  }

  get size() {
    return this.entries.length;
  }

  /** Whether leaving the page may lose something, or leave it unsent for long. */
  get atStake() {
    return this.entries.some((each) => !each.kept) || (this.size > 0 && !this.barred);
  }

  /** {session, person} of this link, as this browser knows it from before; null: ask the service. */
  remembered() {
    return parsed(stored(WHO + nameOf(this.api.token)));
  }

  /** Once it is known whose it is: with what this person left here, by whatever link. */
  open({ session, person }) {
    const whose = `${encodeURIComponent(session)}.${encodeURIComponent(person)}.`;
    store(WHO + nameOf(this.api.token), { session, person });
    this.prefix = `sparsezo.unsent.${whose}`;
    this.lostPrefix = `sparsezo.refused.${whose}`;
    this.#adopt(`sparsezo.unsent.${nameOf(this.api.token)}.`);
    this.entries = keysFrom(this.prefix).map((key) => this.#read(key)).filter((each) => each !== null);
    this.lost = this.#readLost();
    this.opened = true;
    this.tell.changed();
  }

  /** `words`: what it is, for people. */
  add(path, body, words) {
    this.count += 1;
    const order = String(Date.now()).padStart(15, "0") + String(this.count).padStart(6, "0");
    const random = crypto.getRandomValues(new Uint32Array(2)).join("-");
    const entry = { key: this.prefix + order + "." + random, path, body, words, tries: 0, kept: false };
    if (path === "tell" || path === "skip") body.nonce = random;
    this.entries.push(entry);
    this.#keep(entry);
    this.tell.changed();
    this.run();
    return entry;
  }

  /** Take an entry back that was never tried. False: it may have arrived. */
  withdraw(entry) {
    if (!this.entries.includes(entry) || entry.tries > 0 || parsed(stored(entry.key))?.tries > 0) return false;
    this.#drop(entry);
    return true;
  }

  /** The person has seen what was refused. */
  seen() {
    for (const { key } of this.lost) store(key, null);
    this.lost = [];
    this.tell.changed();
  }

  /** Send until there is nothing left. */
  async run() {
    if (this.running || this.barred) return;
    this.running = true;
    try {
      while (this.entries.length && !this.barred) {
        const wait = await alone(this.prefix, () => this.#send(this.entries[0]));
        if (wait) await this.#wait(wait);
      }
    } finally {
      this.running = false;
      this.tell.changed();
    }
  }

  /** One try; the ms to wait before the next one, or 0. */
  async #send(entry) {
    if (entry === undefined) return 0;
    if (entry.kept && stored(entry.key) === null) { // another tab has done it
      this.#drop(entry);
      this.tell.idle();
      return 0;
    }
    entry.tries += 1;
    entry.flying = true;
    this.#keep(entry);
    let reply;
    try {
      reply = await this.api.post(entry.path, entry.body);
    } catch (error) {
      if (!("passing" in error)) throw error;
      return this.#failed(entry, error);
    } finally {
      entry.flying = false;
    }
    if (!isSaved(entry, reply)) return this.#again(entry); // somebody else answers at this address
    this.torn = false;
    this.#drop(entry);
    this.tell.sent(entry, reply);
    return 0;
  }

  #failed(entry, error) {
    if (isNoAccess(error)) {
      this.barred = true; // all is kept: a valid link sends it
      this.tell.noAccess(error);
      return 0;
    }
    if (!FINAL.includes(error.code)) return this.#again(entry, error.wait);
    this.torn = false;
    if (entry.path !== "skip") this.#lose(entry, error.message); // of a skip nothing is lost
    this.#drop(entry);
    this.tell.refused(entry, error);
    return 0;
  }

  #again(entry, seconds = null) {
    this.torn = true;
    this.tell.changed();
    return (seconds ?? 0) * 1000 || WAITS[Math.min(entry.tries, WAITS.length) - 1];
  }

  /** Or until the browser says that there is a network again. */
  #wait(ms) {
    return new Promise((done) => {
      const timer = setTimeout(end, ms);
      function end() {
        clearTimeout(timer);
        removeEventListener("online", end);
        done();
      }
      addEventListener("online", end);
    });
  }

  /** What another tab of the same person does: it sends, refuses or adds. */
  #elsewhere({ key, newValue }) {
    if (!this.opened || key === null) return;
    if (key.startsWith(this.lostPrefix)) {
      this.lost = this.#readLost();
      this.tell.changed();
    }
    if (!key.startsWith(this.prefix)) return;
    const known = this.entries.find((each) => each.key === key);
    if (newValue === null && known && !known.flying) {
      this.#drop(known);
      this.tell.idle();
    } else if (newValue !== null && !known && navigator.locks) {
      const entry = this.#read(key);
      if (entry === null) return;
      this.entries.push(entry);
      this.tell.changed();
      this.run();
    }
  }

  /** As earlier versions kept them, by link. */
  #adopt(prefix) {
    for (const key of keysFrom(prefix)) {
      if (store(this.prefix + key.slice(prefix.length), parsed(stored(key)))) store(key, null);
    }
  }

  #read(key) {
    const found = parsed(stored(key));
    if (found?.path && found.body) {
      return { key, path: found.path, body: found.body, words: String(found.words ?? ""), tries: Number(found.tries) || 0, kept: true };
    }
    this.#lose({ key, words: "An answer of before" }, "this browser’s storage is damaged");
    store(key, null);
    return null;
  }

  #readLost() {
    return keysFrom(this.lostPrefix).map((key) => ({ key, words: "", reason: "", ...parsed(stored(key)) }));
  }

  #lose({ key, words }, reason) {
    const lost = { key: this.lostPrefix + key.slice(this.prefix.length), words, reason };
    this.lost.push(lost);
    store(lost.key, { words, reason });
  }

  #keep(entry) {
    const { path, body, words, tries } = entry;
    entry.kept = store(entry.key, { path, body, words, tries });
  }

  #drop(entry) {
    this.entries = this.entries.filter((each) => each !== entry);
    store(entry.key, null);
    this.tell.changed();
  }
}

function isSaved({ path, body }, reply) {
  return path === "undo" ? reply?.question?.id === body.id : reply?.saved === true && reply.id === body.id;
}
