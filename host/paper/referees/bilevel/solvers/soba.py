from benchopt import BaseSolver
import numpy as np


class Solver(BaseSolver):
    """SOBA (Dagréou, Ablin, Vaiter and Moreau, 2022) with whole batches and constant steps: one step each on y, x and the v that
    solves ∇²_yy g v = −∇_y f."""

    name = "SOBA"

    def set_objective(self, g, f, x0, y0, steps, **_):
        self.g, self.f, self.x0, self.y0 = g, f, x0, y0
        self.step, self.outer_step = steps

    def run(self, callback):
        self.x, self.y = self.x0.copy(), self.y0.copy()
        v = np.zeros_like(self.y)
        while callback():
            by_y, _ = self.g.gradient(self.y, self.x)
            upper_by_y, upper_by_x = self.f.gradient(self.y, self.x)
            dv, dx = self.g.H @ v + upper_by_y, self.g.C @ v + upper_by_x
            self.y, v, self.x = self.y - self.step * by_y, v - self.step * dv, self.x - self.outer_step * dx

    def get_result(self):
        return dict(x=self.x, y=self.y)

    @staticmethod
    def get_next(done):
        return done + 50
