"""FAB policy evaluation in dense float64 NumPy: what `fabswarm bench` measures itself against.

Written the way a careful researcher writes it: all agents in one matrix, no Python loop over agents, mixing as matrix
products, constants hoisted out of the loop, static graphs built once. The topology is the paper's: ten rounds of random
graphs around a directed cycle, redrawn every round, ten of a directed ring, ten of the reversed ring.

    python numpy_fab.py AGENTS EDGE_PROBABILITY SECONDS [ETA_X ETA_Y ETA_Z]

Runs whole periods until SECONDS have passed and prints rounds per second and the last relative error as JSON.
"""

import json
import sys
import time

import numpy as np

STATES, FEATURES = 20, 5
DISCOUNT, TAU, LAMBDA = 0.9, 0.1, 60.0
PHASE = 10


def weights(heard):
    """Row-stochastic A and column-stochastic B of a graph; heard[i, j]: i hears j, itself included."""
    return heard / heard.sum(axis=1, keepdims=True), heard / heard.sum(axis=0, keepdims=True)


def main():
    n, edge_probability, seconds = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3])
    eta_x, eta_y, eta_z = (float(eta) for eta in sys.argv[4:7]) if len(sys.argv) > 4 else (0.6, 0.06, 0.06)
    rng = np.random.default_rng(1)
    phi = rng.random((STATES, FEATURES))
    transition = rng.random((STATES, STATES))
    transition /= transition.sum(axis=1, keepdims=True)
    rewards = rng.random((n, STATES))

    next_phi = DISCOUNT * transition @ phi
    difference = phi - next_phi
    solution = np.linalg.solve(
        difference.T @ difference + TAU * np.eye(FEATURES), difference.T @ rewards.mean(axis=0)
    )
    eta = np.concatenate([np.full(FEATURES, eta_x), np.full(STATES, eta_y), np.full(STATES, eta_z)])

    cycle = np.eye(n, dtype=bool) | np.roll(np.eye(n, dtype=bool), 1, axis=0)
    ring, reversed_ring = weights(cycle), weights(cycle.T)

    def gradient(v):
        """Gradient of every agent's penalised problem, divided by lambda."""
        x, y, z = v[:, :FEATURES], v[:, FEATURES : FEATURES + STATES], v[:, FEATURES + STATES :]
        upper = x @ phi.T - y
        target = rewards + x @ next_phi.T
        lower_y, lower_z = y - target, z - target
        d = np.empty_like(v)
        d[:, :FEATURES] = (upper @ phi + TAU * x) / LAMBDA - (lower_y - lower_z) @ next_phi
        d[:, FEATURES : FEATURES + STATES] = lower_y - upper / LAMBDA
        d[:, FEATURES + STATES :] = lower_z
        return d

    v = np.zeros((n, FEATURES + 2 * STATES))
    d = gradient(v)
    t = d.copy()

    def period(v, t, d):
        for phase in range(3):
            for _ in range(PHASE):
                if phase == 0:
                    a, b = weights(cycle | (rng.random((n, n)) < edge_probability))
                else:
                    a, b = ring if phase == 1 else reversed_ring
                v = a @ v - eta * t
                new = gradient(v)
                t = b @ t + new - d
                d = new
        return v, t, d

    v, t, d = period(v, t, d)
    rounds, started = 0, time.perf_counter()
    while (elapsed := time.perf_counter() - started) < seconds:
        v, t, d = period(v, t, d)
        rounds += 3 * PHASE
    error = np.linalg.norm(v[:, :FEATURES] - solution, axis=1).mean() / np.linalg.norm(solution)
    print(json.dumps({"rounds_per_second": rounds / elapsed, "error": error, "numpy": np.__version__}))


if __name__ == "__main__":
    main()
