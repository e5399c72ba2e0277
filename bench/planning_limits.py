#!/usr/bin/env python3
"""Holds the planner to its limits: errors against published runs, order, memory, the search's choices, and time.

Each line prints the figure and its limit; exits with 1 when one is missed.

Usage: bench/planning_limits.py published_runs.csv [--sextant build/release/sextant]
"""
import argparse
import json
import pathlib
import resource
import subprocess
import sys
import time


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("runs")
    parser.add_argument("--sextant", default="build/release/sextant")
    args = parser.parse_args()
    missed = []

    def hold(what, figure, good, limit):
        print(f"{'ok   ' if good else 'MISSED'} {what}: {figure} ({limit})", flush=True)
        if not good:
            missed.append(what)

    def answer(*arguments):
        start = time.time()
        done = subprocess.run([args.sextant, *arguments, "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if done.returncode != 0:
            sys.exit(f"sextant {' '.join(arguments)} failed with {done.returncode}")
        return json.loads(done.stdout), time.time() - start

    v = answer("validate", args.runs)[0]["validate"]
    share = v["judged_expressed"] / v["judged"]
    hold("judged rows predicted", f"{share:.3f}", share >= 0.95, "at least 0.95")
    for name, figures, median, p90 in (("tables only", v["tables_only"], 0.12, 0.30), ("fitted", v, 0.07, 0.20)):
        hold(f"{name}, median", f"{figures['median_abs_error']:.3f}", figures["median_abs_error"] <= median, f"at most {median}")
        hold(f"{name}, 90th percentile", f"{figures['p90_abs_error']:.3f}", figures["p90_abs_error"] <= p90, f"at most {p90}")
    hold("median of source medians", f"{v['median_of_source_medians']:.3f}", v["median_of_source_medians"] <= 0.10, "at most 0.10")
    order = v["pairs"]["ordered_right"] / v["pairs"]["compared"]
    hold("pairs ordered right", f"{order:.3f}", order >= 0.9, "at least 0.9")
    hold("memory, median", f"{v['memory']['median_abs_error']:.3f}", v["memory"]["median_abs_error"] <= 0.15, "at most 0.15")
    unforeseen = v["memory"]["out_of_memory"] - v["memory"]["foreseen"]
    hold("runs that did not fit, not foreseen", unforeseen, unforeseen <= 1, "at most 1")

    cells = answer("validate", args.runs, "--search")[0]
    bloom = max((g for g in cells["groups"] if g["source"].startswith("BigScience")), key=lambda g: g["layouts"])
    hold(f"first choice of BLOOM's {bloom['layouts']} layouts", f"{bloom['ratio']:.3f}", bloom["ratio"] <= 1.05, "at most 1.05")
    near = sum(c["ratio"] <= 1.05 for c in cells["cells"])
    hold("nanotron's published layouts within 5 % of ours", f"{near} of {len(cells['cells'])}", near == len(cells["cells"]),
         "all; why not: docs/decisions/0015")
    sweep = subprocess.run([sys.executable, pathlib.Path(__file__).parent / "nanotron_sweep.py", "--sextant", args.sextant],
                           stdout=subprocess.PIPE, text=True)
    hold("first choices in nanotron's cells, by clock", sweep.stdout.splitlines()[-1].removeprefix("first choices: "), sweep.returncode == 0, "all")

    # 405B as it was run does not fit by our own Programs, so that settings that would are looked for, too.
    began = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([args.sextant, "plan", "configs/published/llama3-405b-16384.toml", "--machine", "meta-24k-roce"], stdout=subprocess.DEVNULL)
    seconds = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - began
    hold("405B on 16,384 devices, as published, planned", f"{seconds:.2f} s of processor time", seconds < 1, "under 1 s")
    large = "configs/plan/llama3.1-405b.toml"
    for what, overrides, most in (("16,384 devices", (), 1), ("102,400 devices", ("mesh.dp=800", "batch.sequences=12800"), 3)):
        seconds = answer("plan", large, *overrides, "--machine", "dgx-h100-pod")[1]
        hold(f"405B on {what}, planned", f"{seconds:.2f} s", seconds < most, f"under {most} s")
    seconds = answer("search", "configs/plan/llama3-70b.toml", "--machine", "dgx-h100-pod", "--devices", "1024")[1]
    hold("70B on 1,024 devices, searched", f"{seconds:.1f} s", seconds < 20, "under 20 s")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
