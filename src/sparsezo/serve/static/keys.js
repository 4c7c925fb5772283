// Which key does what. All can be changed, or switched off (WCAG 2.1.4); the choice stays in this browser.

const KEPT = "sparsezo.keys";

// yes, no, skip and undo have Prodigy's keys too: a, x, space and backspace
export const ACTIONS = {
  yes: { words: "Yes", keys: ["y", "a"] },
  no: { words: "No", keys: ["n", "x"] },
  first: { words: "The first of two; end one word earlier", keys: ["ArrowLeft"] },
  second: { words: "The second of two; end one word later", keys: ["ArrowRight"] },
  tie: { words: "Neither is better", keys: ["t"] },
  sooner: { words: "Start one word earlier", keys: ["ArrowUp"] },
  later: { words: "Start one word later", keys: ["ArrowDown"] },
  skip: { words: "Skip", keys: ["s", "Space"] },
  cannot: { words: "Can’t tell", keys: ["c"] },
  flag: { words: "Flag", keys: ["f"] },
  undo: { words: "Undo", keys: ["u", "Backspace"] },
  filter: { words: "Filter labels", keys: ["/"] },
  help: { words: "Help", keys: ["?"] },
};
for (const digit of "1234567890") ACTIONS["d" + digit] = { words: `Number ${digit}`, keys: [digit] };

const SHOWN = { Space: "space", Backspace: "⌫", ArrowLeft: "←", ArrowRight: "→", ArrowUp: "↑", ArrowDown: "↓" };

export const shownKey = (key) => SHOWN[key] ?? key;

/** The name of the key of an event; none with Control, Alt or Meta, or for keys that do something anyway. */
export function keyOf(event) {
  if (event.ctrlKey || event.altKey || event.metaKey) return null;
  if (["Tab", "Escape", "Enter", "Shift", "CapsLock", "Dead", "Process", "Unidentified"].includes(event.key)) return null;
  if (event.key === " ") return "Space";
  return event.key.length === 1 ? event.key.toLowerCase() : event.key;
}

export class Keys {
  constructor() {
    this.reset(false);
    try {
      const kept = JSON.parse(localStorage.getItem(KEPT) ?? "{}");
      this.on = kept.on !== false;
      for (const [action, keys] of Object.entries(kept.keys ?? {})) {
        if (action in ACTIONS && Array.isArray(keys)) this.map[action] = keys.filter((key) => typeof key === "string");
      }
    } catch {
      this.reset(false); // damaged: as at first
    }
  }

  reset(keep = true) {
    this.on = true;
    this.map = Object.fromEntries(Object.entries(ACTIONS).map(([action, { keys }]) => [action, [...keys]]));
    if (keep) this.keep();
  }

  keep() {
    try {
      localStorage.setItem(KEPT, JSON.stringify({ on: this.on, keys: this.map }));
    } catch {
      // for this page only, then
    }
  }

  action(key) {
    return Object.keys(this.map).find((action) => this.map[action].includes(key)) ?? null;
  }

  /** One key for an action, in place of all it had; null: none. Returns the action that has it already, or null. */
  set(action, key) {
    const other = key === null ? null : this.action(key);
    if (other !== null && other !== action) return other;
    this.map[action] = key === null ? [] : [key];
    this.keep();
    return null;
  }

  /** As a button shows it: the first key, or nothing. */
  label(action) {
    return this.on && this.map[action]?.length ? shownKey(this.map[action][0]) : "";
  }
}
