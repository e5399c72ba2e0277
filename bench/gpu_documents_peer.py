"""Attention over packed documents on one GPU: Sextant with and without the mask of documents beside PyTorch's varlen and flex attention under
torch.compile, all in one run.

  bench/gpu_documents_peer.py [--models NAME,...] [--modes MODE,...] [--mean N] [--steps N] [--sextant FILE] [key=value ...]

Tokens are random, with an end of text behind every document; documents have half to one and a half times --mean tokens. Prints tokens/s, memory and
the ratios; ends with 1 where Sextant with the mask has less than REQUIRED times its tokens/s without, or less than BESIDE_TORCH times those of
PyTorch's quicker kind. Writes bench/results/documents_gpu.json. Needs a Python with PyTorch. With --mean 1000, as it is by default, both models
take about four minutes on an H200.
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

REQUIRED = {"gpt2-124m": 1.0, "llama-1b": 1.1}  # of the tokens/s without the mask
BESIDE_TORCH = 1.1
END_OF_TEXT = 0


def document_tokens(vocab, mean, count=1 << 23):
    path = peer.REPOSITORY / "build" / "bench" / f"documents-{vocab}-{mean}.u32"
    if not path.exists():
        import numpy as np
        random = np.random.default_rng(2)
        tokens = random.integers(1, vocab, count, dtype=np.uint32)
        lengths = random.integers(max(1, mean // 2), mean + mean // 2 + 1, 2 * count // mean)
        ends = lengths.cumsum() - 1
        tokens[ends[ends < count]] = END_OF_TEXT
        path.parent.mkdir(parents=True, exist_ok=True)
        tokens.tofile(path)
    return path


def sextant_side(arguments, config, tokens, masked, directory):
    directory.mkdir()
    overrides = [f"data.train={tokens}", f"data.mask_documents={'true' if masked else 'false'}", *arguments.overrides]
    if masked:
        overrides.append(f"data.end_of_text={END_OF_TEXT}")
    return peer.run_sextant(argparse.Namespace(**{**vars(arguments), "overrides": overrides}), config, directory)


def shortfalls(name, rows):
    masked, plain = rows.get("sextant masked"), rows.get("sextant unmasked")
    if not masked or not plain:
        return [f"{name}: a side of Sextant is missing"]
    found, speed = [], plain["step_s"] / masked["step_s"]
    if speed < REQUIRED.get(name, 1):
        found.append(f"{name}: masked has {speed:.3f}x of the tokens/s without the mask, {REQUIRED.get(name, 1)} wanted")
    others = [row["step_s"] for side, row in rows.items() if row and side in ("torch compile-varlen", "torch compile-flex")]
    if not others:
        return found + [f"{name}: PyTorch's sides are missing"]
    speed = min(others) / masked["step_s"]
    if speed < BESIDE_TORCH:
        found.append(f"{name}: masked has {speed:.3f}x of the tokens/s of PyTorch's quicker kind, {BESIDE_TORCH} wanted")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(REQUIRED))
    parser.add_argument("--modes", type=lambda text: [m for m in text.split(",") if m], default=["compile-varlen", "compile-flex"])
    parser.add_argument("--mean", type=int, default=1000, help="tokens of a document")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--sextant", type=pathlib.Path, default=peer.REPOSITORY / "build" / "cuda" / "sextant")
    parser.add_argument("--results", type=pathlib.Path, default=peer.REPOSITORY / "bench" / "results" / "documents_gpu.json")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    arguments = parser.parse_intermixed_args()
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    results = {"date": str(datetime.date.today()), "gpu": gpu.stdout.strip(), "mean": arguments.mean, "models": {}}
    missing = []
    print(f"{'model':<12}{'side':<24}{'tokens/s':>10}{'ms/step':>9}{'GiB':>7}{'of unmasked':>13}{'of its tokens/s, masked':>25}")
    for name in arguments.models:
        config = peer.REPOSITORY / "configs" / "bench" / f"{name}.toml"
        shape = peer.shape_of(tomllib.loads(config.read_text()))
        tokens = document_tokens(shape["vocab"], arguments.mean)
        rows = results["models"][name] = {}

        def add(side, row):
            rows[side] = row
            arguments.results.write_text(json.dumps(results, indent=1) + "\n")  # what is done is kept
            if not row:
                return
            plain, masked = rows.get("sextant unmasked"), rows.get("sextant masked")
            against = "".join(f"{ratio:>{width}.3f}x" if ratio else " " * (width + 1) for ratio, width in (
                (plain and plain["step_s"] / row["step_s"], 12), (masked and row["step_s"] / masked["step_s"], 24)))
            print(f"{name:<12}{side:<24}{shape['batch'] * shape['seq'] / row['step_s']:>10.0f}{1e3 * row['step_s']:>9.2f}"
                  f"{row['peak_bytes'] / 2**30:>7.1f}{against}", flush=True)

        with tempfile.TemporaryDirectory() as directory:
            for masked in (False, True):
                side = "masked" if masked else "unmasked"
                add(f"sextant {side}", sextant_side(arguments, config, tokens, masked, pathlib.Path(directory) / side))
        for mode in arguments.modes:
            add(f"torch {mode}", peer.run_torch(arguments, shape, tokens, mode, ["--end-of-text", str(END_OF_TEXT)]))
        missing += shortfalls(name, rows)
    for line in missing:
        print(line)
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()
