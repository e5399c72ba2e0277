"""Slows real runs down on purpose (train --inject) and prints what the event `drift` says of each; then runs one that nothing is done to.

  bench/drift_causes.py --sextant build/release/sextant [--steps 240] [--quiet-steps 10000]
"""

import argparse
import json
import pathlib
import subprocess
import tempfile

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
DRILLS = [("one_rank", "slow=30@120:1"), ("input", "slow_input=30@120"), ("collective", "delay=30@120:1"),
          ("processor_time", "throttle=90@120")]


def drifts(sextant, folder, name, steps, *more):
    subprocess.run([sextant, "train", REPOSITORY / "configs" / "tiny-llama.toml", "mesh.dp=2", "train.threads=1", "train.eval_every=0",
                    f"train.steps={steps}", f"data.cache={folder}/cache", *more, "--out", folder / name, "--quiet"], check=True,
                   stdout=subprocess.DEVNULL)
    events = [json.loads(line) for line in (folder / name / "events.jsonl").read_text().splitlines()]
    return [event for event in events if event["event"] not in ("start", "checkpoint", "finish")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sextant", required=True)
    parser.add_argument("--steps", type=int, default=240)
    parser.add_argument("--quiet-steps", type=int, default=10_000)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch)
        for cause, fault in DRILLS:
            found = drifts(arguments.sextant, folder, cause, arguments.steps, "--inject", fault)
            right = [event.get("cause") for event in found] == [cause]
            print(f"{fault}: {'as expected' if right else 'NOT as expected'}, {len(found)} event(s)")
            for event in found:
                print(f"  step {event['step']}: {event['event']} ({event.get('cause')}): {event['text']}")
        found = drifts(arguments.sextant, folder, "quiet", arguments.quiet_steps)
        print(f"nothing, {arguments.quiet_steps} steps: {len(found)} event(s)")
        for event in found:
            print(f"  step {event['step']}: {event['event']}: {event['text']}")


if __name__ == "__main__":
    main()
