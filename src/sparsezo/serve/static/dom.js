// Elements by hand. Whatever comes from data goes in as text, never as HTML.

export const $ = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text. */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value != null) made.setAttribute(key, value);
  }
  made.append(...children.filter((each) => each != null));
  return made;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** Seen by screen readers alone. */
export const unseen = (text) => el("span", { class: "unseen" }, text);

export function short(text, most = 60) {
  const letters = Array.from(String(text));
  return letters.length > most ? letters.slice(0, most - 1).join("") + "…" : letters.join("");
}
