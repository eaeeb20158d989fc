#!/usr/bin/env python3
"""`fabswarm train` beside FAB written in PyTorch from the equations: the same data, graphs and start, so the same answer.

    cleaning.py FABSWARM [--epochs 100] [--seeds 8]        0 seeds: whole batches alone

Hyper-cleaning on the bundled sample of Fashion-MNIST: MLP 784-32-10, 5 agents with unequal shares, 40 % wrong training labels, a new
directed graph in each round. FABSWARM is the command, built with the feature `large`. Needs NumPy and PyTorch (any version, CPU).

Whole batches leave nothing to chance, so the two must agree to rounding: PyTorch computes in double precision, fabswarm in single.
With small batches, each draws its own, and the two are compared as two samples of seeds.
"""
import argparse
import csv
import gzip
import json
import pathlib
import subprocess
import tempfile

import numpy as np
import torch
import torch.nn.functional as F

SAMPLE = pathlib.Path(__file__).parents[2] / "data/src/sample"
AGENTS, WIDTH, CLASSES, PERIOD = 5, 32, 10, 12
CORRUPTION, VALIDATION, REGULARISATION = 0.4, 0.25, 0.002
WHOLE = 1000
STEP = 0.03


def idx(name):
    raw = gzip.decompress((SAMPLE / name).read_bytes())
    sizes = [int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(raw[3])]
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * raw[3]).reshape(sizes)


def experiment(seed, folder):
    """Writes what both read: samples with their agents and wrong labels, and the links of each round."""
    rng = np.random.default_rng(seed)
    images = lambda part: (idx(f"{part}-images-idx3-ubyte.gz") / 255.0).astype(np.float32).reshape(-1, 784)
    true = idx("train-labels-idx1-ubyte.gz").astype(np.int64)
    # Each class leans towards some agents.
    lean = rng.dirichlet(np.full(AGENTS, 1.0), size=CLASSES)
    agent = np.array([rng.choice(AGENTS, p=lean[label]) for label in true])
    validation = rng.random(len(true)) < VALIDATION
    wrong = (rng.random(len(true)) < CORRUPTION) & ~validation
    given = np.where(wrong, (true + rng.integers(1, CLASSES, len(true))) % CLASSES, true)
    data = dict(x_train=images("train"), y_train=given, y_train_true=true, validation=validation.astype(np.int64), agent=agent,
                x_test=images("t10k"), y_test=idx("t10k-labels-idx1-ubyte.gz").astype(np.int64))
    np.savez(folder / "data.npz", **data)
    graphs = []
    for _ in range(PERIOD):
        order = rng.permutation(AGENTS)
        heard = np.eye(AGENTS, dtype=bool) | (rng.random((AGENTS, AGENTS)) < 0.3)
        heard[np.roll(order, -1), order] = True
        graphs.append(heard)
    links = [(k, j, i) for k, heard in enumerate(graphs) for i, j in zip(*np.nonzero(heard)) if i != j]
    (folder / "graphs.csv").write_text("round,sender,receiver\n" + "".join(f"{k},{j},{i}\n" for k, j, i in links))
    return data, graphs


def fabswarm(command, folder, out, seed, epochs, batch, steps, momentum):
    flags = dict(data="data.npz", model="mlp", model_width=WIDTH, agents=AGENTS, topology="recorded", graphs="graphs.csv", epochs=epochs,
                 batch=batch, seed=seed, momentum=momentum, eta_x=steps[0], eta_y=steps[1], eta_z=steps[1], regularisation=REGULARISATION,
                 device="cpu", out=out)
    flags = [word for name, value in flags.items() for word in ("--" + name.replace("_", "-"), str(value))]
    subprocess.run([command, "train", "--quiet", "--algorithm", "fab", "--lambda", "1", *flags], cwd=folder, check=True)
    with open(folder / out / "metrics.csv") as rows, open(folder / out / "weights.csv") as weights:
        metrics = [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(rows)]
        learned = {int(row["sample"]): float(row["weight"]) for row in csv.DictReader(weights)}
    raw = (folder / out / "model.safetensors").read_bytes()
    size = int.from_bytes(raw[:8], "little")
    head, body = json.loads(raw[8 : 8 + size]), raw[8 + size :]
    head.pop("__metadata__", None)
    read = lambda at: np.frombuffer(body[slice(*at["data_offsets"])], "<f4").reshape(at["shape"])
    return metrics, learned, {name: read(at) for name, at in head.items()}


