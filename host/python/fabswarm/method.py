"""Methods written in NumPy, run over the air of fabswarm and with its faults."""

from __future__ import annotations

import abc

import numpy

from ._native import ProblemShare


class Method(abc.ABC):
    """One agent's side of a method of your own.

    The package's README has an example. ``method`` is called once for each agent, with its :class:`ProblemShare`. Arrays are of float64.
    A method that raises an exception ends the run with it.
    """

    direction: numpy.ndarray | None = None
    """Where the agent descends, for x, y and z one after the other. Only the stop of a problem without a known solution needs it."""

    def __init__(self, share: ProblemShare) -> None:
        self.share = share
        """The agent's gradients, with the sizes ``x_words`` and ``y_words``."""
        self.x, self.y = share.start()
        """What the agent has decided."""
        self.z = self.y
        """The other lower decision, of a method that has one."""

    @abc.abstractmethod
    def send(self, listeners: int) -> numpy.ndarray:
        """The frame of a round. It is meant for so many agents; the air may lose it on its way to each of them."""

    @abc.abstractmethod
    def receive(self, frames: list[tuple[int, numpy.ndarray]]) -> None:
        """Takes the frames that arrived, each with its sender, and moves. Frames are read-only."""
