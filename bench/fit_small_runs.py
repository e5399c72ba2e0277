#!/usr/bin/env python3
"""Fits the law of src/propose/expected_loss.cpp to the runs of data/small_runs.csv and prints its constants and errors.

    bench/fit_small_runs.py [data/small_runs.csv]

bits per byte = E + A / parameters^alpha + B / bytes^beta, bytes counted less each time they are read again. The exponents are those
of Hoffmann et al. 2022 (a handful of runs does not determine them); E, A and B are the least squares of relative errors. No packages
are needed.
"""

import csv
import math
import pathlib
import sys

REPEATS = 15.39  # Muennighoff et al. 2023, arXiv:2305.16264
ALPHA, BETA = 0.34, 0.28  # Hoffmann et al. 2022, arXiv:2203.15556, approach 3


def effective_bytes(trained, unique):
    repeats = max(trained / unique - 1, 0)
    return trained if repeats == 0 else unique * (1 + REPEATS * (1 - math.exp(-repeats / REPEATS)))


def solve(rows, columns):
    """Least squares of (sum of x * c = 1) by the normal equations, for few columns."""
    n = len(columns)
    matrix = [[sum(r[i] * r[j] for r in rows) for j in columns] + [sum(r[i] for r in rows)] for i in columns]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(matrix[k][i]))
        matrix[i], matrix[pivot] = matrix[pivot], matrix[i]
        if abs(matrix[i][i]) < 1e-15:
            return None
        for k in range(n):
            if k != i:
                factor = matrix[k][i] / matrix[i][i]
                matrix[k] = [a - factor * b for a, b in zip(matrix[k], matrix[i])]
    return [matrix[i][n] / matrix[i][i] for i in range(n)]


def fit(runs):
    rows = [(1 / loss, params**-ALPHA / loss, size**-BETA / loss) for params, size, loss in runs]
    return solve(rows, (0, 1, 2))


def main():
    path = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "data/small_runs.csv")
    with path.open() as file:
        table = [row for row in csv.DictReader(line for line in file if not line.startswith("#"))]
    runs = [
        (float(r["parameters"]), effective_bytes(float(r["trained_bytes"]), float(r["unique_bytes"])), float(r["bits_per_byte"]))
        for r in table
    ]
    e, a, b = fit(runs)
    print(f"E {e:.3f}  A {a:.2f}  alpha {ALPHA}  B {b:.2f}  beta {BETA}")
    for row, (params, size, loss) in zip(table, runs):
        fitted = e + a * params**-ALPHA + b * size**-BETA
        print(f"{row['text']:12} {params / 1e6:7.2f} M  {size / 1e6:6.2f} MB  measured {loss:.3f}  fitted {fitted:.3f}  {100 * (fitted / loss - 1):+5.1f} %")


if __name__ == "__main__":
    main()
