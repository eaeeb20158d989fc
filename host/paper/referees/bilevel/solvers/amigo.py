from benchopt import BaseSolver
import numpy as np


class Solver(BaseSolver):
    """AmIGO (Arbel and Mairal, 2022) with whole batches: T steps on y, T on v, warm-started, then one on x."""

    name = "AmIGO"
    parameters = {"inner_steps": [10]}

    def set_objective(self, g, f, x0, y0, steps, **_):
        self.g, self.f, self.x0, self.y0 = g, f, x0, y0
        self.step, self.outer_step = steps

    def run(self, callback):
        self.x, self.y = self.x0.copy(), self.y0.copy()
        v = np.zeros_like(self.y)
        while callback():
            for _ in range(self.inner_steps):
                self.y = self.y - self.step * self.g.gradient(self.y, self.x)[0]
            upper_by_y, upper_by_x = self.f.gradient(self.y, self.x)
            for _ in range(self.inner_steps):
                v = v - self.step * (self.g.H @ v + upper_by_y)
            self.x = self.x - self.outer_step * (upper_by_x + self.g.C @ v)

    def get_result(self):
        return dict(x=self.x, y=self.y)

    @staticmethod
    def get_next(done):
        return done + 50
