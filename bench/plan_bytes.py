"""Holds `plan CONFIG --machine h200` to the bytes that `train device=cuda` allocates, rank by rank, on the GPU of this machine.

  bench/plan_bytes.py [--sextant FILE] [--planner FILE] [--machine NAME] [--only TEXT] [--device cpu]

The four models of configs/bench as they are, every way to recompute of two of them, repeatable and f32 runs, evaluation, ZeRO 1 to 3 and
tp2·pp2 on ranks that share the GPU. Each case plans, then trains one step on random tokens, and reads `arena_bytes_by_rank` of its first
line of metrics. `--planner` names the program that plans, so that a build without CUDA can be held to it. Writes a table; the last line
says how many are equal, and the exit status is 1 where any is not, or where no case was chosen. With `--device cpu` the tiny configs are planned for this processor
and trained on it: a check of the script where there is no GPU.
"""
import argparse
import array
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import tomllib

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
RECOMPUTE = ("none", "norms", "selective", "alternate", "full")
SMALL = ("batch.sequences=4", "batch.microbatch=1", "batch.seq=512")


def gpu_cases():
    for name in ("gpt2-124m", "gpt2-1.5b", "llama-1b", "llama-3b"):
        yield f"bench/{name}", ()
    for name in ("gpt2-124m", "llama-1b"):
        for mode in RECOMPUTE:
            yield f"bench/{name}", (f"train.recompute={mode}", *SMALL)
        yield f"bench/{name}", ("train.deterministic=true", *SMALL)
        yield f"bench/{name}", ("train.precision=f32", *SMALL)
        yield f"bench/{name}", ("data.validation_fraction=0.1", "train.eval_every=1", "train.eval_sequences=4", *SMALL)
        for zero in (1, 2, 3):
            yield f"bench/{name}", ("mesh.dp=2", f"mesh.zero={zero}", *SMALL)
        yield f"bench/{name}", ("mesh.tp=2", "mesh.pp=2", *SMALL)
        yield f"bench/{name}", ("mesh.tp=2", "mesh.sequence_parallel=true", "mesh.cp=2", *SMALL)


def cpu_cases():
    for name in ("tiny-gpt2", "tiny-llama"):
        for mode in RECOMPUTE:
            yield name, (f"train.recompute={mode}",)
        for zero in (1, 2, 3):
            yield name, ("mesh.dp=2", f"mesh.zero={zero}")
        yield name, ("mesh.tp=2", "mesh.pp=2")


def random_tokens(folder, vocab, count=1 << 18):
    path = folder / f"tokens-{vocab}.u32"
    if not path.exists():
        drawn = random.Random(1)
        array.array("I", (drawn.randrange(vocab) for _ in range(count))).tofile(open(path, "wb"))
    return path


def run(command):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, cwd=REPOSITORY, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}\nexit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def planned_bytes(sextant, config, settings, target):
    plan = json.loads(run([sextant, "plan", config, *settings, *target, "--json"]))
    stages = [rank["arena_bytes"] for rank in plan["memory"]["ranks"]]
    each = plan["ranks"] // len(stages)  # the pipeline is the mesh's outermost axis
    return [bytes_of_stage for bytes_of_stage in stages for _ in range(each)]


def allocated_bytes(sextant, config, settings, out):
    run([sextant, "train", config, *settings, "train.steps=1", "optimizer.warmup=0", "checkpoint.at_end=false", "checkpoint.every=0", "--out", out])
    return json.loads((out / "metrics.jsonl").read_text().splitlines()[0])["arena_bytes_by_rank"]


def compare(arguments, folder, config, settings):
    path = REPOSITORY / "configs" / f"{config}.toml"
    data = tomllib.loads(path.read_text())["data"]
    if data.get("format") == "tokens-u32":
        vocab = tomllib.loads(path.read_text())["model"]["vocab"]
        settings = (*settings, f"data.train={random_tokens(folder, vocab)}")
    settings = (*settings, f"data.cache={folder / 'cache'}")
    device = (f"device={arguments.device}",)
    target = ("--machine", arguments.machine) if arguments.device == "cuda" else device
    with tempfile.TemporaryDirectory(dir=folder) as out:
        planned = planned_bytes(arguments.planner, path, settings, target)
        return planned, allocated_bytes(arguments.sextant, path, (*settings, *device), pathlib.Path(out) / "run")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sextant", type=pathlib.Path, default=REPOSITORY / "build" / "cuda" / "sextant")
    parser.add_argument("--planner", type=pathlib.Path, help="the program that plans, where it is another one")
    parser.add_argument("--machine", default="h200")
    parser.add_argument("--only", default="", help="cases whose text has this in it")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    arguments = parser.parse_args()
    arguments.sextant = arguments.sextant.resolve()
    arguments.planner = (arguments.planner or arguments.sextant).resolve()
    equal = total = 0
    with tempfile.TemporaryDirectory() as name:
        for config, settings in gpu_cases() if arguments.device == "cuda" else cpu_cases():
            text = f"{config} {' '.join(settings)}"
            if arguments.only not in text:
                continue
            total += 1
            try:
                planned, allocated = compare(arguments, pathlib.Path(name), config, settings)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"FAILED  {text}\n{error}", flush=True)
                continue
            equal += planned == allocated
            figures = ", ".join(f"{bytes_:,}" for bytes_ in sorted(set(allocated), reverse=True))
            said = "equal " if planned == allocated else "DIFFER"
            print(f"{said}  {text}: {len(allocated)} rank{'s' * (len(allocated) > 1)} of {figures} bytes"
                  + ("" if planned == allocated else f"; planned {planned}"), flush=True)
    if total == 0:
        sys.exit(f"no case has \"{arguments.only}\" in its text: nothing was compared")
    print(f"{equal} of {total} equal")
    sys.exit(equal != total)


if __name__ == "__main__":
    main()
