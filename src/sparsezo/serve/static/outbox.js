// What a person has said and the service has not yet confirmed. Kept in the browser's storage until it has; sent one
// after the other, in order, again and again where the connection fails. Each has a nonce: twice sent counts once.

const WAITS = [300, 1000, 2000, 4000, 8000]; // ms

/** A name for a token that does not tell it (FNV-1a, 53 bits): storage outlives the tab. */
function nameOf(token) {
  let hash = 0xcbf29ce484222325n;
  for (const byte of new TextEncoder().encode(token)) {
    hash = BigInt.asUintN(64, (hash ^ BigInt(byte)) * 0x100000001b3n);
  }
  return (hash >> 11n).toString(36);
}

export class Outbox {
  /** tell: {sent(entry, reply), refused(entry, error), changed()} */
  constructor(api, tell) {
    this.api = api;
    this.tell = tell;
    this.prefix = `sparsezo.unsent.${nameOf(api.token)}.`;
    this.entries = this.#kept();
    this.running = false;
    this.torn = false; // the last try failed
    this.count = 0;
  }

  get size() {
    return this.entries.length;
  }

  add(path, body) {
    this.count += 1;
    const order = String(Date.now()).padStart(15, "0") + String(this.count).padStart(6, "0");
    const random = crypto.getRandomValues(new Uint32Array(2)).join("-");
    const entry = { key: this.prefix + order + "." + random, path, body, tries: 0 };
    if (path === "tell" || path === "skip") body.nonce = random;
    this.entries.push(entry);
    this.#keep(entry);
    this.tell.changed();
    this.run();
    return entry;
  }

  /** Take an entry back that was never tried. False: it may have arrived. */
  withdraw(entry) {
    const at = this.entries.indexOf(entry);
    if (at < 0 || entry.tries > 0) return false;
    this.#drop(entry);
    return true;
  }

  /** Send until there is nothing left. */
  async run() {
    if (this.running) return;
    this.running = true;
    while (this.entries.length) {
      const entry = this.entries[0];
      entry.tries += 1;
      this.#keep(entry);
      try {
        const reply = await this.api.post(entry.path, entry.body);
        this.torn = false;
        this.#drop(entry);
        this.tell.sent(entry, reply);
      } catch (error) {
        if (!("passing" in error)) throw error;
        if (error.status === 401 || error.status === 403) {
          this.tell.refused(entry, error); // kept: a valid link may still send it
          break;
        }
        if (error.passing) {
          this.torn = true;
          this.tell.changed();
          await this.#wait((error.wait ?? 0) * 1000 || WAITS[Math.min(entry.tries, WAITS.length) - 1]);
        } else {
          this.torn = false;
          this.#drop(entry);
          this.tell.refused(entry, error);
        }
      }
    }
    this.running = false;
    this.tell.changed();
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

  #kept() {
    const found = [];
    try {
      for (let k = 0; k < localStorage.length; k++) {
        const key = localStorage.key(k);
        if (!key.startsWith(this.prefix)) continue;
        const { path, body, tries } = JSON.parse(localStorage.getItem(key));
        found.push({ key, path, body, tries: Number(tries) || 0 });
      }
    } catch {
      // without storage, or with a damaged one: what this page holds
    }
    return found.sort((a, b) => (a.key < b.key ? -1 : 1));
  }

  #keep(entry) {
    try {
      const { path, body, tries } = entry;
      localStorage.setItem(entry.key, JSON.stringify({ path, body, tries }));
    } catch {
      // it is still in memory, and leaving the page warns
    }
  }

  #drop(entry) {
    this.entries.splice(this.entries.indexOf(entry), 1);
    try {
      localStorage.removeItem(entry.key);
    } catch {
      // never kept
    }
    this.tell.changed();
  }
}
