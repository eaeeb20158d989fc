// Curves over rounds. All charts share the round that the map shows, the pointer's round and the enlarged part.

import { cleared, coloursOf } from "./canvas.js";

const LEFT = 56, RIGHT = 10, TOP = 8, BOTTOM = 22;
// A shorter drag is a click.
const LEAST_DRAG = 6;

export class Charts {
  // A chart for each entry of `shown`: its id, title and curves, which are a name, a colour and a function of a row and the one before.
  constructor(container, shown) {
    container.replaceChildren();
    this.round = null;
    this.charts = shown.map((chart) => new Chart(container, chart, this));
    this.clear();
  }

  clear() {
    this.rows = [];
    this.cursor = this.enlarged = null;
    for (const { curves } of this.charts) for (const curve of curves) curve.values = [];
  }

  add(rows, isReset) {
    const { enlarged } = this;
    if (isReset) this.clear();
    // The same rows come again where the server has thinned them.
    if (rows.length) this.enlarged = enlarged;
    for (const row of rows) {
      const before = this.rows.at(-1);
      this.rows.push(row);
      for (const { curves } of this.charts) for (const curve of curves) curve.values.push(curve.value(row, before));
    }
    this.redraw();
  }

  setRound(round) {
    if (this.round === round) return;
    this.round = round;
    this.redraw();
  }

  point(round) {
    this.cursor = round;
    this.redraw();
  }

  enlarge(rounds) {
    this.enlarged = rounds;
    this.redraw();
  }

  // All charts at once, with the next picture of the browser.
  redraw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      this.isDue = false;
      for (const chart of this.charts) chart.paint();
    });
  }

  // First and last round that are drawn.
  range() {
    if (this.enlarged) return this.enlarged;
    const first = this.rows[0]?.round ?? 0;
    return [first, Math.max(this.rows.at(-1)?.round ?? 0, first + 1)];
  }

  // How many rows there are up to a round.
  countUntil(round) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].round <= round) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The last row up to a round.
  rowAt(round) {
    const count = this.countUntil(round);
    return count > 0 ? count - 1 : null;
  }

  // The row that the legends show: the one nearest to the pointer, or else that of the map.
  chosenRow() {
    if (this.cursor === null) return this.round === null ? this.rows.length - 1 : this.rowAt(this.round) ?? -1;
    const after = Math.min(this.countUntil(this.cursor), this.rows.length - 1);
    const isBefore = after > 0 && this.cursor - this.rows[after - 1].round < this.rows[after].round - this.cursor;
    return isBefore ? after - 1 : after;
  }
}

class Chart {
  constructor(container, { id, title, isLogarithmic = false, curves }, charts) {
    this.charts = charts;
    this.scale = isLogarithmic ? Math.log10 : (value) => value;
    this.isLogarithmic = isLogarithmic;
    this.curves = curves.map(([name, colour, value]) => ({ name, colour, value, values: [], isShown: true }));
    const add = (parent, tag, properties) => Object.assign(parent.appendChild(document.createElement(tag)), properties);
    add(container, "h2", { textContent: title });
    const element = add(container, "div", { id, className: "chart" });
    this.canvas = add(element, "canvas", { role: "img", ariaLabel: `${title}, over rounds`, title: "drag to enlarge, double-click to see all rounds" });
    this.context = this.canvas.getContext("2d");
    const legend = add(element, "div", { className: "legend" });
    this.roundText = add(legend, "output", { textContent: "round –" });
    for (const curve of this.curves) {
      const button = add(legend, "button", { type: "button", title: `show or hide ${curve.name}`, ariaPressed: "true" });
      button.style.setProperty("--curve", `var(--${curve.colour})`);
      add(button, "span", { textContent: curve.name });
      curve.output = add(button, "output", { textContent: "–" });
      button.addEventListener("click", () => {
        curve.isShown = !curve.isShown;
        button.ariaPressed = String(curve.isShown);
        this.charts.redraw();
      });
    }
    this.listen();
    new ResizeObserver(() => this.charts.redraw()).observe(this.canvas);
  }

