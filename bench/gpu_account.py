"""Where the time of a training step on a GPU goes, op by op, against the least that the device's measured rates allow.

  bench/gpu_account.py CONFIG [--sextant FILE] [--step N] [key=value ...]

Profiles one step (`train --profile`), then times large products in bf16 and fp8 (8192 x 8192 x 8192, PyTorch) and a copy on the same device. The floor of
an op is the larger of its FLOPs at the rate of such a product and its bytes at the rate of the copy. Prints a table in Markdown. Needs a Python with PyTorch.
"""
import argparse
import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import gpu_train_peer as peer

SIZE, REPEATS = 8192, 20


def seconds_of(work):
    import torch
    for _ in range(3):
        work()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(REPEATS):
        work()
    end.record()
    torch.cuda.synchronize()
    return begin.elapsed_time(end) / 1e3 / REPEATS


def ceilings():
    """FLOP/s of bf16 and fp8 products, bytes/s of a copy."""
    import torch
    a, b = (torch.randn(SIZE, SIZE, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    one = torch.ones((), device="cuda")
    a8, b8 = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn).t()
    source = torch.empty(1 << 30, device="cuda", dtype=torch.uint8)
    target = torch.empty_like(source)
    flops = 2 * SIZE**3
    return {"bf16": flops / seconds_of(lambda: a @ b),
            "fp8": flops / seconds_of(lambda: torch._scaled_mm(a8, b8, scale_a=one, scale_b=one, out_dtype=torch.bfloat16)),
            "bytes": 2 * source.numel() / seconds_of(lambda: target.copy_(source))}


def profiled_ops(arguments, directory):
    environment = dict(os.environ, SEXTANT_CACHE=str(directory / "cache"))
    if cudnn := peer.torch_cudnn():
        environment["LD_LIBRARY_PATH"] = f"{cudnn}:{environment.get('LD_LIBRARY_PATH', '')}"
    command = [arguments.sextant, "train", arguments.config, "--out", directory / "run", "--profile", str(arguments.step), "device=cuda",
               f"train.steps={arguments.step}", *arguments.overrides]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(done.stdout[-2000:] + done.stderr[-2000:])
    events = json.loads((directory / "run" / f"profile-step-{arguments.step}.json").read_text())
    return [event for event in (events["traceEvents"] if isinstance(events, dict) else events) if event.get("ph") == "X"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", type=pathlib.Path)
    parser.add_argument("--sextant", type=pathlib.Path, default=peer.REPOSITORY / "build" / "cuda" / "sextant")
    parser.add_argument("--step", type=int, default=8)
    parser.add_argument("overrides", nargs="*", metavar="key=value")
    arguments = parser.parse_intermixed_args()
    with tempfile.TemporaryDirectory() as directory:
        events = profiled_ops(arguments, pathlib.Path(directory))
    rates = ceilings()
    ops = collections.defaultdict(lambda: [0, 0.0, 0.0])  # count, ms, floor in ms
    for event in events:
        name, seconds, work = event["name"], event["dur"] / 1e6, event["args"]
        flops, moved = 1e12 * work.get("TFLOP/s", 0) * seconds, 1e9 * work.get("GB/s", 0) * seconds
        floor = max(flops / rates["fp8" if name.startswith("fp8_") else "bf16"], moved / rates["bytes"])
        row = ops[name]
        row[0] += 1
        row[1] += 1e3 * seconds
        row[2] += 1e3 * floor
    total, floor = sum(row[1] for row in ops.values()), sum(row[2] for row in ops.values())
    print(f"## {arguments.config.stem} {' '.join(arguments.overrides)}\n")
    print(f"Ceilings here: {rates['bf16'] / 1e12:.0f} TFLOP/s in bf16, {rates['fp8'] / 1e12:.0f} in fp8, {rates['bytes'] / 1e12:.2f} TB/s. "
          f"All ops {total:.2f} ms, floor {floor:.2f} ms ({100 * floor / total:.1f} %).\n")
    print("| op | count | ms | floor ms | gap ms |\n|---|---|---|---|---|")
    for name, (count, ms, least) in sorted(ops.items(), key=lambda item: -item[1][1]):
        print(f"| {name} | {count} | {ms:.2f} | {least:.2f} | {ms - least:.2f} |")


if __name__ == "__main__":
    main()
