"""Gradients of a problem against finite differences of its values."""

from __future__ import annotations

from collections.abc import Callable

import numpy

from .problem import Problem


def check_gradients(problem: Problem, x: numpy.ndarray, y: numpy.ndarray, *, tolerance: float = 1e-3) -> None:
    """Raises ValueError unless the gradients of ``problem`` at x and y are those of its ``upper_value`` and ``lower_value``.

    A word may differ by ``tolerance`` times the largest word of its gradient. Values should be computed in float64 here: what they are
    given is.
    """
    point = numpy.concatenate([numpy.ravel(x), numpy.ravel(y)]).astype(float)
    if len(point) != problem.x_words + problem.y_words:
        raise ValueError(f"x and y have {len(point)} scalars, and the problem has {problem.x_words} and {problem.y_words}")
    for level in ("upper", "lower"):
        value: Callable = getattr(problem, f"{level}_value")
        gradient: Callable = getattr(problem, f"{level}_gradient")
        at = numpy.split(point, [problem.x_words])
        if not numpy.isfinite(value(*at)):
            raise ValueError(f"{level}_value is {value(*at)}\nhelp: define it, and choose a point at which it is finite")
        found = numpy.concatenate([numpy.ravel(part).astype(float) for part in gradient(*at)])
        expected = numpy.empty_like(point)
        for word in range(len(point)):
            step = numpy.zeros_like(point)
            step[word] = 1e-5 * max(1.0, abs(point[word]))
            above, below = (value(*numpy.split(point + sign * step, [problem.x_words])) for sign in (1, -1))
            expected[word] = (above - below) / (2 * step[word])
        away = numpy.abs(found - expected)
        worst = int(numpy.argmax(away))
        if not away[worst] <= tolerance * max(1.0, numpy.abs(expected).max()):
            name = f"x[{worst}]" if worst < problem.x_words else f"y[{worst - problem.x_words}]"
            raise ValueError(
                f"{level}_gradient by {name} is {found[worst]:.6g}, and {expected[worst]:.6g} by finite differences of {level}_value"
            )
