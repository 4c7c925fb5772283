// Labels to choose from, by number. Up to ten have one key each; more have two (or three), or are found by typing.
import { $, el } from "./dom.js";
import { hue } from "./show.js";

const ONE_KEY = 10;

/** The digits that stand for label k of n: "1".."9", "0"; or "01", "02", ... */
export function code(k, n) {
  if (n <= ONE_KEY) return String((k + 1) % 10);
  return String(k + 1).padStart(String(n).length, "0");
}

export class Labels {
  constructor(keys, choose) {
    this.keys = keys;
    this.choose = choose;
    this.names = [];
    this.called = {};
    this.typed = "";
    $("filter").addEventListener("input", () => this.#narrow());
    $("filter").addEventListener("keydown", (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        const found = this.#matching();
        if (found.length && $("filter").value) this.choose(found[0]);
      } else if (event.key === "Escape") {
        event.preventDefault();
        this.clear();
        $("card").focus();
      }
    });
  }

  /** `title`: above the list; no names: nothing is shown. `called`: what people call them. `after`: more buttons. */
  show(names, title, called = {}, after = []) {
    this.names = names;
    this.called = called;
    $("labels").hidden = !names.length;
    this.entitle(title);
    $("filter").closest("label").hidden = names.length <= ONE_KEY;
    const buttons = names.map((name, k) => {
      const digits = code(k, names.length);
      const shown = this.keys.on ? [...digits].map((digit) => this.keys.label("d" + digit)).join("") : "";
      const button = el("button", { type: "button", class: `label ${hue(name)}`, "data-code": digits }, shown ? el("kbd", {}, shown) : null);
      button.append(el("span", {}, called[name] ?? name));
      button.addEventListener("click", () => this.choose(name));
      return button;
    });
    $("label-list").replaceChildren(...buttons, ...after);
    this.clear();
  }

  entitle(title) {
    $("labels-title").textContent = title;
  }

  /** A digit's key. Returns whether it meant something here. */
  digit(digit) {
    if (!this.names.length) return false;
    const typed = this.typed + digit;
    const codes = this.names.map((_, k) => code(k, this.names.length));
    const at = codes.indexOf(typed);
    if (at >= 0) {
      this.choose(this.names[at]);
      return true;
    }
    if (codes.some((each) => each.startsWith(typed))) this.typed = typed;
    else this.typed = codes.some((each) => each.startsWith(digit)) ? digit : "";
    this.#narrow();
    return true;
  }

  clear() {
    this.typed = "";
    $("filter").value = "";
    this.#narrow();
  }

  focus() {
    if (this.names.length > ONE_KEY) $("filter").focus();
  }

  #matching() {
    const wanted = $("filter").value.trim().toLowerCase();
    const words = (name) => (this.called[name] ?? name).toLowerCase();
    const found = this.names.filter((name) => words(name).includes(wanted));
    const starts = (name) => (words(name).startsWith(wanted) ? 0 : 1);
    return found.sort((a, b) => starts(a) - starts(b));
  }

  #narrow() {
    const wanted = $("filter").value.trim();
    const found = new Set(this.#matching());
    const best = wanted ? this.#matching()[0] : null;
    [...$("label-list").children].slice(0, this.names.length).forEach((button, k) => {
      button.hidden = !found.has(this.names[k]);
      button.classList.toggle("best", this.names[k] === best);
      button.classList.toggle("open", this.typed !== "" && button.dataset.code.startsWith(this.typed));
    });
    $("typed").textContent = this.typed ? `${this.typed}…` : wanted ? `${found.size} of ${this.names.length}` : "";
  }
}
