#!/usr/bin/env python3
"""Predicts nanotron's own sweep, run by run, and asks in every cell (model and device count) what our first choice was worth.

bench/data/nanotron_sweep.csv holds what its jobs printed: tokens per second and device, memory that PyTorch reserved (GiB, or OOM),
and the all-reduce rate that each job measured over all of its ranks before it began; 256 sequences of 4,096 tokens on H100s of eight
to a node. Source: the dataset nanotron/ultrascale-playbook-data (2025), bench_final2; pipelines only from jobs after their fix.
No efficiency was fitted on it; facts of the software were read from it (time of the host, rate and hops of the network, memory:
machines/software.toml). The published heat map of the best runs was drawn from the same table, by utilisation, and its count of
FLOPs differs with the layout (docs/decisions/0015): the tokens per second here are what was measured.

The network of the later jobs was broken (13 GB/s over 512 devices, where earlier ones had 177). A job counts as on a healthy network
when its own all-reduce reached three quarters of the first campaign's median for its size.

Exits with 1 when a first choice in a published cell was measured more than 5 % slower than the fastest layout there; with --all, when
more than LEAST_NEAR allows of all cells were.
With --facts it predicts nothing and prints what the software's time of the host and its network were read from.

Usage: bench/nanotron_sweep.py [--sextant build/release/sextant] [--all] [--facts]
"""
import argparse
import collections
import csv
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

DATA = pathlib.Path(__file__).parent / "data" / "nanotron_sweep.csv"
SHAPES = {  # scripts/scaling_benchmarks.py of nanotron: layers, hidden, heads, inner
    "1.34": (16, 2048, 32, 8192), "3.57": (28, 3072, 32, 8192), "8.86": (32, 4096, 32, 14336),
    "80": (80, 8192, 64, 28672), "469": (126, 16384, 128, 53248)}
SEQUENCES, LENGTH, VOCABULARY = 256, 4096, 131072
FIRST_CAMPAIGN = 13_600_000  # job numbers below it: a healthy network
GATHERS_AGAIN = 14_019_000   # from it on, backward gathers inputs of split linears again instead of keeping them
WHOLE_NETWORK = 0.75
LEAST_NEAR = 0.96  # of all cells, our first choice within 5 % of the fastest: 24 of 25 (bench/results/nanotron_sweep.txt)
WHOLE_NODE_GB_S = 300        # all-reduce inside a node; a few jobs had 45
ROOM_GIB = 70                # above it PyTorch's allocator frees and asks again in every step: a job of 18 s took 48
# Of the published heat map, those that published_runs.csv has: dp, tp, pp, microbatch, zero.
PUBLISHED = {
    ("3.57", 8): (4, 1, 2, 2, 1), ("1.34", 16): (8, 1, 2, 1, 1), ("8.86", 16): (4, 4, 1, 4, 1), ("1.34", 32): (16, 1, 2, 1, 1),
    ("3.57", 32): (16, 1, 2, 2, 1), ("8.86", 32): (16, 1, 2, 1, 1), ("80", 32): (1, 8, 4, 1, 0), ("1.34", 64): (32, 1, 2, 1, 1),
    ("3.57", 64): (32, 1, 2, 1, 1), ("8.86", 64): (32, 1, 2, 1, 1), ("3.57", 128): (32, 4, 1, 8, 0), ("1.34", 256): (64, 4, 1, 4, 0),
    ("3.57", 256): (64, 4, 1, 4, 0), ("3.57", 512): (128, 4, 1, 2, 1), ("80", 512): (32, 16, 1, 2, 1)}


def read_runs():
    runs = []
    for row in csv.DictReader(DATA.open()):
        run = {key: int(row[key]) for key in ("job", "dp", "tp", "pp", "microbatch", "zero")}
        run["params"] = row["params_b"]
        run["devices"] = run["dp"] * run["tp"] * run["pp"]
        run["fits"] = row["reserved_gib"] != "OOM"
        if run["fits"]:
            run["seconds"] = SEQUENCES * LENGTH / float(row["tokens_per_s_per_gpu"]) / run["devices"]
            run["all_reduce"], run["in_node"] = float(row["all_reduce_gb_s"]), float(row["all_reduce_in_node_gb_s"])
            run["reserved"] = float(row["reserved_gib"])
        runs.append(run)
    return runs


