#!/usr/bin/env python3
"""What benchopt measured, as a table: table.py RESULT.parquet"""
import sys

import pandas

curves = pandas.read_parquet(sys.argv[1])
hidden = {"", "inner_steps", "rounds"}


def name(text):
    """The solver with the parameters that differ."""
    solver, _, parameters = text.rstrip("]").partition("[")
    kept = [entry for entry in parameters.split(",") if entry.split("=")[0] not in hidden]
    return f"{solver}: {', '.join(kept)}" if kept else solver


print(f"{curves['p_dataset_random_state'].nunique()} problems of each kind, {curves['stop_val'].max()} iterations; medians (worst)\n")
print("| problem | solver | ‖∇F*‖² | ‖x − x*‖/‖x*‖ | ‖x_λ − x*‖/‖x*‖ | ‖x − x_λ‖/‖x*‖ | iterations to 1 % |\n|---|---|---|---|---|---|---|")
curves["problem"] = curves["dataset_name"].str.partition("[")[0]
for (problem, solver), runs in curves.groupby(["problem", "solver_name"], sort=False):
    last = runs[runs["stop_val"] == runs["stop_val"].max()]
    cell = lambda column: "–" if last[column].isna().any() else f"{last[column].median():.1e} ({last[column].max():.1e})"
    settled = []
    for _, run in runs.groupby("p_dataset_random_state"):
        # Until 1 % of the first distance is left, to x_λ where there is a λ.
        target = run["objective_penalised_distance"].fillna(run["objective_distance"])
        settled.append(run["stop_val"][target < 0.01 * target.iloc[0]].min())
    rounds = "–" if pandas.isna(settled).any() else f"{pandas.Series(settled).median():.0f} ({max(settled):.0f})"
    columns = ["objective_value", "objective_distance", "objective_floor", "objective_penalised_distance"]
    print(f"| {problem} | {name(solver)} | {' | '.join(map(cell, columns))} | {rounds} |")
