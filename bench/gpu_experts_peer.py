"""Models with experts on one GPU: Sextant's `train` beside PyTorch (torch.compile, grouped_mm), both sides in one run.

  bench/gpu_experts_peer.py [--models NAME,...] [--routings own,balanced] [--combines index_add,sum] [--whole-steps-only] [--steps N] [--sextant FILE] [key=value ...]

For each model of configs/bench with experts: tokens/s, peak memory and time to the first step, with the router's own choice and with experts that
take turns; PyTorch combines the rows of experts in two ways, and the faster one counts. And forward and backward of one layer's experts alone:
Sextant's from `train --profile`, all ops of that part of the step; PyTorch's with f32 weights, as in the step, which counts, and with bf16 weights. Writes bench/results/experts_gpu.json, and fails when a model falls short of what
is asked of it. Needs a Python with PyTorch.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib

from gpu_train_peer import random_tokens, run_sextant

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
# What must hold beside the faster PyTorch: tokens/s at least; memory at most; the experts alone at least.
REQUIRED_SPEED = {"olmoe-8l": 1.25, "qwen3moe-6l": 1.25, "mixtral-3l": 1.12}
MOST_MEMORY, LEAST_BLOCK, FIRST_STEP_S = 0.85, 1.5, 10
# Ops of a layer's experts, with their router.
EXPERT_OPS = ("expert_up", "expert_down", "weighted_swiglu", "slot_order", "route", "linear_wide", "expert_load")


def run_torch(config, *options):
    command = [sys.executable, REPOSITORY / "bench" / "torch_experts_step.py", "--config", json.dumps(config), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"PyTorch ended with {done.returncode}: {done.stderr[-500:]}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def sextant_block(arguments, config, layers, out):
    """Seconds of forward and backward of one layer's experts: all their ops in a profiled step, over the layers."""
    command = [arguments.sextant, "train", config, "--out", out / "profile", "--profile", "3", "device=cuda", "train.steps=4", *arguments.overrides]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(done.stdout + done.stderr)
        return None
    ops = {}
    lines = iter(done.stdout.splitlines())
    for line in lines:
        if line.startswith("op ") and "count" in line:
            break
    for line in lines:
        words = line.split()
        if len(words) < 3:
            break
        ops[words[0]] = float(words[2])
    return sum(ms for op, ms in ops.items() if op.startswith(EXPERT_OPS)) / layers / 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(REQUIRED_SPEED))
    parser.add_argument("--routings", type=lambda text: text.split(","), default=["own", "balanced"])
    parser.add_argument("--combines", type=lambda text: text.split(","), default=["index_add", "sum"])
    parser.add_argument("--whole-steps-only", action="store_true", help="not the experts alone")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--sextant", type=pathlib.Path, default=REPOSITORY / "build" / "cuda" / "sextant")
    parser.add_argument("--results", type=pathlib.Path, default=REPOSITORY / "bench" / "results" / "experts_gpu.json")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    arguments = parser.parse_intermixed_args()
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    results = {"date": str(datetime.date.today()), "gpu": gpu.stdout.strip(), "models": {}}
    missing = []
    print(f"{'model':<13}{'routing':<10}{'side':<18}{'tokens/s':>9}{'ms/step':>9}{'GiB':>7}{'first step s':>14}{'ratio':>8}{'memory':>8}")
    for name in arguments.models:
        file = REPOSITORY / "configs" / "bench" / f"{name}.toml"
        config = tomllib.loads(file.read_text())
        tokens = random_tokens(config["model"]["vocab"])
        batch = config["batch"]["sequences"] * config["batch"]["seq"]
        results["models"][name] = {}
        for routing in arguments.routings:
            given = list(arguments.overrides)
            if routing == "balanced":
                arguments.overrides = [*given, "model.experts.forced_balance=true"]
            forced = ["--balanced"] if routing == "balanced" else []
            with tempfile.TemporaryDirectory() as directory:
                ours = run_sextant(arguments, file, pathlib.Path(directory))
                block = (None if arguments.whole_steps_only else
                         sextant_block(arguments, file, config["model"]["layers"], pathlib.Path(directory)))
            arguments.overrides = given
            rows = {"sextant": ours}
            for combine in arguments.combines:
                rows[f"torch {combine}"] = run_torch(config, "--tokens", str(tokens), "--steps", str(arguments.steps), "--combine", combine, *forced)
            alone = [] if arguments.whole_steps_only else arguments.combines
            blocks = [run_torch(config, "--block", "--combine", combine, *forced) for combine in alone]
            blocks = {weights: min(one["block_s"][weights] for one in blocks if one) for weights in ("f32", "bf16") if any(blocks)}
            results["models"][name][routing] = {**rows, "block_s": {"sextant": block, "torch": blocks}}
            for side, row in rows.items():
                if not row:
                    continue
                against = ("" if side == "sextant" or not ours else
                           f"{row['step_s'] / ours['step_s']:>7.3f}x{ours['peak_bytes'] / row['peak_bytes']:>7.3f}x")
                print(f"{name:<13}{routing:<10}{side:<18}{batch / row['step_s']:>9.0f}{1e3 * row['step_s']:>9.2f}"
                      f"{row['peak_bytes'] / 2**30:>7.1f}{row['first_step_s'] or 0:>14.1f}{against}", flush=True)
            torch = [row for side, row in rows.items() if side != "sextant" and row]
            if ours and torch:
                best = min(torch, key=lambda row: row["step_s"])
                speed, memory = best["step_s"] / ours["step_s"], ours["peak_bytes"] / best["peak_bytes"]
                missing += [f"{name}, {routing}: {speed:.3f}x, {REQUIRED_SPEED[name]} wanted"] * (speed < REQUIRED_SPEED[name])
                missing += [f"{name}, {routing}: {memory:.3f}x of the memory, at most {MOST_MEMORY} wanted"] * (memory > MOST_MEMORY)
                missing += [f"{name}, {routing}: first step after {ours['first_step_s']:.1f} s"] * (ours["first_step_s"] > FIRST_STEP_S)
            if block and blocks:
                others = ", ".join(f"PyTorch with {weights} weights {1e3 * seconds:.2f} ms ({seconds / block:.2f}x)" for weights, seconds in blocks.items())
                print(f"{name:<13}{routing:<10}experts alone: {1e3 * block:.2f} ms, {others}", flush=True)
                missing += [f"{name}, {routing}: experts alone {blocks['f32'] / block:.2f}x, {LEAST_BLOCK} wanted"] * (blocks["f32"] < LEAST_BLOCK * block)
            arguments.results.write_text(json.dumps(results, indent=1) + "\n")  # what is done is kept
    for line in missing:
        print(line)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
