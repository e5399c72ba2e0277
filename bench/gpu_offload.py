"""Training with offload beside training without it on one GPU: the same losses, the bytes and the time that were planned, and tokens/s, in one run.

  bench/gpu_offload.py [--config FILE] [--steps N] [--memory-limit GIB] [--machine FILE] [--sextant FILE] [--results FILE] [key=value ...]

CONFIG (configs/plan/llama3.1-8b-offload.toml) is trained on random tokens in deterministic mode, with every key of its [offload] turned off and then as
it is. The machine is measured first (`bench memory --save`), unless --machine names a file, and both sides are planned for it. Ends with 1 where losses
differ in any bit, an arena has other bytes than were planned, offload takes more of the device than --memory-limit (40), trains at less than REQUIRED times the
tokens/s without, or its step differs from the plan by more than PREDICTED. Trailing KEY=VALUE go to both sides, those of [offload] to the second alone. Writes
bench/results/offload_gpu.json.
"""
import argparse
import datetime
import json
import pathlib
import subprocess
import sys
import tempfile
import tomllib

import gpu_train_peer as peer

REQUIRED = 0.6    # of the tokens/s without offload
PREDICTED = 0.10  # of the step's time
DEFAULTS = {"optimizer": "false", "weights": "false", "working_weights": "false", "activations": "none"}


def measured_machine(arguments, directory):
    path = directory / "here.toml"
    command = [arguments.sextant, "bench", "memory", "--device", "cuda", "--mb", "1024", "--save", path]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"bench memory ended with {done.returncode}: {done.stderr[-500:]}")
    print(path.read_text())
    return path


def planned(arguments, machine, overrides):
    command = [arguments.sextant, "plan", arguments.config, "--machine", machine, "--json", *overrides]
    done = subprocess.run(command, capture_output=True, text=True)
    if not done.stdout.startswith("{"):
        sys.exit(f"plan ended with {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def side(arguments, machine, overrides, directory):
    directory.mkdir()
    plan = planned(arguments, machine, overrides)
    memory = plan["memory"]["ranks"][0]
    row = peer.run_sextant(argparse.Namespace(**{**vars(arguments), "overrides": overrides}), arguments.config, directory)
    if row is None:
        sys.exit(1)
    last = json.loads((directory / "run" / "metrics.jsonl").read_text().splitlines()[-1])
    return {**row, "host_bytes": last.get("host_arena_bytes", 0), "planned_s": plan["step"]["seconds"], "tokens": plan["tokens_per_step"],
            "planned_bytes": memory["arena_bytes"], "planned_host_bytes": memory.get("host", {}).get("arena_bytes", 0)}


def shortfalls(arguments, plain, offloaded):
    found = []
    if offloaded["losses"] != plain["losses"]:
        found.append(f"losses differ: {plain['losses']} without, {offloaded['losses']} with offload")
    for name, row in (("without", plain), ("with", offloaded)):
        for kind in ("", "host_"):
            taken = row["host_bytes"] if kind else row["peak_bytes"]
            if taken != row[f"planned_{kind}bytes"]:
                found.append(f"{name} offload: {taken} {kind}bytes, {row[f'planned_{kind}bytes']} planned")
    if offloaded["peak_bytes"] > arguments.memory_limit * 2**30:
        found.append(f"{offloaded['peak_bytes'] / 2**30:.2f} GiB of the device, {arguments.memory_limit} allowed")
    if (speed := plain["step_s"] / offloaded["step_s"]) < REQUIRED:
        found.append(f"{speed:.3f}x of the tokens/s without offload, {REQUIRED} wanted")
    if abs(offloaded["planned_s"] / offloaded["step_s"] - 1) > PREDICTED:
        found.append(f"planned {offloaded['planned_s']:.2f} s a step, taken {offloaded['step_s']:.2f}")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--config", type=pathlib.Path, default=peer.REPOSITORY / "configs" / "plan" / "llama3.1-8b-offload.toml")
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--memory-limit", type=float, default=40)
    parser.add_argument("--machine", type=pathlib.Path)
    parser.add_argument("--sextant", type=pathlib.Path, default=peer.REPOSITORY / "build" / "cuda" / "sextant")
    parser.add_argument("--results", type=pathlib.Path, default=peer.REPOSITORY / "bench" / "results" / "offload_gpu.json")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    arguments = parser.parse_intermixed_args()
    config = tomllib.loads(arguments.config.read_text())
    vocab = 128256 if "vocab" not in config["model"] else config["model"]["vocab"]  # that of Llama 3
    shared = [f"data.train={peer.random_tokens(vocab)}", "train.deterministic=true", "checkpoint.at_end=false",
              *(setting for setting in arguments.overrides if not setting.startswith("offload."))]
    off = [f"offload.{key}={value}" for key, value in DEFAULTS.items()]
    on = [setting for setting in arguments.overrides if setting.startswith("offload.")]
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        machine = arguments.machine or measured_machine(arguments, directory)
        plain = side(arguments, machine, shared + off, directory / "without")
        offloaded = side(arguments, machine, shared + on, directory / "with")
    print(f"{'offload':<10}{'tokens/s':>10}{'s/step':>9}{'planned':>9}{'GiB':>9}{'planned':>9}{'host GiB':>10}{'planned':>9}{'first step s':>14}  losses")
    for name, row in (("without", plain), ("with", offloaded)):
        print(f"{name:<10}{row['tokens'] / row['step_s']:>10.0f}{row['step_s']:>9.3f}{row['planned_s']:>9.3f}{row['peak_bytes'] / 2**30:>9.2f}"
              f"{row['planned_bytes'] / 2**30:>9.2f}{row['host_bytes'] / 2**30:>10.2f}{row['planned_host_bytes'] / 2**30:>9.2f}"
              f"{row['first_step_s'] or 0:>14.1f}  {' '.join(map(repr, row['losses']))}")
    arguments.results.write_text(json.dumps({"date": str(datetime.date.today()), "gpu": gpu.stdout.strip(), "without": plain, "with": offloaded},
                                            indent=1) + "\n")
    missing = shortfalls(arguments, plain, offloaded)
    for line in missing:
        print(line)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
