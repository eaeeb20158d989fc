#!/usr/bin/env python3
"""Trackers of one level beside decent-bench's (E. Ram, N. Bastianello and others, pypi.org/project/decent-bench), with lost messages.

    trackers.py FABSWARM [--problem regions|classification] [--rounds 240] [--seeds 3]

Everybody solves one logistic regression with decent-bench's cost, 10 agents on one undirected graph, from one start: either of `regions`, 60
samples each that are unequal and a regulariser, or decent-bench's own `classification` (create_classification_problem: 10 samples each that
are alike, no regulariser).
decent-bench runs ATC-Tracking, EXTRA and LT-ADMM. FABSWARM, the command with the feature `large`, runs push-pull and the ledger as
`fabswarm train --model softmax --method single-level-noisy` with whole batches: of two classes, u = w₁ − w₀ moves by the gradient of
decent-bench's cost with τ/2 for τ and twice the step, so the problem is the same, and so is the table's step. Steps are searched for
every method and loss on one grid, on a problem that does not count.
"""
import argparse
import importlib.metadata
import itertools
import json
import logging
import pathlib
import random
import subprocess
import tempfile
from functools import reduce
from operator import add

import networkx
import numpy as np
from decent_array import interoperability as iop
from decent_array.types import Devices, Frameworks
from decent_bench.agents import Agent
from decent_bench.algorithms.p2p import ATC_Tracking, EXTRA, LT_ADMM
from decent_bench.benchmark import configure, create_classification_problem
from decent_bench.costs import L2RegularizerCost, LogisticRegressionCost
from decent_bench.networks import P2PNetwork
from decent_bench.schemes import UniformDropRate

AGENTS, DEGREE = 10, 3
LOSSES = [0.0, 0.1, 0.3]
COUPLINGS = [0.02, 0.05, 0.1]
SEARCH_SEED = 101


def pairs(rows, label):
    """Samples as decent-bench's costs take them."""
    return [(iop.from_numpy(row), iop.from_numpy(np.array([float(y)]))) for row, y in zip(rows, label)]


class Regions:
    """Each agent sees another region, so that none can do without the others."""

    regularisation = 0.1
    steps = [0.05, 0.1, 0.2, 0.5]
    minimum = None

    def __init__(self, seed):
        features, samples = 5, 60
        rng = np.random.default_rng(seed)
        self.agent = np.repeat(np.arange(AGENTS), samples)
        noise = rng.normal(size=(AGENTS, features))[self.agent] + rng.normal(size=(len(self.agent), features))
        self.x = noise.astype(np.float32)
        self.label = (self.x @ rng.normal(size=features) + rng.normal(size=len(self.agent)) > 0).astype(np.int64)
        # decent-bench wants both classes at every agent.
        self.label[::samples], self.label[1::samples] = 0, 1


class Classification:
    """The classification problem that decent-bench ships.

    It has no bias, and fabswarm's classifier has one. So everybody gets a bias, and each sample a second time with features and label
    inverted: the gradient of the weights stays as it is, and the bias is 0 at the minimum, which must be the one that decent-bench finds.
    """

    regularisation = 0.0
    # Flatter, and so with larger steps.
    steps = [0.5, 1.0, 2.0, 5.0]

    def __init__(self, seed):
        iop.set_seed(seed)
        costs, minimum, _ = create_classification_problem(LogisticRegressionCost, n_agents=AGENTS, show_progress=False)
        self.minimum = np.append(iop.to_numpy(minimum), 0.0)
        samples = [(i, iop.to_numpy(x), int(iop.to_numpy(y)[0])) for i, cost in enumerate(costs) for x, y in cost.dataset]
        agent, x, label = (np.array(column) for column in zip(*samples))
        self.agent, self.label = np.r_[agent, agent], np.r_[label, 1 - label]
        self.x = np.r_[x, -x].astype(np.float32)


