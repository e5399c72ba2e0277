#!/usr/bin/env python3
"""What statistics of layers cost (log.tensor_stats_every): the CPU demo, in which every second step measures.

    bench/tensor_statistics.py [--steps 120] [--sextant build/release/sextant] [--config configs/demo.toml] [key=value…]

Both sides come from one run, step by step in turn, so that whatever else the machine does meets both alike. Medians of the steps
after the tenth; the interval is that of the share, from 1,000 resamplings of the pairs of neighbouring steps.
"""

import argparse
import json
import random
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=120)
    parser.add_argument("--sextant", default=str(ROOT / "build/release/sextant"))
    parser.add_argument("--config", default=str(ROOT / "configs/demo.toml"))
    parser.add_argument("settings", nargs="*")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([args.sextant, "train", args.config, f"train.steps={args.steps}", "train.eval_every=0",
                        "checkpoint.at_end=false", "log.tensor_stats_every=2", *args.settings, "--out", f"{scratch}/run",
                        "--quiet"], check=True, stdout=subprocess.DEVNULL)
        lines = [json.loads(line) for line in (Path(scratch) / "run/metrics.jsonl").read_text().splitlines()][10:]
    pairs = [(a["step_s"], b["step_s"]) for a, b in zip(lines[0::2], lines[1::2])]
    assert all("weight_rms" in b and "weight_rms" not in a for a, b in zip(lines[0::2], lines[1::2]))

    def share(chosen):
        return statistics.median(b for _, b in chosen) / statistics.median(a for a, _ in chosen) - 1

    random.seed(1)
    resampled = sorted(share(random.choices(pairs, k=len(pairs))) for _ in range(1000))
    plain, measuring = (1000 * statistics.median(side) for side in zip(*pairs))
    print(f"{Path(args.config).name} {' '.join(args.settings)}: {len(pairs)} pairs of steps")
    print(f"  a step {plain:.1f} ms, a measuring step {measuring:.1f} ms")
    print(f"  every step: {100 * share(pairs):+.2f} % of a step (95 %: {100 * resampled[25]:+.2f} to {100 * resampled[974]:+.2f})")
    print(f"  every 100 steps: {share(pairs):+.4f} %")


if __name__ == "__main__":
    main()
