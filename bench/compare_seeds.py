"""Is the noise that `sextant compare` reckons with the noise there is? Trains one config with ten seeds, and compares all pairs:
about one pair in twenty may be called different. Then the same seeds with a learning rate that is 1 % higher (no difference) and
ten times as high (worse).

  bench/compare_seeds.py --sextant build/release/sextant [--steps 400] [--seeds 10] [--out FOLDER]
"""

import argparse
import collections
import json
import math
import pathlib
import subprocess
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent


def train(arguments, folder, name, *overrides):
    subprocess.run([arguments.sextant, "train", REPOSITORY / "configs" / "tiny-llama.toml", f"train.steps={arguments.steps}",
                    "train.threads=1", f"data.cache={folder}/cache", *overrides, "--out", folder / name, "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)


def compare(arguments, folder, *names):
    out = subprocess.run([arguments.sextant, "compare", *(folder / name for name in names), "--json"], check=True,
                         stdout=subprocess.PIPE, text=True).stdout
    return json.loads(out)["comparisons"]


def report(title, comparisons):
    verdicts = collections.Counter(one["verdict"] for one in comparisons)
    figures = [one["equal_tokens"] for one in comparisons]

    def root_mean_square(values):
        return math.sqrt(sum(value * value for value in values) / len(values))

    differences = root_mean_square([one["difference"] for one in figures])
    errors = root_mean_square([one["standard_error"] for one in figures])
    curves = root_mean_square([one["curve_error"] for one in figures])
    ratio = root_mean_square([one["difference"] / one["standard_error"] for one in figures])
    told = ", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items()))
    print(f"| {title} | {len(comparisons)} | {differences:.4f} | {curves:.4f} | {errors:.4f} | {ratio:.2f} | {told} |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sextant", required=True)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--out")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(arguments.out or scratch)
        seeds = range(1, arguments.seeds + 1)
        for seed in seeds:
            for name, rate in (("s", "3e-3"), ("near", "3.03e-3"), ("high", "3e-2")):
                train(arguments, folder, f"{name}{seed}", f"train.seed={seed}", f"optimizer.lr={rate}")
        print("| runs | pairs | difference | error of curves | error | difference / error | verdicts |\n|---|---|---|---|---|---|---|")
        pairs = [(a, b) for a in seeds for b in seeds if a < b]
        report("two seeds of one config, assumed noise of seeds", [compare(arguments, folder, f"s{a}", f"s{b}")[0] for a, b in pairs])
        measured = [one for a in seeds if a < arguments.seeds
                    for one in compare(arguments, folder, *[f"s{b}" for b in [a, *[c for c in seeds if c != a]]])
                    if int(one["b"]["name"][1:]) > a]
        report("the same, noise of seeds measured on all ten", measured)
        report("one seed, learning rate 1 % higher", [compare(arguments, folder, f"s{a}", f"near{a}")[0] for a in seeds])
        report("one seed, learning rate ten times as high", [compare(arguments, folder, f"s{a}", f"high{a}")[0] for a in seeds])
        report("another seed, learning rate ten times as high",
               [compare(arguments, folder, f"s{a}", f"high{a % arguments.seeds + 1}")[0] for a in seeds])


if __name__ == "__main__":
    main()
