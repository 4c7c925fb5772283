// The administrator's page: people, the learning curve, pause, exports.
import { Api, takeToken } from "./api.js";
import { $, el, short } from "./dom.js";
import { auditLine, forecastLine, plot, scatter, secondsLine } from "./plot.js";

const EVERY_MS = 5000;
const api = new Api(takeToken());

const count = (value) => value.toLocaleString("en");
const share = (value) => (100 * value).toFixed(0) + "%";
const COLUMNS = [
  ["name", "Name", String],
  ["answers", "Answers", count],
  ["per_minute", "A minute", (value) => value.toFixed(1)],
  ["agreement", "Agreement", share],
  ["overlooked", "Overlooked", ({ value, low, high }) => (value == null ? "–" : `${share(value)} (${share(low)} to ${share(high)})`)],
  ["e0", "Yes to wrong", share, "Left, wrong"],
  ["e1", "No to right", share, "Set, wrong"],
  ["link_made", "Link made", (value) => new Date(typeof value === "number" ? value * 1000 : value).toLocaleString()],
];

function say(words, bad = false) {
  $("said").textContent = words;
  $("said").hidden = !words;
  $("said").classList.toggle("bad", bad);
}

function failed(error) {
  if (!("status" in error)) throw error;
  $("state").dataset.state = "torn";
  const away = error.status === 401 || error.status === 403;
  $("state").textContent = away ? "No access" : "No connection";
  say(away ? "Open this page by the administrator’s link: it ends in # and a token." : error.message, true);
}

function people(rows) {
  const columns = COLUMNS.filter(([key]) => rows.some((row) => row[key] != null));
  const reviews = rows.some((row) => row.seconds?.points.length); // where errors are of tags, left standing or set by hand
  $("people-head").replaceChildren(...columns.map(([, words, , ofReviews]) => el("th", { scope: "col" }, reviews && ofReviews ? ofReviews : words)));
  $("people").replaceChildren(
    ...rows.map((row) =>
      el("tr", {}, ...columns.map(([key, , show], k) => el(k ? "td" : "th", k ? {} : { scope: "row" }, row[key] == null ? "–" : show(row[key])))),
    ),
  );
}

/** How long reviews take those who have done some: as predicted, and as measured. */
function times(rows) {
  const known = rows.filter((row) => row.seconds?.points.length);
  $("times-panel").hidden = !known.length;
  $("times").replaceChildren(
    ...known.map(({ name, seconds }) =>
      el("figure", { class: "plot" }, scatter(seconds.points, name), el("figcaption", { class: "small" }, el("b", {}, name), `: ${secondsLine(seconds)}`)),
    ),
  );
}

/** Sentences that two people have reviewed: how far they agree, and how many wait for somebody to decide. */
function differ(now) {
  $("differ-panel").hidden = !now;
  if (!now) return;
  const sentences = (n, verb) => `${count(n)} ${n === 1 ? `sentence ${verb[0]}` : `sentences ${verb[1]}`}`;
  const agreement = now.agreement == null ? "" : ` Agreement by span, before that: ${share(now.agreement)}.`;
  $("differ").textContent = `${sentences(now.waiting, ["waits", "wait"])} to be decided, ${count(now.decided)} decided.${agreement}`;
  $("decide-link").hidden = !now.waiting;
}

/** Who found what wrong, the newest first. */
function flags(rows) {
  $("no-flags").hidden = rows.length > 0;
  $("flags-table").hidden = !rows.length;
  $("flags").replaceChildren(
    ...rows.map(({ worker, text, input, note, at }) => {
      const asked = el("td", {}, text, input ? el("span", { class: "small in-full" }, short(input, 200)) : null);
      return el("tr", {}, el("th", { scope: "row" }, worker), asked, el("td", {}, note || "–"), el("td", {}, new Date(at * 1000).toLocaleString()));
    }),
  );
}

function status(now) {
  $("n-answers").textContent = count(now.answers);
  $("n-questions").textContent = count(now.questions);
  $("metric").textContent = now.metric;
  $("dev").textContent = now.dev == null ? "–" : now.dev.toFixed(3);
  $("plot").replaceChildren(plot(now.curve, now.metric, true, true));
  $("audit").textContent = auditLine(now.audit);
  $("forecast").textContent = now.stop?.text ?? forecastLine(now.forecast, now.metric);
  $("warning").textContent = now.warning ?? "";
  $("warning").hidden = !now.warning;
  $("pause").textContent = now.paused ? "Go on" : "Pause";
  $("pause").setAttribute("aria-pressed", String(now.paused));
  $("state").dataset.state = now.paused ? "waiting" : "saved";
  $("state").textContent = now.paused ? "Paused" : "Running";
}

async function refresh() {
  try {
    const [who, now] = [await api.get("admin/people"), await api.get("status")];
    people(who.people);
    times(who.people);
    flags((await api.get("admin/flags")).flags);
    status(now);
    differ(now.adjudication);
    if ($("said").classList.contains("bad")) say("");
  } catch (error) {
    failed(error);
  }
}

$("pause").addEventListener("click", async () => {
  try {
    const { paused } = await api.post("admin/pause", { paused: $("pause").getAttribute("aria-pressed") !== "true" });
    say(paused ? "Paused: nobody gets questions." : "Questions go out again.");
  } catch (error) {
    return failed(error);
  }
  refresh();
});

$("add").addEventListener("submit", async (event) => {
  event.preventDefault();
  const name = $("name").value.trim();
  if (!name) return;
  try {
    const made = await api.post("admin/people", { name });
    $("made-name").textContent = made.name;
    $("link").value = `${location.origin}/#${made.token}`;
    $("made").hidden = false;
    $("name").value = "";
    $("link").focus();
    $("link").select();
  } catch (error) {
    return failed(error);
  }
  refresh();
});

$("copy").addEventListener("click", async () => {
  $("link").select();
  try {
    await navigator.clipboard.writeText($("link").value);
    say("The link is copied.");
  } catch {
    say("Copy it by hand: it is selected."); // browsers give the clipboard to safe pages only
  }
});

for (const button of document.querySelectorAll("[data-export]")) {
  button.addEventListener("click", async () => {
    const what = button.dataset.export === "spans" ? `spans-${$("format").value}` : button.dataset.export;
    button.disabled = true;
    try {
      const reply = await api.fetch(`admin/export/${what}`);
      const name = /filename="([^"]+)"/.exec(reply.headers.get("Content-Disposition") ?? "")?.[1] ?? what;
      const address = URL.createObjectURL(await reply.blob());
      el("a", { href: address, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      say(`${name} is downloaded.`);
    } catch (error) {
      failed(error);
    } finally {
      button.disabled = false;
    }
  });
}

$("answer-link").addEventListener("click", () => ($("answer-link").href = "/")); // this tab has the token already
addEventListener("hashchange", () => location.reload());
if (api.token) {
  refresh();
  setInterval(() => !document.hidden && refresh(), EVERY_MS);
} else failed({ status: 401 });
