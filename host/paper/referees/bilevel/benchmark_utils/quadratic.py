"""The quadratic bilevel problem of the public benchmark, and its solutions in closed form.

benchmark_bilevel (M. Dagréou, T. Moreau and others, github.com/benchopt/benchmark_bilevel), data set "simulated": both levels are

    q(y, x) = ½ yᵀ H y + ½ xᵀ K x + xᵀ C y + bᵀ y + cᵀ x

with x the outer and y the inner variable, each matrix a mean over random samples with a chosen spectrum.
"""
from dataclasses import dataclass

import numpy as np


@dataclass
class Quadratic:
    H: np.ndarray  # inner × inner
    K: np.ndarray  # outer × outer
    C: np.ndarray  # outer × inner
    b: np.ndarray
    c: np.ndarray

    def value(self, y, x):
        return 0.5 * y @ self.H @ y + 0.5 * x @ self.K @ x + x @ self.C @ y + self.b @ y + self.c @ x

    def gradient(self, y, x):
        """By y and by x."""
        return self.H @ y + self.C.T @ x + self.b, self.K @ x + self.C @ y + self.c

    @staticmethod
    def mean(quadratics):
        return Quadratic(*(np.mean([getattr(q, name) for q in quadratics], axis=0) for name in "HKCbc"))


def draw(rng, shares, samples, inner, outer, smallest, largest, cross):
    """One level: the quadratics of `shares` agents with `samples` samples each, by the formulas of the benchmark's `gen_matrices`."""
    half = lambda low, high, words: np.logspace(np.log10(low) / 2, np.log10(high) / 2, words)
    basis = lambda words: np.linalg.svd(rng.normal(size=(words, 1)))[0]
    U = basis(inner)
    root_h = (U * half(smallest, largest, inner)) @ U.T
    U = basis(outer)
    root_k = (U * np.r_[0, half(smallest, largest, outer - 1)]) @ U.T
    U, _, V = np.linalg.svd(rng.normal(size=(outer, inner)))
    D = np.zeros((outer, inner))
    np.fill_diagonal(D, np.logspace(np.log10(smallest), np.log10(cross), min(outer, inner)))

    def share():
        # A sample's matrix has rank one, so their mean is a Gram matrix.
        gram = lambda words: (lambda z: z.T @ z / samples)(rng.normal(size=(samples, words)))
        H, K, C = root_h @ gram(inner) @ root_h, root_k @ gram(outer) @ root_k, U @ D @ gram(inner) @ V.T
        return Quadratic(H, K, C, *(rng.normal(size=(samples, words)).mean(axis=0) for words in (inner, outer)))

    return [share() for _ in range(shares)]


def solution(g, f):
    """x* of min f(y*(x), x), y*(x) = argmin g(·, x), ∇²F* and ∇F* as a function of x."""
    slope, start = -np.linalg.solve(g.H, g.C.T), -np.linalg.solve(g.H, g.b)
    hessian = f.K + f.C @ slope + slope.T @ f.C.T + slope.T @ f.H @ slope
    linear = f.c + f.C @ start + slope.T @ (f.H @ start + f.b)
    return np.linalg.solve(hessian, -linear), hessian, lambda x: hessian @ x + linear


def penalised_solution(g, f, penalty):
    """x where the gradient of f + λ(g − min g) is zero: what F²SA and FAB descend to at a fixed λ."""
    by_y = np.linalg.inv(f.H + penalty * g.H)
    slope_y, start_y = -by_y @ (f.C + penalty * g.C).T, -by_y @ (f.b + penalty * g.b)
    slope_z, start_z = -np.linalg.solve(g.H, g.C.T), -np.linalg.solve(g.H, g.b)
    system = f.K + f.C @ slope_y + penalty * g.C @ (slope_y - slope_z)
    return np.linalg.solve(system, -(f.c + f.C @ start_y + penalty * g.C @ (start_y - start_z)))
