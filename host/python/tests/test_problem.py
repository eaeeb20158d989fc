"""Problems written in Python."""

import os
import pathlib
import re
import subprocess

import numpy
import pytest

import fabswarm

STEPS = {"lam": 10.0, "normalise_by_lambda": False, "eta_x": 0.05, "eta_y": 0.01, "eta_z": 0.01, "topology": "complete"}


class Meeting(fabswarm.Problem):
    """The point nearest to all sites: f = ‖x − y‖² / 2, g = ‖y − site‖² / 2."""

    x_words = y_words = 2

    def __init__(self, site):
        self.site = numpy.asarray(site)

    def upper_gradient(self, x, y):
        return x - y, y - x

    def lower_gradient(self, x, y):
        return 0 * x, y - self.site

    def upper_value(self, x, y):
        return ((x - y) ** 2).sum() / 2

    def lower_value(self, x, y):
        return ((y - self.site) ** 2).sum() / 2


SITES = [[0, 0], [4, 0], [4, 4], [0, 4], [2, 7]]


def test_a_problem_in_python_is_solved():
    run = fabswarm.run(problem=[Meeting(site) for site in SITES], rounds=600, error_below=1e-4, iid_loss=0.2, **STEPS)
    assert run.check().summary["agents"] == 5 and run.summary["copies_lost"] > 0
    numpy.testing.assert_allclose(run.answer["x"], [numpy.mean(SITES, axis=0)] * 5, atol=0.01)
    assert run.answer["y"].shape == (5, 2)
    spread = numpy.var(SITES, axis=0).sum() / 2
    numpy.testing.assert_allclose(run.metrics["lower_value"][-1], spread, rtol=0.01)
    assert abs(run.metrics["upper_value"][-1]) < 0.01


def test_gradients_are_those_of_the_values():
    class Wrong(Meeting):
        def upper_gradient(self, x, y):
            return x - y, x - y

    x, y = numpy.array([1.0, -2.0]), numpy.array([0.5, 3.0])
    fabswarm.check_gradients(Meeting(SITES[4]), x, y)
    with pytest.raises(ValueError, match=r"upper_gradient by y\[1\] is -5, and 5 by finite differences"):
        fabswarm.check_gradients(Wrong(SITES[4]), x, y)
    with pytest.raises(ValueError, match="x and y have 3 scalars"):
        fabswarm.check_gradients(Meeting(SITES[4]), x, [1.0])


def test_gradients_come_from_pytorch(tmp_path):
    python = os.environ.get("FABSWARM_TORCH") or pytest.skip("there is no PyTorch")
    (tmp_path / "fabswarm").symlink_to(pathlib.Path(fabswarm.__file__).parent)
    readme = (pathlib.Path(__file__).parents[1] / "README.md").read_text()
    example = re.search(r"```python\n(import torch.*?)```", readme, re.DOTALL)[1]
    check = "assert abs(run.answer['y'].mean(axis=0) - [1, -2, 0]).max() < 0.2"
    program = "\n".join(["import fabswarm, numpy", example, check])
    subprocess.run([python, "-c", program], env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True)


def test_x_stays_where_project_keeps_it():
    class Fenced(Meeting):
        def project(self, x):
            return numpy.minimum(x, 1)

    run = fabswarm.run(problem=[Fenced(site) for site in SITES], rounds=150, error_below=0.0, **STEPS)
    numpy.testing.assert_allclose(run.answer["x"], 1, atol=1e-6)


def test_an_exception_of_a_problem_ends_the_run():
    class Broken(Meeting):
        calls = 0

        def upper_gradient(self, x, y):
            self.calls += 1
            if self.calls > 20:
                raise ZeroDivisionError("in agent 0")
            return super().upper_gradient(x, y)

    problems = [Broken(SITES[0])] + [Meeting(site) for site in SITES[1:]]
    with pytest.raises(ZeroDivisionError, match="in agent 0"):
        fabswarm.run(problem=problems, rounds=10**6, error_below=0.0, **STEPS)


def test_what_does_not_fit_is_refused():
    class Wide(Meeting):
        def lower_gradient(self, x, y):
            return x, [1.0, 2.0, 3.0]

    with pytest.raises(ValueError, match="lower_gradient of agent 0 returned 3 scalars as dy\nhelp: return 2"):
        fabswarm.run(problem=[Wide(site) for site in SITES], **STEPS)
    with pytest.raises(fabswarm.ScenarioError, match="5 problems for swarm.agents = 7\nhelp: "):
        fabswarm.run(problem=[Meeting(site) for site in SITES], agents=7)
    with pytest.raises(ValueError, match="there is no agent"):
        fabswarm.run(problem=[], agents=5)
    large = Meeting(SITES[0])
    large.x_words = 3
    with pytest.raises(ValueError, match="agent 1 has other sizes"):
        fabswarm.run(problem=[Meeting(SITES[0]), large])
    with pytest.raises(fabswarm.ScenarioError, match='problem.kind = "own"'):
        fabswarm.run(problem="own")


def test_rows_of_a_problem_come_one_by_one():
    rounds = fabswarm.rounds(problem=[Meeting(site) for site in SITES], answers=True, rounds=10, error_below=0.0, **STEPS)
    assert [row["round"] for row in rounds] == list(range(11))
