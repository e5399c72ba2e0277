#!/usr/bin/env python3
"""What statistics of layers cost (log.tensor_stats_every): the CPU demo without them, and with them at every step.

    bench/tensor_statistics.py [--steps 8] [--rounds 2] [--sextant build/release/sextant] [--config configs/demo.toml] [key=value…]

Processor time of the process, one thread, so that whatever else the machine does counts little. Each side runs 2 and 2 + steps
steps, in turn with the other; the difference is the time of the steps alone. Medians over the rounds.
"""

import argparse
import os
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def seconds(args, scratch, every, steps):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run([args.sextant, "train", args.config, f"train.steps={steps}", "optimizer.warmup=1", "train.threads=1",
                    "train.eval_every=0", "checkpoint.at_end=false", "checkpoint.resume=never", f"data.cache={scratch}/cache",
                    f"log.tensor_stats_every={every}", *args.settings, "--out", f"{scratch}/run", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sextant", default=str(ROOT / "build/release/sextant"))
    parser.add_argument("--config", default=str(ROOT / "configs/demo.toml"))
    parser.add_argument("settings", nargs="*")
    args = parser.parse_args()
    steps = {0: [], 1: []}
    with tempfile.TemporaryDirectory() as scratch:
        seconds(args, scratch, 0, 2)  # tokenizes
        for _ in range(args.rounds):
            for every in steps:
                short = seconds(args, scratch, every, 2)
                steps[every].append((seconds(args, scratch, every, 2 + args.steps) - short) / args.steps)
    plain, measuring = (1000 * statistics.median(steps[every]) for every in (0, 1))
    print(f"{Path(args.config).name}: a step {plain:.1f} ms of processor time, a measuring step {measuring:.1f} ms")
    for every, of in steps.items():
        print(f"  every={every}: " + ", ".join(f"{1000 * s:.1f}" for s in of))
    share = measuring / plain - 1
    print(f"  every step: {100 * share:+.2f} %, every 100 steps: {share:+.4f} %")


if __name__ == "__main__":
    main()
