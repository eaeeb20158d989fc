from benchopt import BaseDataset
import numpy as np

from benchmark_utils.quadratic import Quadratic


class Dataset(BaseDataset):
    """Policy evaluation, this project's problem, in the form of the benchmark: f = ½‖Φx − y‖² + τ/2 ‖x‖², g_i = ½‖y − r_i − γPΦx‖²."""

    name = "policy-evaluation"
    parameters = {"random_state": [1, 2, 3], "agents": [8], "states": [20], "features": [5], "discount": [0.9], "regularisation": [0.1]}

    def get_data(self):
        rng = np.random.default_rng(self.random_state)
        P, phi, r = (rng.random(size) for size in [(self.states,) * 2, (self.states, self.features), (self.agents, self.states)])
        P /= P.sum(axis=1, keepdims=True)
        N, eye = self.discount * P @ phi, np.eye(self.states)
        f = Quadratic(eye, phi.T @ phi + self.regularisation * np.eye(self.features), -phi.T, np.zeros(self.states), np.zeros(self.features))
        lower = [Quadratic(eye, N.T @ N, -N.T, -reward, N.T @ reward) for reward in r]
        chain = dict(gamma=self.discount, tau=self.regularisation, cf=1.0, cg=1.0, phi=phi.tolist(), P=P.tolist(), r=r)
        return dict(lower=lower, upper=[f] * self.agents, steps=(0.06, 0.01), chain=chain)
