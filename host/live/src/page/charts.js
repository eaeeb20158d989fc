// Curves over rounds.

const HEIGHT = 190;
// Curves of a whole run take longer to draw than a map: five times a second are enough.
const PAUSE_MS = 200;

export class Charts {
  // A chart for each entry of `shown`: its id, title and curves, which are a name, a colour and a function of a row and the one before.
  constructor(container, shown) {
    this.curves = shown.map(({ curves }) => curves);
    this.clear();
    this.round = null;
    container.replaceChildren();
    this.plots = shown.map(({ id, title, isLogarithmic = false, curves }) => {
      const heading = container.appendChild(document.createElement("h2"));
      heading.textContent = title;
      const element = container.appendChild(document.createElement("div"));
      Object.assign(element, { id, className: "chart" });
      return this.chart(element, isLogarithmic, curves);
    });
  }

  chart(element, isLogarithmic, curves) {
    const css = (name) => () => getComputedStyle(element).getPropertyValue(`--${name}`).trim();
    const axis = { stroke: css("faint"), grid: { stroke: css("line"), width: 1 }, ticks: { stroke: css("line"), width: 1 }, font: "12px system-ui, sans-serif" };
    const powersOfTen = (_, values) => values.map((value) => (value > 0 && Math.abs(Math.log10(value) - Math.round(Math.log10(value))) < 1e-9 ? value : null));
    const lines = isLogarithmic ? { filter: powersOfTen } : {};
    const number = (value) => (value === null || value === undefined ? "–" : short(value));
    const options = {
      width: Math.max(element.clientWidth, 200),
      height: HEIGHT,
      cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false }, y: isLogarithmic ? { distr: 3, log: 10 } : {} },
      axes: [
        { ...axis, values: (_, values) => values.map((value) => (Number.isInteger(value) ? value.toLocaleString("en") : "")) },
        { ...axis, grid: { ...axis.grid, ...lines }, ticks: { ...axis.ticks, ...lines }, size: 56, values: (_, values) => values.map((value) => (value === null ? "" : short(value))) },
      ],
      series: [
        { label: "round", value: (_, value) => (value === null ? "–" : value.toLocaleString("en")) },
        ...curves.map(([label, colour]) => ({ label, stroke: css(colour), width: 1.6, points: { show: false }, value: (_, value) => number(value) })),
      ],
      hooks: { draw: [(plot) => this.markRound(plot, css("text")())] },
    };
    const plot = new uPlot(options, [[], ...curves.map(() => [])], element);
    new ResizeObserver(() => plot.setSize({ width: Math.max(element.clientWidth, 200), height: HEIGHT })).observe(element);
    return plot;
  }

  // A line at the round that the map shows.
  markRound(plot, colour) {
    if (this.round === null) return;
    const x = Math.round(plot.valToPos(this.round, "x", true)) + 0.5;
    const { left, top, width, height } = plot.bbox;
    if (x < left || x > left + width) return;
    plot.ctx.save();
    plot.ctx.strokeStyle = colour;
    plot.ctx.globalAlpha = 0.5;
    plot.ctx.setLineDash([4, 4]);
    plot.ctx.beginPath();
    plot.ctx.moveTo(x, top);
    plot.ctx.lineTo(x, top + height);
    plot.ctx.stroke();
    plot.ctx.restore();
  }

  setRound(round) {
    if (this.round === round) return;
    this.round = round;
    this.redraw();
  }

  clear() {
    this.rows = [];
    this.rounds = [];
    this.columns = this.curves.map((curves) => curves.map(() => []));
  }

  add(rows, isReset) {
    if (isReset) this.clear();
    for (const row of rows) {
      const before = this.rows.at(-1);
      this.rows.push(row);
      this.rounds.push(row.round);
      this.curves.forEach((curves, chart) => curves.forEach(([, , value], at) => this.columns[chart][at].push(value(row, before))));
    }
    this.isChanged = true;
    this.redraw();
  }

  // Soon, and all at once.
  redraw() {
    if (this.isDue) return;
    this.isDue = true;
    setTimeout(() => {
      this.isDue = false;
      if (this.isChanged) {
        this.isChanged = false;
        this.plots.forEach((plot, at) => plot.setData([this.rounds, ...this.columns[at]]));
      } else {
        this.plots.forEach((plot) => plot.redraw(false, true));
      }
    }, PAUSE_MS);
  }

  // The last row up to a round.
  rowAt(round) {
    let low = 0, high = this.rows.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.rows[middle].round <= round) low = middle + 1;
      else high = middle;
    }
    return low > 0 ? low - 1 : null;
  }
}

export function short(value) {
  if (value === null || value === undefined) return "–";
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(Number.isInteger(Math.log10(size)) ? 0 : 2);
  return Number(value.toPrecision(4)).toString();
}
