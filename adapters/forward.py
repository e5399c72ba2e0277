#!/usr/bin/env python3
"""Follows the runs of Sextant into Weights & Biases or MLflow, while they train or afterwards: what
`sextant watch RUNS --forward wandb|mlflow` starts. Needs the package of that service (pip install wandb, pip install mlflow), and
is set up as it is always: WANDB_PROJECT, WANDB_MODE, MLFLOW_TRACKING_URI and so on.

  forward.py wandb|mlflow [--once] FOLDER...

Every run (a folder with metrics.jsonl) becomes a run there, with its config, every number of every step, and its events as text.
--once: hand over what is there and end; otherwise it goes on until all runs have ended, or Ctrl-C.
"""

import argparse
import importlib
import json
import os
import pathlib
import sys
import time
import tomllib

POLL_SECONDS = 1.0
ENDS = ("finish", "stop", "failure")
BEGINS = ("start", "resume", "restart")


class Tail:
    """The whole lines of a file that were not handed out before. A file that was written anew is handed out anew."""

    def __init__(self, path):
        self.path = path
        self.offset = 0
        self.inode = None

    def lines(self):
        try:
            file = open(self.path, "rb")
        except OSError:
            return
        with file:
            about = os.fstat(file.fileno())
            if about.st_ino != self.inode or about.st_size < self.offset:
                self.inode, self.offset = about.st_ino, 0
            file.seek(self.offset)
            for line in file:
                if not line.endswith(b"\n"):
                    return  # it is being written
                self.offset += len(line)
                try:
                    value = json.loads(line)
                except ValueError:
                    continue
                if isinstance(value, dict):
                    yield value


def flat(table, prefix=""):
    for key, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def config_of(folder):
    try:
        return dict(flat(tomllib.loads((folder / "config.toml").read_text())))
    except (OSError, ValueError):
        return {}


class Wandb:
    def __init__(self, name, folder):
        module = importlib.import_module("wandb")
        # One process follows many runs.
        self.run = module.init(name=name, id=name.replace("/", "-"), config=config_of(folder), resume="allow", reinit="create_new")

    def step(self, step, numbers):
        self.run.log(numbers, step=step)

    def event(self, event):
        self.run.alert(title=event["event"], text=event.get("text", ""))

    def end(self):
        self.run.finish()


class Mlflow:
    def __init__(self, name, folder):
        module = importlib.import_module("mlflow")
        self.client = module.MlflowClient()
        experiment = self.client.get_experiment_by_name("sextant")
        number = experiment.experiment_id if experiment else self.client.create_experiment("sextant")
        self.run = self.client.create_run(number, run_name=name).info.run_id
        for key, value in config_of(folder).items():
            self.client.log_param(self.run, key, str(value)[:500])
        self.events = 0

    def step(self, step, numbers):
        for name, value in numbers.items():
            self.client.log_metric(self.run, name, value, step=step)

    def event(self, event):
        self.events += 1
        self.client.set_tag(self.run, f"event.{self.events:04}", f"{event['event']} {event.get('step', '')}: {event.get('text', '')}"[:500])

    def end(self):
        self.client.set_terminated(self.run)


class Followed:
    def __init__(self, make, name, folder):
        self.metrics = Tail(folder / "metrics.jsonl")
        self.events = Tail(folder / "events.jsonl")
        self.to = make(name, folder)
        self.last_step = 0
        self.ended = False

    def follow(self):
        for line in self.metrics.lines():
            step = line.pop("step", None)
            # Services take steps in order: one that is run again is left out.
            if not isinstance(step, int) or step <= self.last_step:
                continue
            self.last_step = step
            self.to.step(step, {name: value for name, value in line.items()
                                if isinstance(value, (int, float)) and not isinstance(value, bool)})
        for event in self.events.lines():
            if not isinstance(event.get("event"), str):
                continue
            self.to.event(event)
            if event["event"] in ENDS + BEGINS:
                self.ended = event["event"] in ENDS


def runs_in(folders):
    for folder in folders:
        top = pathlib.Path(folder).resolve()
        found = [top] if (top / "metrics.jsonl").exists() else sorted(path.parent for path in top.rglob("metrics.jsonl"))
        for run in found:
            yield run.name if run == top else run.relative_to(top).as_posix(), run


def main():
    parser = argparse.ArgumentParser(prog="sextant watch --forward")
    parser.add_argument("service", choices=("wandb", "mlflow"))
    parser.add_argument("folders", nargs="+")
    parser.add_argument("--once", action="store_true")
    arguments = parser.parse_args()
    make = {"wandb": Wandb, "mlflow": Mlflow}[arguments.service]
    try:
        importlib.import_module(arguments.service)
    except ImportError as error:
        sys.exit(f"sextant: --forward {arguments.service}: {error}\n  hint: pip install {arguments.service}, for the python3 on the path")
    followed = {}
    try:
        while True:
            for name, folder in runs_in(arguments.folders):
                if folder not in followed:
                    followed[folder] = Followed(make, name, folder)
            for run in followed.values():
                run.follow()
            if arguments.once or (followed and all(run.ended for run in followed.values())):
                break
            time.sleep(POLL_SECONDS)
    except KeyboardInterrupt:
        pass
    for run in followed.values():
        run.to.end()
    print(f"{len(followed)} run{'' if len(followed) == 1 else 's'} forwarded to {arguments.service}")


if __name__ == "__main__":
    main()
