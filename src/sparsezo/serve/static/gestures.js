// Mouse, finger and keys on the words of a review.

const TAP = 10; // px that a finger may move and still only taps

const isButton = (target) => target.closest("button, a, summary, select") !== null;

/** `done(spans)` is told what was corrected: [{first, last, label}], null where nothing was. */
export class Gestures {
  constructor(room, review, done) {
    this.room = room;
    this.review = review;
    this.done = done;
    this.drag = null; // {from, moved} over words, from one or {behind} one; or {span, side} of a border
    this.mouse = false; // the last pointer was one
    room.addEventListener("pointerdown", (event) => this.#down(event));
    room.addEventListener("pointermove", (event) => this.drag?.pointer === event.pointerId && this.#move(event));
    room.addEventListener("pointerup", (event) => this.drag?.pointer === event.pointerId && this.#up(event));
    room.addEventListener("pointercancel", (event) => this.drag?.pointer === event.pointerId && this.#cancel());
    room.addEventListener("mousedown", (event) => review.question && event.preventDefault()); // no focus, no text is selected
    // a border is drawn anew while it is held: without this the browser takes the next tap for a part of the same gesture
    room.addEventListener("touchstart", (event) => this.drag && event.preventDefault(), { passive: false });
    room.addEventListener("click", (event) => this.#click(event));
    room.addEventListener("focusin", (event) => this.#focused(event));
  }

  #down(event) {
    const handle = event.target.closest(".handle");
    if (this.drag) return; // one finger at a time
    this.mouse = event.pointerType === "mouse";
    this.room.classList.remove("by-keys");
    if (!this.review.question || event.button !== 0 || !(this.mouse || handle)) return; // a finger on words taps or scrolls
    const at = placeOf(event.target);
    if (handle) {
      const span = this.review.at(Number(handle.dataset.first));
      this.drag = span && { span, side: handle.dataset.side };
    } else if (at === null) {
      this.review.leave();
      const behind = event.target.closest(".gap")?.dataset.behind;
      if (behind !== undefined) this.drag = { behind: Number(behind), moved: false };
    } else if (event.shiftKey) this.review.extend(at);
    else this.drag = { from: at, moved: false };
    if (!this.drag) return;
    Object.assign(this.drag, { question: this.review.question, pointer: event.pointerId, x: event.clientX, y: event.clientY });
    this.room.setPointerCapture(event.pointerId);
    this.room.classList.toggle("border-held", handle !== null); // what is under it is a word, no border
  }

  #move(event) {
    if (this.drag.question !== this.review.question) return this.#cancel(); // answered meanwhile, by a key
    const at = placeOf(document.elementFromPoint(event.clientX, event.clientY), ".word[data-at]");
    if (at === null) return;
    const { span, side, behind } = this.drag;
    if (behind !== undefined) this.drag.from ??= at > behind ? behind + 1 : behind;
    if (side === "first") this.review.hold(span, Math.min(at, span.last), span.last);
    else if (side === "last") this.review.hold(span, span.first, Math.max(at, span.first));
    else {
      this.drag.moved ||= behind !== undefined || at !== this.drag.from;
      if (this.drag.moved) this.review.choose(this.drag.from, at, true);
    }
  }

  #up(event) {
    const { from, moved, span, question, x, y } = this.drag;
    this.#release();
    if (question !== this.review.question) return;
    if (span) {
      if (this.review.moving) this.done(this.review.drop());
      else if (this.mouse) this.review.choose(span.first);
      else if (Math.hypot(event.clientX - x, event.clientY - y) < TAP) this.review.tap(span.first);
      return;
    }
    if (from === undefined) return;
    if (!moved) this.review.choose(from);
    const { labels, shown } = question;
    if (labels.length === 1 && !shown.plain && (moved || !this.review.at(from))) this.done(this.review.mark(labels[0]));
  }

  #cancel() {
    if (this.drag.span) this.review.drop(false);
    this.#release();
  }

  #release() {
    const { pointer } = this.drag;
    this.drag = null;
    this.room.classList.remove("border-held");
    if (this.room.hasPointerCapture(pointer)) this.room.releasePointerCapture(pointer);
  }

  /** Of a finger, or of who speaks to the page by other means; a mouse has done its work by now. */
  #click(event) {
    if (!this.review.question || (this.mouse && event.detail !== 0)) return;
    const at = placeOf(event.target) ?? placeOf(document.elementFromPoint(event.clientX, event.clientY)); // drawn anew under the finger
    if (at === null) this.review.leave();
    else this.review.tap(at);
  }

  /** By Tab, or by a screen reader. */
  #focused(event) {
    const at = placeOf(event.target, ".word[data-at]");
    if (this.review.question && at !== null && this.review.chosen?.head !== at) this.review.choose(at);
  }

  /** A key that means something in a review. `take`: as it stands. Returns whether it did. */
  key(event, take) {
    if (event.ctrlKey || event.altKey || event.metaKey) return false;
    const review = this.review;
    if (/^(Arrow|Home|End)/.test(event.key)) this.room.classList.add("by-keys"); // where the cursor is, is shown
    if (event.key === "Enter") {
      if (isButton(event.target) || event.repeat) return false;
      take();
    } else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const forward = (event.key === "ArrowRight") === !this.#rightToLeft;
      review.walk(forward ? 1 : -1, event.shiftKey);
    } else if (event.key === "ArrowUp" || event.key === "ArrowDown") review.walkOpen(event.key === "ArrowDown" ? 1 : -1);
    else if (event.key === "Home" || event.key === "End") review.walk(event.key === "Home" ? -review.count : review.count, event.shiftKey);
    else if (event.key === "Escape" && review.chosen) review.leave();
    else if ((event.key === "Delete" || event.key === "Backspace") && review.chosen && !event.repeat) this.done(review.remove());
    else return false;
    return true;
  }

  get #rightToLeft() {
    const sentence = this.room.querySelector(".sentence");
    return sentence !== null && getComputedStyle(sentence).direction === "rtl";
  }
}

function placeOf(target, which = "[data-at]") {
  const at = target?.closest(which)?.dataset.at;
  return at === undefined ? null : Number(at);
}
