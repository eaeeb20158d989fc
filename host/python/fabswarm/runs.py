"""Runs of small agents in this process."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import pathlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from . import _native
from ._native import LiveRun, RunError
from .files import as_files
from .method import Method
from .metrics import Metrics
from .problem import Problem

Methods = Callable[[_native.ProblemShare], Method]
"""A method of one's own: makes its side for each agent, as the name of its class does."""


@dataclass(frozen=True)
class Run:
    """A run that has ended, or what its folder tells of it."""

    metrics: Metrics
    """One row per recorded round."""
    answer: dict[str, numpy.ndarray]
    """What every agent decided: ``x``, ``y`` and ``z``, agents × scalars; empty if it was not kept."""
    summary: dict[str, Any] | None
    """What the run came to, as in ``summary.json``; None of a folder whose run has not ended."""
    scenario: str
    """The scenario as a file that gives the run again."""
    complaint: str | None
    """Why the run did not reach its goal, and what to try; None if it did, or was loaded."""
    folder: pathlib.Path | None
    """What it left behind, where it was asked to."""

    @property
    def weights(self) -> Metrics | None:
        """What training has learned of every sample, as in ``weights.csv``: NaN where nobody knows the true label. None of other runs."""
        path = None if self.folder is None else self.folder / "weights.csv"
        if path is None or not path.exists():
            return None
        table = numpy.genfromtxt(path, delimiter=",", names=True)
        return Metrics({name: numpy.atleast_1d(table[name]) for name in table.dtype.names})

    @property
    def model(self) -> dict[str, numpy.ndarray] | None:
        """The tensors that training has ended with, by name, as in ``model.safetensors``. None of other runs."""
        path = None if self.folder is None else self.folder / "model.safetensors"
        if path is None or not path.exists():
            return None
        with open(path, "rb") as file:
            header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            data = file.read()
        header.pop("__metadata__", None)
        place = lambda tensor: data[slice(*tensor["data_offsets"])]  # noqa: E731
        return {name: numpy.frombuffer(place(one), "<f4").reshape(one["shape"]) for name, one in header.items()}

    def check(self) -> Run:
        """This run, if it has reached its goal; raises :class:`RunError` if not."""
        if self.complaint is not None:
            raise RunError(self.complaint)
        return self

    def __repr__(self) -> str:
        if self.summary is None:
            return f"<run in {self.folder} that has not ended>"
        ended, rounds = self.summary["stopped_because"], self.summary["rounds"]
        return f"<run of {self.summary['agents']} agents: {ended} after {rounds} rounds>"


class Rounds(Iterator[dict[str, Any]]):
    """A run in progress: its rows, one after the other.

    The run waits until its next row is asked for. It ends with its last round, with :meth:`finish`, or when nobody holds it any more.
    """

    def __init__(self, live: LiveRun) -> None:
        self._live = live
        self._run: Run | None = None

    def __next__(self) -> dict[str, Any]:
        row = self._next()
        if row is None:
            raise StopIteration
        return row

    def watched(self, progress: Callable[[dict[str, Any]], object]) -> Run:
        """Gives every row to ``progress``, and returns the run."""
        try:
            for row in self:
                progress(row)
        except BaseException:
            with contextlib.suppress(RunError):
                self.finish()
            raise
        return self.finish()

    def finish(self) -> Run:
        """Ends the run, if rounds are left, and returns it."""
        self._live.stop()
        while self._next() is not None:
            pass
        assert self._run is not None
        return self._run

    def _next(self) -> dict[str, Any] | None:
        if self._run is not None:
            return None
        event = self._live.next()
        if isinstance(event, tuple):
            row, answer = event
            return row if answer is None else {**row, "answer": answer}
        self._run = _ended(self._live, event)
        return None