class Referee:
    """FAB, Algorithm 1, on hyper-cleaning: f_i is the loss on validation samples, g_i the weighted loss on training samples."""

    NAMES = ["hidden.weight", "hidden.bias", "head.weight", "head.bias"]

    def __init__(self, data, graphs, start, kind=torch.float64):
        tensor = lambda name: torch.tensor(data[name])
        self.kind = kind
        self.x, self.label = tensor("x_train").to(kind), tensor("y_train")
        self.x_test, self.label_test = tensor("x_test").to(kind), tensor("y_test")
        self.wrong = data["y_train"] != data["y_train_true"]
        lists = lambda keep: [np.nonzero((data["agent"] == i) & keep)[0] for i in range(AGENTS)]
        self.training, self.validation = lists(data["validation"] == 0), lists(data["validation"] == 1)
        heard = [torch.tensor(graph, dtype=kind) for graph in graphs]
        self.A = [graph / graph.sum(1, keepdim=True) for graph in heard]
        self.B = [graph / graph.sum(0, keepdim=True) for graph in heard]
        self.shapes = [start[name].shape for name in self.NAMES]
        self.start = torch.tensor(np.concatenate([start[name].ravel() for name in self.NAMES])).to(kind)

    def losses(self, v, rows):
        at, parts = 0, []
        for shape in self.shapes:
            parts.append(v[at : at + int(np.prod(shape))].reshape(*shape))
            at += int(np.prod(shape))
        hidden = torch.relu(self.x[rows] @ parts[0] + parts[1].reshape(-1))
        return F.cross_entropy(hidden @ parts[2] + parts[3].reshape(-1), self.label[rows], reduction="none")

    def gradient(self, y, z, psi, draw):
        """d of ψ, which samples were drawn, and d of y and z of every agent."""
        by_psi, drawn, by_y, by_z = torch.zeros_like(psi), torch.zeros_like(psi, dtype=torch.bool), [], []
        for i in range(AGENTS):
            clean, noisy = draw(self.validation[i]), draw(self.training[i])
            y_i, z_i = y[i].clone().requires_grad_(), z[i].clone().requires_grad_()
            weight, ly, lz = torch.sigmoid(psi[noisy]), self.losses(y_i, noisy), self.losses(z_i, noisy)
            g = lambda loss, v: (weight * loss).mean() + 0.5 * REGULARISATION * (v @ v)
            by_y += torch.autograd.grad(self.losses(y_i, clean).mean() + g(ly, y_i), y_i)
            by_z += torch.autograd.grad(g(lz, z_i), z_i)
            by_psi[noisy] = weight * (1 - weight) * (ly - lz).detach() / len(noisy)
            drawn[noisy] = True
        return by_psi, drawn, torch.stack(by_y + by_z)

    def train(self, rounds, steps, momentum, draw):
        v, psi = self.start.repeat(2 * AGENTS, 1), torch.zeros(len(self.x), dtype=self.kind)
        mix = lambda weights, rows: torch.cat([weights @ rows[:AGENTS], weights @ rows[AGENTS:]])
        _, _, d = self.gradient(v[:AGENTS], v[AGENTS:], psi, draw)
        t, m, m_psi, curve = d, torch.zeros_like(d), torch.zeros_like(psi), [self.measure(v, psi)]
        for k in range(rounds):
            A, B = self.A[k % PERIOD], self.B[k % PERIOD]
            m = momentum * m + t
            v = mix(A, v) - steps[1] * m
            by_psi, drawn, fresh = self.gradient(v[:AGENTS], v[AGENTS:], psi, draw)
            t, d = mix(B, t) + fresh - d, fresh
            m_psi = torch.where(drawn, momentum * m_psi + by_psi, m_psi)
            psi = torch.where(drawn, psi - steps[0] * m_psi, psi)
            curve.append(self.measure(v, psi))
        return curve, torch.sigmoid(psi), v[:AGENTS].mean(0)

    def measure(self, v, psi):
        mean = v[:AGENTS].mean(0)
        x, label = self.x, self.label
        self.x, self.label = self.x_test, self.label_test
        losses = self.losses(mean, slice(None))
        self.x, self.label = x, label
        weights = torch.sigmoid(psi).numpy()
        training = np.concatenate(self.training)
        wrong = self.wrong[training]
        return dict(test_loss=losses.mean().item(), mean_weight_corrupted=weights[training][wrong].mean(),
                    mean_weight_clean=weights[training][~wrong].mean())


