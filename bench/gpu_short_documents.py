"""Packed documents of several lengths on one GPU: how fast a step is with the mask of documents as they get shorter.

  bench/gpu_short_documents.py [--model NAME] [--means N,...] [--steps N] [--sextant FILE] [--results FILE] [key=value ...]

Documents have half to one and a half times a mean of --means tokens. Prints ms per step and the tokens/s beside those without the mask; ends with 1
where documents of 128 tokens or more are slower than longer ones, or shorter ones slower than those of 512 tokens, by more than TOLERANCE. Writes
bench/results/short_documents_gpu.json. An H200 takes 15 seconds for each mean.
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
from gpu_documents_peer import document_tokens, sextant_side

MEANS = (1000, 512, 300, 200, 128, 64, 32, 12)
REFERENCE, SHORT = 512, 128
TOLERANCE = 1.005  # of a step: what two runs of one program differ by


def slower(steps):
    """Pairs (mean, against which mean) that are slower than they should be; `steps` are seconds by mean."""
    found, longer = [], [mean for mean in sorted(steps, reverse=True) if mean >= SHORT]
    for before, mean in zip(longer, longer[1:]):
        if steps[mean] > TOLERANCE * steps[before]:
            found.append((mean, before))
    if REFERENCE in steps:
        found += [(mean, REFERENCE) for mean in steps if mean < SHORT and steps[mean] > TOLERANCE * steps[REFERENCE]]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama-1b")
    parser.add_argument("--means", type=lambda text: [int(mean) for mean in text.split(",")], default=list(MEANS))
    parser.add_argument("--steps", type=int, default=14)
    parser.add_argument("--sextant", type=pathlib.Path, default=peer.REPOSITORY / "build" / "cuda" / "sextant")
    parser.add_argument("--results", type=pathlib.Path, default=peer.REPOSITORY / "bench" / "results" / "short_documents_gpu.json")
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    arguments = parser.parse_intermixed_args()
    gpu = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"], capture_output=True, text=True)
    config = peer.REPOSITORY / "configs" / "bench" / f"{arguments.model}.toml"
    shape = peer.shape_of(tomllib.loads(config.read_text()))
    results = {"date": str(datetime.date.today()), "gpu": gpu.stdout.strip(), "model": arguments.model, "ms_per_step": {}}
    steps = {}
    print(f"{'documents of':<14}{'ms/step':>9}{'tokens/s':>11}{'of unmasked':>13}")
    with tempfile.TemporaryDirectory() as directory:
        def measure(name, mean, masked):
            tokens = document_tokens(shape["vocab"], mean)
            row = sextant_side(arguments, config, tokens, masked, pathlib.Path(directory) / name.replace(" ", "-"))
            if not row:
                sys.exit(f"{name}: the run failed")
            results["ms_per_step"][name] = round(1e3 * row["step_s"], 2)
            arguments.results.write_text(json.dumps(results, indent=1) + "\n")  # what is done is kept
            return row["step_s"]

        plain = measure("no mask", arguments.means[0], False)
        print(f"{'no mask':<14}{1e3 * plain:>9.2f}{shape['batch'] * shape['seq'] / plain:>11.0f}", flush=True)
        for mean in arguments.means:
            steps[mean] = measure(f"{mean} tokens", mean, True)
            print(f"{mean:<14}{1e3 * steps[mean]:>9.2f}{shape['batch'] * shape['seq'] / steps[mean]:>11.0f}{plain / steps[mean]:>12.3f}x", flush=True)
    found = slower(steps)
    for mean, against in found:
        print(f"documents of {mean} tokens take {steps[mean] / steps[against]:.3f} times as long as those of {against}")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
