// The page that asks. One question is shown, two wait; an answer shows the next one first and is sent after that.
import { VERSIONS, bothHeard, isDecision, startingFrom, versions } from "./adjudicate.js";
import { Api, takeToken } from "./api.js";
import { KeySettings, askNote, help, isOpen } from "./dialogs.js";
import { $, el, short, unseen } from "./dom.js";
import { Drafts } from "./drafts.js";
import { Gestures } from "./gestures.js";
import { offer } from "./guidelines.js";
import { Keys, keyOf } from "./keys.js";
import { Labels } from "./labels.js";
import { Outbox, isNoAccess } from "./outbox.js";
import { modelLine, plot } from "./plot.js";
import { Marking } from "./marking.js";
import { Review } from "./review.js";
import { heard, inWords as spansInWords, light, reviewed } from "./reviewed.js";
import { input, learnHues, outputs, sentenceOf, textOf } from "./show.js";

const AHEAD = 2; // questions that wait
const LISTED = 20; // last answers
const STATUS_MS = 15_000;
const STATUS_SOON_MS = 1500; // after an answer
const ECHO_MS = 4000;
const IDENTIFY_MS = 1000; // between two tries to learn whose link this is

const DECIDE = location.pathname === "/adjudicate"; // only where two people differ

const api = new Api(takeToken());
const keys = new Keys();
const labels = new Labels(keys, (name) => (current?.kind === "review" ? mark(name) : answer(name)));
const outbox = new Outbox(api, { sent, refused, noAccess: badLink, changed: showState, idle: () => refillIfIdle() });

let current = null;
let version = null; // of a sentence on which two differ: the one that is being set right; null: both are shown
const marking = new Marking(drawMarked); // the ends of the span that is asked about, as the person has put them
const review = new Review(decode, drawReview);
const gestures = new Gestures($("shown"), review, corrected);
const drafts = new Drafts();
let ahead = [];
let past = []; // answers and skips, the oldest first: {id, question or null, text, answer, entry}
const gone = new Set(); // ids that were answered or skipped and not taken back
let asking = false;
let askAgain = false; // questions were used up while others were asked for
let busy = false; // an older question is being fetched back

// The time that a question is on the screen, and how much of it the window is hidden or another one has the focus
const MOST_SECONDS = 86400;
const watch = { began: 0, since: 0, isAway: false, away: 0 };
const isAway = () => document.hidden || !document.hasFocus();
const startWatch = () => Object.assign(watch, { began: performance.now(), since: performance.now(), isAway: isAway(), away: 0 });
function readWatch() {
  const now = performance.now();
  if (watch.isAway) watch.away += now - watch.since;
  Object.assign(watch, { since: now, isAway: isAway() });
  const seconds = (ms) => Math.min(Math.round(ms) / 1000, MOST_SECONDS);
  return { seconds: seconds(now - watch.began), away: seconds(watch.away) };
}
for (const name of ["focus", "blur"]) addEventListener(name, readWatch);
document.addEventListener("visibilitychange", () => {
  readWatch();
  if (!document.hidden) refreshStatus();
});

// Showing

const CHOICES = { right: "All right", yes: "Yes", no: "No", first: "First", second: "Second", tie: "No difference" };

function button(words, action, value, name = "") {
  const made = el("button", { type: "button", class: `answer ${name}`, "data-answer": value });
  const key = keys.label(action);
  made.append(...(key ? [el("kbd", {}, key), " "] : []), words);
  made.addEventListener("click", () => answer(value));
  return made;
}

/** Around what is fixed; of two versions nothing is decoded: the rest is as somebody has left it. */
function decode(id, fixed) {
  return isDecision(current) ? Promise.reject({ passing: false }) : api.post("decode", { id, fixed });
}

const isChoosing = () => isDecision(current) && version === null;

/** A sentence on which two differ: one of them is to be set right, or, with null, both are shown again. */
function setRight(which) {
  version = which;
  show();
  $("card").focus({ preventScroll: true });
}

function put(question) {
  current = question;
  version = isDecision(question) ? drafts.versionOf(question) : null;
  show();
}

