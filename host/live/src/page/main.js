// Ties the parts of the page together.

import { AgentPanel } from "./agent.js";
import { Charts } from "./charts.js";
import { Connection } from "./connection.js";
import { LogPanel } from "./log.js";
import { SwarmMap } from "./map.js";
import { SHOWN } from "./shown.js";
import { Timeline } from "./timeline.js";
import { WeightBars } from "./weights.js";

const byId = (id) => document.getElementById(id);

const ENDS = {
  "converged": "converged",
  "small-gradient": "stopped: gradient small",
  "max-rounds": "all rounds done",
  "interrupted": "interrupted",
  "diverged": "diverged",
  "books-broken": "the books broke",
  "boards-failed": "the boards failed",
};

// Light or dark: as the system has it, until the button is pressed.
const dark = matchMedia("(prefers-color-scheme: dark)");
const setTheme = (theme) => {
  document.documentElement.dataset.theme = theme;
  charts?.redraw();
  map?.draw();
};
let charts, map;
setTheme(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => setTheme(dark.matches ? "dark" : "light"));
byId("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));

let shown;
const show = (kind) => {
  if (shown === kind) return;
  shown = kind;
  charts = new Charts(byId("charts"), kind.charts);
  for (const number of document.querySelectorAll("#numbers .shown")) number.remove();
  const agents = byId("agents").parentElement;
  for (const [id, label] of kind.numbers) {
    const [number, name, output] = ["div", "span", "output"].map((tag) => document.createElement(tag));
    number.className = "shown";
    name.textContent = label;
    Object.assign(output, { id, textContent: "–" });
    number.append(name, output);
    agents.before(number);
  }
};
show(SHOWN.distance_to_solution);
const weights = new WeightBars({ panel: byId("weights-panel"), bars: byId("weights") });
const agentPanel = new AgentPanel({
  title: byId("agent-title"), hint: byId("agent-hint"), facts: byId("agent-facts"), table: byId("agent-links"),
});
const log = new LogPanel({ list: byId("log"), filter: byId("log-filter"), level: byId("log-level") });
let connection;
map = new SwarmMap(byId("map"), (agent) => {
  agentPanel.choose(agent);
  connection.send({ agent: agent ?? -1 });
});
const timeline = new Timeline({
  slider: byId("slider"), play: byId("play"), follow: byId("follow"), speed: byId("speed"),
  send: (wish) => connection.send(wish),
});

let run = null, end = null, view = null;

const setStatus = (state, text) => {
  byId("status").dataset.state = state;
  byId("status").textContent = text;
};

const paintNumbers = () => {
  const round = view?.round ?? charts.rows.at(-1)?.round;
  if (round === undefined) return;
  byId("round").textContent = round.toLocaleString("en");
  charts.setRound(round);
  const at = charts.rowAt(round);
  if (at === null) return;
  const row = charts.rows[at];
  // Over at least half a second, where there is as much.
  let before = at;
  while (before > 0 && row.seconds - charts.rows[before].seconds < 0.5) before -= 1;
  const seconds = row.seconds - charts.rows[before].seconds;
  const rate = seconds > 0 ? (row.round - charts.rows[before].round) / seconds : null;
  for (const [id, , text] of shown.numbers) byId(id).textContent = text(row, rate);
  weights.show(row.weights);
};

const paintStatus = () => {
  if (end) setStatus("ended", ENDS[end.summary?.stopped_because] ?? "ended");
  else if (run) setStatus("live", "running");
};

const receive = {
  run(message) {
    run = message;
    end = view = null;
    show(SHOWN[message.error_kind ?? message.command] ?? SHOWN.distance_to_solution);
    map.reset(message.area_m);
    timeline.reset();
    log.add([], true);
    charts.add([], true);
    byId("description").textContent = message.description;
    const errorTitle = byId("error-chart")?.previousElementSibling;
    if (errorTitle) errorTitle.textContent = message.error_label;
    byId("agents").textContent = message.agents.toLocaleString("en");
    document.title = `${message.problem} · fabswarm`;
    if (map.chosen !== null) connection.send({ agent: map.chosen });
    paintStatus();
  },
  mode({ plays }) {
    if (plays) timeline.startPlaying();
  },
  rows({ entries, is_reset }) {
    charts.add(entries, is_reset);
    paintNumbers();
  },
  lines({ entries, is_reset }) {
    log.add(entries, is_reset);
  },
  timeline(message) {
    timeline.update(message);
  },
  swarm(message) {
    view = message;
    map.show(message);
    agentPanel.show(message);
    const { links_left_out: leftOut } = message;
    byId("left-out").textContent = leftOut ? `${leftOut.toLocaleString("en")} more links are not drawn` : "";
    paintNumbers();
  },
  end(message) {
    end = message;
    paintStatus();
  },
};

connection = new Connection({
  onMessage: (message) => Object.hasOwn(receive, message.type) && receive[message.type](message),
  onState: (state) => {
    if (state === "lost") setStatus("lost", "no connection");
    else paintStatus();
  },
});
