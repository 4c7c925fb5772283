// Small plots: how the model does over answers or minutes, and how long somebody takes.
import { el, svg } from "./dom.js";

const WIDTH = 320;
const HEIGHT = 130;
const ROOM = { left: 38, right: 12, top: 12, bottom: 24 };

const number = (value) => Math.abs(value) < 10 ? value.toFixed(3) : String(Math.round(value));
const count = (value) => value.toLocaleString("en");

const MINUTES = "minutes that people spent";

/** An SVG of status.curve, [answers, value, minutes], or a sentence where there is nothing to draw yet. `named`: with its last
 * value in words. `timed`: against minutes, where the answers say how many seconds they took. */
export function plot(curve, metric, named = true, timed = false) {
  const known = curve.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y));
  const minutes = timed && known.at(-1)?.[2] > 0;
  const points = minutes ? known.map(([, y, spent]) => [spent, y]) : known;
  const unit = minutes ? MINUTES : "answers";
  if (points.length < 2) return el("p", { class: "small" }, "A curve comes with the first hundreds of answers.");
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const [x0, x1] = [Math.min(...xs), Math.max(...xs)];
  let [y0, y1] = [Math.min(...ys), Math.max(...ys)];
  if (y1 - y0 < 0.02) [y0, y1] = [y0 - 0.01, y1 + 0.01];
  const x = (value) => ROOM.left + ((value - x0) / (x1 - x0 || 1)) * (WIDTH - ROOM.left - ROOM.right);
  const y = (value) => HEIGHT - ROOM.bottom - ((value - y0) / (y1 - y0)) * (HEIGHT - ROOM.top - ROOM.bottom);
  const [lastX, lastY] = points.at(-1);
  const counted = (value) => (minutes && value < 10 ? value.toFixed(1) : count(Math.round(value)));
  const label = `${metric} went from ${number(ys[0])} to ${number(lastY)} within ${counted(lastX)} ${unit}`;
  const text = (at, into, words, anchor) => svg("text", { x: at, y: into, "text-anchor": anchor }, words);
  const now = (words) => svg("text", { class: "now", x: WIDTH - ROOM.right, y: y(lastY) + (lastY > (y0 + y1) / 2 ? 18 : -9), "text-anchor": "end" }, words);
  return svg(
    "svg",
    { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label },
    svg("path", { class: "grid", d: `M${ROOM.left} ${y(y0)}H${WIDTH - ROOM.right}M${ROOM.left} ${y(y1)}H${WIDTH - ROOM.right}` }),
    svg("polyline", { class: "curve", points: points.map(([a, b]) => `${x(a).toFixed(1)},${y(b).toFixed(1)}`).join(" ") }),
    svg("circle", { class: "last", cx: x(lastX), cy: y(lastY), r: 3.5 }),
    text(ROOM.left - 5, y(y1) + 4, number(y1).slice(0, 5), "end"),
    text(ROOM.left - 5, y(y0) + 4, number(y0).slice(0, 5), "end"),
    text(ROOM.left, HEIGHT - 7, counted(x0), "start"),
    text(WIDTH - ROOM.right, HEIGHT - 7, `${counted(x1)} ${unit}`, "end"),
    ...(named ? [now(`${metric} ${number(lastY)}`)] : []),
  );
}

const SIDE = 220;

/** An SVG of [predicted, measured] seconds; on the dashed line they are the same. */
export function scatter(points, name) {
  const most = Math.max(1, ...points.flat()) * 1.05;
  const x = (value) => ROOM.left + (value / most) * (SIDE - ROOM.left - ROOM.right);
  const y = (value) => SIDE - ROOM.bottom - (value / most) * (SIDE - ROOM.top - ROOM.bottom);
  const off = points.map(([predicted, measured]) => Math.abs(measured - predicted)).sort((a, b) => a - b)[Math.floor(points.length / 2)];
  const label = `${name}: predicted against measured seconds of ${things(points.length, "review")}; half are less than ${off.toFixed(1)} s apart`;
  const text = (at, into, words, anchor, turn = {}) => svg("text", { x: at, y: into, "text-anchor": anchor, ...turn }, words);
  const mark = most < 10 ? most.toFixed(1) : String(Math.floor(most));
  return svg(
    "svg",
    { viewBox: `0 0 ${SIDE} ${SIDE}`, role: "img", "aria-label": label },
    svg("path", { class: "grid", fill: "none", d: `M${ROOM.left} ${ROOM.top}V${y(0)}H${SIDE - ROOM.right}` }),
    svg("path", { class: "same", d: `M${x(0)} ${y(0)}L${x(most)} ${y(most)}` }),
    ...points.map(([predicted, measured]) => svg("circle", { class: "dot", cx: x(predicted).toFixed(1), cy: y(measured).toFixed(1), r: 3 })),
    text(ROOM.left - 5, y(most) + 8, mark, "end"),
    text(ROOM.left - 5, y(0), "0", "end"),
    text(ROOM.left, SIDE - 7, "0", "start"),
    text((ROOM.left + SIDE - ROOM.right) / 2, SIDE - 7, "predicted, s", "middle"),
    text(SIDE - ROOM.right, SIDE - 7, mark, "end"),
    text(0, 0, "measured, s", "middle", { transform: `translate(${ROOM.left - 22} ${(y(0) + ROOM.top) / 2}) rotate(-90)` }),
  );
}