def run(
    scenario: str | os.PathLike[str] | None = None,
    *,
    problem: str | Sequence[Problem] | None = None,
    method: Methods | None = None,
    progress: Callable[[dict[str, Any]], object] | None = None,
    **keys: Any,
) -> Run:
    """Runs a scenario to its end: the default one, a file, or either with some keys changed.

    ``problem`` is one of the values of that flag, or a :class:`Problem` for each agent. ``method`` is a :class:`Method` of your own.
    Where a key names a file, a dict of arrays takes its place, or for ``graphs`` an array: ``graphs[i, j]``, or ``graphs[round, i, j]``,
    says whether agent i hears agent j. Such arrays are not kept with the run.
    ``progress`` is called with every row, as ``progress=print``.
    Nothing is written unless ``out`` names a folder. Ctrl-C ends the run, completes that folder, and raises KeyboardInterrupt.
    """
    if progress is not None:
        return rounds(scenario, problem=problem, method=method, **keys).watched(progress)
    with as_files(keys) as keys:
        live, outcome = LiveRun.to_end(scenario, *_of_program(problem, method, keys))
    return _ended(live, outcome)


def sweep(
    scenario: str | os.PathLike[str] | None = None,
    *,
    problem: str | Sequence[Problem] | None = None,
    method: Methods | None = None,
    **keys: Any,
) -> list[tuple[dict[str, Any], Run]]:
    """Runs every combination of the keys that are lists or ranges: ``sweep(seed=range(1, 11), iid_loss=[0, 0.3])``.

    What varies comes with each run, so that ``pandas.DataFrame([{**keys, **run.summary} for keys, run in runs])`` is a table.
    """
    varied = {name: value for name, value in keys.items() if isinstance(value, (list, tuple, range))}
    fixed = {name: value for name, value in keys.items() if name not in varied}
    choices = [dict(zip(varied, values)) for values in itertools.product(*varied.values())]
    return [(choice, run(scenario, problem=problem, method=method, **fixed, **choice)) for choice in choices]


def rounds(
    scenario: str | os.PathLike[str] | None = None,
    *,
    problem: str | Sequence[Problem] | None = None,
    method: Methods | None = None,
    answers: bool = False,
    **keys: Any,
) -> Rounds:
    """Runs a scenario row by row, as fast as rows are taken. With ``answers``, each row has what the agents have decided."""
    with as_files(keys) as keys:
        return Rounds(LiveRun(scenario, *_of_program(problem, method, keys), rows=True, answers=answers))


def load(folder: str | os.PathLike[str]) -> Run:
    """The run in a folder, also one that the command has made; of a run that goes on or was killed, as far as it got."""
    files = _native.load(folder)
    path = pathlib.Path(folder)
    summary, answer = path / "summary.json", {}
    if (path / "answer.npz").exists():
        with numpy.load(path / "answer.npz") as arrays:
            answer = {name: arrays[name] for name in arrays.files}
    return Run(
        metrics=Metrics(files["metrics"]),
        answer=answer,
        summary=json.loads(summary.read_text()) if summary.exists() else None,
        scenario=files["scenario"],
        complaint=None,
        folder=path,
    )


def _of_program(
    problem: str | Sequence[Problem] | None, method: Methods | None, keys: dict[str, Any]
) -> tuple[dict[str, Any], list[Problem] | None, Methods | None]:
    """The keys of a run with this problem and method, the problems of its agents, and the method."""
    if method is not None:
        keys = {**keys, "algorithm": "own"}
    if problem is None:
        return keys, None, method
    if isinstance(problem, str):
        return {"problem": problem, **keys}, None, method
    problems = list(problem)
    return {"problem": "own", "agents": len(problems), **keys}, problems, method


def _ended(live: LiveRun, outcome: dict[str, Any]) -> Run:
    folder = outcome["folder"]
    return Run(
        metrics=Metrics(outcome["metrics"]),
        answer=outcome["answer"] or {},
        summary=json.loads(outcome["summary"]),
        scenario=live.scenario,
        complaint=outcome["complaint"],
        folder=None if folder is None else pathlib.Path(folder),
    )