def write_as_published(runs, file):
    """In the columns of published_runs.csv."""
    out = csv.writer(file)
    out.writerow(["source", "model", "arch", "layers", "hidden", "heads", "kv_heads", "ffn_hidden", "vocab", "seq", "params_B", "gpu",
                  "n_gpus", "gpus_per_node", "dp", "tp", "pp", "zero_stage", "global_batch_seqs", "micro_batch", "seq_parallel",
                  "precision", "schedule", "measured_iter_s", "measured_mem_gb_per_gpu", "how_known"])
    for run in runs:
        layers, hidden, heads, inner = SHAPES[run["params"]]
        source = "nanotron sweep" + (", kept gathered" if run["job"] < GATHERS_AGAIN else "")  # another software profile: machines/software.toml
        out.writerow([source, f"Llama-like {run['params']}B", "llama", layers, hidden, heads, heads, inner, VOCABULARY, LENGTH,
                      run["params"], "H100-80GB-SXM", run["devices"], 8, run["dp"], run["tp"], run["pp"], run["zero"], SEQUENCES, run["microbatch"],
                      "yes" if run["tp"] > 1 else "no", "bf16", "1f1b" if run["pp"] > 1 else "none", run.get("seconds", ""),
                      f"{run['reserved'] * 1.073741824:.2f}" if run["fits"] else "OOM", "trust A"])


def predict(runs, sextant):
    with tempfile.NamedTemporaryFile("w", suffix=".csv", newline="") as file:
        write_as_published(runs, file)
        file.flush()
        try:
            done = subprocess.run([sextant, "validate", file.name, "--json"], stdout=subprocess.PIPE, text=True)
        except OSError as error:
            sys.exit(f"{sextant}: {error.strerror}; scripts/build makes it, --sextant names another")
    if done.returncode != 0:
        sys.exit(f"sextant validate failed with {done.returncode}")
    found = json.loads(done.stdout)["validate"]
    for row in found["each"]:
        run = runs[row["line"] - 2]
        run["predicted"] = row.get("predicted_s")
        run["memory"] = row.get("predicted_memory_bytes", 0) / 2**30
        run["expected_to_fit"] = row.get("fits")
        run["context"] = row.get("predicted_memory", {}).get("overhead", 0) / 2**30  # PyTorch's allocator does not see it
    return found


def mark_whole(runs):
    rates = collections.defaultdict(list)
    for run in runs:
        if run["fits"] and run["job"] < FIRST_CAMPAIGN:
            rates[run["devices"]].append(run["all_reduce"])
    for run in runs:
        known = rates.get(run["devices"])
        run["whole"] = bool(run["fits"] and known and run["all_reduce"] >= WHOLE_NETWORK * statistics.median(known) and
                            run["in_node"] >= WHOLE_NODE_GB_S and run["reserved"] <= ROOM_GIB)


def error(run):
    return run["predicted"] / run["seconds"] - 1


def line_of_errors(name, runs):
    errors = sorted(abs(error(run)) for run in runs)
    if errors:
        print(f"  {name:34} {len(errors):5} runs: median {100 * statistics.median(errors):5.1f} %, 90th percentile "
              f"{100 * errors[int(0.9 * (len(errors) - 1))]:5.1f} %, bias {100 * statistics.median(map(error, runs)):+5.1f} %")


def least_squares(rows, wanted):
    """Of rows times unknowns, nearest to what is wanted: the normal equations, by elimination."""
    n = len(rows[0])
    table = [[sum(row[i] * row[j] for row in rows) for j in range(n)] + [sum(row[i] * w for row, w in zip(rows, wanted))] for i in range(n)]
    for i in range(n):
        pivot = max(range(i, n), key=lambda k: abs(table[k][i]))
        table[i], table[pivot] = table[pivot], table[i]
        for k in range(n):
            if k != i:
                factor = table[k][i] / table[i][i]
                table[k] = [a - factor * b for a, b in zip(table[k], table[i])]
    return [table[i][n] / table[i][i] for i in range(n)]


def tensors(run):
    return 6 * SHAPES[run["params"]][0] + 2