function show() {
  const question = current;
  $("heard").textContent = "";
  review.end();
  if (question === null) {
    $("shown").replaceChildren();
    $("answers").replaceChildren();
    labels.show([], "");
    return;
  }
  learnHues(question);
  $("card").classList.toggle("sentence-first", Array.isArray(question.shown.words) && question.kind !== "pair" && !isChoosing());
  marking.begin(question);
  const asked = version === null ? question : startingFrom(question, version);
  $("text").replaceChildren(...sentenceOf(asked));
  if (isChoosing()) {
    $("shown").replaceChildren();
    $("heard").textContent = bothHeard(question);
  } else if (question.kind === "review") {
    review.begin(asked, drafts.of(question));
    drafts.keep(review, version);
    light([]);
    $("shown").replaceChildren(reviewed(review));
    $("heard").textContent = heard(review);
  } else $("shown").replaceChildren(...input(question));
  drawAnswers(question);
  startWatch();
  // Where a button had the focus, which is gone with its question: the card has it, and Tab leads to the answers
  if (document.activeElement === document.body || $("card").contains(document.activeElement)) {
    $("card").focus({ preventScroll: true });
  }
}

/** The person has moved the ends of the span: it is drawn, and asked about, as it is now. */
function drawMarked() {
  $("text").replaceChildren(...sentenceOf(current, marking.ends));
  $("shown").replaceChildren(...input(current, marking.ends));
  drawAnswers(current);
}

/** A review as it stands now, changed by hand; or with `mended`: spans that the model has changed after a correction. */
function drawReview(mended) {
  if (!review.question) return;
  if (mended?.length) {
    light(mended);
    const words = `Changed with it: ${spansInWords(mended, current)}`;
    if ($("echo").corrected) $("echo").mark.before(`. ${words}`); // what was said before is not said again
    else echo(words);
  }
  if (review.touched.size) $("heard").textContent = ""; // as the sentence came: now its words say how it is
  const inSentence = $("shown").contains(document.activeElement);
  drafts.keep(review, version);
  $("shown").replaceChildren(reviewed(review));
  drawTake();
  if (inSentence || !mended) focusSentence();
}

/** The word that the cursor is at has the focus; without one, the card. */
function focusSentence() {
  const word = review.chosen && $("shown").querySelector(`.word[data-at="${review.chosen.head}"]`);
  (word || $("card")).focus({ preventScroll: true });
  word?.scrollIntoView({ block: "nearest" });
}

/** The buttons of a review say what they would do. */
function drawTake() {
  const target = review.target;
  const choose = review.plain ? "Choose words to give them another label" : "Choose words to say what they are";
  labels.entitle(target ? `“${short(textOf(current.shown, target.first, target.last), 60)}” is` : choose);
  $("take").lastChild.textContent = review.touched.size ? "Right like this" : "All right";
  if ($("remove")) $("remove").disabled = !review.removable.length;
}

const withKey = (key, words) => [el("kbd", {}, key), el("span", {}, words)];

function drawReviewAnswers(question) {
  const take = el("button", { type: "button", class: "answer good", id: "take", "data-answer": "right" }, ...withKey("Enter", "All right"));
  take.addEventListener("click", () => answer(taken()));
  $("answers").replaceChildren(take);
  if (version !== null) {
    const both = el("button", { type: "button", class: "answer", id: "both" }, "Back to both");
    both.addEventListener("click", () => leaveVersion());
    $("answers").append(both);
  }
  const remove = el("button", { type: "button", class: "label remove", id: "remove" }, ...withKey("Del", "Remove"));
  remove.addEventListener("click", () => corrected(review.remove()));
  labels.show(question.labels, "", question.names, review.plain ? [] : [remove]);
  drawTake();
}

/** A review as it stands; of two versions one that was not touched is that one. */
const taken = () => (version !== null && !review.touched.size ? VERSIONS[version] : review.answer);

function leaveVersion() {
  drafts.drop(current.id);
  setRight(null);
}

function drawVersions(question) {
  const cards = versions(question).map((node, k) => {
    const [name, key] = [VERSIONS[k], keys.label(`d${k + 3}`)];
    const mend = el("button", { type: "button", "data-version": String(k) }, key ? el("kbd", {}, key) : null, `Set the ${name} right`);
    mend.addEventListener("click", () => setRight(k));
    return el("div", { class: "output" }, node, button(`The ${name} is right`, name, name), mend);
  });
  $("answers").replaceChildren(el("div", { class: "outputs" }, ...cards));
  labels.show([], "");
}

