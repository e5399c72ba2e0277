"""What training loses by narrower numbers: fp8 products, optimizer states and weights in fewer bits, each beside bf16 products with f32 states.

  bench/narrow_losses.py [--preset NAME] [--kinds NAME,...] [--seeds N] [--kind-seeds N] [--steps N] [--at-once N] [--device cuda] [--sextant FILE]
                         [KEY=VALUE…]

Runs of one seed have the same weights, data and order. The reference (`bf16`) is trained with every seed, the other kinds with the first, or the
first N. Prints for each run the mean loss of its last 100 steps, its distance from the reference of its seed, that beside the spread of the
reference's seeds, the bytes of the arena and tokens/s (of runs that share the device where --at-once is more than 1); for kinds with several seeds
the mean of their distances. Trailing KEY=VALUE go to every run: `data.train=FILE.jsonl` trains on another text than the built-in stories.
"""
import argparse
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
REFERENCE = "bf16"
KINDS = {
    REFERENCE: [],
    "bf16-again": [],  # the same once more: what rounding in another order alone does
    "fp8": ["train.precision=fp8"],
    "fp8-block": ["train.precision=fp8-block"],
    "bf16-state": ["optimizer.state=bf16"],
    "int8-state": ["optimizer.state=int8"],
    "bf16-weights": ["train.master_weights=bf16"],
    "bf16-state-and-weights": ["optimizer.state=bf16", "train.master_weights=bf16"],
    "int8-state-bf16-weights": ["optimizer.state=int8", "train.master_weights=bf16"],
}
CONFIG = """[model]
preset = "{preset}"
vocab = 16384
[data]
stories_bytes = 200000000
tokenizer_vocab = 16384
cache = "{cache}"
[batch]
sequences = 16
microbatch = 16
seq = 1024
[optimizer]
lr = 6e-4
warmup = 100
schedule = "constant"
[train]
eval_every = 0
log_every = 100
[checkpoint]
at_end = false
"""


def train(sextant, config, out, settings):
    command = [str(sextant), "train", str(config), "--out", str(out), *settings]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", default="gpt2")
    parser.add_argument("--kinds", type=lambda text: text.split(","), default=[kind for kind in KINDS if KINDS[kind]])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--kind-seeds", type=int, default=1)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--at-once", type=int, default=1)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sextant", type=pathlib.Path, default=REPOSITORY / "build" / "cuda" / "sextant")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE")
    arguments = parser.parse_intermixed_args()
    for kind in arguments.kinds:
        if kind not in KINDS:
            parser.error(f"--kinds: no {kind}; there are {', '.join(KINDS)}")
    if not 1 <= arguments.kind_seeds <= arguments.seeds:
        parser.error(f"--kind-seeds: {arguments.kind_seeds}; 1 to {arguments.seeds}, those that the reference has")
    last = min(100, arguments.steps)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        config = directory / "run.toml"
        config.write_text(CONFIG.format(preset=arguments.preset, cache=directory / "cache"))
        shared = [f"device={arguments.device}", *arguments.settings]
        train(arguments.sextant, config, directory / "data", [*shared, "train.steps=1", "optimizer.warmup=0"])  # makes the cache of tokens

        def measure(kind, seed):
            steps = train(arguments.sextant, config, directory / f"{kind}-{seed}",
                          [*shared, f"train.steps={arguments.steps}", f"train.seed={seed}", *KINDS[kind]])
            return {"loss": sum(step["loss"] for step in steps[-last:]) / last, "arena": steps[-1]["arena_bytes"],
                    "speed": sum(step["tokens_per_s"] for step in steps[-last:]) / last}

        seeds = range(1, arguments.seeds + 1)
        wanted = [(REFERENCE, seed) for seed in seeds] + [(kind, seed) for kind in arguments.kinds for seed in seeds[:arguments.kind_seeds]]
        print(f"{arguments.preset}, {arguments.steps} steps, the mean loss of the last {last}")
        print(f"{'kind':26}{'seed':>5}{'loss':>10}{'distance':>12}{'of the spread':>15}{'arena bytes':>18}{'tokens/s':>12}")
        with concurrent.futures.ThreadPoolExecutor(arguments.at_once) as pool:
            results = {}
            for (kind, seed), row in zip(wanted, pool.map(lambda run: measure(*run), wanted)):
                results[kind, seed] = row
                references = [results[REFERENCE, s]["loss"] for s in seeds if (REFERENCE, s) in results]
                spread = max(references) - min(references)
                row["distance"] = row["loss"] - results[REFERENCE, seed]["loss"]
                row["percent"] = 100 * row["distance"] / results[REFERENCE, seed]["loss"]
                compared = (f"{row['percent']:>+10.3f} %{abs(row['distance']) / spread if spread else float('nan'):>15.2f}"
                            if kind != REFERENCE else " " * 27)
                print(f"{kind:26}{seed:>5}{row['loss']:>10.5f}{compared}{row['arena']:>18,}{row['speed']:>12.0f}", flush=True)
        for kind in arguments.kinds if arguments.kind_seeds > 1 else []:
            distances = [results[kind, seed]["percent"] for seed in seeds[:arguments.kind_seeds]]
            print(f"{kind}: mean distance {sum(distances) / len(distances):+.3f} % over {len(distances)} seeds")


if __name__ == "__main__":
    main()
