#!/usr/bin/env python3
"""Faults from outside, at random: kills, failing system calls and damaged files, against a small run.

    tests/campaign/campaign.py --seconds 60                          a minute of everything
    tests/campaign/campaign.py --kills 200 --mutations 5000 --injections 300 --jobs 2 --out results.json
    tests/campaign/campaign.py --seed 1 --only kills:17              one trial again

Each trial has random numbers of its own, from the seed, its kind and its number, so one can be repeated alone; the moments of
kills are as random as the machine is. Exit 1: an invariant was broken; each time the trial, its command and its output are
printed, and its folder is kept. Python 3.11 and nothing else; system calls need strace and are left out without it.
"""
import argparse
import collections
import concurrent.futures
import json
import platform
import random
import resource
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from kills import Kills  # noqa: E402
from mutations import Mutations  # noqa: E402
from program import Broken, CHECKOUT  # noqa: E402
from runs import Runs  # noqa: E402
from syscalls import Injections  # noqa: E402

OUTCOMES = ("refused", "finished", "fell back")
MEMORY = 8 << 30  # a damaged number must not take the machine's memory


class Campaign:
    def __init__(self, options, work):
        self.options = options
        self.work = work
        self.lock = threading.Lock()
        self.table = collections.defaultdict(collections.Counter)
        self.totals = collections.Counter()
        self.broken = []
        self.deadline = time.monotonic() + options.seconds if options.seconds else None
        runs = Runs(options.sextant.resolve(), work)
        self.left_out = list(runs.left_out)
        self.kinds = {kind.kind: kind for kind in (Kills(runs), Injections(runs), Mutations(runs))}
        if self.kinds["injections"].why_not:
            self.left_out.append(f"system calls: {self.kinds['injections'].why_not}")
            options.injections = 0

    def wanted(self, kind):
        return getattr(self.options, kind)

    def trials(self):
        """Numbers of trials of all kinds, mixed in proportion, so that a short run has some of each. More than asked for: a
        kill may come after the end of a run, and a call may not be made so often."""
        if self.options.only:
            kind, _, number = self.options.only.partition(":")
            return [(kind, int(number))]
        mixed = []
        for kind in self.kinds:
            mixed += [((number + 0.5) / self.wanted(kind), kind, number)
                      for number in range(self.wanted(kind) * 3 // 2)]
        return [(kind, number) for _, kind, number in sorted(mixed)]

    def is_over(self, kind):
        if self.deadline and time.monotonic() > self.deadline:
            return True
        # A trial of kills kills several times: as many as asked for, not as many runs.
        return not self.options.only and self.totals[kind] >= self.wanted(kind)

    def run_trial(self, kind, number):
        if self.is_over(kind):
            return
        folder = self.work / f"{kind}-{number}"
        folder.mkdir()
        try:
            row, count, outcome = self.kinds[kind].trial(random.Random(f"{self.options.seed}/{kind}/{number}"), folder)
        except Broken as problem:
            self.note_broken(kind, number, str(problem))
            return  # its folder stays
        shutil.rmtree(folder, ignore_errors=True)
        with self.lock:
            self.totals[kind] += count
            self.table[row]["tried"] += count
            self.table[row][outcome] += count

    def note_broken(self, kind, number, problem):
        again = f"tests/campaign/campaign.py --sextant {self.options.sextant} --seed {self.options.seed} --only {kind}:{number}"
        with self.lock:
            self.totals[kind] += 1
            self.table[f"({kind})"]["tried"] += 1
            self.table[f"({kind})"]["broken"] += 1
            self.broken.append({"trial": f"{kind}:{number}", "problem": problem, "again": again})
            print(f"BROKEN {kind}:{number}: {problem}\nfolder {self.work / f'{kind}-{number}'}\nagain: {again}\n", flush=True)

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            for done in [pool.submit(self.run_trial, *trial) for trial in self.trials()]:
                done.result()

    def text(self):
        lines = [f"{'kind':<44}{'tried':>7}{'refused':>9}{'finished':>10}{'fell back':>11}{'broken':>8}"]
        rows = sorted(self.table.items()) + [("all", sum(self.table.values(), collections.Counter()))]
        for row, counts in rows:
            lines.append(f"{row:<44}{counts['tried']:>7}{counts['refused']:>9}{counts['finished']:>10}{counts['fell back']:>11}"
                         f"{counts['broken']:>8}")
        lines.append("")
        lines.append(", ".join(f"{self.totals[kind]} {kind}" for kind in self.kinds) + f"; seed {self.options.seed}")
        lines += [f"left out: {what}" for what in self.left_out]
        return "\n".join(lines)

    def results(self, seconds):
        return {"seed": self.options.seed, "seconds": round(seconds), "python": platform.python_version(), "totals": self.totals,
                "rows": self.table, "left_out": self.left_out, "broken": self.broken}


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sextant", type=Path, default=CHECKOUT / "build" / "release" / "sextant")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--mutations", type=int, default=5000)
    parser.add_argument("--injections", type=int, default=300)
    parser.add_argument("--seconds", type=float, help="begin no trial after this time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", help="one trial, such as mutations:17")
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    return parser.parse_args()


def main():
    options = parse()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    begin = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="sextant-campaign-"))
    try:
        campaign = Campaign(options, work)
    except Broken as problem:
        print(f"the run that everything is compared with fails: {problem}", file=sys.stderr)
        shutil.rmtree(work, ignore_errors=True)
        return 1
    campaign.run()
    seconds = time.monotonic() - begin
    print(f"{campaign.text()}\n{seconds:.0f} s")
    if options.out:
        options.out.write_text(json.dumps(campaign.results(seconds), indent=2) + "\n")
    if campaign.broken:
        print(f"{len(campaign.broken)} broken; their folders are under {work}", file=sys.stderr)
        return 1
    shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