  listen() {
    const { canvas, charts } = this;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      canvas.setPointerCapture(event.pointerId);
      this.dragged = event.offsetX;
    });
    canvas.addEventListener("pointermove", ({ offsetX }) => {
      this.pointer = offsetX;
      charts.point(this.roundAt(offsetX));
    });
    canvas.addEventListener("pointerup", ({ offsetX }) => {
      const { dragged } = this;
      this.dragged = undefined;
      if (dragged !== undefined && Math.abs(offsetX - dragged) >= LEAST_DRAG) {
        const rounds = [dragged, offsetX].map((at) => this.roundAt(at)).sort((a, b) => a - b);
        if (rounds[1] > rounds[0]) charts.enlarge(rounds);
      }
    });
    canvas.addEventListener("pointercancel", () => (this.dragged = undefined));
    canvas.addEventListener("pointerleave", () => charts.point(null));
    canvas.addEventListener("dblclick", () => charts.enlarge(null));
  }

  // The round at a place of the canvas.
  roundAt(offsetX) {
    const [first, last] = this.charts.range();
    const share = (offsetX - LEFT) / (this.canvas.clientWidth - LEFT - RIGHT);
    return first + (last - first) * Math.min(1, Math.max(0, share));
  }

  paint() {
    const { canvas, context, charts } = this;
    const { width, height } = cleared(canvas, context);
    this.colour = coloursOf(canvas);
    const [first, last] = charts.range();
    // One row on either side is drawn too, so that lines go on to the edge.
    const rows = [Math.max(0, charts.countUntil(first) - 1), Math.min(charts.rows.length, charts.countUntil(last) + 1)];
    const { low, high, marks } = this.values(rows);
    const [bottom, top] = [this.scale(low), this.scale(high)];
    this.x = (round) => LEFT + ((width - LEFT - RIGHT) * (round - first)) / (last - first);
    this.y = (value) => height - BOTTOM - ((height - TOP - BOTTOM) * (this.scale(value) - bottom)) / (top - bottom);
    this.paintAxes(width, height, steps(first, last, Math.max(2, width / 90), 1), marks);
    context.save();
    context.beginPath();
    context.rect(LEFT, TOP - 2, width - LEFT - RIGHT, height - TOP - BOTTOM + 4);
    context.clip();
    for (const curve of this.curves) if (curve.isShown) this.paintCurve(curve, rows);
    this.paintRounds(height);
    context.restore();
    Object.assign(canvas.dataset, { left: LEFT, right: width - RIGHT });
  }

  // The range of the values in some rows, with a little room, and where it is marked.
  values([from, to]) {
    let least = Infinity, most = -Infinity;
    for (const { values } of this.curves.filter(({ isShown }) => isShown)) {
      for (let at = from; at < to; at += 1) {
        if (values[at] === null) continue;
        least = Math.min(least, values[at]);
        most = Math.max(most, values[at]);
      }
    }
    if (least > most) [least, most] = [0.1, 1];
    if (this.isLogarithmic) {
      const room = most > least ? (most / least) ** 0.04 : 2;
      const [low, high] = [least / room, most * room];
      return { low, high, marks: powersOfTen(low, high) };
    }
    const room = 0.05 * (most - least || Math.abs(most) || 1);
    // What is never negative has no axis below zero.
    const low = least >= 0 ? Math.max(0, least - room) : least - room;
    return { low, high: most + room, marks: steps(low, most + room, 5) };
  }

  paintAxes(width, height, rounds, marks) {
    const { context } = this;
    context.strokeStyle = this.colour("line");
    context.fillStyle = this.colour("faint");
    context.lineWidth = 1;
    context.font = "12px system-ui, sans-serif";
    context.beginPath();
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const round of rounds) {
      const x = Math.round(this.x(round)) + 0.5;
      context.moveTo(x, TOP);
      context.lineTo(x, height - BOTTOM + 4);
      const text = round.toLocaleString("en"), half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(x, width - half - 1), height - BOTTOM + 7);
    }
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of marks) {
      const y = Math.round(this.y(value)) + 0.5;
      context.moveTo(LEFT - 4, y);
      context.lineTo(width - RIGHT, y);
      context.fillText(short(value).replace("e+", "e").replace(/\.?0+e/, "e"), LEFT - 8, y);
    }
    context.stroke();
  }

  // A line through the last value of every column of pixels, and a band over all that share it. Nothing is drawn where there is no value.
  paintCurve({ values, colour }, [from, to]) {
    const { context, charts: { rows } } = this;
    const line = new Path2D(), band = new Path2D();
    let isOpen = false;
    for (let at = from; at < to; ) {
      if (values[at] === null) {
        isOpen = false;
        at += 1;
        continue;
      }
      const column = Math.round(this.x(rows[at].round));
      let low = values[at], high = low, last = low;
      for (at += 1; at < to && values[at] !== null && Math.round(this.x(rows[at].round)) === column; at += 1) {
        last = values[at];
        low = Math.min(low, last);
        high = Math.max(high, last);
      }
      if (high > low) band.rect(column - 0.5, this.y(high), 1, this.y(low) - this.y(high));
      // A value between two gaps is a dot.
      if (!isOpen) line.moveTo(column, this.y(last));
      line.lineTo(column, this.y(last));
      isOpen = true;
    }
    context.strokeStyle = context.fillStyle = this.colour(colour);
    context.globalAlpha = 0.35;
    context.fill(band);
    context.globalAlpha = 1;
    context.lineWidth = 1.6;
    context.lineJoin = context.lineCap = "round";
    context.stroke(line);
  }

  // The round of the map, the row of the pointer, and what is being dragged over; the legend tells the numbers.
  paintRounds(height) {
    const { context, charts } = this;
    const at = charts.chosenRow(), row = charts.rows[at];
    this.roundText.textContent = `round ${row ? row.round.toLocaleString("en") : "–"}`;
    for (const curve of this.curves) curve.output.textContent = short(curve.values[at]);
    context.fillStyle = context.strokeStyle = this.colour("text");
    if (this.dragged !== undefined) {
      context.globalAlpha = 0.12;
      context.fillRect(this.dragged, TOP, this.pointer - this.dragged, height - TOP - BOTTOM);
    }
    const upright = (round, dashes) => {
      const x = Math.round(this.x(round)) + 0.5;
      context.globalAlpha = 0.5;
      context.lineWidth = 1;
      context.setLineDash(dashes);
      context.beginPath();
      context.moveTo(x, TOP);
      context.lineTo(x, height - BOTTOM);
      context.stroke();
      context.setLineDash([]);
      context.globalAlpha = 1;
    };
    if (charts.round !== null) upright(charts.round, [4, 4]);
    if (charts.cursor === null || !row) return;
    upright(row.round, []);
    for (const { values, colour, isShown } of this.curves) {
      if (!isShown || typeof values[at] !== "number") continue;
      context.fillStyle = this.colour(colour);
      context.beginPath();
      context.arc(this.x(row.round), this.y(values[at]), 3.5, 0, 2 * Math.PI);
      context.fill();
    }
  }
}

// Multiples of 1, 2 or 5 times a power of ten from `low` to `high`: about `count` of them, and none nearer than `least`.
function steps(low, high, count, least = 0) {
  const rough = Math.max((high - low) / count, least);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((factor) => factor * power >= rough * 0.999);
  const first = Math.ceil(low / step);
  return Array.from({ length: Math.max(0, Math.floor(high / step) - first + 1) }, (_, at) => (first + at) * step);
}

// Powers of ten, not too many; other numbers where there are fewer than two.
function powersOfTen(low, high) {
  const [first, last] = [Math.ceil(Math.log10(low)), Math.floor(Math.log10(high))];
  if (last <= first) return steps(low, high, 4);
  const every = Math.ceil((last - first) / 6);
  const powers = Array.from({ length: last - first + 1 }, (_, at) => first + at);
  return powers.filter((power) => power % every === 0).map((power) => Number(`1e${power}`));
}

export function short(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(Number.isInteger(Math.log10(size)) ? 0 : 2);
  return Number(value.toPrecision(4)).toString();
}
