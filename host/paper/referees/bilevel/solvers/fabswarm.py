from benchopt import BaseSolver
import json
import os
import pathlib
import subprocess
import tempfile

import numpy as np

EVERY = 50


class Solver(BaseSolver):
    """This project's command on a recorded problem, in double precision. One agent with the mean of all rewards is Centralized_FAB, that is
    F²SA with T = 1; "FAB" is every agent by itself on a directed graph. The environment variable FABSWARM names the command."""

    name = "fabswarm"
    parameters = {"form, penalty": [("Centralized_FAB", 10.0), ("Centralized_FAB", 100.0), ("Centralized_FAB", 1000.0), ("FAB", 100.0)],
                  "rounds": [3000]}

    def skip(self, chain, **_):
        return chain is None, "the command has no problem that is given by matrices"

    def set_objective(self, g, f, x0, y0, steps, chain):
        r = chain["r"].mean(axis=0, keepdims=True) if self.form == "Centralized_FAB" else chain["r"]
        n, step, outer_step = len(r), *steps
        # Everybody hears the one before and the one two before: directed, strongly connected.
        heard = np.eye(n) + np.roll(np.eye(n), -1, axis=0) + np.roll(np.eye(n), -2, axis=0) if n > 1 else np.eye(1)
        weights = (heard / heard.sum(axis=1, keepdims=True)).tolist()
        # Gradients are divided by λ, so η_x is λ times a step on the hypergradient.
        self.problem = chain | dict(
            n=n, S=len(y0), d=len(x0), lam=self.penalty, normalise_by_lambda=True, eta_x=self.penalty * outer_step, eta_y=step, eta_z=step,
            r=r.tolist(), A=weights, B=weights, x0=[x0.tolist()] * n, y0=[y0.tolist()] * n, z0=[y0.tolist()] * n,
            snapshots=[{"k": k} for k in range(0, self.rounds + 1, EVERY)])

    def run(self, callback):
        with tempfile.TemporaryDirectory() as folder:
            problem, states = pathlib.Path(folder) / "problem.json", pathlib.Path(folder) / "states.json"
            problem.write_text(json.dumps(self.problem))
            command = [os.environ.get("FABSWARM", "fabswarm"), "run", "--recorded", problem, "--snapshots", states]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            self.states = {state["k"]: state for state in json.loads(states.read_text())["snapshots"]}
        self.round = 0
        while callback():
            self.round += 1

    def get_result(self):
        state = self.states[self.round]
        return dict(x=np.mean(state["x"], axis=0), y=np.mean(state["y"], axis=0), penalty=self.penalty)

    @staticmethod
    def get_next(done):
        return done + EVERY
