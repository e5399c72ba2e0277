#!/usr/bin/env python3
"""What train.reproducible = "mesh" costs on the CPU: tokens/s and bytes with and without, run in turn.

    bench/reproducible.py [--rounds 5] [--steps 8] [--sextant build/release/sextant]

The 13.8 M-parameter Llama of configs/bench/cpu-20m.toml on several layouts and microbatches. Of each run the best step counts, and of all rounds
the best run: other work on the machine can only slow a step down. Bytes are those that a rank's arena has, and must be what `sextant plan` says.
"""

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CONFIG = str(ROOT / "configs/bench/cpu-20m.toml")
LAYOUTS = {
    "one rank, 1 microbatch of 8": ["batch.microbatch=8"],
    "one rank, 8 microbatches of 1": ["batch.microbatch=1"],
    "dp 2, 4 microbatches of 1": ["mesh.dp=2", "batch.microbatch=1"],
    "dp 2 zero 1, 4 microbatches of 1": ["mesh.dp=2", "mesh.zero=1", "batch.microbatch=1"],
    "dp 2 zero 2, 4 microbatches of 1": ["mesh.dp=2", "mesh.zero=2", "batch.microbatch=1"],
}


def planned_bytes(sextant, settings):
    told = subprocess.run([sextant, "plan", CONFIG, "--json", *settings], check=True, capture_output=True, text=True).stdout

    def found(node):
        if isinstance(node, dict):
            return ([node["arena_bytes"]] if "arena_bytes" in node else []) + [x for value in node.values() for x in found(value)]
        return [x for value in node for x in found(value)] if isinstance(node, list) else []

    return max(found(json.loads(told)))


def measure(args, scratch, name, settings):
    out = Path(scratch) / name
    subprocess.run([args.sextant, "train", CONFIG, "--out", str(out), f"data.cache={scratch}/cache", f"train.steps={args.steps}",
                    "checkpoint.at_end=false", *settings], check=True, stdout=subprocess.DEVNULL)
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return max(line["tokens_per_s"] for line in lines[1:]), max(line["arena_bytes"] for line in lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--sextant", default=str(ROOT / "build/release/sextant"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        for layout, settings in LAYOUTS.items():
            best = {}
            for turn in range(args.rounds):
                for mode in ("none", "mesh"):
                    with_mode = [*settings, f"train.reproducible={mode}"]
                    rate, arena = measure(args, scratch, f"{layout.replace(' ', '-').replace(',', '')}-{mode}-{turn}", with_mode)
                    best[mode] = (max(rate, best.get(mode, (0, 0))[0]), arena)
                    if turn == 0 and arena != planned_bytes(args.sextant, with_mode):
                        raise SystemExit(f"{layout}, {mode}: {arena} bytes, not the {planned_bytes(args.sextant, with_mode)} of the plan")
            (plain, plain_bytes), (exact, exact_bytes) = best["none"], best["mesh"]
            print(f"{layout:34} {plain:7.0f} tokens/s, reproducible {exact:7.0f}: {100 * (1 - exact / plain):5.1f} % slower; "
                  f"{plain_bytes / 2**20:6.1f} MiB a rank, reproducible {exact_bytes / 2**20:6.1f}", flush=True)


if __name__ == "__main__":
    main()
