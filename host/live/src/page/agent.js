// One agent: what it does, and its links.

import { short } from "./charts.js";

const CONDITIONS = { r: "running", s: "silent: its radio is off", f: "frozen", d: "down" };
const MOST_LINKS = 300;

export class AgentPanel {
  constructor(elements) {
    Object.assign(this, elements);
    this.agent = null;
  }

  choose(agent) {
    this.agent = agent;
    this.show(this.view);
  }

  show(view) {
    this.view = view;
    const isKnown = this.agent !== null && view && this.agent < view.agents.condition.length;
    this.hint.hidden = isKnown;
    this.table.hidden = !isKnown;
    this.facts.hidden = !isKnown;
    this.title.textContent = isKnown ? `Agent ${this.agent}` : "Agent";
    if (!isKnown) return;
    const { agents } = view;
    const own = (column) => agents[column]?.[this.agent];
    const links = [];
    for (let at = 0; at + 4 < view.links.length; at += 5) {
      const [sender, receiver, isUp, loss, age] = view.links.slice(at, at + 5);
      if (sender === this.agent || receiver === this.agent) links.push({ sender, receiver, isUp, loss, age });
    }
    const count = (test) => links.filter((link) => link.isUp && test(link)).length;
    const place = own("x") === undefined || own("x") === null ? null : `${own("x")}, ${own("y")}, ${own("z")} m`;
    const behind = view.round - own("round");
    const digest = own("digest");
    this.setFacts([
      ["state", CONDITIONS[agents.condition[this.agent]] ?? "unknown"],
      ["round", behind ? `${own("round")} (${Math.abs(behind)} ${behind > 0 ? "behind" : "ahead"})` : `${own("round")}`],
      ["epoch", own("epoch") === 0 ? "joining" : own("epoch")],
      ["boots", own("boot")],
      ["from the mean", short(own("deviation"))],
      ["hears now", count((link) => link.receiver === this.agent)],
      ["heard by now", count((link) => link.sender === this.agent)],
      ["place", place],
      ["board", this.boardText(own)],
      ["stack", own("stack_bytes") ? `${own("stack_bytes").toLocaleString("en")} bytes` : null],
      ["answers", typeof own("answer_ms") === "number" ? `within ${short(own("answer_ms"))} ms` : null],
      ["refused", own("refused") ? `${own("refused").toLocaleString("en")} frames` : null],
      ["slot error", typeof own("slot_error_us") === "number" ? `${own("slot_error_us").toLocaleString("en")} µs` : null],
      ["radio", this.radioText(own)],
      ["digest", digest === undefined || digest === null ? null : digest.toString(16).padStart(8, "0")],
    ]);
    links.sort((a, b) => (a.receiver === this.agent ? 0 : 1) - (b.receiver === this.agent ? 0 : 1) || a.sender - b.sender || a.receiver - b.receiver);
    const body = this.table.tBodies[0];
    const rows = links.slice(0, MOST_LINKS).map(({ sender, receiver, isUp, loss, age }) => {
      const row = document.createElement("tr");
      const cells = [
        receiver === this.agent ? `from ${sender}` : `to ${receiver}`,
        isUp ? "up" : "–",
        loss < 0 ? "–" : `${loss} %`,
        age < 0 ? "–" : age <= 1 ? "now" : `${age} rounds ago`,
      ];
      for (const text of cells) row.appendChild(document.createElement("td")).textContent = text;
      return row;
    });
    body.replaceChildren(...rows);
  }

  // Whether the board is what its shadow is.
  boardText(own) {
    const [checks, mismatches] = [own("checks"), own("mismatches")];
    if (checks === undefined || checks === null) return null;
    return mismatches ? `${mismatches.toLocaleString("en")} of ${checks.toLocaleString("en")} digests differ` : `all ${checks.toLocaleString("en")} digests equal`;
  }

  // What its radio tells, where it has one.
  radioText(own) {
    if (typeof own("busy") !== "number") return null;
    const parts = [
      [own("rssi_dbm"), "dBm"],
      [own("lqi"), "of 255"],
      [own("damaged"), "damaged"],
      [own("busy"), "times busy"],
      [own("radio_restarts"), "restarts"],
    ];
    return parts.filter(([value]) => typeof value === "number").map((part) => part.join(" ")).join(", ");
  }

  setFacts(facts) {
    const nodes = [];
    for (const [name, value] of facts) {
      if (value === null || value === undefined) continue;
      const term = document.createElement("dt");
      term.textContent = name;
      const text = document.createElement("dd");
      text.textContent = value;
      text.dataset.fact = name;
      nodes.push(term, text);
    }
    this.facts.replaceChildren(...nodes);
  }
}