/** What is chosen in a review is this. */
function mark(name) {
  labels.clear();
  const made = review.mark(name);
  if (made) corrected(made);
  else echo("Choose words first");
}

/** Say what was corrected in a review; null: nothing. */
function corrected(made) {
  if (!made) return;
  echo(spansInWords(made, current));
  $("echo").corrected = true;
}

function drawAnswers(question) {
  $("answers").className = `answers of-${question.kind}`;
  $("labels").className = `labels of-${question.kind}`;
  $("shown").classList.remove("of-part", "of-span", "of-label", "of-pair", "of-best", "of-rate", "of-review");
  $("shown").classList.add(`of-${question.kind}`);
  if (isChoosing()) {
    drawVersions(question);
  } else if (question.kind === "part" || question.kind === "span") {
    const no = marking.moved ? [] : [button("No", "no", "no", "bad")];
    $("answers").replaceChildren(button("Yes", "yes", "yes", "good"), ...no);
    if (question.kind === "part") labels.show(question.labels ?? [], "Or say what it is", question.names);
    else labels.show(question.labels ?? [], "Or say what it is. Choose words to change where it starts and ends.", question.names);
  } else if (question.kind === "review") {
    drawReviewAnswers(question);
  } else if (question.kind === "label") {
    $("answers").replaceChildren();
    labels.show(question.choices, "What is it?", question.names);
  } else if (question.kind === "pair") {
    const cards = outputs(question).map((node, k) => {
      const name = k === 0 ? "first" : "second";
      return el("div", { class: "output" }, node, button(CHOICES[name], name, name));
    });
    $("answers").replaceChildren(el("div", { class: "outputs" }, ...cards), button(CHOICES.tie, "tie", "tie"));
    labels.show([], "");
  } else if (question.kind === "best") {
    const cards = outputs(question).map((node, k) => el("div", { class: "output" }, button(`Number ${k + 1}`, `d${k + 1}`, question.choices[k]), node));
    $("answers").replaceChildren(el("div", { class: "outputs" }, ...cards));
    labels.show([], "");
  } else {
    const grades = Array.from({ length: question.grades ?? 5 }, (_, k) => k + 1);
    const words = (grade) => (grade === 1 ? "1 worst" : grade === grades.length ? `${grade} best` : String(grade));
    $("answers").replaceChildren(
      ...grades.map((grade) => {
        const made = button(words(grade), "d" + grade, String(grade), "grade");
        if (keys.label("d" + grade) === String(grade)) made.querySelector("kbd").remove();
        return made;
      }),
    );
    labels.show([], "");
  }
}

/** Buttons that stay show their keys. */
function drawKeys() {
  for (const made of document.querySelectorAll("[data-action]")) {
    made.querySelector("kbd")?.remove();
    const key = keys.label(made.dataset.action);
    if (key) made.prepend(el("kbd", {}, key));
  }
  if (current !== null) drawAnswers(current);
}

function message(words) {
  $("text").replaceChildren(words);
}

/** "All saved" is said only where the service has confirmed all that was ever said here. */
function stateOf(n, lost) {
  if (outbox.barred) return ["torn", n ? `${n} not saved: open your new link in this browser` : "No access"];
  if (!outbox.opened) return ["waiting", "Connecting"];
  if (n) return outbox.torn ? ["torn", `${n} not saved; trying again`] : ["waiting", `${n} being saved`];
  return lost ? ["torn", `${lost} not saved`] : ["saved", "All saved"];
}

function showState() {
  const [kind, words] = stateOf(outbox.size, outbox.lost.length);
  $("state").dataset.state = kind;
  $("state").textContent = words;
  $("lost").hidden = !outbox.lost.length;
  $("lost-list").replaceChildren(...outbox.lost.map(({ words: what, reason }) => el("li", {}, `${what}: ${reason}`)));
  for (const each of past) each.item?.classList.toggle("unsaved", outbox.entries.includes(each.entry));
}

let echoTimer = 0;

function echo(words, entry = null) {
  clearTimeout(echoTimer);
  const mark = el("span", { class: "mark", "aria-hidden": "true" });
  $("echo").replaceChildren(words, mark);
  $("echo").className = "echo shown";
  $("echo").entry = entry;
  $("echo").corrected = false;
  $("echo").mark = mark;
  markEcho(entry === null ? "" : "saving…");
}

