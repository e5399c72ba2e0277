"""Training in fp8 on one Hopper GPU: Sextant in bf16 and in fp8 beside torch.compile in bf16 and in fp8, all in one run.

  bench/gpu_fp8_peer.py [--models NAME,...] [--recipes NAME,...] [--steps N] [--sextant FILE] [key=value ...]

Prints tokens/s, memory and the ratios, and of Sextant's fp8 steps how much time products in fp8, quantising and everything else take (from
`train --profile`, op by op). Ends with 1 where `fp8` is less than REQUIRED times Sextant's own bf16, or less than BESIDE_TORCH times PyTorch's
fp8 (dynamic scaling of whole tensors, bench/torch_fp8_linear.py). Writes bench/results/fp8_gpu.json. Needs a Python with PyTorch.
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import tomllib

import gpu_train_peer as peer

REQUIRED = {"llama-8b-8l": 1.25, "llama-3b": 1.15}  # of the tokens/s of Sextant's own bf16
BESIDE_TORCH = 1.15                                 # of those of torch.compile in fp8
PRODUCTS, QUANTISING = ("fp8_linear", "fp8_block_linear"), ("absmax", "quantize_")


def shares_of_time(arguments, config, recipe, directory):
    """The shares of a step's time in products of fp8 operands, in quantising, and in all other ops."""
    step = arguments.steps // 2
    environment = dict(os.environ, SEXTANT_CACHE=str(directory / "cache"))  # as tuned by the timed run before
    if cudnn := peer.torch_cudnn():
        environment["LD_LIBRARY_PATH"] = f"{cudnn}:{environment.get('LD_LIBRARY_PATH', '')}"
    out = directory / "profile"
    command = [arguments.sextant, "train", config, "--out", out, "--profile", str(step), "device=cuda", f"train.steps={step}",
               f"train.precision={recipe}", *arguments.overrides]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        print(done.stdout[-500:], done.stderr[-500:])
        return None
    events = json.loads((out / f"profile-step-{step}.json").read_text())
    events = events["traceEvents"] if isinstance(events, dict) else events
    seconds = collections.Counter()
    for event in events:
        if event.get("ph") != "X":
            continue
        kind = ("products" if event["name"].startswith(PRODUCTS) else
                "quantising" if event["name"].startswith(QUANTISING) else "rest")
        seconds[kind] += event["dur"]
    return {kind: seconds[kind] / max(1e-9, sum(seconds.values())) for kind in ("products", "quantising", "rest")}


def sextant_side(arguments, config, precision, directory):
    directory.mkdir()
    timed = argparse.Namespace(**{**vars(arguments), "overrides": [f"train.precision={precision}", *arguments.overrides]})
    row = peer.run_sextant(timed, config, directory)
    if row and precision != "bf16":
        row["shares"] = shares_of_time(arguments, config, precision, directory)
    return row


def shortfalls(name, rows, recipes):
    def ratio(side, to):
        return rows[to]["step_s"] / rows[side]["step_s"] if rows.get(side) and rows.get(to) else None
    found = []
    wanted = [("sextant fp8", "sextant bf16", REQUIRED.get(name, 1)), ("sextant fp8", "torch compile-fp8", BESIDE_TORCH)]
    for side, to, least in wanted if "fp8" in recipes else []:
        speed = ratio(side, to)
        if speed is None:
            found.append(f"{name}: {side} or {to} is missing")
        elif speed < least:
            found.append(f"{name}: {side} has {speed:.3f}x of the tokens/s of {to}, {least} wanted")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(REQUIRED))
    parser.add_argument("--recipes", type=lambda text: text.split(","), default=["fp8", "fp8-block"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--sextant", type=pathlib.Path, default=peer.REPOSITORY / "build" / "cuda" / "sextant")
    parser.add_argument("--results", type=pathlib.Path, default=peer.REPOSITORY / "bench" / "results" / "fp8_gpu.json")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    arguments = parser.parse_intermixed_args()
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    results = {"date": str(datetime.date.today()), "gpu": gpu.stdout.strip(), "models": {}}
    missing = []
    print(f"{'model':<14}{'side':<20}{'tokens/s':>10}{'ms/step':>9}{'GiB':>7}{'of own bf16':>13}{'of torch fp8':>14}  products quantising  rest")
    for name in arguments.models:
        config = peer.REPOSITORY / "configs" / "bench" / f"{name}.toml"
        shape = peer.shape_of(tomllib.loads(config.read_text()))
        tokens = peer.random_tokens(shape["vocab"])
        rows = {}
        with tempfile.TemporaryDirectory() as directory:
            for precision in ["bf16", *arguments.recipes]:
                rows[f"sextant {precision}"] = sextant_side(arguments, config, precision, pathlib.Path(directory) / precision)
        for mode in ("compile", "compile-fp8"):
            rows[f"torch {mode}"] = peer.run_torch(arguments, shape, tokens, mode)
        results["models"][name] = rows
        for side, row in rows.items():
            if not row:
                continue
            own = rows.get(f"{side.split()[0]} {'bf16' if side.startswith('sextant') else 'compile'}")
            torch = rows.get("torch compile-fp8")
            against = "".join(f"{other['step_s'] / row['step_s']:>{width}.3f}x" if other else " " * (width + 1)
                              for other, width in ((own, 12), (torch, 13)))
            shares = row.get("shares")
            parts = "".join(f"{100 * shares[kind]:>9.1f}%" for kind in ("products", "quantising", "rest")) if shares else ""
            print(f"{name:<14}{side:<20}{shape['batch'] * shape['seq'] / row['step_s']:>10.0f}{1e3 * row['step_s']:>9.2f}"
                  f"{row['peak_bytes'] / 2**30:>7.1f}{against}{parts}", flush=True)
        missing += shortfalls(name, rows, arguments.recipes)
        arguments.results.write_text(json.dumps(results, indent=1) + "\n")  # what is done is kept
    for line in missing:
        print(line)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
