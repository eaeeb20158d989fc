"""Distributed bilevel optimisation on swarms.

>>> import fabswarm
>>> run = fabswarm.run(agents=10, iid_loss=0.3)
>>> run.metrics["distance_to_solution"][-1] < 0.01
True

A keyword is a flag of the command ``fabswarm run``, with underscores.
"""

from ._native import ProblemShare, RunError, ScenarioError
from .gradients import check_gradients
from .method import Method
from .metrics import Metrics
from .problem import Problem
from .runs import Rounds, Run, load, rounds, run, sweep
from .training import evaluations, train

__all__ = [
    "Method",
    "Metrics",
    "Problem",
    "ProblemShare",
    "Rounds",
    "Run",
    "RunError",
    "ScenarioError",
    "check_gradients",
    "evaluations",
    "load",
    "rounds",
    "run",
    "sweep",
    "train",
]
