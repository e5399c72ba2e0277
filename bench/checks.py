#!/usr/bin/env python3
"""What the checks for silent corruption cost (docs/running.md): runs of one model with and without them, in turn, so that
both sides of every ratio come from one run of this program.

  bench/checks.py [--sextant build/release/sextant] [--config configs/demo.toml] [--steps 10] [--turns 3]
  bench/checks.py --device cuda --config configs/bench/llama-1b.toml data.train=TOKENS.u32    on a GPU, where one rank is measured
  bench/checks.py --clean STEPS [--only experts]    trains tiny models for so many steps with every check on, and says what they raised;
                                                    exit status 1: an alarm, or a run that did not make all of its steps

Two figures of a step, each that of a long run less that of a short one: processor time, which other work on the machine
disturbs little, and time by the clock. Both hold all that a step costs: step_s of metrics.jsonl leaves out what is done between
steps, such as the copies of microbatches. Of a GPU the median of step_s counts, by the device's clock. Of the turns the least counts."""
import argparse
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time

WARM_UP = 3
ONE = ["train.threads=2"]
ON_GPU = ["device=cuda"]
TWO = ["mesh.dp=2", "train.threads=2", "batch.microbatch=2"]
SIDES = [
    ("one rank", ONE, [("no check", []),
                       ("check_memory", ["train.check_memory=true"]),
                       ("check_gemms=0.01", ["train.check_gemms=0.01"]),
                       ("check_gemms=0.1", ["train.check_gemms=0.1"]),
                       ("check_gemms=1", ["train.check_gemms=1"])]),
    ("dp = 2", TWO, [("no check", []),
                     ("check_memory", ["train.check_memory=true"]),
                     ("check_replicas_every=1", ["train.check_replicas_every=1"]),
                     ("check_collectives=0.1", ["train.check_collectives=0.1"]),
                     ("check_collectives=1", ["train.check_collectives=1"]),
                     ("check_microbatch_every=1", ["train.check_microbatch_every=1"])]),
]
CLEAN = [
    ("f32", "configs/tiny-llama.toml", ["mesh.dp=2", "train.check_gemms=1", "train.check_collectives=1", "train.check_memory=true",
                                        "train.check_microbatch_every=10", "train.check_replicas_every=10"]),
    ("fp8 emulated", "configs/tiny-llama.toml", ["mesh.dp=2", "train.precision=fp8", "train.check_gemms=1",
                                                 "train.check_collectives=1", "train.check_memory=true", "train.check_replicas_every=10"]),
    ("bf16 weights and state", "configs/tiny-llama.toml",
     ["mesh.dp=2", "train.master_weights=bf16", "optimizer.state=bf16", "train.check_gemms=1", "train.check_collectives=1", "train.check_memory=true",
      "train.check_microbatch_every=10", "train.check_replicas_every=10"]),
    ("f32, experts", "configs/tiny-moe.toml", ["train.check_gemms=1", "train.check_memory=true"]),
]


def train(asked, config, steps, settings, out):
    """The exit code, what was printed, and processor time and time by the clock, in seconds."""
    subprocess.run(["rm", "-rf", out], check=True)
    command = [asked.sextant, "train", config, f"train.steps={steps}", "train.eval_every=0", "checkpoint.at_end=false",
               "train.check_replicas_every=0", "train.check_memory=false", "optimizer.warmup=0", "--quiet", "--out", out, *settings]
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True)
    after, ended = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    return (done.returncode, done.stdout + done.stderr,
            (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, ended - began))


def step_seconds(asked, settings, folder):
    """Of the processor, and by the clock."""
    out = os.path.join(folder, "run")
    used = []
    for steps in (WARM_UP, WARM_UP + asked.steps) if asked.device == "cpu" else (WARM_UP + asked.steps,):
        code, said, seconds = train(asked, asked.config, steps,
                                    [f"data.cache={os.path.join(folder, 'cache')}", *settings], out)
        if code != 0:
            sys.exit(said)
        used.append(seconds)
    if asked.device == "cpu":
        return [(long - short) / asked.steps for short, long in zip(*used)]
    with open(os.path.join(out, "metrics.jsonl")) as lines:
        return 0, statistics.median([json.loads(line)["step_s"] for line in lines][WARM_UP:])


def print_costs(asked, folder):
    print(f"{asked.config}, {asked.steps} steps, {asked.turns} turns, {platform.machine()} with {os.cpu_count()} cores\n")
    measured = SIDES if asked.device == "cpu" else [("one GPU", ON_GPU, SIDES[0][2])]
    if asked.only and not any(asked.only in name for _, _, sides in measured for name, _ in sides):
        sys.exit(f"no check has \"{asked.only}\" in its name: nothing was measured")
    if asked.device == "cpu":
        step_seconds(asked, [*asked.settings, *measured[0][1]], folder)  # which makes the cache
    for title, base, sides in measured:
        sides = [one for one in sides if one[0] == "no check" or not asked.only or asked.only in one[0]]
        if len(sides) < 2:
            continue
        least = {}
        for _ in range(asked.turns):
            for name, settings in sides:
                now = step_seconds(asked, [*asked.settings, *base, *settings], folder)
                least[name] = [min(pair) for pair in zip(now, least.get(name, now))]
        for name, _ in sides:
            more = [f"{1e3 * own:8.1f} ms {100 * (own / plain - 1):+6.1f} %"
                    for own, plain in zip(least[name], least["no check"]) if plain > 0]
            processor = f"processor {more[0]}   " if asked.device == "cpu" else ""
            print(f"{title:<9} {name:<26} {processor}clock {more[-1]}", flush=True)


def print_alarms(asked, folder):
    chosen = [one for one in CLEAN if not asked.only or asked.only in one[0]]
    if not chosen:
        sys.exit(f"no run has \"{asked.only}\" in its name: nothing was trained")
    failed = False
    for name, config, settings in chosen:
        out = os.path.join(folder, "clean")
        code, said, _ = train(asked, config, asked.clean, ["train.log_every=100000", *settings, *asked.settings], out)
        with open(os.path.join(out, "metrics.jsonl")) as lines:
            steps = sum(1 for _ in lines)
        with open(os.path.join(out, "events.jsonl")) as lines:
            alarms = sum('"event":"corruption"' in line for line in lines)
        print(f"{name:<24} {' '.join(settings)}\n{'':<24} {steps} steps, {alarms} alarms, exit code {code}", flush=True)
        if code != 0 or alarms > 0 or steps != asked.clean:
            failed = True
            print(said)
    return failed


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--sextant", default="build/release/sextant")
    arguments.add_argument("--config", default="configs/demo.toml")
    arguments.add_argument("--steps", type=int, default=10)
    arguments.add_argument("--turns", type=int, default=3)
    arguments.add_argument("--clean", type=int, metavar="STEPS")
    arguments.add_argument("--only", metavar="NAME", help="only the checks, or with --clean the runs, with this in their name, such as memory")
    arguments.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    arguments.add_argument("settings", nargs="*", help="of every run, such as data.train=TOKENS.u32")
    asked = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        return print_alarms(asked, folder) if asked.clean else print_costs(asked, folder)


if __name__ == "__main__":
    sys.exit(main())