def apart(weights, mean, other_weights, other_mean):
    """The largest difference of a sample's weight, and the relative one of the mean model."""
    weights, mean = weights.numpy(), mean.numpy()
    return np.abs(weights - other_weights).max(), np.linalg.norm(mean - other_mean) / np.linalg.norm(mean)


def compare(command, seed, epochs, batch, steps, momentum):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        data, graphs = experiment(seed, folder)
        # Steps that move nothing leave the start behind.
        _, _, start = fabswarm(command, folder, "start", seed, 1, WHOLE, (1e-30, 1e-30), 0.0)
        metrics, learned, model = fabswarm(command, folder, "run", seed, epochs, batch, steps, momentum)
        referee = Referee(data, graphs, start)
        rng = np.random.default_rng([seed, 1])
        decks = {}

        def draw(samples):
            """The whole list if it is short; else the next of its samples, in a new order when all were taken."""
            if len(samples) <= batch:
                return samples
            deck = decks.get(samples[0], [])
            if len(deck) < batch:
                deck = list(rng.permutation(samples))
            decks[samples[0]] = deck[batch:]
            return np.array(deck[:batch])

        rounds = int(metrics[-1]["round"])
        curve, weights, mean = referee.train(rounds, steps, momentum, draw)
        curve = [curve[int(row["round"])] for row in metrics]
        flat = np.concatenate([model[name].ravel() for name in Referee.NAMES])
        done = dict(ours=metrics, theirs=curve, apart=apart(weights, mean, np.array([learned.get(j, 0.5) for j in range(len(weights))]), flat))
        if batch == WHOLE:
            # What single precision alone changes, and what a start does that is moved by so little.
            single, moved = Referee(data, graphs, start, torch.float32), Referee(data, graphs, start)
            moved.start = moved.start * (1 + 1e-6 * torch.tensor(rng.normal(size=len(moved.start))))
            done["controls"] = ()
            for control in (single, moved):
                _, control_weights, control_mean = control.train(rounds, steps, momentum, draw)
                done["controls"] += apart(weights, mean, control_weights.numpy(), control_mean.numpy())
        return done


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("fabswarm")
    arguments.add_argument("--epochs", type=int, default=100)
    arguments.add_argument("--seeds", type=int, default=8)
    given = arguments.parse_args()
    command, measures = str(pathlib.Path(given.fabswarm).resolve()), ["test_loss", "mean_weight_corrupted", "mean_weight_clean"]
    print(f"PyTorch {torch.__version__}\n")
    print(f"Whole batches, {given.epochs} rounds, differences from PyTorch in double precision, of curves over the whole run:\n")
    print("| momentum | seed | test loss, fabswarm | PyTorch | curves differ by | weights of samples | mean model | PyTorch in single: weights "
          "| mean model | start moved by 1e-6: weights | mean model |\n|---|---|---|---|---|---|---|---|---|---|---|")
    for momentum in (0.0, 0.7):
        for seed in (1, 2):
            done = compare(command, seed, given.epochs, WHOLE, (10.0, STEP), momentum)
            gap = max(abs(ours[name] - theirs[name]) for ours, theirs in zip(done["ours"], done["theirs"]) for name in measures)
            print(f"| {momentum} | {seed} | {done['ours'][-1]['test_loss']:.6f} | {done['theirs'][-1]['test_loss']:.6f} | {gap:.1e} "
                  f"| {' | '.join(f'{gap:.1e}' for gap in done['apart'] + done['controls'])} |", flush=True)
    if given.seeds == 0:
        return
    print(f"\nBatches of 16, own orders, {given.seeds} seeds, mean ± standard deviation:\n")
    print("| epoch | what | fabswarm | PyTorch | difference, in standard errors |\n|---|---|---|---|---|")
    runs = [compare(command, seed, 30, 16, (10.0, STEP), 0.7) for seed in range(1, given.seeds + 1)]
    for at in (10, 30):
        for name in measures:
            ours, theirs = (np.array([run[side][at][name] for run in runs]) for side in ("ours", "theirs"))
            # The seeds are pairs: data, graphs and start are the same, the batches are not.
            gap = ours - theirs
            error = gap.std(ddof=1) / np.sqrt(len(gap))
            print(f"| {at} | {name.replace('_', ' ')} | {ours.mean():.4f} ± {ours.std(ddof=1):.4f} | {theirs.mean():.4f} ± "
                  f"{theirs.std(ddof=1):.4f} | {gap.mean() / error:+.1f} |", flush=True)


if __name__ == "__main__":
    main()
