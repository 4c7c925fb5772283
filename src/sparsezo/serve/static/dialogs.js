// Help, keys and flags: the page's dialogs. The browser keeps focus inside and Escape closes.
import { $, el, unseen } from "./dom.js";
import { ACTIONS, keyOf, shownKey } from "./keys.js";

export const isOpen = () => document.querySelector("dialog[open]") !== null;

for (const dialog of document.querySelectorAll("dialog")) {
  for (const button of dialog.querySelectorAll("[data-close]")) button.addEventListener("click", () => dialog.close());
}

const kbds = (keys) => keys.flatMap((key, k) => (k ? [" ", el("kbd", {}, shownKey(key))] : [el("kbd", {}, shownKey(key))]));

export function help(keys) {
  const row = (words, ...shown) => el("tr", {}, el("th", { scope: "row" }, words), el("td", {}, ...(shown.length ? shown : ["none"])));
  const isDigit = (action) => /^d\d$/.test(action);
  const rows = Object.entries(ACTIONS).filter(([action]) => !isDigit(action)).map(([action, { words }]) => row(words, ...kbds(keys.map[action])));
  const digits = kbds(Object.keys(ACTIONS).filter(isDigit).flatMap((action) => keys.map[action])); // with blanks between them
  rows.push(row("A label or grade, by its number", ...(digits.length > 3 ? [digits[0], " to ", digits.at(-1)] : digits)));
  $("help-keys").replaceChildren(...rows);
  $("help").showModal();
  $("help-title").focus(); // else the first button has the focus, which stands at the end
  $("help").scrollTop = 0;
}

/** `changed` is called whenever keys are other ones. */
export class KeySettings {
  constructor(keys, changed) {
    this.keys = keys;
    this.changed = changed;
    this.waiting = null; // the action that gets the next key
    $("settings-open").addEventListener("click", () => this.open());
    $("keys-on").addEventListener("change", () => {
      keys.on = $("keys-on").checked;
      keys.keep();
      this.#say(keys.on ? "Single keys are on." : "Single keys are off.");
    });
    $("keys-reset").addEventListener("click", () => {
      keys.reset();
      this.#draw();
      this.#say("All keys are as they were at first.");
    });
    $("settings").addEventListener("keydown", (event) => this.#pressed(event), true);
    $("settings").addEventListener("close", () => (this.waiting = null));
  }

  open() {
    this.#draw();
    $("settings-said").textContent = "";
    $("settings").showModal();
  }

  #draw() {
    $("keys-on").checked = this.keys.on;
    $("settings-keys").replaceChildren(...Object.keys(ACTIONS).map((action) => this.#row(action)));
  }

  #row(action) {
    const { words } = ACTIONS[action];
    const keys = this.keys.map[action];
    const change = el("button", { type: "button", "data-remap": action });
    change.append(...(this.waiting === action ? ["press a key"] : keys.length ? kbds(keys) : ["none"]));
    change.append(unseen(`: change the key of ${words}`));
    change.addEventListener("click", () => {
      this.waiting = action;
      this.#draw();
      this.#focus(action);
      $("settings-said").textContent = `Press the new key for ${words}.`;
    });
    const off = el("button", { type: "button", class: "small-button" }, "off", unseen(`: no key for ${words}`));
    off.addEventListener("click", () => {
      this.keys.set(action, null);
      this.#draw();
      this.#say(`${words} has no key.`);
      this.#focus(action);
    });
    return el("tr", {}, el("th", { scope: "row" }, words), el("td", {}, change, " ", off));
  }

  #focus(action) {
    document.querySelector(`[data-remap="${action}"]`).focus();
  }

  #pressed(event) {
    if (this.waiting === null) return;
    const action = this.waiting;
    if (event.key === "Escape") {
      event.preventDefault();
      event.stopPropagation();
      this.waiting = null;
      this.#draw();
      this.#focus(action);
      $("settings-said").textContent = "";
      return;
    }
    const key = keyOf(event);
    if (key === null) return;
    event.preventDefault();
    event.stopPropagation();
    const other = this.keys.set(action, key);
    this.waiting = null;
    this.#draw();
    this.#focus(action);
    const name = ACTIONS[action].words;
    this.#say(other ? `${shownKey(key)} is the key of ${ACTIONS[other].words} already.` : `${name} is ${shownKey(key)} now.`);
  }

  #say(text) {
    $("settings-said").textContent = text;
    this.changed();
  }
}

let noted = null; // who waits for a note

function tellNote(said) {
  const waiting = noted;
  noted = null;
  waiting?.(said);
}

$("flag-form").addEventListener("submit", (event) => {
  event.preventDefault();
  const said = { note: $("note").value.trim(), goOn: event.submitter?.id === "flag-on" };
  $("flag").close();
  tellNote(said);
});
$("flag").addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.repeat) return;
  event.preventDefault();
  $("flag-form").requestSubmit($("flag-on"));
});
// Browsers say this a little later, when it may be open again
$("flag").addEventListener("close", () => !$("flag").open && tellNote(null));

/** Resolves to {note, goOn: whether to leave the question}, or to null where the person thought better of it. */
export function askNote() {
  tellNote(null);
  $("note").value = "";
  $("flag").showModal();
  $("note").focus();
  return new Promise((done) => (noted = done));
}
