"""What training loses by optimizer states and weights in fewer bits: a model of 124 M parameters on a GPU, once for each.

  bench/optimizer_states.py [--steps N] [--device cuda] [--sextant FILE] [KEY=VALUE…]

Every run has the same weights, data and order. Prints for each the mean loss of the last 100 steps, its distance from f32 states and f32
master weights, the bytes of the arena and tokens/s. Trailing KEY=VALUE go to every run.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
KINDS = {
    "f32": [],
    "bf16 state": ["optimizer.state=bf16"],
    "int8 state": ["optimizer.state=int8"],
    "bf16 weights": ["train.master_weights=bf16"],
    "bf16 state and weights": ["optimizer.state=bf16", "train.master_weights=bf16"],
    "int8 state, bf16 weights": ["optimizer.state=int8", "train.master_weights=bf16"],
}
CONFIG = """[model]
preset = "gpt2"
[batch]
sequences = 32
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
        sys.exit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sextant", type=pathlib.Path, default=REPOSITORY / "build" / "cuda" / "sextant")
    parser.add_argument("settings", nargs="*")
    arguments = parser.parse_args()
    last = min(100, arguments.steps)
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        config = directory / "run.toml"
        config.write_text(CONFIG)
        shared = [f"device={arguments.device}", f"train.steps={arguments.steps}", f"data.cache={directory}/cache",
                  "data.stories_bytes=200000000", "data.tokenizer_vocab=16384", "model.vocab=16384", *arguments.settings]
        reference = None
        print(f"{'kept':26}{'loss':>10}{'against f32':>14}{'arena bytes':>18}{'tokens/s':>12}")
        for kind, keys in KINDS.items():
            steps = train(arguments.sextant, config, directory / kind.replace(" ", "-"), [*shared, *keys])
            loss = sum(step["loss"] for step in steps[-last:]) / last
            reference = reference or loss
            speed = sum(step["tokens_per_s"] for step in steps[-last:]) / last
            print(f"{kind:26}{loss:>10.5f}{100 * (loss / reference - 1):>+12.3f} %{steps[-1]['arena_bytes']:>18,}{speed:>12.0f}", flush=True)


if __name__ == "__main__":
    main()
