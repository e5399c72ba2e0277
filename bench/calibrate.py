#!/usr/bin/env python3
"""Fits the machines' efficiencies on the published runs anew and writes what follows from them:

    bench/calibrate.py PROGRAM [fit] [held-out] [validation] [--machine NAME]

fit         [fitted] and [fitted_experts] of machines/NAME.toml, by `validate --calibrate`
held-out    data/held_out.csv and bench/results/held_out.txt (and the same of memory, held_out_memory.*), by `validate --hold-out`, and docs/images/intervals.svg
validation  bench/results/validation.txt, by `validate`

Without a word all three, one after the other: each takes minutes on idle cores."""
import argparse
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROWS = {"fitted": "judged rows of data/published", "fitted_experts": "judged rows of models with experts of data/published"}
FIT = re.compile(r"# (\S+): (\d+) rows, [\d.]+ before, [\d.]+ after\n\[(\w+)\]\n((?:\w+ = \S+\n)+)")


def output_of(program, *arguments):
    return subprocess.run([program, "validate", *arguments], check=True, stdout=subprocess.PIPE, text=True).stdout


def write_fits(program, only):
    text = output_of(program, "--calibrate", *(["--machine", only] if only else []))
    for machine, rows, table, values in FIT.findall(text):
        if int(rows) < 2:
            continue  # too few to tell anything
        file = ROOT / "machines" / f"{machine}.toml"
        content = file.read_text()
        fit = (f'[{table}]\n{values}on = "the {rows} {ROWS[table]} that ran on it: '
               'sextant validate --calibrate (2026-11)"\n')
        old = re.search(rf"\[{table}\]\n(?:.+\n)+", content)
        if old:
            content = content[:old.start()] + fit + content[old.end():]
        else:
            before = "[fitted_experts]" if table == "fitted" and "[fitted_experts]" in content else "[run]"
            content = content.replace(before + "\n", fit + "\n" + before + "\n", 1)
        file.write_text(content)
        print(f"{machine} [{table}]: {rows} rows", file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("what", nargs="*", choices=["fit", "held-out", "validation", []])
    parser.add_argument("--machine", default="", help="fit this one alone")
    given = parser.parse_args()
    what = given.what or ["fit", "held-out", "validation"]
    results = ROOT / "bench/results"
    if "fit" in what:
        write_fits(given.program, given.machine)
    if "held-out" in what:
        (results / "held_out.txt").write_text(output_of(given.program, "--hold-out", "--write", str(ROOT / "data/held_out.csv")))
        memory = output_of(given.program, "--hold-out", "--memory", "--write", str(ROOT / "data/held_out_memory.csv"))
        (results / "held_out_memory.txt").write_text(memory)
        subprocess.run([sys.executable, str(ROOT / "bench/interval_plot.py")], check=True)
    if "validation" in what:
        file = results / "validation.txt"
        remark = file.read_text().split("\n\n")[0]  # what was seen beside the figures stays
        file.write_text(remark + "\n\n" + output_of(given.program))


main()
