"""Tokens/s of two builds of Sextant on one GPU, in turns: whether a change made training slower.

  bench/two_builds.py BEFORE AFTER [--models NAME,...] [--turns N] [--steps N] [key=value ...]

BEFORE and AFTER are two `sextant` programs. For each model of configs/bench they take turns; a turn's figure is the median of the second
half of its steps, a side's the best of its turns. Prints both sides and their ratio, says whether the losses are equal, and fails when a
model falls below 0.99 of BEFORE.
"""
import argparse
import pathlib
import sys
import tempfile
import tomllib

from gpu_train_peer import REPOSITORY, REQUIRED, random_tokens, run_sextant, shape_of

LEAST = 0.99


def turn(arguments, program, config):
    arguments.sextant = program
    with tempfile.TemporaryDirectory() as directory:
        row = run_sextant(arguments, config, pathlib.Path(directory))
    if row is None:
        sys.exit(f"{program} failed on {config}")
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=pathlib.Path)
    parser.add_argument("after", type=pathlib.Path)
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(REQUIRED))
    parser.add_argument("--turns", type=int, default=2)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    arguments = parser.parse_intermixed_args()
    slower = []
    print(f"{'model':<12}{'tokens/s before':>16}{'after':>10}{'ratio':>8}  losses")
    for name in arguments.models:
        config = REPOSITORY / "configs" / "bench" / f"{name}.toml"
        shape = shape_of(tomllib.loads(config.read_text()))
        random_tokens(shape["vocab"])
        turns = [(turn(arguments, arguments.before, config), turn(arguments, arguments.after, config)) for _ in range(arguments.turns)]
        before, after = (min(row["step_s"] for row in side) for side in zip(*turns))
        tokens = shape["batch"] * shape["seq"]
        same = turns[0][0]["losses"] == turns[0][1]["losses"]
        print(f"{name:<12}{tokens / before:>16.0f}{tokens / after:>10.0f}{before / after:>7.3f}x  {'equal' if same else 'differ'}", flush=True)
        slower += [name] * (before / after < LEAST)
    if slower:
        sys.exit(f"below {LEAST} of before: {', '.join(slower)}")


if __name__ == "__main__":
    main()
