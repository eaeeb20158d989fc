from benchopt import BaseSolver
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np

EVERY = 50


class Solver(BaseSolver):
    """This project: policy evaluation by its command in double precision, problems given by matrices by its Python package in single.

    One agent with the mean of all shares is Centralized_FAB, that is F²SA with T = 1; "FAB" is every agent by itself on directed
    graphs. The environment variable FABSWARM names the command."""

    name = "fabswarm"
    parameters = {"form, penalty": [("Centralized_FAB", 10.0), ("Centralized_FAB", 100.0), ("Centralized_FAB", 1000.0), ("FAB", 100.0)],
                  "rounds": [3000]}

    def set_objective(self, g, f, x0, y0, steps, shares, chain):
        self.x0, self.y0, self.chain = x0, y0, chain
        self.shares = [(g, f)] if self.form == "Centralized_FAB" else shares
        # FAB on the benchmark's quadratic diverges with the steps of the others, and does not with half of them.
        halved = 2 if self.form == "FAB" and chain is None else 1
        step, outer_step = (one / halved for one in steps)
        # Gradients are divided by λ, so η_x is λ times a step on the hypergradient.
        self.steps = dict(normalise_by_lambda=True, eta_x=self.penalty * outer_step, eta_y=step, eta_z=step)

    def run(self, callback):
        self.states = self.by_matrices() if self.chain is None else self.by_chain()
        self.round = 0
        while callback():
            self.round += 1

    def by_chain(self):
        """Every EVERY rounds, the mean x and y of the agents: the command on a recorded problem."""
        r = self.chain["r"].mean(axis=0, keepdims=True) if self.form == "Centralized_FAB" else self.chain["r"]
        n = len(r)
        # Everybody hears the one before and the one two before: directed, strongly connected.
        heard = np.eye(n) + np.roll(np.eye(n), -1, axis=0) + np.roll(np.eye(n), -2, axis=0) if n > 1 else np.eye(1)
        weights = (heard / heard.sum(axis=1, keepdims=True)).tolist()
        recorded = self.chain | self.steps | dict(
            n=n, S=len(self.y0), d=len(self.x0), lam=self.penalty, r=r.tolist(), A=weights, B=weights, x0=[self.x0.tolist()] * n,
            y0=[self.y0.tolist()] * n, z0=[self.y0.tolist()] * n, snapshots=[{"k": k} for k in range(0, self.rounds + 1, EVERY)])
        with tempfile.TemporaryDirectory() as folder:
            problem, states = pathlib.Path(folder) / "problem.json", pathlib.Path(folder) / "states.json"
            problem.write_text(json.dumps(recorded))
            command = [os.environ.get("FABSWARM", "fabswarm"), "run", "--recorded", problem, "--snapshots", states]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            states = json.loads(states.read_text())["snapshots"]
        return {state["k"]: [np.mean(state[name], axis=0) for name in "xy"] for state in states}

    def by_matrices(self):
        """The same by the package, over the paper's random directed graphs."""
        import fabswarm

        x0, y0 = self.x0, self.y0

        class Share(fabswarm.Problem):
            """A quadratic of each level, seen from the benchmark's start, since agents start at zero."""

            x_words, y_words = len(x0), len(y0)

            def __init__(self, lower, upper):
                self.lower, self.upper = lower, upper

            def upper_gradient(self, x, y):
                return self.upper.gradient(y0 + y, x0 + x)[::-1]

            def lower_gradient(self, x, y):
                return self.lower.gradient(y0 + y, x0 + x)[::-1]

        rows = fabswarm.rounds(
            problem=[Share(*share) for share in self.shares], answers=True, algorithm="fab", rounds=self.rounds, metrics_every=EVERY,
            error_below=0.0, **self.steps, **{"lambda": self.penalty})
        means = {row["round"]: [row["answer"][name].mean(axis=0, dtype=float) for name in "xy"] for row in rows}
        return {0: [x0, y0]} | {k: [x0 + x, y0 + y] for k, (x, y) in means.items()}

    def get_result(self):
        x, y = self.states[self.round]
        return dict(x=x, y=y, penalty=self.penalty)

    @staticmethod
    def get_next(done):
        return done + EVERY
