#!/usr/bin/env python3
"""What statistics of layers cost (log.tensor_stats_every): the CPU demo without them, and with them at every step.

    bench/tensor_statistics.py [--steps 8] [--rounds 2] [--sextant build/release/sextant] [--config configs/demo.toml] [key=value…]
    bench/tensor_statistics.py --device cuda --sextant build/cuda/sextant --config configs/bench/gpt2-124m.toml data.train=TOKENS.u32

On the CPU processor time of the process, one thread, so that whatever else the machine does counts little. Each side runs 2 and
2 + steps steps, in turn with the other; the difference is the time of the steps alone. On a GPU the median time of the steps by
its clock, after three. Medians over the rounds.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def train(args, scratch, every, steps, *settings):
    subprocess.run([args.sextant, "train", args.config, f"train.steps={steps}", "optimizer.warmup=1", "train.eval_every=0",
                    "checkpoint.at_end=false", "checkpoint.resume=never", f"data.cache={scratch}/cache",
                    f"log.tensor_stats_every={every}", *settings, *args.settings, "--out", f"{scratch}/run", "--quiet"],
                   check=True, stdout=subprocess.DEVNULL, env=dict(os.environ, OPENBLAS_NUM_THREADS="1"))


def step_on_gpu(args, scratch, every):
    train(args, scratch, every, 3 + args.steps, "device=cuda")
    with open(f"{scratch}/run/metrics.jsonl") as lines:
        return statistics.median([json.loads(line)["step_s"] for line in lines][3:])


def processor_seconds(args, scratch, every, steps):
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    train(args, scratch, every, steps, "train.threads=1")
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


def step_on_cpu(args, scratch, every):
    short = processor_seconds(args, scratch, every, 2)
    return (processor_seconds(args, scratch, every, 2 + args.steps) - short) / args.steps


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sextant", default=str(ROOT / "build/release/sextant"))
    parser.add_argument("--config", default=str(ROOT / "configs/demo.toml"))
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("settings", nargs="*")
    args = parser.parse_args()
    step = step_on_cpu if args.device == "cpu" else step_on_gpu
    steps = {0: [], 1: []}
    with tempfile.TemporaryDirectory() as scratch:
        if args.device == "cpu":
            processor_seconds(args, scratch, 0, 2)  # tokenizes
        for _ in range(args.rounds):
            for every in steps:
                steps[every].append(step(args, scratch, every))
    plain, measuring = (1000 * statistics.median(steps[every]) for every in (0, 1))
    of = " of processor time" if args.device == "cpu" else ""
    print(f"{Path(args.config).name}: a step {plain:.1f} ms{of}, a measuring step {measuring:.1f} ms")
    for every, rounds in steps.items():
        print(f"  every={every}: " + ", ".join(f"{1000 * s:.1f}" for s in rounds))
    share = measuring / plain - 1
    print(f"  every step: {100 * share:+.2f} %, every 100 steps: {share:+.4f} %")


if __name__ == "__main__":
    main()
