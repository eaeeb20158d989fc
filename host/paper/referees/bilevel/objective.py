from benchopt import BaseObjective
from benchopt.stopping_criterion import NoCriterion
import numpy as np

from benchmark_utils.quadratic import Quadratic, penalised_solution, solution


class Objective(BaseObjective):
    """Measures as the public benchmark does (‖∇F*(x)‖² is its `value`), and by the distance to the solution in closed form."""

    name = "Bilevel quadratic"
    url = "https://github.com/benchopt/benchmark_bilevel"
    min_benchopt_version = "1.6"
    sampling_strategy = "callback"
    stopping_criterion = NoCriterion(strategy="callback")

    def set_data(self, lower, upper, steps, chain=None):
        self.lower, self.upper, self.steps, self.chain = lower, upper, steps, chain
        self.g, self.f = Quadratic.mean(lower), Quadratic.mean(upper)
        self.best, _, self.gradient = solution(self.g, self.f)
        # The benchmark's start.
        self.x0, self.y0 = np.full_like(self.best, -2.0), np.zeros_like(self.g.b)

    def get_objective(self):
        shares = list(zip(self.lower, self.upper))
        return dict(g=self.g, f=self.f, x0=self.x0, y0=self.y0, steps=self.steps, shares=shares, chain=self.chain)

    def evaluate_result(self, x, y, penalty=None):
        away = lambda target: float(np.linalg.norm(x - target) / np.linalg.norm(self.best))
        inner = -np.linalg.solve(self.g.H, self.g.C.T @ x + self.g.b)
        measures = dict(value=float(np.sum(self.gradient(x) ** 2)), distance=away(self.best),
                        inner_distance=float(np.sum((y - inner) ** 2)))
        if penalty is not None:
            penalised = penalised_solution(self.g, self.f, penalty)
            floor = float(np.linalg.norm(penalised - self.best) / np.linalg.norm(self.best))
            measures |= dict(penalised_distance=away(penalised), floor=floor)
        return measures

    def get_one_result(self):
        return dict(x=self.x0, y=self.y0)
