"""Plants causes in real runs (train --inject), with several seeds each, and tells whether each raised its event and no other: runs that become
slower, a layer whose gradients underflow in fp16, attention logits that grow. Then runs some that nothing is done to.

  bench/drift_causes.py --sextant build/release/sextant [--steps 240] [--seeds 20] [--milliseconds 30] [--quiet-steps 10000]
    [--only drills|quiet] [--fault slow --fault delay] [--keep FOLDER]
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
PLAIN = ("start", "checkpoint", "finish")
TWO_RANKS = ["mesh.dp=2", "train.threads=1"]
# With a loss scale of 1 a run of this size has gradients in the middle of what f16 holds, as large models have with a large one.
FP16 = ["train.threads=1", "train.precision=fp16", "train.loss_scale.initial=1", "log.tensor_stats_every=1"]
LOGITS = ["train.threads=1", "log.tensor_stats_every=1"]


class Drill(typing.NamedTuple):
    fault: str
    # The events that name it, with their cause and their rank or layer: a slow rank is found by its peers' times, or by the run's own.
    wanted: set
    settings: list

    @property
    def kind(self):
        return self.fault.partition("@")[0].partition("=")[0]


DRILLS = [Drill("slow={ms}@{at}:1", {("straggler", "asleep", 1), ("drift", "one_rank", 1)}, TWO_RANKS),
          Drill("slow_input={ms}@{at}", {("drift", "input", None), ("drift", "input", 0), ("straggler", "slow input", 0)}, TWO_RANKS),
          Drill("delay={ms}@{at}:1", {("drift", "collective", None)}, TWO_RANKS),
          Drill("throttle=90@{at}", {("drift", "processor_time", None)}, TWO_RANKS),
          Drill("fade_layer@{at}", {("underflow", None, 1)}, FP16),
          Drill("grow_logits={percent}@{at}", {("logit_growth", None, 1)}, LOGITS)]
# Runs that nothing is done to.
QUIET = [("one rank, two threads", ["train.threads=2"]), ("two ranks of a thread", TWO_RANKS),
         ("fp16, statistics of layers in every step", FP16)]


def events_of(sextant, folder, name, steps, *more):
    subprocess.run([sextant, "train", REPOSITORY / "configs" / "tiny-llama.toml", "train.eval_every=0", f"train.steps={steps}",
                    f"data.cache={folder}/cache", *more, "--out", folder / name, "--quiet"], check=True, stdout=subprocess.DEVNULL)
    events = [json.loads(line) for line in (folder / name / "events.jsonl").read_text().splitlines()]
    return [event for event in events if event["event"] not in PLAIN]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sextant", required=True)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--milliseconds", type=int, default=30, help="by which steps become slower; more than the noise of the machine's load")
    parser.add_argument("--quiet-steps", type=int, default=10_000)
    parser.add_argument("--only", choices=["drills", "quiet"])
    parser.add_argument("--fault", action="append", choices=[drill.kind for drill in DRILLS], help="these drills alone")
    parser.add_argument("--keep", type=pathlib.Path, help="where the runs are left")
    arguments = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.keep or pathlib.Path(scratch)
        drills = [drill for drill in DRILLS if not arguments.fault or drill.kind in arguments.fault]
        for drill in drills if arguments.only != "quiet" else []:
            # Logits that grow tenfold until the end are found on the way; a hundredfold ruins the run, and its gradients spike.
            fault = drill.fault.format(ms=arguments.milliseconds, at=arguments.steps // 2, percent=max(1, 240 // arguments.steps))
            right = 0
            for seed in range(1, arguments.seeds + 1):
                found = events_of(arguments.sextant, folder, f"{fault}-{seed}", arguments.steps, *drill.settings,
                                  f"train.seed={seed}", "--inject", fault)
                named = [(event["event"], event.get("cause", event.get("reason")), event.get("rank", event.get("layer"))) for event in found]
                is_right = len(named) == 1 and named[0] in drill.wanted
                right += is_right
                if seed == 1 or not is_right:
                    print(f"  {fault}, seed {seed}{'' if is_right else ', NOT as expected'}: {len(found)} event(s)")
                    for event in found:
                        print(f"    step {event['step']}: {event['event']}: {event['text']}")
            print(f"{fault}: its event and no other in {right} of {arguments.seeds} runs, load {os.getloadavg()[0]:.0f}", flush=True)
            wrong += arguments.seeds - right
        for name, more in QUIET if arguments.only != "drills" else []:
            found = events_of(arguments.sextant, folder, name, arguments.quiet_steps, *more)
            print(f"nothing, {name}, {arguments.quiet_steps} steps: {len(found)} event(s), load {os.getloadavg()[0]:.0f}", flush=True)
            for event in found:
                print(f"  step {event['step']}: {event['event']}: {event['text']}")
            wrong += len(found)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
