// The swarm on a canvas: agents where they fly, or on a circle, and their directed links.

import { cleared, coloursOf } from "./canvas.js";

const LOSS_COLOURS = 5;
const FEW_LINKS = 400;
const MOST_ON_CIRCLE = 120;
const FADE = 0.18;
const DRIFT = 0.3;
const PICTURES_TIMED = 45;

export class SwarmMap {
  constructor(canvas, onChoose) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.onChoose = onChoose;
    this.chosen = null;
    this.reset(null);
    new ResizeObserver(() => this.draw()).observe(canvas);
    canvas.addEventListener("click", (event) => this.click(event));
    canvas.addEventListener("keydown", (event) => this.key(event));
  }

  reset(area) {
    this.area = area;
    this.view = null;
    this.places = [];
    this.links = new Map();
    this.frames = 0;
    this.times = [];
    this.spent = 0;
    this.canvas.dataset.links = "0";
    this.draw();
  }

  show(view) {
    const began = performance.now();
    const count = view.agents.condition.length;
    const isNew = this.places.length !== count;
    this.view = view;
    this.targets = Array.from({ length: count }, (_, agent) => this.target(agent, count));
    if (isNew) this.places = this.targets.map((target) => ({ ...target }));
    for (const link of this.links.values()) link.target = 0;
    let up = 0;
    for (let at = 0; at + 4 < view.links.length; at += 5) {
      const [sender, receiver, isUp, loss] = view.links.slice(at, at + 4);
      if (!isUp || sender >= count || receiver >= count) continue;
      up += 1;
      const key = sender * 65536 + receiver;
      const known = this.links.get(key);
      if (known) {
        known.target = 1;
        known.loss = loss;
      } else {
        this.links.set(key, { sender, receiver, loss, alpha: 0, target: 1 });
      }
    }
    // For tests and screen readers: what the picture holds.
    Object.assign(this.canvas.dataset, { links: up, agents: count, round: view.round });
    this.spent += performance.now() - began;
    this.draw();
  }

  // Where an agent is drawn, from 0 to 1.
  target(agent, count) {
    const { x, y } = this.view.agents;
    if (x && y && this.area) {
      return { x: (x[agent] ?? 0) / this.area[0], y: 1 - (y[agent] ?? 0) / this.area[1] };
    }
    if (count > MOST_ON_CIRCLE) {
      // As the seeds of a sunflower: everybody has room.
      const angle = agent * Math.PI * (3 - Math.sqrt(5)), radius = 0.5 * Math.sqrt((agent + 0.5) / count);
      return { x: 0.5 + radius * Math.cos(angle), y: 0.5 + radius * Math.sin(angle) };
    }
    const angle = (2 * Math.PI * agent) / count - Math.PI / 2;
    return { x: 0.5 + 0.5 * Math.cos(angle), y: 0.5 + 0.5 * Math.sin(angle) };
  }

  // One picture at a time, and only while something moves.
  draw() {
    if (this.isDue) return;
    this.isDue = true;
    requestAnimationFrame(() => {
      const began = performance.now();
      this.isDue = false;
      if (this.advance()) this.draw();
      this.paint();
      this.frames += 1;
      this.canvas.dataset.frames = this.frames;
      this.time(performance.now() - began);
    });
  }

  // What a picture takes, in the middle of the last ones, for who asks whether the page keeps up.
  time(painted) {
    this.times.push(painted + this.spent);
    this.spent = 0;
    if (this.times.length < PICTURES_TIMED) return;
    const middle = this.times.sort((a, b) => a - b)[PICTURES_TIMED >> 1];
    this.canvas.dataset.pictureMs = middle.toFixed(2);
    this.times = [];
  }

  // Moves everything a little towards what was shown last; whether more is to come.
  advance() {
    if (!this.view) return false;
    let moves = false;
    this.places.forEach((place, agent) => {
      for (const axis of ["x", "y"]) {
        const way = this.targets[agent][axis] - place[axis];
        place[axis] += Math.abs(way) < 1e-4 ? way : DRIFT * way;
        moves ||= Math.abs(way) >= 1e-4;
      }
    });
    for (const [key, link] of this.links) {
      if (link.alpha === link.target) {
        if (link.target === 0) this.links.delete(key);
        continue;
      }
      moves = true;
      link.alpha = Math.min(1, Math.max(0, link.alpha + Math.sign(link.target - link.alpha) * FADE));
    }
    return moves;
  }

  paint() {
    const { canvas, context } = this;
    const { width, height } = cleared(canvas, context);
    if (!this.view) return;
    this.colour = coloursOf(canvas);
    this.radius = Math.max(2.5, Math.min(13, 110 / Math.sqrt(this.places.length)));
    const margin = this.radius + 10;
    const side = Math.min(width, height) - 2 * margin;
    const left = (width - side) / 2, top = (height - side) / 2;
    this.points = this.places.map(({ x, y }) => ({ x: left + side * x, y: top + side * y }));
    if (this.area) {
      context.strokeStyle = this.colour("line");
      context.strokeRect(left - 0.5, top - 0.5, side + 1, side + 1);
    }
    this.paintLinks();
    this.paintAgents();
  }

  paintLinks() {
    const { context } = this;
    const isFew = this.links.size <= FEW_LINKS;
    const buckets = new Map();
    for (const link of this.links.values()) {
      const isOfChosen = link.sender === this.chosen || link.receiver === this.chosen;
      const shade = link.loss < 0 ? "none" : Math.min(LOSS_COLOURS - 1, Math.floor((link.loss * LOSS_COLOURS) / 100));
      const key = `${shade}|${Math.ceil(link.alpha * 4)}|${isOfChosen ? 1 : 0}`;
      if (!buckets.has(key)) buckets.set(key, []);
      buckets.get(key).push(link);
    }
    const strength = Math.max(0.4, Math.min(0.75, 60 / (this.links.size + 1)));
    for (const [key, links] of [...buckets].sort()) {
      const [shade, alpha, isOfChosen] = key.split("|");
      const opacity = (Number(alpha) / 4) * (this.chosen === null ? strength : isOfChosen === "1" ? 1 : strength / 3);
      context.strokeStyle = context.fillStyle = this.colour(`link-${shade}`);
      context.lineWidth = isOfChosen === "1" ? 2 : isFew ? 1.3 : 0.8;
      if (isFew) {
        context.globalAlpha = opacity;
        for (const link of links) this.paintArrow(link);
      } else {
        // The half at the receiver is darker: that is the direction.
        for (const [from, share] of [[0, 0.35], [0.5, 0.65]]) {
          context.globalAlpha = opacity * share;
          context.beginPath();
          for (const { sender, receiver } of links) {
            const a = this.points[sender], b = this.points[receiver];
            context.moveTo(a.x + from * (b.x - a.x), a.y + from * (b.y - a.y));
            context.lineTo(b.x, b.y);
          }
          context.stroke();
        }
      }
    }
    context.globalAlpha = 1;
  }

  // A bent arrow, so that both directions between two agents can be told apart.
  paintArrow({ sender, receiver }) {
    const { context } = this;
    const a = this.points[sender], b = this.points[receiver];
    const dx = b.x - a.x, dy = b.y - a.y;
    const length = Math.hypot(dx, dy);
    if (length < 2 * this.radius) return;
    const middle = { x: (a.x + b.x) / 2 - 0.1 * dy, y: (a.y + b.y) / 2 + 0.1 * dx };
    const towards = Math.hypot(b.x - middle.x, b.y - middle.y);
    const ux = (b.x - middle.x) / towards, uy = (b.y - middle.y) / towards;
    const tip = { x: b.x - ux * (this.radius + 2), y: b.y - uy * (this.radius + 2) };
    const head = 6;
    context.beginPath();
    context.moveTo(a.x, a.y);
    context.quadraticCurveTo(middle.x, middle.y, tip.x - ux * head, tip.y - uy * head);
    context.stroke();
    context.beginPath();
    context.moveTo(tip.x, tip.y);
    context.lineTo(tip.x - ux * head - uy * head * 0.5, tip.y - uy * head + ux * head * 0.5);
    context.lineTo(tip.x - ux * head + uy * head * 0.5, tip.y - uy * head - ux * head * 0.5);
    context.fill();
  }

  paintAgents() {
    const { context, radius } = this;
    const { condition, deviation } = this.view.agents;
    const near = rgb(this.colour("near")), far = rgb(this.colour("far"));
    context.font = `600 ${Math.round(radius)}px system-ui, sans-serif`;
    context.textAlign = "center";
    context.textBaseline = "middle";
    this.points.forEach((point, agent) => {
      const state = condition[agent];
      const fill = mixture(near, far, farness(deviation?.[agent]));
      context.lineWidth = 2;
      context.beginPath();
      if (state === "d") {
        const arm = radius * 0.75;
        context.moveTo(point.x - arm, point.y - arm);
        context.lineTo(point.x + arm, point.y + arm);
        context.moveTo(point.x + arm, point.y - arm);
        context.lineTo(point.x - arm, point.y + arm);
        context.strokeStyle = this.colour("error");
        context.stroke();
      } else {
        context.arc(point.x, point.y, radius, 0, 2 * Math.PI);
        context.fillStyle = state === "r" ? fill : this.colour("panel");
        context.fill();
        context.setLineDash(state === "f" ? [2, 3] : []);
        context.strokeStyle = state === "r" ? this.colour("node-edge") : this.colour("warn");
        if (state !== "r" || radius > 4) context.stroke();
        context.setLineDash([]);
      }
      if (agent === this.chosen) {
        context.beginPath();
        context.arc(point.x, point.y, radius + 4, 0, 2 * Math.PI);
        context.strokeStyle = this.colour("accent");
        context.lineWidth = 3;
        context.stroke();
      }
      if (radius >= 9) {
        context.fillStyle = state === "r" ? (isLight(near, far, farness(deviation?.[agent])) ? "#1c2430" : "#ffffff") : this.colour("text");
        if (state === "d") context.fillText(agent, point.x, point.y + radius + 8);
        else context.fillText(agent, point.x, point.y + 0.5);
      }
    });
  }

  click(event) {
    if (!this.points) return;
    const box = this.canvas.getBoundingClientRect();
    const x = event.clientX - box.left, y = event.clientY - box.top;
    let nearest = null, best = Math.max(this.radius + 6, 14);
    this.points.forEach((point, agent) => {
      const distance = Math.hypot(point.x - x, point.y - y);
      if (distance < best) [nearest, best] = [agent, distance];
    });
    this.choose(nearest);
  }

  key(event) {
    const count = this.places.length;
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") this.choose(null);
    else if (step && count) this.choose(((this.chosen ?? (step > 0 ? -1 : 0)) + step + count) % count);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  choose(agent) {
    this.chosen = agent;
    this.onChoose(agent);
    this.draw();
  }
}

// From 0 (at the mean) to 1 (as far away as the mean is large), by powers of ten.
function farness(deviation) {
  if (deviation === null || deviation === undefined) return 0;
  return Math.min(1, Math.max(0, 1 + Math.log10(Math.max(deviation, 1e-12)) / 5));
}

function rgb(colour) {
  return [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
}

function mixed(near, far, share) {
  return near.map((value, at) => Math.round(value + share * (far[at] - value)));
}

function mixture(near, far, share) {
  return `rgb(${mixed(near, far, share).join(",")})`;
}

function isLight(near, far, share) {
  const [red, green, blue] = mixed(near, far, share);
  return 0.3 * red + 0.59 * green + 0.11 * blue > 140;
}
