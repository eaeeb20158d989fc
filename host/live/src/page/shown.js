// What the page shows of a run, by the command that makes it.

import { short } from "./charts.js";

const lostOf = (frames) => {
  let lost = 0;
  for (const name in frames) if (name.startsWith("lost")) lost += frames[name];
  return lost;
};

// Of a count so far, how much a round adds.
const perRound = (count) => (row, before) => {
  const rounds = before ? row.round - before.round : 0;
  return rounds > 0 ? (count(row.frames ?? {}) - count(before.frames ?? {})) / rounds : null;
};
// A logarithm has no zero.
const positive = (name) => (row) => (row[name] > 0 ? row[name] : null);
const value = (name) => (row) => row[name] ?? null;

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
const bytes = (count) => {
  if (count === null || count === undefined) return "–";
  const unit = Math.min(Math.floor(Math.log2(Math.max(count, 1)) / 10), UNITS.length - 1);
  return `${Number((count / 1024 ** unit).toPrecision(3))} ${UNITS[unit]}`;
};
const percent = (share) => (share === null || share === undefined ? "–" : `${(100 * share).toFixed(2)} %`);

const CONSENSUS = ["consensus", "consensus error", (row) => short(row.consensus_error)];
const RATE = ["rate", "rounds/s", (_, rate) => (rate === null ? "–" : Number(rate.toPrecision(3)).toLocaleString("en"))];

// A run whose error measures `kind`, which is its name in the rows.
const runOf = (kind) => ({
  numbers: [
    ["error", kind.replaceAll("_", " "), (row) => short(row[kind])],
    CONSENSUS,
    RATE,
    ["lost", "copies lost", ({ frames = {} }) => (frames.copies ? `${((100 * lostOf(frames)) / frames.copies).toFixed(1)} %` : "–")],
  ],
  charts: [
    {
      id: "error-chart", title: "Error", isLogarithmic: true,
      curves: [[kind.replaceAll("_", " "), "curve-a", positive(kind)], ["consensus error", "curve-b", positive("consensus_error")], ["tracking defect", "curve-c", positive("tracking_defect")]],
    },
    {
      id: "frames-chart", title: "Copies of frames per round",
      curves: [
        ["taken", "curve-a", perRound((frames) => frames["taken"] ?? frames["sent"] ?? 0)],
        ["lost", "curve-d", perRound(lostOf)],
        ["nothing new", "curve-c", perRound((frames) => frames["useless"] ?? 0)],
        ["refused", "curve-b", perRound((frames) => frames["refused"] ?? 0)],
      ],
    },
  ],
});

export const SHOWN = {
  distance_to_solution: runOf("distance_to_solution"),
  gradient_norm: runOf("gradient_norm"),
  train: {
    numbers: [
      ["accuracy", "test accuracy", (row) => percent(row.test_accuracy)],
      ["loss", "test loss", (row) => short(row.test_loss)],
      ["auc", "AUC", (row) => short(row.cleaning_auc)],
      CONSENSUS,
      RATE,
      ["round-time", "time of a round", (row) => (row.round_seconds ? `${short(1000 * row.round_seconds)} ms` : "–")],
      ["memory", "memory", (row) => bytes(row.memory_bytes)],
      ["sent", "sent", (row) => bytes(row.sent_bytes)],
    ],
    charts: [
      {
        id: "accuracy-chart", title: "Test accuracy, and how wrong labels are found",
        curves: [["accuracy", "curve-a", value("test_accuracy")], ["AUC", "curve-b", value("cleaning_auc")], ["precision", "curve-c", value("cleaning_precision")], ["recall", "curve-d", value("cleaning_recall")]],
      },
      {
        id: "loss-chart", title: "Test loss and consensus error", isLogarithmic: true,
        curves: [["loss", "curve-a", positive("test_loss")], ["consensus error", "curve-b", positive("consensus_error")]],
      },
      {
        id: "time-chart", title: "Time of a round in ms",
        curves: [["ms", "curve-a", ({ round_seconds: seconds }) => (seconds ? 1000 * seconds : null)]],
      },
    ],
  },
};