function markEcho(words) {
  if ($("echo").mark) $("echo").mark.textContent = words;
  if (words === "saving…") return;
  clearTimeout(echoTimer);
  echoTimer = setTimeout(() => ($("echo").className = "echo"), ECHO_MS);
}

// Answering

function next() {
  put(ahead.shift() ?? null);
  if (current === null) message(outbox.torn ? "Waiting for the connection. Your answers are kept." : "Fetching a question");
}

/** An answer as people call it; a span by what it is, a review by how much was corrected. */
function inWords(value, question) {
  const n = value?.corrected?.length;
  if (n !== undefined) return `${n} ${n === 1 ? "word" : "words"} corrected`;
  if (question?.kind === "best") return `Number ${value}`;
  const name = typeof value === "object" && value !== null ? value.label : value;
  return String(CHOICES[name] ?? question?.names?.[name] ?? name);
}

/** What a question is about, in a line. */
const about = ({ kind, text, shown }) => (kind === "review" ? textOf(shown, 0, shown.words.length - 1) : text);

function answer(said) {
  if (current === null || busy) return;
  const question = current;
  if (said === "no" && marking.moved) return; // of what was marked by hand there is only what it is
  const value = question.kind === "rate" ? Number(said) : marking.answer(said);
  if (value === null) {
    echo("Choose words that touch those asked about");
    return;
  }
  const times = readWatch();
  gone.add(question.id);
  next(); // on the screen before the answer is sent
  const words = `${inWords(value, question)}: ${short(about(question), 50)}`;
  const entry = outbox.add("tell", { id: question.id, answer: value, ...times }, words);
  drafts.close(question.id);
  past.push({ id: question.id, question, text: about(question), answer: value, entry });
  echo(words, entry);
  showPast();
}

/** The last correction in the sentence on the screen, or else the last answer. */
function back() {
  if (!busy && version !== null && !review.past.length) return leaveVersion();
  if (busy || !review.question || !review.undo()) return undo();
  echo(review.past.length ? "One correction taken back" : version === null ? "Correction taken back: as the model has it" : "Correction taken back");
}

function pass(why) {
  if (current === null || busy) return;
  const question = current;
  gone.add(question.id);
  next();
  const entry = outbox.add("skip", { id: question.id, why }, `Skip: ${short(about(question), 50)}`);
  drafts.close(question.id);
  past.push({ id: question.id, question, text: about(question), answer: why === "skip" ? "skipped" : "can’t tell", entry });
  echo(why === "skip" ? "Skipped" : "Can’t tell: noted", entry);
  showPast();
}

async function flag() {
  if (current === null || busy) return;
  const [id, text] = [current.id, about(current)];
  const said = await askNote();
  if (said !== null) {
    const entry = outbox.add("flag", { id, note: said.note }, `Flag “${short(said.note, 50)}”: ${short(text, 50)}`);
    if (said.goOn && current?.id === id) pass("skip");
    echo(said.goOn ? "Flagged and skipped" : "Flagged", entry);
  }
  $("card").focus({ preventScroll: true });
}

/** Back to an answer: the last one, or one of the list. What is on the screen waits. */
async function undo(which = past.at(-1)) {
  if (busy) return;
  if (!which) {
    echo("There is nothing to take back");
    return;
  }
  past = past.filter((each) => each !== which);
  let question = which.question;
  if (which.entry === undefined || !outbox.withdraw(which.entry)) {
    if (question === null) question = await fetchBack(which);
    else outbox.add("undo", { id: which.id }, `Undo: ${short(which.text, 50)}`);
  }
  if (question === null) return;
  gone.delete(question.id);
  ahead = ahead.filter((each) => each.id !== question.id);
  if (current !== null) ahead.unshift(current);
  put(question);
  $("card").focus({ preventScroll: true });
  echo(`Taken back: ${inWords(which.answer, question)}. Answer it again`);
  showPast();
}

/** A question that this page has not shown itself: from before a reload. */
async function fetchBack(which) {
  busy = true;
  try {
    return (await api.post("undo", { id: which.id })).question;
  } catch (error) {
    if (error.passing) past.push(which);
    echo(`Not taken back: ${error.message}`);
    return null;
  } finally {
    busy = false;
    showPast();
  }
}