class Trial:
    """Data, graph and start, by seed."""

    def __init__(self, make, seed, command, folder):
        self.problem, self.seed, self.command, self.folder = make(seed), seed, command, folder / str(seed)
        self.folder.mkdir()
        x, label, agent = self.problem.x, self.problem.label, self.problem.agent
        rows, mine = np.c_[x, np.ones(len(x))].astype(float), [agent == i for i in range(AGENTS)]
        self.costs = [LogisticRegressionCost(pairs(rows[own], label[own])) for own in mine]
        if self.problem.regularisation > 0:
            regulariser = (self.problem.regularisation / 2) * L2RegularizerCost((rows.shape[1],))
            self.costs = [cost + regulariser for cost in self.costs]
        self.best = self.minimiser(rows, label)
        if self.problem.minimum is not None:
            assert np.allclose(self.best, self.problem.minimum, atol=1e-5), "the minimum is not decent-bench's"
        self.graph = networkx.random_regular_graph(DEGREE, AGENTS, seed=seed)
        # What train asks for and single-level-noisy does not use: one validation sample per agent.
        extra = np.zeros((AGENTS, x.shape[1]), dtype=np.float32)
        np.savez(self.folder / "data.npz", x_train=np.r_[x, extra], y_train=np.r_[label, np.zeros(AGENTS, dtype=np.int64)],
                 agent=np.r_[agent, np.arange(AGENTS)], validation=np.r_[np.zeros(len(x), dtype=np.int64), np.ones(AGENTS, dtype=np.int64)],
                 x_test=x, y_test=label)
        links = [link for edge in self.graph.edges for link in (edge, edge[::-1])]
        (self.folder / "graph.csv").write_text("sender,receiver\n" + "".join(f"{j},{i}\n" for j, i in sorted(links)))
        # Steps that move nothing leave the start behind.
        self.start = self.train("fab", 0.0, 1, 1e-30)

    def minimiser(self, x, label):
        """Newton's method, and decent-bench's gradient must agree."""
        u, strength = np.zeros(x.shape[1]), self.problem.regularisation / 2
        for _ in range(50):
            p = 1 / (1 + np.exp(-x @ u))
            hessian = (x * (p * (1 - p))[:, None]).T @ x / len(x) + strength * np.eye(len(u))
            u = u - np.linalg.solve(hessian, x.T @ (p - label) / len(x) + strength * u)
        gradient = iop.to_numpy(reduce(add, [cost.gradient(iop.from_numpy(u)) for cost in self.costs]))
        assert np.linalg.norm(gradient) < 1e-10, "the two costs differ"
        return u

    def train(self, algorithm, loss, rounds, step, **more):
        """The mean model of fabswarm."""
        with tempfile.TemporaryDirectory() as out:
            flags = dict(data="data.npz", model="softmax", method="single-level-noisy", algorithm=algorithm, agents=AGENTS, topology="recorded",
                         graphs="graph.csv", batch=len(self.problem.x) // AGENTS + 1, epochs=rounds, eta_y=step / 2, momentum=0.0, regularisation=self.problem.regularisation,
                         iid_loss=loss, seed=self.seed, evaluate_every=0, checkpoint_every=0, device="cpu", out=out, **more)
            flags = [word for name, value in flags.items() for word in ("--" + name.replace("_", "-"), str(value))]
            # A run that diverges ends with another status, and leaves no model.
            subprocess.run([self.command, "train", "--quiet", *flags], cwd=self.folder, stderr=subprocess.DEVNULL, check=False)
            path = pathlib.Path(out) / "model.safetensors"
            if not path.exists():
                return np.full(len(self.best), np.inf)
            raw = path.read_bytes()
        size = int.from_bytes(raw[:8], "little")
        head, body = json.loads(raw[8 : 8 + size]), raw[8 + size :]
        word = lambda name: np.frombuffer(body[slice(*head[name]["data_offsets"])], "<f4").reshape(head[name]["shape"]).astype(float)
        weights = np.r_[word("head.weight"), word("head.bias").reshape(1, 2)]
        return weights[:, 1] - weights[:, 0]

    def error(self, mean):
        error = np.linalg.norm(mean - self.best) / np.linalg.norm(self.best)
        return error if error < 1e6 else np.inf


