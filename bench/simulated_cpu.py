#!/usr/bin/env python3
"""Simulated against measured steps on this machine's CPU.

Measures two profiles with `sextant bench machine` (all threads in one rank; one thread in each of two ranks), trains small models
on several meshes, and prints for each the lower quartile of its step times beside what `sextant plan --machine` says. Others at
work on the machine show in both; run it when nothing else does. Exits with 1 when a ratio leaves 0.85 to 1.15.

Usage: bench/simulated_cpu.py [--sextant build/sextant] [--steps 40] [--keep DIR]
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
# name, config, overrides
MODELS = [
    ("tiny-llama", "tiny-llama.toml", []),
    ("tiny-gpt2", "tiny-gpt2.toml", []),
    ("demo", "demo.toml", ["batch.microbatch=2"]),
    ("wide-gpt2", "tiny-gpt2.toml", ["model.hidden=192", "model.heads=6", "model.layers=4", "batch.seq=128"]),
]
MESHES = [("one rank, 2 threads", 2, []), ("dp 2", 1, ["mesh.dp=2"]), ("tp 2", 1, ["mesh.tp=2"]), ("pp 2", 1, ["mesh.pp=2"])]


def quartile(values):
    values = sorted(values)
    return values[len(values) // 4]


def run(command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def measured_step(sextant, config, overrides, steps, work):
    out = work / "run"
    subprocess.run(["rm", "-rf", str(out)], check=True)
    run([sextant, "train", config, "--out", str(out), f"data.cache={work / 'cache'}", f"train.steps={steps}", "train.threads=2",
         "train.eval_every=0", "checkpoint.at_end=false", f"train.log_every={steps}", "optimizer.warmup=0", *overrides])
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    return quartile([line["step_s"] for line in lines[2:]])


def simulated_step(sextant, config, overrides, machine, work):
    plan = json.loads(run([sextant, "plan", config, "--json", "--machine", str(machine), f"data.cache={work / 'cache'}", *overrides]))
    return plan["step"]["seconds"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sextant", default=str(ROOT / "build" / "sextant"))
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--keep", default="", help="where profiles are kept and found again")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        keep = pathlib.Path(args.keep or scratch)
        keep.mkdir(parents=True, exist_ok=True)
        worst = 0.0
        for threads in (2, 1):
            profile = keep / f"cpu-{threads}-threads.toml"
            if not profile.exists():
                run([args.sextant, "bench", "machine", "--device", "cpu", "--threads", str(threads), "--save", str(profile)])
        for name, config, overrides in MODELS:
            path = str(ROOT / "configs" / config)
            for mesh, threads, along in MESHES:
                steps = args.steps if name.startswith("tiny") else max(10, args.steps // 4)
                measured = measured_step(args.sextant, path, overrides + along, steps, work)
                simulated = simulated_step(args.sextant, path, overrides + along, keep / f"cpu-{threads}-threads.toml", work)
                ratio = simulated / measured
                worst = max(worst, abs(ratio - 1))
                print(f"{name:<12} {mesh:<20} measured {measured * 1e3:9.3f} ms  simulated {simulated * 1e3:9.3f} ms  ratio {ratio:.3f}", flush=True)
        print(f"worst: {100 * worst:.1f} % off")
        sys.exit(0 if worst <= 0.15 else 1)


if __name__ == "__main__":
    main()
