"""Sextant's `train` beside PyTorch on one GPU: tokens/s, peak memory and time to the first step, both sides in one run.

  bench/gpu_train_peer.py [--models NAME,...] [--modes MODE,...] [--steps N] [--sextant FILE] [key=value ...]

For each model of configs/bench the sides take turns; PyTorch's is bench/torch_gpu_step.py in each mode (compile: fp32 master weights
under torch.compile; compile-bf16; eager). Sextant starts with no algorithm cache, so that its first step is a newcomer's. Both train on
random tokens; each side's figure is the median of the second half of its steps. Writes bench/results/train_gpu.json, and fails when a model
falls short of what is asked of it beside `compile`. Needs a Python with PyTorch.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
import tomllib

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
# What must hold beside torch.compile: tokens/s at least, memory at most; and seconds from the start to the end of the first step.
REQUIRED = {"gpt2-124m": (1.10, 0.8), "gpt2-1.5b": (1.10, 0.8), "llama-1b": (1.04, 0.8), "llama-3b": (1.04, 0.9)}
FIRST_STEP_S = 10


def shortfalls(name, rows):
    ours, torch = rows.get("sextant"), rows.get("torch compile")
    if not ours or not torch:
        return [f"{name}: a side is missing"]
    speed, memory = torch["step_s"] / ours["step_s"], ours["peak_bytes"] / torch["peak_bytes"]
    least, most = REQUIRED[name]
    return ([f"{name}: {speed:.3f}x of torch.compile's tokens/s, {least} wanted"] * (speed < least) +
            [f"{name}: {memory:.3f}x of its memory, at most {most} wanted"] * (memory > most) +
            [f"{name}: first step after {ours['first_step_s']:.1f} s"] * ((ours["first_step_s"] or 0) > FIRST_STEP_S))


def random_tokens(vocab, count=1 << 23):
    path = REPOSITORY / "build" / "bench" / f"tokens-{vocab}.u32"
    if not path.exists():
        import numpy as np
        path.parent.mkdir(parents=True, exist_ok=True)
        np.random.default_rng(1).integers(0, vocab, count, dtype=np.uint32).tofile(path)
    return path


def shape_of(config):
    model, batch = config["model"], config["batch"]
    return {**model, "kv_heads": model.get("kv_heads", model["heads"]), "rope_theta": model.get("rope_theta", 10000.0),
            "batch": batch["sequences"], "seq": batch["seq"]}


def torch_cudnn():
    """The folder of the cuDNN that PyTorch brought along, so that both sides compute attention with the same one; None: the system's."""
    import importlib.util
    found = importlib.util.find_spec("nvidia")
    for place in (found.submodule_search_locations if found else []):
        if list(pathlib.Path(place).glob("cudnn/lib/libcudnn.so.9")):
            return pathlib.Path(place) / "cudnn" / "lib"
    return None


def run_sextant(arguments, config, out):
    environment = dict(os.environ, SEXTANT_CACHE=str(out / "cache"))
    if cudnn := torch_cudnn():
        environment["LD_LIBRARY_PATH"] = f"{cudnn}:{environment.get('LD_LIBRARY_PATH', '')}"
    command = [arguments.sextant, "train", config, "--out", out / "run", "device=cuda", f"train.steps={arguments.steps}",
               *arguments.overrides]
    begin, first = time.perf_counter(), None
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment)
    lines = []
    for line in process.stdout:
        lines.append(line)
        if first is None and line.startswith("step"):
            first = time.perf_counter() - begin
    if process.wait() != 0:
        print("".join(lines))
        return None
    metrics = [json.loads(line) for line in (out / "run" / "metrics.jsonl").read_text().splitlines()]
    late = sorted(m["step_s"] for m in metrics[len(metrics) // 2:])
    return {"step_s": late[len(late) // 2], "first_step_s": first, "peak_bytes": metrics[-1]["arena_bytes"],
            "settings": [setting.replace(f"{REPOSITORY}/", "") for setting in arguments.overrides], "losses": [m["loss"] for m in metrics]}


def run_torch(arguments, shape, tokens, mode, options=()):
    command = [sys.executable, REPOSITORY / "bench" / "torch_gpu_step.py", "--shape", json.dumps(shape), "--tokens", tokens,
               "--mode", mode, "--steps", str(arguments.steps), *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"PyTorch ({mode}) ended with {done.returncode}: {done.stderr[-500:]}")
        return None
    return json.loads(done.stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(REQUIRED))
    parser.add_argument("--modes", type=lambda text: [m for m in text.split(",") if m], default=["compile"])
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--sextant", type=pathlib.Path, default=REPOSITORY / "build" / "cuda" / "sextant")
    parser.add_argument("--results", type=pathlib.Path, default=REPOSITORY / "bench" / "results" / "train_gpu.json")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    arguments = parser.parse_intermixed_args()
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    results = {"date": str(datetime.date.today()), "gpu": gpu.stdout.strip(), "models": {}}
    missing = []
    print(f"{'model':<12}{'side':<22}{'tokens/s':>10}{'ms/step':>9}{'GiB':>7}{'first step s':>14}{'ratio':>7}{'memory':>8}")
    for name in arguments.models:
        config = REPOSITORY / "configs" / "bench" / f"{name}.toml"
        shape = shape_of(tomllib.loads(config.read_text()))
        tokens = random_tokens(shape["vocab"])
        with tempfile.TemporaryDirectory() as directory:
            ours = run_sextant(arguments, config, pathlib.Path(directory))
        rows = [("sextant", ours)] + [(f"torch {mode}", run_torch(arguments, shape, tokens, mode)) for mode in arguments.modes]
        results["models"][name] = dict(rows)
        missing += shortfalls(name, dict(rows)) if "compile" in arguments.modes else []
        for side, row in rows:
            if not row:
                continue
            against = ("" if side == "sextant" or not ours else
                       f"{row['step_s'] / ours['step_s']:>6.3f}x{ours['peak_bytes'] / row['peak_bytes']:>7.2f}x")
            print(f"{name:<12}{side:<22}{shape['batch'] * shape['seq'] / row['step_s']:>10.0f}{1e3 * row['step_s']:>9.2f}"
                  f"{row['peak_bytes'] / 2**30:>7.1f}{row['first_step_s'] or 0:>14.1f}{against}", flush=True)
        arguments.results.write_text(json.dumps(results, indent=1) + "\n")  # what is done is kept
    for line in missing:
        print(line)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