def theirs(make):
    """Errors of a method of decent-bench after so many rounds."""

    def run(trial, loss, at, *steps):
        random.seed(trial.seed)
        network = P2PNetwork(trial.graph, [Agent(cost) for cost in trial.costs], message_drop=UniformDropRate(loss))
        errors = []
        record = lambda _: errors.append(trial.error(np.mean([iop.to_numpy(agent.x) for agent in network.agents()], axis=0)))
        with np.errstate(all="ignore"):
            make(iop.from_numpy(trial.start), *steps).run(network, max(at), progress_callback=record)
        return [errors[k - 1] for k in at]

    return run


def ours(algorithm, **flags):
    """The same of fabswarm: a run each, since the model is written in the end."""
    return lambda trial, loss, at, step: [trial.error(trial.train(algorithm, loss, rounds, step, **flags)) for rounds in at]


def lt_admm(gradients):
    """LT-ADMM with so many local steps per round."""
    make = lambda x0, step, coupling: LT_ADMM(step_size=step, aux_step_size=coupling, num_local_steps=gradients, x0=x0)
    return theirs(make)


PROBLEMS = {"regions": Regions, "classification": Classification}
# Each with the steps it has beside the first.
METHODS = {
    "decent-bench ATC-Tracking": (theirs(lambda x0, step: ATC_Tracking(step_size=step, x0=x0)), []),
    "decent-bench EXTRA": (theirs(lambda x0, step: EXTRA(step_size=step, x0=x0)), []),
    # Five local steps per round, and one: as many gradients as the others.
    "decent-bench LT-ADMM, 5 gradients": (lt_admm(5), [COUPLINGS]),
    "decent-bench LT-ADMM, 1 gradient": (lt_admm(1), [COUPLINGS]),
    "fabswarm push-pull": (ours("fab", order="combine-first"), []),
    "fabswarm push-pull, adapt first": (ours("fab", order="adapt-first"), []),
    "fabswarm ledger, κ = .98": (ours("ledger", order="combine-first", self_weight=0.98), []),
    "fabswarm ledger, κ from the links": (ours("ledger", order="combine-first", self_weight="auto"), []),
    "fabswarm ledger, adapt first, κ from the links": (ours("ledger", order="adapt-first", self_weight="auto"), []),
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("fabswarm")
    arguments.add_argument("--problem", choices=PROBLEMS, default="regions")
    arguments.add_argument("--rounds", type=int, default=240)
    arguments.add_argument("--seeds", type=int, default=3)
    given = arguments.parse_args()
    configure(Frameworks.NUMPY, Devices.CPU, log_level=logging.WARNING)
    command, at = str(pathlib.Path(given.fabswarm).resolve()), [given.rounds // 4, given.rounds // 2, given.rounds]
    print(f"decent-bench {importlib.metadata.version('decent-bench')}; error ‖x̄ − x*‖/‖x*‖, median (worst) of seeds 1 to {given.seeds}\n")
    print(f"| lost | method | steps | {' | '.join(f'round {k}' for k in at)} |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        make = lambda seed: Trial(PROBLEMS[given.problem], seed, command, pathlib.Path(folder))
        search, trials = make(SEARCH_SEED), [make(seed) for seed in range(1, given.seeds + 1)]
        for loss, (name, (run, others)) in itertools.product(LOSSES, METHODS.items()):
            grid = itertools.product(PROBLEMS[given.problem].steps, *others)
            # The sum of logarithms at two rounds: who is nearer, sooner.
            score = lambda steps: np.sum(np.log(np.maximum(run(search, loss, at[:2], *steps), 1e-7)))
            steps = min(grid, key=score)
            errors = np.array([run(trial, loss, at, *steps) for trial in trials])
            cells = [f"{np.median(column):.1e} ({column.max():.1e})" for column in errors.T]
            print(f"| {loss:.0%} | {name} | {', '.join(map(str, steps))} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
