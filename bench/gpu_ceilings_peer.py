#!/usr/bin/env python3
"""GEMM and memory figures of `sextant bench` beside PyTorch's and Triton's own timing, on one GPU, in one run.

For every shape: triton.testing.do_bench (median) of a @ b.T and `sextant bench gemm`, in turn, twice each; the same for a copy.
With --mamf also the best shape that `bench gemm --mamf` finds against a sweep of all multiples of 1024 up to 16384 by the same
timer, and the time each took. Exits with 1 when a figure is more than 3 % off, or --mamf below 98 % or above a tenth of the time.
Where minutes of a GPU are too dear, --sub-sweep holds the search to the part of the sweep in which the best of a recorded full sweep
lay, and to that best itself; the time it is held to is then that of the recorded sweep.

Usage: bench/gpu_ceilings_peer.py [--sextant build/cuda/sextant] [--mamf | --only-mamf] [--sub-sweep] [--quick]
"""
import argparse
import json
import subprocess
import sys
import time

SHAPES = [(8192, 8192, 8192), (32768, 2048, 2048), (32768, 8192, 2048), (32768, 2048, 8192), (32768, 16384, 2048), (32768, 128256, 2048),
          (2048, 8192, 32768), (65536, 768, 768), (65536, 3072, 768), (65536, 768, 3072), (16384, 1600, 1600), (16384, 6400, 1600),
          (16384, 1600, 6400)]

# The full sweep that bench/results/gpu_ceilings.txt records: its time, and its best shape.
RECORDED_SWEEP_S, RECORDED_BEST = 255, "2048x2048x7168"


def bench(sextant, *arguments):
    done = subprocess.run([sextant, "bench", *arguments, "--device", "cuda", "--json"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    if done.returncode != 0:
        sys.exit(f"sextant bench {' '.join(arguments)} failed with {done.returncode}")
    return json.loads(done.stdout)


def peer_gemm(m, n, k):
    import torch
    from triton.testing import do_bench
    a, b = torch.randn(m, k, device="cuda", dtype=torch.bfloat16), torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
    seconds = do_bench(lambda: a @ b.T, warmup=50, rep=200, return_mode="median") / 1e3
    del a, b
    torch.cuda.empty_cache()  # the other side needs the room
    return seconds


def peer_copy(bytes_):
    import torch
    from triton.testing import do_bench
    x = torch.empty(bytes_, dtype=torch.uint8, device="cuda")
    y = torch.empty_like(x)
    seconds = do_bench(lambda: y.copy_(x), warmup=50, rep=200, return_mode="median") / 1e3
    del x, y
    torch.cuda.empty_cache()
    return seconds


def closest(ours, theirs):
    """Both sides were measured twice, in turn: the pair that agrees best shows the timers, the rest is the clocks' wandering."""
    return min(((o, t) for o in ours for t in theirs), key=lambda pair: abs(pair[0] / pair[1] - 1))


def compare(name, ours, theirs, unit, work):
    own, peer = closest(ours, theirs)
    print(f"{name:<28} sextant {work / own / 1e12:8.2f} {unit}  torch {work / peer / 1e12:8.2f} {unit}  ratio {peer / own:.4f}"
          f"   (medians {' '.join(f'{work / x / 1e12:.1f}' for x in ours)} | {' '.join(f'{work / x / 1e12:.1f}' for x in theirs)})", flush=True)
    return abs(peer / own - 1)


def rate(result):
    return result["flops_per_s"] / 1e12


def sweep(sextant, sizes):
    """Every shape at a glance, the best first, and the seconds that took."""
    start = time.time()
    results = bench(sextant, "gemm", *sizes, "--seconds", "0.004")["results"]
    seconds = time.time() - start
    return sorted(results, key=rate, reverse=True), seconds


def timed_longer(sextant, shapes):
    options = [word for shape in shapes for word in ("--shape", shape)]
    return max(bench(sextant, "gemm", *options, "--seconds", "0.3")["results"], key=rate)


def check_mamf(sextant, sub_sweep):
    start = time.time()
    found = bench(sextant, "gemm", "--mamf")["results"][-1]
    search_s = time.time() - start
    if sub_sweep:
        seen, part_s = sweep(sextant, ["--m", "1024:4096:1024", "--n", "1024:4096:1024", "--k", "1024:16384:1024"])
        best = timed_longer(sextant, [r["shape"] for r in seen[:5]] + [RECORDED_BEST])
        sweep_s = RECORDED_SWEEP_S
        what = (f"best of a PART of the sweep ({len(seen)} shapes, m and n up to 4096, its first five and the recorded sweep's {RECORDED_BEST} timed again; "
                f"in {part_s:.0f} s)")
        of_time = f"of the {sweep_s} s that the recorded full sweep took"
    else:
        every = "1024:16384:1024"
        seen, sweep_s = sweep(sextant, ["--m", every, "--n", every, "--k", every])
        best = timed_longer(sextant, [seen[0]["shape"]])
        what, of_time = f"sweep of {len(seen)} shapes in {sweep_s:.0f} s", "of the time"
    share = rate(found) / rate(best)
    print(f"mamf {found['shape']} {rate(found):.1f} TFLOP/s in {search_s:.1f} s; {what}: {best['shape']} {rate(best):.1f} "
          f"(at first sight {seen[0]['shape']} {rate(seen[0]):.1f}): {100 * share:.1f} % in {100 * search_s / sweep_s:.1f} % {of_time}")
    return share >= 0.98 and search_s <= sweep_s / 10


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sextant", default="build/cuda/sextant")
    parser.add_argument("--mamf", action="store_true")
    parser.add_argument("--only-mamf", action="store_true", help="the sweep takes minutes")
    parser.add_argument("--sub-sweep", action="store_true", help="hold --mamf to a part of the sweep, which takes seconds")
    parser.add_argument("--quick", action="store_true", help="only a few shapes")
    args = parser.parse_args()
    if args.only_mamf:
        sys.exit(0 if check_mamf(args.sextant, args.sub_sweep) else 1)
    worst = 0.0
    for m, n, k in SHAPES[::4] if args.quick else SHAPES:
        ours, theirs = [], []
        for _ in range(2):
            theirs.append(peer_gemm(m, n, k))
            ours.append(bench(args.sextant, "gemm", "--shape", f"{m}x{n}x{k}", "--seconds", "0.2")["results"][0]["seconds"]["median"])
        worst = max(worst, compare(f"gemm {m}x{n}x{k}", ours, theirs, "TFLOP/s", 2 * m * n * k))
    for mib in (256, 1024, 4096):
        ours, theirs = [], []
        for _ in range(2):
            theirs.append(peer_copy(mib << 20))
            report = bench(args.sextant, "memory", "--mb", str(mib), "--seconds", "0.2")
            ours.append(next(r for r in report["results"] if r["name"] == "copy")["seconds"]["median"])
        worst = max(worst, compare(f"copy {mib} MiB", ours, theirs, "TB/s", 2 * (mib << 20)))
    print(f"worst: {100 * worst:.1f} % off")
    good = worst <= 0.03
    if args.mamf:
        good = check_mamf(args.sextant, args.sub_sweep) and good
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
