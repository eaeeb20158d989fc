from benchopt import BaseSolver


class Solver(BaseSolver):
    """F²SA (Kwon, Kwon, Wright and Nowak, 2023) as the public benchmark has it, with whole batches: T steps on y and z, one on x, then
    λ grows by δ. δ = 0 keeps λ. The benchmark lets steps fall with k; here they stay, and that on y falls with λ alone."""

    name = "F2SA"
    parameters = {"penalty, growth": [(10.0, 0.0), (100.0, 0.0), (1000.0, 0.0), (1.0, 0.1)], "inner_steps": [10]}

    def set_objective(self, g, f, x0, y0, steps, **_):
        self.g, self.f, self.x0, self.y0 = g, f, x0, y0
        self.step, self.outer_step = steps

    def run(self, callback):
        g, f, self.now = self.g, self.f, self.penalty
        self.x, self.y, z = self.x0.copy(), self.y0.copy(), self.y0.copy()
        while callback():
            for _ in range(self.inner_steps):
                by_y = f.gradient(self.y, self.x)[0] / self.now + g.gradient(self.y, self.x)[0]
                self.y = self.y - self.step * by_y
                z = z - self.step * g.gradient(z, self.x)[0]
            gap = g.gradient(self.y, self.x)[1] - g.gradient(z, self.x)[1]
            self.x = self.x - self.outer_step * (f.gradient(self.y, self.x)[1] + self.now * gap)
            self.now += self.growth

    def get_result(self):
        return dict(x=self.x, y=self.y, penalty=self.now)

    @staticmethod
    def get_next(done):
        return done + 50
