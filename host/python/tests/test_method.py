"""Methods written in NumPy."""

import pathlib
import re

import numpy
import pytest

import fabswarm
from test_problem import SITES, STEPS, Meeting

LAM, ETA_X, ETA_Y = 60.0, 0.6, 0.06


class PushPull(fabswarm.Method):
    """FAB as published: push-pull on the penalty function, divided by λ."""

    def __init__(self, share):
        super().__init__(share)
        self.words = numpy.cumsum([share.x_words, share.y_words])
        self.steps = numpy.repeat([ETA_X, ETA_Y], [share.x_words, 2 * share.y_words])
        self.v = numpy.concatenate([self.x, self.y, self.y])
        self.direction = self.tracker = self.gradient()

    def gradient(self):
        self.x, self.y, self.z = numpy.split(self.v, self.words)
        fx, fy = self.share.upper_gradient(self.x, self.y)
        gx, gy = self.share.lower_gradient(self.x, self.y)
        hx, hy = self.share.lower_gradient(self.x, self.z)
        return numpy.concatenate([fx / LAM + gx - hx, fy / LAM + gy, hy])

    def send(self, listeners):
        self.part = 1 / (1 + listeners)
        return numpy.concatenate([self.v, self.part * self.tracker])

    def receive(self, frames):
        decisions, trackers = numpy.split(sum((frame for _, frame in frames), numpy.zeros(2 * self.v.size)), 2)
        self.v = (self.v + decisions) / (1 + len(frames)) - self.steps * self.tracker
        self.v[: self.words[0]] = self.share.project(self.v[: self.words[0]])
        newest = self.gradient()
        self.tracker = self.part * self.tracker + trackers + newest - self.direction
        self.direction = newest


@pytest.mark.parametrize("keys", [{}, {"problem": "hyper-tuning", "iid_loss": 0.2, "duplication": 0.1}])
def test_push_pull_in_numpy_is_the_one_of_fabswarm(keys):
    keys = {"rounds": 150, "error_below": 0.0, "agents": 6, **keys}
    steps = {"lam": LAM, "eta_x": ETA_X, "eta_y": ETA_Y, "eta_z": ETA_Y, "precision": "f64"}
    fab = fabswarm.run(algorithm="fab", order="combine-first", penalty="one-sided", momentum=0.0, **steps, **keys)
    own = fabswarm.run(method=PushPull, **keys)
    for name in "xyz":
        numpy.testing.assert_allclose(own.answer[name], fab.answer[name], rtol=1e-12, atol=1e-12)
    for name in fab.metrics:
        if name != "tracking_defect":
            numpy.testing.assert_allclose(own.metrics[name], fab.metrics[name], rtol=1e-9, atol=1e-12)
    assert own.summary["algorithm"] == "own" and own.summary["copies_lost"] == fab.summary["copies_lost"]


def test_the_example_of_the_readme_runs():
    readme = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
    names = {"fabswarm": fabswarm, "numpy": numpy}
    exec(re.search(r"```python\n(class Descent.*?)```", readme, re.DOTALL)[1], names)
    assert names["run"].metrics["distance_to_solution"][-1] < 0.02


def test_baselines_solve_a_problem_in_python():
    problem = [Meeting(site) for site in SITES]
    keys = {**STEPS, "eta_x": 0.1, "problem": problem, "rounds": 1500, "error_below": 0.0}
    for algorithm in ["push-diging", "soba"]:
        run = fabswarm.run(algorithm=algorithm, **keys)
        numpy.testing.assert_allclose(run.answer["x"], [numpy.mean(SITES, axis=0)] * 5, atol=0.02, err_msg=algorithm)


def test_what_a_method_does_wrong_ends_the_run():
    class Silent(PushPull):
        def send(self, listeners):
            raise ZeroDivisionError("nothing to send")

    class Short(PushPull):
        def __init__(self, share):
            super().__init__(share)
            self.z = numpy.zeros(3)

    with pytest.raises(ZeroDivisionError, match="nothing to send"):
        fabswarm.run(method=Silent, rounds=10)
    with pytest.raises(ValueError, match="the method of agent 0 returned 3 scalars as z\nhelp: return 20"):
        fabswarm.run(method=Short, rounds=10)
    with pytest.raises(fabswarm.ScenarioError, match='algorithm.kind = "own" is a method that a program'):
        fabswarm.run(algorithm="own")
    with pytest.raises(fabswarm.ScenarioError, match="does not go with swarm.mode"):
        fabswarm.run(method=PushPull, mode="free-running")
