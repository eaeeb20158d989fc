"""Problems written in Python, for trying things in this process."""

from __future__ import annotations

import abc

import numpy


class Problem(abc.ABC):
    """One agent's share of a bilevel problem: f(x, y) above, g(x, y) below.

    ::

        class Meeting(fabswarm.Problem):
            x_words = y_words = 2

            def __init__(self, site):
                self.site = site

            def upper_gradient(self, x, y):         # f = ‖x − y‖² / 2
                return x - y, y - x

            def lower_gradient(self, x, y):         # g = ‖y − site‖² / 2
                return 0 * x, y - self.site

        run = fabswarm.run(problem=[Meeting(site) for site in sites], error_below=1e-3)

    Arrays are of float32, as agents compute in it; what is returned may be of any type that becomes one. A method that raises an
    exception ends the run with it.
    """

    x_words: int
    """Words of x."""
    y_words: int
    """Words of y."""
    x_is_local: bool = False
    """Whether x belongs to this agent alone and is never sent."""

    @abc.abstractmethod
    def upper_gradient(self, x: numpy.ndarray, y: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
        """∂f/∂x and ∂f/∂y."""

    @abc.abstractmethod
    def lower_gradient(self, x: numpy.ndarray, y: numpy.ndarray) -> tuple[numpy.ndarray, numpy.ndarray]:
        """∂g/∂x and ∂g/∂y."""

    def upper_value(self, x: numpy.ndarray, y: numpy.ndarray) -> float:
        """f(x, y): only for the metrics, and for :func:`fabswarm.check_gradients`."""
        return numpy.nan

    def lower_value(self, x: numpy.ndarray, y: numpy.ndarray) -> float:
        """g(x, y), likewise."""
        return numpy.nan

    def project(self, x: numpy.ndarray) -> numpy.ndarray:
        """x, brought back into the set it must stay in."""
        return x