function showPast() {
  const items = past.slice(-LISTED).reverse();
  const made = items.map((each) => {
    const change = el("button", { type: "button", title: each.text }, el("b", {}, short(inWords(each.answer, each.question ?? each), 24)), " ", short(each.text, 80), unseen(" Change this answer"));
    change.addEventListener("click", () => undo(each));
    each.item = el("li", { class: outbox.entries.includes(each.entry) ? "unsaved" : "" }, change);
    return each.item;
  });
  $("recent").replaceChildren(...made);
  $("recent-hint").textContent = made.length ? "Choose one to change it." : "None yet.";
}

// What the service says

function sent(entry, reply) {
  if ($("echo").entry === entry) markEcho("✓ saved");
  if (entry.path === "tell") {
    $("everyone").textContent = reply.answers.toLocaleString("en");
    statusSoon();
  }
  if (outbox.size === 0) refill();
}

function refused(entry, error) {
  if (entry.path === "tell" || entry.path === "skip") past = past.filter((each) => each.entry !== entry);
  showPast();
  echo(`Not saved: ${error.message}`);
  refillIfIdle();
}

const refillIfIdle = () => outbox.size === 0 && refill();

/** This link opens nothing; what waits here is kept for one that does. */
function badLink(error = null) {
  outbox.barred = true;
  current = null;
  ahead = [];
  show();
  const replaced = error?.code === "link-replaced";
  const words = replaced ? "This link was replaced. Ask for the new one." : "This link is not valid any more. Ask for a new one.";
  const kept = outbox.size ? ` Open it in this browser: ${outbox.size} of your answers wait here and are sent then.` : "";
  message(api.token ? words + kept : "Open this page by your own link: it ends in # and a token.");
  showState();
}

let retry = 0;

/** Enough questions ahead; those that wait are looked at again, since the model has learned meanwhile. */
async function refill() {
  askAgain = asking;
  if (asking) return;
  const wanted = AHEAD - ahead.length + (current === null ? 1 : 0);
  if (wanted <= 0) return;
  asking = true;
  clearTimeout(retry);
  const left = !DECIDE && current === null && !ahead.length ? drafts.waiting.filter((id) => !gone.has(id)).slice(0, wanted) : []; // half done before a reload
  const holding = [...left, ...ahead.map((each) => each.id)];
  let wait = 0;
  try {
    const { questions } = await api.post("ask", { n: Math.max(wanted - left.length, 1), holding, decide: DECIDE });
    for (const id of left) if (!questions.some((each) => each.id === id)) drafts.drop(id); // it is another's by now
    const fresh = questions.filter((each) => !gone.has(each.id) && each.id !== current?.id);
    const put = ahead.filter((each) => !holding.includes(each.id)); // put back by undo in the meantime
    ahead = [...put, ...fresh.filter((each) => !put.some((other) => other.id === each.id))];
    if (current === null) next();
    if (current === null) wait = 1;
  } catch (error) {
    if (!("passing" in error)) throw error;
    if (isNoAccess(error)) return badLink(error);
    wait = error.wait ?? 2;
    if (current === null) message(error.code === "paused" ? `Paused: ${error.message}. It goes on by itself.` : error.code === "nothing-to-ask" ? (DECIDE ? "Nothing waits to be decided." : "Nothing to ask at present. Thank you!") : error.status === 0 ? "Waiting for the connection. Your answers are kept." : error.message);
  } finally {
    asking = false;
  }
  if (wait) retry = setTimeout(refillIfIdle, wait * 1000);
  else if (askAgain) refillIfIdle();
}

let statusTimer = 0;

const statusSoon = () => {
  statusTimer ||= setTimeout(refreshStatus, STATUS_SOON_MS);
};

async function refreshStatus() {
  clearTimeout(statusTimer);
  statusTimer = 0;
  try {
    const status = await api.get("status");
    $("per-minute").textContent = status.per_minute.toFixed(status.per_minute < 10 ? 1 : 0);
    $("today").textContent = status.today.toLocaleString("en");
    $("everyone").textContent = status.answers.toLocaleString("en");
    $("plot").replaceChildren(plot(status.curve, status.metric, false));
    $("model-line").textContent = [modelLine(status.curve, status.metric), status.stop?.text].filter(Boolean).join(" ");
  } catch (error) {
    if (!("passing" in error)) throw error; // a status that does not come now comes later
  }
}

// Keys, buttons, leaving

