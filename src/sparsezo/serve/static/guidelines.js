// Guidelines in Markdown, drawn plainly: headings, lists, bold words, paragraphs; links as text. All else is as it stands.
import { $, el } from "./dom.js";

const BOLD = /\*\*(\S(?:.*?\S)?)\*\*|__(\S(?:.*?\S)?)__/;
const LINK = /\[([^\]]+)\]\(([^()\s]+)\)/g;

/** A line's bold words as elements, the rest as text. */
function inline(line) {
  const [first, ...rest] = line.replace(LINK, (_, words, address) => (words === address ? words : `${words} (${address})`)).split(new RegExp(BOLD, "g"));
  const found = [first];
  for (let k = 0; k < rest.length; k += 3) found.push(el("b", {}, rest[k] ?? rest[k + 1]), rest[k + 2]);
  return found;
}

/** Elements for a text. */
export function drawn(text) {
  const made = [];
  let block = null; // a paragraph or a list that goes on
  for (const line of text.split(/\r?\n/)) {
    const heading = /^ {0,3}(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    const item = /^\s*(?:[-*+]|(\d+)[.)])\s+(.*)$/.exec(line);
    if (heading) {
      made.push(el(`h${Math.min(6, heading[1].length + 2)}`, {}, ...inline(heading[2])));
      block = null;
    } else if (item) {
      const name = item[1] === undefined ? "UL" : "OL";
      if (block?.tagName !== name) {
        block = el(name, { start: name === "OL" ? item[1] : null });
        made.push(block);
      }
      block.append(el("li", {}, ...inline(item[2])));
    } else if (!line.trim()) block = null;
    else if (block) (block.lastElementChild?.tagName === "LI" ? block.lastElementChild : block).append(" ", ...inline(line.trim()));
    else {
      block = el("p", {}, ...inline(line.trim()));
      made.push(block);
    }
  }
  return made;
}

/** A button for them, where there are any. */
export function offer(text) {
  if (!text?.trim()) return;
  $("guidelines-text").replaceChildren(...drawn(text));
  $("guidelines-open").hidden = false;
  $("guidelines-open").addEventListener("click", () => {
    $("guidelines").showModal();
    $("guidelines-title").focus();
    $("guidelines").scrollTop = 0;
  });
}
