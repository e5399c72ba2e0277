"""Sextant's `train` beside PyTorch on this CPU: same model shape, same batch, fp32, AdamW. Tokens/s and peak memory.

  bench/train_peer.py [--config FILE] [--modes MODE,...] [--rounds N] [key=value ...]

Runs `sextant train` on the config (with the key=value overrides) in a temporary directory, then bench/torch_train.py in
each mode with the shape that the run wrote; with several rounds the sides take turns and each keeps its fastest round.
Prints a table, and writes bench/results/train_cpu.json. Refuses to measure beside other work unless told --busy. Needs build/release/sextant and, for PyTorch, scripts/peers.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile
import tomllib

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
TORCH_TRAIN = REPOSITORY / "bench" / "torch_train.py"
WARMUP = 3  # steps that count for neither side
IDLE_LOAD = 0.5  # of the last minute: other work would count for the side whose turn it is


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=pathlib.Path, default=REPOSITORY / "configs" / "bench" / "cpu-20m.toml")
    parser.add_argument("--sextant", type=pathlib.Path, default=REPOSITORY / "build" / "release" / "sextant")
    parser.add_argument("--python", type=pathlib.Path, default=REPOSITORY / "build" / "peers" / "bin" / "python")
    parser.add_argument("--modes", type=lambda text: text.split(","), default=["eager", "compile", "compile-chunked"])
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--results", type=pathlib.Path, default=REPOSITORY / "bench" / "results" / "train_cpu.json")
    parser.add_argument("--busy", action="store_true", help="measure beside other work too; the report says how much there was")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    return parser.parse_args()


def fail(message):
    sys.exit(f"train_peer.py: {message}")


def run_sextant(arguments, directory):
    """The figures of one run below `directory`, and the shape that PyTorch must match."""
    out, log = directory / "run", directory / "output.txt"
    command = [arguments.sextant, "train", arguments.config, "--out", out, *arguments.overrides]
    with open(log, "w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        # wait4 rather than wait: it gives this child's own peak memory and CPU time.
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        fail(f"`{' '.join(map(str, command))}` ended with {process.returncode}:\n{log.read_text()}")
    lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
    if len(lines) < WARMUP + 10:
        fail(f"{len(lines)} steps are too few: {WARMUP} to warm up and at least 10 to measure (train.steps=13)")
    step = statistics.median(line["step_s"] for line in lines[WARMUP:])
    shape = read_shape(out)
    return shape, {
        "tokens_per_s": round(shape["batch"] * shape["seq"] / step, 1), "step_s": round(step, 4),
        "fastest_step_s": round(min(line["step_s"] for line in lines[WARMUP:]), 4),
        "peak_rss_mb": round(usage.ru_maxrss * 1024 / 1e6, 1), "arena_mb": round(lines[-1]["arena_bytes"] / 1e6, 1),
        "cpu_s_whole_run": round(usage.ru_utime + usage.ru_stime, 1), "steps": len(lines),
        "losses": [line["loss"] for line in lines]}


def read_shape(out):
    """From what the run itself wrote: the checkpoint's Hugging Face config and the resolved config.toml."""
    checkpoints = sorted(out.rglob("config.json"))
    if not checkpoints:
        fail(f"the run left no checkpoint with a config.json in {out}")
    model = json.loads(checkpoints[-1].read_text())
    if model["model_type"] != "llama" or not model["tie_word_embeddings"]:
        fail("bench/torch_train.py has only Llama-type models with a tied head")
    if model.get("head_dim", 0) not in (0, model["hidden_size"] // model["num_attention_heads"]):
        fail("bench/torch_train.py has only heads of hidden / heads")
    batch = tomllib.loads((out / "config.toml").read_text())["batch"]
    return {"layers": model["num_hidden_layers"], "hidden": model["hidden_size"], "heads": model["num_attention_heads"],
            "kv-heads": model["num_key_value_heads"], "ffn": model["intermediate_size"], "vocab": model["vocab_size"],
            "seq": batch["seq"], "batch": batch["sequences"]}


def run_torch(arguments, shape, steps, mode):
    options = [text for name, value in shape.items() for text in ("--" + name, str(value))]
    done = subprocess.run([arguments.python, TORCH_TRAIN, "--mode", mode, "--warmup", str(WARMUP), "--steps",
                           str(steps - WARMUP), *options], stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        fail(f"bench/torch_train.py --mode {mode} ended with {done.returncode}")
    return json.loads(done.stdout)


def cpu_name():
    listing = subprocess.run(["lscpu"], stdout=subprocess.PIPE, text=True).stdout
    names = [line.split(":", 1)[1].strip() for line in listing.splitlines() if line.startswith("Model name")]
    return names[0] if names else platform.machine()


def sextant_version(binary):
    done = subprocess.run([binary, "--version"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip() if done.returncode == 0 else None


def faster(one, other):
    return other if one is None or other["tokens_per_s"] > one["tokens_per_s"] else one


def print_table(sextant, torch_runs):
    print(f"{'':24}{'tokens/s':>12}{'peak MB':>12}{'Sextant is':>14}{'with memory':>14}")
    print(f"{'sextant':24}{sextant['tokens_per_s']:12.0f}{sextant['peak_rss_mb']:12.0f}")
    for mode, run in torch_runs.items():
        speed, memory = sextant["tokens_per_s"] / run["tokens_per_s"], sextant["peak_rss_mb"] / run["peak_rss_mb"]
        print(f"{'torch ' + mode:24}{run['tokens_per_s']:12.0f}{run['peak_rss_mb']:12.0f}"
              f"{speed:12.2f} x{memory:12.2f} x")


def main():
    arguments = parse_arguments()
    for path, remedy in ((arguments.sextant, "build it: cmake --preset release && cmake --build --preset release"),
                         (arguments.python, "run scripts/peers"), (arguments.config, "name one with --config")):
        if not path.exists():
            fail(f"{path} is not there; {remedy}")
    load = os.getloadavg()[0]
    if load > IDLE_LOAD and not arguments.busy:
        fail(f"other work runs on this machine (load {load:.2f}, expected at most {IDLE_LOAD}): wait for it, or give --busy and another --results")
    sextant, torch_runs, shape = None, {mode: None for mode in arguments.modes}, None
    for _ in range(arguments.rounds):
        with tempfile.TemporaryDirectory() as directory:
            shape, run = run_sextant(arguments, pathlib.Path(directory))
        sextant = faster(sextant, run)
        for mode in arguments.modes:
            torch_runs[mode] = faster(torch_runs[mode], run_torch(arguments, shape, run["steps"], mode))
    print_table(sextant, torch_runs)
    best_speed = max(run["tokens_per_s"] for run in torch_runs.values())
    least_memory = min(run["peak_rss_mb"] for run in torch_runs.values())
    report = {
        "date": datetime.date.today().isoformat(), "cpu": cpu_name(), "cores": len(os.sched_getaffinity(0)),
        "load_before": round(load, 2), "sextant_version": sextant_version(arguments.sextant),
        "python": platform.python_version(), "shape": shape, "dtype": "fp32", "rounds": arguments.rounds,
        "overrides": arguments.overrides, "sextant": sextant, "torch": torch_runs,
        "speed_over_best_torch": round(sextant["tokens_per_s"] / best_speed, 3),
        "memory_over_least_torch": round(sextant["peak_rss_mb"] / least_memory, 3)}
    arguments.results.parent.mkdir(parents=True, exist_ok=True)
    arguments.results.write_text(json.dumps(report, indent=2) + "\n")
    if load > IDLE_LOAD:
        print(f"The machine was busy (load {load:.1f}): take these figures as rough.")


if __name__ == "__main__":
    main()