def spread(run):
    nodes = run["devices"] // 8
    return nodes, run["dp"] - nodes  # ranks of a ring that hand over to another node, and those that do not


def zero_network(jobs):
    """Rate out of a node and hops of ZeRO-1's two calls: a step is microbatches of one length, a reduction in f32 and a gather in bf16 at
    that rate, and for each tensor the hops of a ring. Jobs of one model, tp and microbatch share the length."""
    groups = collections.defaultdict(list)
    for run in jobs:
        groups[(run["params"], run["tp"], run["microbatch"])].append(run)
    groups = [group for group in groups.values() if len({run["devices"] for run in group}) > 1]
    rows = []
    for at, group in enumerate(groups):
        for run in group:
            far, near = spread(run)
            row = [0] * len(groups) + [10 * float(run["params"]) * (1 - 1 / run["dp"]), tensors(run) * (far - 1) * 1e-6, tensors(run) * near * 1e-6]
            row[at] = SEQUENCES // (run["dp"] * run["microbatch"])
            rows.append([part / run["seconds"] for part in row])
    found = least_squares(rows, [1] * len(rows))
    misses = [abs(sum(a * b for a, b in zip(row, found)) - 1) for row in rows]
    print(f"ZeRO: {len(rows)} jobs: {1 / found[-3]:.0f} GB/s out of a node, for each tensor {found[-2]:.1f} us a node and "
          f"{found[-1]:.1f} us another rank; explains them within {100 * statistics.median(misses):.1f} % (median)")
    return 1e9 / found[-3], found[-2] * 1e-6, found[-1] * 1e-6


def print_facts(runs):
    """What facts of the software were read from, but for the host all of the first campaign, without pipelines. Host: tp 4 and 8 with one
    sequence, where a microbatch takes as long with both. Network: what ZeRO-1's steps say (zero_network), and beside it what each job
    measured before it began. Hops: pairs of jobs with and without ZeRO. Without it a step is compute, the update of all parameters (30
    bytes each, at 3.1 TB/s) and what two thirds of the last microbatch do not hide of buckets of 50 MB, each of which climbs and
    descends a tree of nodes."""
    first = [run for run in runs if run["fits"] and run["job"] < FIRST_CAMPAIGN and run["pp"] == 1]
    for run in runs:
        if run["fits"] and (run["devices"], run["pp"], run["zero"], run["microbatch"]) == (8, 1, 0, 1) and run["tp"] in (4, 8):
            microbatch = run["seconds"] * run["dp"] / SEQUENCES
            print(f"host: {run['params']}B, tp {run['tp']}: {1e3 * microbatch / SHAPES[run['params']][0]:.2f} ms a layer and microbatch")
    for devices in sorted({run["devices"] for run in first}):
        rate = statistics.median(run["all_reduce"] for run in first if run["devices"] == devices)
        print(f"network: {devices // 8} nodes: median all-reduce before the job {rate:.0f} GB/s")
    mark_whole(runs)
    sharded = [run for run in first if run["zero"] == 1 and run["whole"] and run["devices"] > 8 and run["tp"] <= 8 and float(run["params"]) < 10]
    rate, far_hop, near_hop = zero_network(sharded)
    with_zero = {(run["params"], run["dp"], run["tp"], run["microbatch"]): run["seconds"] for run in sharded}
    hops = []
    for run in first:
        zero = with_zero.get((run["params"], run["dp"], run["tp"], run["microbatch"]))
        if run["zero"] == 1 or run["devices"] < 32 or run["tp"] > 2 or not zero:
            continue
        far, near = spread(run)
        share, rank_rate = float(run["params"]) * 1e9 / run["tp"], rate / run["tp"] / (1 - 1 / run["dp"])
        compute = zero - 10 * share / rank_rate - tensors(run) * ((far - 1) * far_hop + near * near_hop)
        hidden = compute * run["dp"] * run["microbatch"] / SEQUENCES * 2 / 3
        update = share * 30 / 3.1e12
        bucket = (run["seconds"] - compute - update + hidden) / (4 * share / 50e6)
        hops.append((bucket - 2 * 50e6 / (0.92 * rank_rate)) / (2 * math.log2(far)))
    print(f"hops: median {1e6 * statistics.median(hops):.0f} us of {len(hops)} pairs, {1e6 * min(hops):.0f} to {1e6 * max(hops):.0f}")


