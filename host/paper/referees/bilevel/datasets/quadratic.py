from benchopt import BaseDataset
import numpy as np

from benchmark_utils.quadratic import Quadratic, draw, solution


class Dataset(BaseDataset):
    """The benchmark's quadratics with the sizes and spectra of its configuration `quadratics_021424`, drawn by NumPy instead of JAX."""

    name = "quadratic"
    parameters = {"random_state": [1, 2, 3], "agents": [8], "samples_inner": [32768], "samples_outer": [1024], "inner": [100],
                  "outer": [10], "smallest": [0.1], "largest": [1.0], "cross": [0.1]}

    def get_data(self):
        for attempt in range(100):
            rng = np.random.default_rng([self.random_state, attempt])
            level = lambda samples: draw(rng, self.agents, samples // self.agents, self.inner, self.outer, self.smallest,
                                         self.largest, self.cross)
            lower, upper = level(self.samples_inner), level(self.samples_outer)
            _, hessian, _ = solution(Quadratic.mean(lower), Quadratic.mean(upper))
            # The benchmark, too, draws until the value function is convex; we ask for a curvature that can be descended.
            if np.linalg.eigvalsh(hessian)[0] > 0.01:
                return dict(lower=lower, upper=upper, steps=(0.5, 0.5))
        raise ValueError("no convex problem in 100 draws")