const DO = {
  yes: () => ["part", "span"].includes(current?.kind) && answer("yes"),
  no: () => ["part", "span"].includes(current?.kind) && answer("no"),
  first: () => (current?.kind === "pair" || isChoosing() ? answer("first") : marking.move(0, -1)),
  second: () => (current?.kind === "pair" || isChoosing() ? answer("second") : marking.move(0, 1)),
  sooner: () => marking.move(-1, 0),
  later: () => marking.move(1, 0),
  tie: () => current?.kind === "pair" && answer("tie"),
  skip: () => pass("skip"),
  cannot: () => pass("cannot-tell"),
  flag,
  undo: back,
  filter: () => labels.focus(),
  help: () => help(keys),
};

function digit(which) {
  if (isChoosing()) {
    if (which === "1" || which === "2") answer(VERSIONS[which - 1]);
    else if (which === "3" || which === "4") setRight(which - 3);
  } else if (current?.kind === "pair") {
    const said = ["first", "second", "tie"][Number(which) - 1];
    if (said) answer(said);
  } else if (current?.kind === "best") {
    if (current.choices.includes(which)) answer(which);
  } else if (current?.kind === "rate") {
    if (which >= 1 && which <= (current.grades ?? 5)) answer(which);
  } else labels.digit(which);
}

document.addEventListener("keydown", (event) => {
  if (event.defaultPrevented || isOpen()) return;
  const target = event.target;
  if (target.closest("input, textarea, select, [contenteditable]")) return;
  if (event.key.toLowerCase() === "z" && (event.ctrlKey || event.metaKey) && !event.shiftKey && !event.altKey) {
    event.preventDefault();
    back();
    return;
  }
  // Arrows, Enter, Delete: not letters, so they work where single keys are off too
  if (review.question && gestures.key(event, () => answer(taken()))) {
    event.preventDefault();
    return;
  }
  if (!keys.on || event.repeat) return;
  const key = keyOf(event);
  if (key === null || (key === "Space" && target.closest("button, a, summary"))) return;
  if (key.startsWith("Arrow") && !["pair", "span"].includes(current?.kind) && !isChoosing()) return;
  const action = keys.action(key);
  if (action === null) return;
  event.preventDefault();
  if (action.startsWith("d")) digit(action.slice(1));
  else DO[action]();
});

for (const made of document.querySelectorAll("[data-action]")) {
  made.addEventListener("click", () => DO[made.dataset.action]());
}

$("shown").addEventListener("click", (event) => {
  const at = event.target.closest("[data-at]")?.dataset.at;
  if (at !== undefined && !busy) marking.choose(Number(at), event.shiftKey);
});

$("lost-seen").addEventListener("click", () => {
  outbox.seen();
  $("card").focus({ preventScroll: true });
});

addEventListener("beforeunload", (event) => {
  if (outbox.atStake) event.preventDefault();
});
addEventListener("hashchange", () => location.reload()); // another person's link in the same tab

/** Whose link this is: the service says so, or this browser knows. False: nobody's. */
async function identify() {
  for (;;) {
    try {
      const whose = outbox.remembered() ?? (await api.get("me"));
      outbox.open(whose);
      drafts.open(whose);
      return true;
    } catch (error) {
      if (!("passing" in error)) throw error;
      if (isNoAccess(error)) {
        badLink(error);
        return false;
      }
      message("Waiting for the connection.");
      await new Promise((done) => setTimeout(done, IDENTIFY_MS));
    }
  }
}

async function start() {
  new KeySettings(keys, drawKeys);
  drawKeys();
  showState();
  showPast();
  if (!api.token) return badLink();
  if (!(await identify())) return;
  for (const { body } of outbox.entries) gone.add(body.id);
  if (outbox.size) await outbox.run();
  await refill();
  refreshStatus();
  setInterval(() => !document.hidden && refreshStatus(), STATUS_MS);
  try {
    offer((await api.get("guidelines")).text);
    const { recent } = await api.get(`recent?n=${LISTED}`);
    const known = new Set(past.map((each) => each.id));
    const older = recent.filter((each) => !each.retracted && !known.has(each.id)).reverse();
    past = [...older.map(({ id, question, answer, names }) => ({ id, question: null, text: question, answer, names, entry: undefined })), ...past];
    showPast();
  } catch (error) {
    if (!("passing" in error)) throw error; // the list starts empty, then
  }
}

start();