def layout(run):
    return f"dp {run['dp']} tp {run['tp']} pp {run['pp']} microbatch {run['microbatch']} zero {run['zero']}"


def judge_cells(runs, every):
    cells = collections.defaultdict(list)
    for run in runs:
        cells[(run["params"], run["devices"])].append(run)
    near = found = judged = 0
    for key in sorted(cells, key=lambda key: (float(key[0]), key[1])):
        if len(cells[key]) < 3 or not (every or key in PUBLISHED):
            continue
        chosen, best = (min(cells[key], key=lambda run: run[time]) for time in ("predicted", "seconds"))
        ratio = chosen["seconds"] / best["seconds"]
        predicted = best["predicted"] / chosen["predicted"]
        judged += 1
        near += ratio <= 1.05
        found += predicted <= 1.05
        print(f"  {ratio:.3f}  {predicted:.3f}  {key[0]}B on {key[1]} ({len(cells[key])} layouts): {layout(chosen)}" +
              (f"; was fastest: {layout(best)}" if chosen is not best else ""))
    return near, found, judged


def judge_published(runs):
    """The published layout against the layouts that were measured on a healthy network: by prediction, and by the clock."""
    near = possible = 0
    for cell, layout_of_cell in PUBLISHED.items():
        here = [run for run in runs if (run["params"], run["devices"]) == cell]
        published = [run for run in here if tuple(run[key] for key in ("dp", "tp", "pp", "microbatch", "zero")) == layout_of_cell]
        ratio = {}
        for time in ("predicted", "seconds"):
            own = min(run[time] for run in published)
            ratio[time] = own / min(own, min(run[time] for run in here if run["whole"]))
        near += ratio["predicted"] <= 1.05
        possible += ratio["seconds"] <= 1.05
        print(f"  {ratio['predicted']:.3f}  {ratio['seconds']:.3f}  {cell[0]}B on {cell[1]}" +
              ("" if any(run["whole"] for run in published) else " (the published one on a slower network)"))
    return near, possible


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sextant", default="build/release/sextant")
    parser.add_argument("--all", action="store_true", help="every cell, not only the published ones")
    parser.add_argument("--facts", action="store_true", help="what the software's facts were read from")
    args = parser.parse_args()
    runs = read_runs()
    if args.facts:
        return print_facts(runs)
    found = predict(runs, args.sextant)
    mark_whole(runs)
    timed = [run for run in runs if run["fits"] and run["predicted"]]
    whole = [run for run in timed if run["whole"]]
    inside = [run for run in whole if run["tp"] <= 8]
    print(f"{len(runs)} runs, {len(timed)} timed, {len(whole)} of them on a healthy network; predicted against measured:")
    line_of_errors("tensor parallel inside a node", inside)
    for devices in sorted({run["devices"] for run in inside}):
        line_of_errors(f"  on {devices}", [run for run in inside if run["devices"] == devices])
    line_of_errors("across nodes", [run for run in whole if run["tp"] > 8])
    line_of_errors("on the broken network", [run for run in timed if not run["whole"]])
    held = [abs((run["memory"] - run["context"]) / run["reserved"] - 1) for run in timed]
    missed = [run for run in runs if not run["fits"]]
    refused = sum(not run["expected_to_fit"] for run in timed)
    print(f"memory against what was reserved: median {100 * statistics.median(held):.1f} % of {len(held)}; "
          f"of {len(missed)} that did not fit {found['memory']['foreseen']} were foreseen, of those that ran {refused} would have been refused")
    print("our first choice among the layouts that were measured on a healthy network: its measured time over the least, "
          "and the predicted time of what was fastest over the least")
    near, found, judged = judge_cells(whole, args.all)
    print("the published layouts beside them: predicted time over our least, measured time over the least")
    published = judge_published(timed)
    print(f"the published: {published[0]} and {published[1]} of {len(PUBLISHED)} within 5 %")
    print(f"first choices: {near} and {found} of {judged} within 5 %")
    wanted = math.ceil(LEAST_NEAR * judged) if args.all else len(PUBLISHED)
    if near < wanted:
        sys.exit(f"{near} first choices are within 5 %, expected {wanted}")


if __name__ == "__main__":
    main()