/** How long a review takes somebody: what was fitted to the answers, in words. */
export function secondsLine({ fit: [each, word, marked, correction], n }) {
  const s = (value) => value.toFixed(2).replace(/\.?0+$/, "") + " s";
  return `${s(each)}, ${s(word)} a word, ${s(marked)} a word asked about, ${s(correction)} a correction: fitted to ${things(n, "review")}`;
}

/** How good the model is, in one number: the curve's last. */
export function modelLine(curve, metric) {
  const last = curve.filter(([x, y]) => Number.isFinite(x) && Number.isFinite(y)).at(-1);
  return last ? `${metric} ${number(last[1])} after ${count(last[0])} answers.` : "";
}

// What is not all is never shown as 100.0%, nor what is something as 0.0%.
const percent = (value) => {
  if (value > 0.999 && value < 1) return "99.9%";
  if (value > 0 && value < 0.001) return "0.1%";
  return (100 * value).toFixed(1) + "%";
};
const within = (of, show) =>
  Number.isFinite(of.low) && Number.isFinite(of.high) ? ` (95%: ${show(of.low)} to ${show(of.high)})` : "";
const things = (n, what) => `${count(n)} ${what}${n === 1 ? "" : "s"}`;

/** What an audit says, in a line: its own text, or what was counted, and then what follows from it. */
export function auditLine(audit) {
  if (!audit) return "";
  if (typeof audit.text === "string") return audit.text;
  const spans = audit.spans ? spanLine(audit.spans) + " " : "";
  if (!audit.asked) return spans || "Audit: none answered yet.";
  const usual = audit.majority;
  const baseline = usual ? `; saying "${usual.name ?? usual.label}" everywhere would have agreed in ${count(usual.agreed)}` : "";
  const shown = `Right in ${percent(audit.accuracy)}${within(audit, percent)}`;
  return `${spans}Audit: ${count(audit.agreed)} of ${count(audit.asked)} agreed${baseline}. ${shown}, ${errorsLine(audit)}.`;
}

/** Whether people's own errors are in the figure, and from what that is known. */
function errorsLine(audit) {
  const { asked = 0, same = 0, enough = 0 } = audit.twice ?? {};
  if (audit.corrected) return `corrected for people's errors: two people said the same in ${count(same)} of ${count(asked)}`;
  if (!asked) return "as counted, not corrected for people's errors: none were asked of two people";
  return `as counted, not corrected for people's errors: only ${count(asked)} were asked of two people, and it takes ${count(enough)}`;
}

function spanLine(spans) {
  const said = ["precision", "recall", "F1"].map((name) => {
    const of = spans[name.toLowerCase()];
    return `${name} ${Number.isFinite(of.value) ? percent(of.value) : "unknown"}${within(of, percent)}`;
  });
  const counted = `people marked ${things(spans.gold, "span")}, the model ${count(spans.predicted)}, and ${count(spans.correct)} are the same`;
  return `In ${things(spans.sentences, "whole sentence")} ${counted}: ${said.join(", ")}.`;
}

export function forecastLine(forecast, metric) {
  if (!forecast) return "";
  if (typeof forecast.text === "string") return forecast.text;
  if (!Number.isFinite(forecast.value)) return "";
  const noise = forecast.within_noise ? "; that is within noise" : "";
  return `${count(forecast.answers)} more answers: ${metric} about ${number(forecast.value)}${within(forecast, number)}${noise}.`;
}
