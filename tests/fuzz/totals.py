#!/usr/bin/env python3
"""Runs the fuzz targets of a build one after the other and keeps a record of how many inputs each was given.

  tests/fuzz/totals.py RECORD [--build build/release] [--seconds 60] [--rounds 1] [--only NAME…]

Each run of a target gets a seed of mutations of its own, counted on from the runs in RECORD, so that no input sequence is
repeated. RECORD has one line a run: date, target, seed, inputs, exit status. What a failed run printed, the input that
ended it included, is kept in RECORD.NAME.SEED. With --table the totals of RECORD are printed instead."""
import argparse
import collections
import datetime
import json
import os
import subprocess
import sys


def runs_in(record):
    if not os.path.exists(record):
        return []
    with open(record) as lines:
        return [line.split() for line in lines if line.strip()]


def print_table(runs):
    inputs, failures, turns = collections.Counter(), collections.Counter(), collections.Counter()
    for _, name, _, count, status in runs:
        turns[name] += 1
        inputs[name] += int(count)
        failures[name] += status != '0'
    print(f"{'target':<20} {'runs':>5} {'inputs':>13} {'crashes':>8}")
    for name in sorted(inputs):
        print(f'{name:<20} {turns[name]:>5} {inputs[name]:>13,} {failures[name]:>8}')
    print(f"{'total':<20} {sum(turns.values()):>5} {sum(inputs.values()):>13,} {sum(failures.values()):>8}")


def targets(build):
    listing = subprocess.run(['ctest', '--test-dir', build, '-R', '^fuzz_', '--show-only=json-v1'], check=True,
                             capture_output=True, text=True).stdout
    return {test['name'].removeprefix('fuzz_'): test['command'] for test in json.loads(listing)['tests']}


def run(command, seed, seconds):
    """The number of inputs, the exit status, and what was printed."""
    environment = dict(os.environ, SEXTANT_FUZZ_SECONDS=str(seconds), SEXTANT_FUZZ_SEED=str(seed))
    done = subprocess.run([command[0], '0', *command[2:]], env=environment, capture_output=True)
    words = done.stdout.split()
    count = int(words[-2]) if len(words) >= 2 and words[-1] == b'inputs' else 0
    return count, done.returncode, done.stdout + done.stderr


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument('record')
    arguments.add_argument('--build', default='build/release')
    arguments.add_argument('--seconds', type=float, default=60)
    arguments.add_argument('--rounds', type=int, default=1, help='how often each target has its turn')
    arguments.add_argument('--only', nargs='+', help='these targets alone')
    arguments.add_argument('--table', action='store_true')
    asked = arguments.parse_args()
    if asked.table:
        return print_table(runs_in(asked.record))
    chosen = {name: command for name, command in targets(asked.build).items() if not asked.only or name in asked.only}
    failed = False
    for _ in range(asked.rounds):
        for name, command in chosen.items():
            seed = 2 + sum(run[1] == name for run in runs_in(asked.record))  # 1 is that of the suite
            count, status, printed = run(command, seed, asked.seconds)
            with open(asked.record, 'a') as record:
                print(datetime.date.today().isoformat(), name, seed, count, status, file=record)
            if status != 0:
                failed = True
                with open(f'{asked.record}.{name}.{seed}', 'wb') as kept:
                    kept.write(printed)
    print_table(runs_in(asked.record))
    return failed


if __name__ == '__main__':
    sys.exit(main())
