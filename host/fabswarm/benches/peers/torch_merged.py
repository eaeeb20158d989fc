#!/usr/bin/env python3
"""Push-pull on noisy training and clean validation samples of Fashion-MNIST in PyTorch, many seeds at once.

    torch_merged.py FOLDER [--corruption-rate .6] [--seeds 20] [--start uniform|normal] [--epochs 60]

FOLDER holds the four idx.gz files. Written apart from the batched engine, so that the two can be compared where the result
hangs on the seed: every seed has its own partition, labels, graphs, start and batches, from NumPy and PyTorch generators.
Prints the test accuracy of each seed's mean model.
"""
import argparse
import gzip

import numpy as np
import torch
import torch.nn.functional as F

INPUTS, HIDDEN, CLASSES, AGENTS, BATCH = 784, 256, 10, 10, 64
STEP, REGULARISATION, RHO, EDGES, PHASE = 0.03, 0.002, 0.5, 0.5, 10
MISTAKEN_FOR = np.array([6, 3, 4, 1, 2, 7, 0, 5, 9, 8])
SHAPES = [(INPUTS, HIDDEN), (1, HIDDEN), (HIDDEN, CLASSES), (1, CLASSES)]


def idx(path, offset):
    return np.frombuffer(gzip.open(path).read(), np.uint8, offset=offset)


def deal(labels, rate, generator):
    """Sample numbers of every agent, and the labels they see: a tenth of an agent's samples keeps its labels."""
    agents = [[] for _ in range(AGENTS)]
    for c in range(CLASSES):
        samples = generator.permutation(np.flatnonzero(labels == c))
        ends = (np.cumsum(generator.dirichlet([RHO] * AGENTS))[:-1] * len(samples)).astype(int)
        for agent, part in zip(agents, np.split(samples, ends)):
            agent.extend(part)
    seen = labels.copy()
    for i, agent in enumerate(agents):
        agents[i] = agent = generator.permutation(agent)
        doubtful = agent[: len(agent) - -(-len(agent) // 10)]
        wrong = doubtful[generator.random(len(doubtful)) < rate]
        seen[wrong] = MISTAKEN_FOR[labels[wrong]]
    return agents, seen


def graphs(seeds, k, generator, device):
    """Pull and push weights of round k, for every seed."""
    heard = torch.zeros(seeds, AGENTS, AGENTS, device=device)
    i = torch.arange(AGENTS, device=device)
    phase = k // PHASE % 3
    if phase == 0:
        heard = (torch.rand(seeds, AGENTS, AGENTS, generator=generator, device=device) < EDGES).float()
    heard[:, i, (i + 1) % AGENTS if phase == 2 else i - 1] = 1
    heard[:, i, i] = 1
    return heard / heard.sum(2, keepdim=True), heard / heard.sum(1, keepdim=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder")
    arguments.add_argument("--corruption-rate", type=float, default=0.6)
    arguments.add_argument("--seeds", type=int, default=20)
    arguments.add_argument("--epochs", type=int, default=60)
    arguments.add_argument("--start", choices=["uniform", "normal"], default="uniform", help="±1/√inputs, or deviation .03")
    given = arguments.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    part = lambda name, offset: idx(f"{given.folder}/{name}-ubyte.gz", offset)
    pixels = lambda name: torch.tensor(part(name, 16).reshape(-1, INPUTS), device=device).float() / 255
    data, test = pixels("train-images-idx3"), pixels("t10k-images-idx3")
    labels, test_labels = part("train-labels-idx1", 8), torch.tensor(part("t10k-labels-idx1", 8), device=device).long()

    seeds = given.seeds
    rows = torch.zeros(seeds, AGENTS, len(labels), dtype=torch.long)
    sizes, seen = torch.zeros(seeds, AGENTS), torch.zeros(seeds, len(labels), dtype=torch.long)
    for seed in range(seeds):
        agents, mine = deal(labels, given.corruption_rate, np.random.default_rng(seed))
        seen[seed] = torch.tensor(mine.astype(np.int64))
        for i, agent in enumerate(agents):
            rows[seed, i, : len(agent)], sizes[seed, i] = torch.tensor(agent), len(agent)
    rows, sizes, seen = rows.to(device), sizes.to(device), seen.to(device)

    generator = torch.Generator(device).manual_seed(1)
    models = seeds * AGENTS

    def start(shape, inputs):
        one = (
            torch.randn(seeds, 1, *shape, generator=generator, device=device) * 0.03
            if given.start == "normal"
            else (torch.rand(seeds, 1, *shape, generator=generator, device=device) * 2 - 1) * inputs**-0.5
        )
        return one.expand(seeds, AGENTS, *shape).reshape(models, *shape).clone().requires_grad_()

    y = [start(shape, inputs) for shape, inputs in zip(SHAPES, [INPUTS, INPUTS, HIDDEN, HIDDEN])]
    t, last = [torch.zeros_like(p) for p in y], [torch.zeros_like(p) for p in y]
    forward = lambda p, x: torch.baddbmm(p[3], torch.relu(torch.baddbmm(p[1], x, p[0])), p[2])
    mix = lambda weights, p: (weights @ p.view(seeds, AGENTS, -1)).view_as(p)
    # As many rounds as the mean agent needs to go through its training samples, nine tenths of all.
    rounds = given.epochs * -(-len(labels) * 9 // 10 // (AGENTS * BATCH))
    for k in range(rounds + 1):
        pull, push = graphs(seeds, k, generator, device)
        place = (torch.rand(seeds, AGENTS, BATCH, generator=generator, device=device) * sizes[..., None]).long()
        sample = rows.gather(2, place).view(models, BATCH)
        label = seen.gather(1, sample.view(seeds, -1)).view(-1)
        if k:
            with torch.no_grad():
                for p, tracker in zip(y, t):
                    p.copy_(mix(pull, p) - STEP * tracker)
        loss = F.cross_entropy(forward(y, data[sample]).view(-1, CLASSES), label, reduction="sum") / BATCH
        loss = loss + 0.5 * REGULARISATION * sum((p * p).sum() for p in y)
        for p, tracker, before, fresh in zip(y, t, last, torch.autograd.grad(loss, y)):
            tracker.copy_((mix(push, tracker) if k else tracker) + fresh - before)
            before.copy_(fresh)
    with torch.no_grad():
        mean = [p.view(seeds, AGENTS, *p.shape[1:]).mean(1) for p in y]
        found = torch.stack([forward([p[s : s + 1] for p in mean], test[None])[0].argmax(1) for s in range(seeds)])
        accuracy = (found == test_labels).float().mean(1).cpu().numpy()
    print(f"corruption rate {given.corruption_rate}, {given.epochs} epochs ({rounds} rounds), start {given.start}:", *(f"{a:.3f}" for a in accuracy))
    print(f"  median {np.median(accuracy):.3f}, from {accuracy.min():.3f} to {accuracy.max():.3f}", flush=True)


if __name__ == "__main__":
    main()
