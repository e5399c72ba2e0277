"""Losses of 200 steps beside PyTorch's, from the same weights on the same data: do we train the same model?

  bench/gpu_losses_peer.py [--model gpt2|llama] [--steps N] [--sextant FILE] [--reference MODE]

A small model on the built-in stories. Sextant writes initial weights (one step at a learning rate of 0, which leaves them as drawn),
PyTorch loads them and reads the samples in the order that `sextant data order` prints. Prints both curves' means over the last 50 steps.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
SHAPES = {"gpt2": {"architecture": "gpt2", "layers": 6, "hidden": 384, "heads": 6, "ffn": 1536, "max_seq": 256},
          "llama": {"architecture": "llama", "layers": 6, "hidden": 512, "heads": 8, "kv_heads": 2, "ffn": 1408, "max_seq": 256,
                    "rope_theta": 10000.0}}
BATCH, SEQ = 32, 256


def write_config(path, model, tokens):
    """A run on `tokens` of a model given by its fields, or by the directory it starts from."""
    text = "[model]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in model.items())
    text += f"""[data]
train = "{tokens}"
format = "tokens-u32"
validation_fraction = 0.0
[batch]
sequences = {BATCH}
microbatch = {BATCH}
seq = {SEQ}
[optimizer]
schedule = "constant"
[train]
eval_every = 0
log_every = 50
"""
    path.write_text(text)
    return path


def run(command):
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def make_tokens(sextant, directory, vocab):
    """Stories as text, tokenized: something to learn, so that the curves have a slope to disagree on."""
    run([sextant, "train", REPOSITORY / "configs" / "tiny-llama.toml", "--out", directory / "first", "device=cpu", "train.steps=1",
         "data.stories_bytes=12000000", f"data.tokenizer_vocab={vocab}", f"data.cache={directory}/cache", "train.eval_every=0",
         "optimizer.warmup=0", "model.layers=1", f"model.vocab={vocab}"])
    import numpy as np
    largest = max((p for p in (directory / "cache").rglob("*.bin")), key=lambda p: p.stat().st_size)
    np.fromfile(largest, dtype=np.uint16).astype(np.uint32).tofile(directory / "tokens.bin")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=SHAPES, default="gpt2")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--sextant", type=pathlib.Path, default=REPOSITORY / "build" / "cuda" / "sextant")
    parser.add_argument("--reference", default="eager")
    arguments = parser.parse_args()
    shape, vocab = SHAPES[arguments.model], 4096
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        make_tokens(arguments.sextant, directory, vocab)
        fresh = write_config(directory / "fresh.toml", {**shape, "vocab": vocab, "tied_head": True}, directory / "tokens.bin")
        run([arguments.sextant, "train", fresh, "--out", directory / "start", "device=cuda", "train.precision=f32", "optimizer.lr=0",
             "train.steps=1"])
        start = max((directory / "start").glob("step-*"))
        config = write_config(directory / "from.toml", {"from": str(start)}, directory / "tokens.bin")
        run([arguments.sextant, "train", config, "--out", directory / "ours", "device=cuda", f"train.steps={arguments.steps}",
             "checkpoint.at_end=false"])
        ours = [json.loads(line)["loss"] for line in (directory / "ours" / "metrics.jsonl").read_text().splitlines()]
        (directory / "order.json").write_text(run([arguments.sextant, "data", "order", config, "--samples", arguments.steps * BATCH]))
        torch_shape = {**shape, "kv_heads": shape.get("kv_heads", shape["heads"]), "vocab": vocab, "batch": BATCH, "seq": SEQ,
                       "rope_theta": shape.get("rope_theta", 10000.0)}
        theirs = json.loads(run([sys.executable, REPOSITORY / "bench" / "torch_gpu_step.py", "--shape", json.dumps(torch_shape), "--tokens",
                                 directory / "tokens.bin", "--mode", arguments.reference, "--steps", arguments.steps, "--weights", start,
                                 "--rows", directory / "order.json"]).splitlines()[-1])["losses"]
    last = min(50, arguments.steps)
    ours_mean, theirs_mean = sum(ours[-last:]) / last, sum(theirs[-last:]) / last
    for step in [0, 1, 2, 4, 9, 19, 49, 99, 149, arguments.steps - 1]:
        if step < len(ours):
            print(f"step {step + 1:>4}  sextant {ours[step]:.5f}  torch {theirs[step]:.5f}")
    print(f"{arguments.model}: mean of the last {last}: sextant {ours_mean:.5f}, torch {theirs_mean:.5f}, "
          f"{100 * (ours_mean / theirs_mean - 1):+.3f} %; largest difference of a step "
          f"{100 * max(abs(a / b - 1) for a, b in zip(ours, theirs)):.3f} %")
    sys.exit(0 if abs(ours_mean / theirs_mean - 1) < 0.005 else 1)


if __name__ == "__main__":
    main()
