#!/usr/bin/env python3
"""How much of a slow network the comm lane hides: data-parallel training under MPI, with every message delayed.

    bench/overlap.py [--delay-ms 5] [--ranks 2] [--bucket-mb 1] [--steps 14] [--sextant build/release/sextant] [key=value…]

Four runs of the same steps: with and without the comm lane (mesh.overlap), with and without the delay. The messages and their
buckets are the same in all four; without the lane a rank waits for each. The delay also holds up what no lane can hide (the norm's
sum, the agreement between steps), and that counts against us here. Medians of the steps after the second.
"""

import argparse
import json
import os
import statistics
import subprocess
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODEL = ["model.layers=6", "model.hidden=192", "model.heads=6", "model.kv_heads=6", "model.ffn=512", "batch.seq=128",
         "batch.microbatch=4", "optimizer.warmup=0", "train.eval_every=0"]


def step_ms(args, scratch, overlap, delay_ms):
    out = Path(scratch) / f"{overlap}-{delay_ms}"
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                       SEXTANT_MESSAGE_DELAY_MS=str(delay_ms))
    settings = MODEL + [f"mesh.dp={args.ranks}", f"batch.sequences={4 * args.ranks}", f"train.steps={args.steps}",
                        f"mesh.overlap={overlap}", f"mesh.bucket_mb={args.bucket_mb}", f"data.cache={scratch}/cache",
                        *args.settings]
    subprocess.run(["mpirun", "-n", str(args.ranks), "--oversubscribe", args.sextant, "train",
                    str(ROOT / "configs/tiny-llama.toml"), "--out", str(out), *settings],
                   check=True, env=environment, stdout=subprocess.DEVNULL)
    lines = (out / "metrics.jsonl").read_text().splitlines()
    return 1000 * statistics.median([json.loads(line)["step_s"] for line in lines][2:])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay-ms", type=int, default=5)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--bucket-mb", type=float, default=1)
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("settings", nargs="*", help="more key=value, such as batch.seq=256 where steps are too short to hide in")
    parser.add_argument("--sextant", default=str(ROOT / "build/release/sextant"))
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        added = {}
        for overlap in ("false", "true"):
            plain, slow = step_ms(args, scratch, overlap, 0), step_ms(args, scratch, overlap, args.delay_ms)
            added[overlap] = slow - plain
            print(f"comm lane {'on ' if overlap == 'true' else 'off'}: step {plain:7.1f} ms, with {args.delay_ms} ms per message "
                  f"{slow:7.1f} ms: the delay adds {added[overlap]:6.1f} ms")
    print(f"hidden: {100 * (1 - added['true'] / added['false']):.0f} % of what the delay adds")


if __name__ == "__main__":
    main()
