"""Runs of large agents, on the CPU or a GPU of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ._native import LiveRun
from .files import as_files
from .runs import Rounds, Run, _ended


def train(
    scenario: str | os.PathLike[str] | None = None,
    *,
    device: str = "auto",
    precision: str = "tf32",
    progress: Callable[[dict[str, Any]], object] | None = None,
    **keys: Any,
) -> Run:
    """Trains a swarm of large agents to its end. A keyword is a flag of ``fabswarm train``.

    The run leaves a folder with checkpoints, weights and model, as that of the command does: ``out``, or the next in ``runs``. Its
    metrics have a row for every evaluation; what has no value is NaN. ``data`` may be a dict of arrays, with the names of an npz file.
    ``progress`` is called with every row, as ``progress=print``.
    """
    if progress is not None:
        return evaluations(scenario, device=device, precision=precision, **keys).watched(progress)
    with as_files(keys) as keys:
        live, outcome = LiveRun.train_to_end(scenario, keys, device, precision)
    return _ended(live, outcome)


def evaluations(
    scenario: str | os.PathLike[str] | None = None, *, device: str = "auto", precision: str = "tf32", **keys: Any
) -> Rounds:
    """Trains evaluation by evaluation: as :func:`train`, going on when the next row is asked for."""
    with as_files(keys) as keys:
        return Rounds(LiveRun.training(scenario, keys, device, precision, rows=True))
