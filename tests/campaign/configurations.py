#!/usr/bin/env python3
"""Configurations at random: what trains on a mesh must be what one rank trains, and can be saved, resumed and replayed.

    tests/campaign/configurations.py --count 100 --seed 1             what CTest runs
    tests/campaign/configurations.py --count 400 --seed 2 --jobs 2 --out results.json
    tests/campaign/configurations.py --seed 1 --only 17               one configuration again

Each is drawn from architectures x options of their models x meshes x schedules x optimizers x precisions (space.py). One that the
program refuses, with its message, is counted and another is drawn. Of the others:

  equal to one rank   three steps on the mesh and on one rank: every field of metrics.jsonl but times, memory and what one rank has
                      not, and all weights
  resume              from the checkpoint of step 2: the line of step 3 and every file of its checkpoint, bit for bit
  replay              of step 3 gives what was recorded, bit for bit

Exit 1: one of these does not hold; the configuration is printed, and its folder is kept. Python 3.11 and nothing else.
"""
import argparse
import collections
import concurrent.futures
import hashlib
import json
import math
import platform
import random
import re
import shutil
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from program import Broken, CHECKOUT, hold_to, start  # noqa: E402
from safetensors import distance, norm, read_safetensors  # noqa: E402
from space import architectures, draw  # noqa: E402

STEPS = 3
DRAWS = 60  # of one configuration, until one is not refused
LIMIT = 120.0  # seconds for a start that takes a fraction of one; the machine may be busy
# A unit in docs/metrics.md by which a field tells of this machine, not of the step.
UNITS_OF_THE_MACHINE = ("seconds", "list of seconds", "bytes", "list of bytes", "tokens per second", "fraction")
# What depends on the layout by its definition: a noise scale on how many parts gradients are made in, and what becomes of rows that
# find no place on their way to experts of other ranks.
FIELDS_OF_THE_LAYOUT = ("grad_noise_scale", "lost_rows", "expert_rounds", "repeated_steps", "non_finite")


def compared_fields():
    """Fields of metrics.jsonl that must not depend on the layout, from their table in docs/metrics.md."""
    table = re.findall(r"^\| `(\w+)` \| ([^|]*) \|", (CHECKOUT / "docs/metrics.md").read_text(), re.MULTILINE)
    fields = {name for name, unit in table if unit not in UNITS_OF_THE_MACHINE and name not in FIELDS_OF_THE_LAYOUT}
    if not {"loss", "grad_norm", "balance_loss", "dropped_rows", "unused_experts", "update_ratio"} <= fields:
        raise SystemExit("docs/metrics.md has no table of fields in the form that this script reads")
    return fields


# Shares of few elements, by which numbers a narrow format has there.
SHARES = re.compile(r"_(underflow|overflow|saturation)$")


# Of a layer's routing, where rounding sends a token elsewhere.
WHOLE_COUNTS = re.compile(r"^(unused_experts|dropped_rows)$")
COUNTS = re.compile(WHOLE_COUNTS.pattern + r"|^expert_load_\w+$")
# Of layers, which a step that is repeated for lost rows does not measure (docs/tensors.md).
STATISTICS = re.compile(r"^(activation|gradient|inner_gradient|weight|update|attention_logit|fp8)_")
EXPERT = re.compile(r"\bexperts\.\d+\.")

# The bias of keys moves all scores of a query alike, which the softmax takes away: its gradient is rounding alone.
KEY_BIASES = re.compile(r"k_proj\.bias$")
JOINT_BIASES = re.compile(r"(c_attn|query_key_value|qkv_proj|Wqkv|qkv)\.bias$")  # of queries, keys and values
HEAD_BY_HEAD = re.compile(r"query_key_value\.bias$")  # a head's query, key and value side by side
CORRECTION_BIAS = re.compile(r"e_score_correction_bias$")


@dataclass
class Tolerance:
    """How far a mesh may be from one rank. An update that is smaller than `floor` of the model's largest, by the root mean
    square of their elements, counts as that much."""
    metric: float  # of a field, relative
    weight: float  # of a tensor, in parts of its last update
    floor: float = 1e-3
    left_out: tuple = ()  # tensors whose step has a sign that rounding decides
    most: float = 0.0  # of the largest and mean elements of a layer, where that is more than `metric`
    shares: bool = True  # whether shares of a layer's elements are compared
    routing: bool = True  # whether each token goes to the same experts

    def of(self, field):
        if SHARES.search(field) and not self.shares:
            return math.inf
        if COUNTS.search(field) and not self.routing:
            return 0.25
        return max(self.metric, self.most if re.search(r"_(max|rms|ratio)$", field) else 0)


EXACT = Tolerance(2e-5, 0.01)  # sums in another order, in f32
SIGNED = Tolerance(2e-3, 0.3)  # Lion: where a momentum is all but zero, rounding decides a sign
ROUNDED_STATES = Tolerance(2e-3, 0.1)
# Products in 16 bits: roundings differ with the order of sums. In 8 bits the scale of a tensor is that of a rank's part, too.
NARROW = Tolerance(0.02, 1.0, 0.05, (CORRECTION_BIAS,), 0.3, False, False)
FP8 = Tolerance(0.02, 1.5, 0.05, (CORRECTION_BIAS,), 0.3, False, False)


def tolerance_of(drawn):
    if drawn.precision != "f32":
        return FP8 if drawn.precision.startswith("fp8") else NARROW
    if drawn.optimizer == "lion":
        return SIGNED
    if "optimizer.state" in drawn.same or "train.master_weights" in drawn.same:
        return ROUNDED_STATES
    return EXACT


class Configurations:
    def __init__(self, options, work):
        self.options = options
        self.work = work
        self.lock = threading.Lock()
        self.sextant = str(options.sextant.resolve())
        self.cache = work / "cache"
        self.fields = compared_fields()
        self.known = architectures(self.sextant)
        self.table = collections.defaultdict(collections.Counter)
        self.refused = collections.Counter()
        self.farthest = {}
        self.broken = []
        folder = work / "cache-made"
        folder.mkdir()
        hold_to(start(self.command(folder / "run", ["train.steps=1"]), folder, LIMIT), {0})

    def command(self, out, words):
        return [self.sextant, "train", "configs/tiny-llama.toml", "--out", str(out), "--quiet", "device=cpu", f"data.cache={self.cache}",
                "data.stories_bytes=60000", "data.tokenizer_vocab=300", "train.threads=1", f"train.steps={STEPS}",
                "optimizer.schedule=constant", "optimizer.warmup=0", "checkpoint.every=2", "checkpoint.background=false",
                "train.eval_every=3", "train.eval_sequences=2", "train.timeout_s=60", *words]

    def trial(self, number):
        chance = random.Random(f"{self.options.seed}/configuration/{number}")
        folder = self.work / f"configuration-{number}"
        folder.mkdir()
        for _ in range(DRAWS):
            drawn = draw(chance, self.known)
            ended = start(self.command(folder / "mesh", drawn.words()), folder, LIMIT)
            if ended.code != 2:
                break
            with self.lock:
                self.refused[shortened(ended.err.decode(errors="replace"))] += 1
            shutil.rmtree(folder / "mesh", ignore_errors=True)
        try:
            if ended.code == 2:
                raise Broken(f"all of {DRAWS} draws were refused, the last with\n{ended.told()}")
            hold_to(ended, {0})
            self.compare_with_one_rank(drawn, folder)
            self.resume(drawn, folder)
            self.replay(folder)
        except (Broken, ArithmeticError, LookupError, OSError, TypeError, ValueError) as problem:
            with self.lock:
                self.broken.append(number)
                print(f"configuration {number} of seed {self.options.seed} (--only {number}), in {folder}:\n"
                      f"  {' '.join(drawn.words())}\n{problem if isinstance(problem, Broken) else repr(problem)}\n", flush=True)
            return
        with self.lock:
            self.count(drawn)
        shutil.rmtree(folder)

    def compare_with_one_rank(self, drawn, folder):
        ended = start(self.command(folder / "one", drawn.words_of_one_rank()), folder, LIMIT)
        hold_to(ended, {0})
        found, wanted = read_lines(folder / "mesh"), read_lines(folder / "one")
        tolerance = tolerance_of(drawn)
        if len(found) != STEPS or len(wanted) != STEPS:
            raise Broken(f"metrics.jsonl has {len(found)} lines on the mesh and {len(wanted)} on one rank, not {STEPS}")
        problems = []
        for ours, theirs in zip(found, wanted):
            for field in sorted(self.fields & (ours.keys() | theirs.keys())):
                if STATISTICS.search(field) and ours.get("repeated_steps") and field not in ours:
                    continue
                off = difference(ours.get(field), theirs.get(field))
                if WHOLE_COUNTS.search(field) and not tolerance.routing and counts_are_near(ours.get(field), theirs.get(field)):
                    off = 0.0
                self.keep_farthest(drawn, field, off)
                if not off <= tolerance.of(field):
                    problems.append(f"  step {ours['step']}: {field} is {ours.get(field)}, on one rank {theirs.get(field)}")
        problems += self.compare_weights(drawn, folder, tolerance)
        if problems:
            raise Broken("the mesh differs from one rank:\n" + "\n".join(problems[:12]) + f"\none rank: {' '.join(ended.command)}")

    def compare_weights(self, drawn, folder, tolerance):
        found = read_safetensors(folder / f"mesh/step-{STEPS:06}/model.safetensors")
        wanted = read_safetensors(folder / f"one/step-{STEPS:06}/model.safetensors")
        before = read_safetensors(folder / f"one/step-{STEPS - 1:06}/model.safetensors")
        if found.keys() != wanted.keys():
            return [f"  tensors of one only: {sorted(found.keys() ^ wanted.keys())}"]
        sizes = {name: len(numbers) for name, numbers in found.items()}
        if sizes != {name: len(numbers) for name, numbers in wanted.items()}:
            return ["  tensors of other sizes than on one rank"]
        heads, kv_heads = (drawn.same[f"model.{name}"] for name in ("heads", "kv_heads"))
        found, wanted, before = (without_keys_of_joint_biases(tensors, heads, kv_heads) for tensors in (found, wanted, before))
        sizes = {name: len(numbers) for name, numbers in found.items()}
        if not tolerance.routing:  # one token more is another update of an expert, and little to all experts of a layer
            found, wanted, before = (with_experts_joined(tensors) for tensors in (found, wanted, before))
            sizes = {name: len(numbers) for name, numbers in found.items()}
        updates = {name: distance(theirs, before[name]) for name, theirs in wanted.items()}
        largest = max(update / sizes[name]**0.5 for name, update in updates.items())
        problems = []
        for name, update in updates.items():
            if any(kind.search(name) for kind in (KEY_BIASES, *tolerance.left_out)):
                continue
            off = distance(found[name], wanted[name])
            off /= max(update, tolerance.floor * largest * sizes[name]**0.5, 1e-6 * norm(wanted[name]), 1e-30)
            self.keep_farthest(drawn, "weights", off)
            # Optimizers that divide by a mean of squares move each number by its sign: of few, rounding may turn most. 2 is all.
            few = not tolerance.routing and sizes[name] < 64
            if not off <= (max(tolerance.weight, 1.75) if few else tolerance.weight):
                problems.append(f"  {name} is {off:.3g} of its last update ({update:.3g}) away from that of one rank")
        return problems

    def resume(self, drawn, folder):
        """Step 3 once more, from the checkpoint of step 2."""
        last = folder / f"mesh/step-{STEPS:06}"
        lines, hashes = read_lines(folder / "mesh"), hashes_of(last)
        shutil.rmtree(last)
        ended = start(self.command(folder / "mesh", drawn.words()), folder, LIMIT)
        hold_to(ended, {0})
        if not last.exists():
            raise Broken(f"resumed: no checkpoint of step {STEPS}\n{ended.told()}")
        again = read_lines(folder / "mesh")
        fields = self.fields - {"loss_scale"}
        problems = [f"  step {ours['step']}: {field} is {ours.get(field)}, before {theirs.get(field)}"
                    for ours, theirs in zip(again, lines) for field in sorted(fields) if ours.get(field) != theirs.get(field)]
        if len(again) != len(lines):
            problems.append(f"  metrics.jsonl has {len(again)} lines, before {len(lines)}")
        problems += [f"  {name} of the checkpoint has other bytes" for name, told in hashes.items()
                     if hashes_of(last).get(name) != told]
        if problems:
            raise Broken("resumed from step 2, step 3 is another:\n" + "\n".join(problems[:12]) + f"\n{ended.told()}")

    def replay(self, folder):
        ended = start([self.sextant, "replay", str(folder / "mesh"), "--step", str(STEPS), "-q"], folder, LIMIT)
        hold_to(ended, {0})
        if "reproducible: every execution gives the record, bit for bit" not in ended.text():
            raise Broken(f"replay does not give the record\n{ended.told()}")

    def keep_farthest(self, drawn, field, off):
        key = (drawn.precision, drawn.optimizer, field)
        with self.lock:
            if off > self.farthest.get(key, -1):
                self.farthest[key] = off

    def count(self, drawn):
        axes = "·".join(f"{name}{drawn.axis(name)}" for name in ("dp", "tp", "pp", "cp", "ep") if drawn.axis(name) > 1)
        self.table["architecture"][drawn.architecture] += 1
        self.table["optimizer"][drawn.optimizer] += 1
        self.table["precision"][drawn.precision] += 1
        self.table["schedule"][drawn.layout.get("pipeline.schedule", "none")] += 1
        self.table["mesh"][axes or "one rank"] += 1

    def run(self):
        if self.options.only is not None:
            self.trial(self.options.only)
            return
        with concurrent.futures.ThreadPoolExecutor(self.options.jobs) as pool:
            list(pool.map(self.trial, range(self.options.count)))


def difference(ours, theirs):
    """Relative, the largest of a list; infinite where one side has no value or another kind of it."""
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        scale = max((abs(value) for value in theirs if value is not None), default=0)
        return max((difference_of_numbers(a, b, 1e-3 * scale) for a, b in zip(ours, theirs)), default=0.0)
    return difference_of_numbers(ours, theirs, 0.0)


def difference_of_numbers(ours, theirs, least):
    if ours == theirs:
        return 0.0
    if not isinstance(ours, (int, float)) or not isinstance(theirs, (int, float)):
        return math.inf
    return abs(ours - theirs) / max(abs(ours), abs(theirs), least)


def counts_are_near(ours, theirs):
    """Lists or numbers, each at most three tokens or experts apart."""
    ours, theirs = (value if isinstance(value, list) else [value] for value in (ours, theirs))
    return len(ours) == len(theirs) and all(
        isinstance(a, (int, float)) and isinstance(b, (int, float)) and abs(a - b) <= 3 for a, b in zip(ours, theirs))


def without_keys_of_joint_biases(tensors, heads, kv_heads):
    """Biases of queries, keys and values in one tensor, as those of queries and values."""
    kept = dict(tensors)
    for name, numbers in tensors.items():
        if not JOINT_BIASES.search(name):
            continue
        width = len(numbers) // (heads + 2 * kv_heads)
        if HEAD_BY_HEAD.search(name):
            kept[name] = [x for i, x in enumerate(numbers) if i // width % 3 != 1]
        else:
            kept[name] = numbers[:heads * width] + numbers[(heads + kv_heads) * width:]
    return kept


def with_experts_joined(tensors):
    """The experts of a layer, which Hugging Face keeps apart, as one tensor each of gate, up and down."""
    joined = {}
    for name in sorted(tensors):
        joined.setdefault(EXPERT.sub("experts.", name), []).extend(tensors[name])
    return joined


def read_lines(out):
    return [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]


def hashes_of(checkpoint):
    return {str(path.relative_to(checkpoint)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(checkpoint.rglob("*")) if path.is_file() and path.name != "manifest.json"}


def shortened(message):
    """What a refusal says, without its numbers, so that those of one kind are counted together."""
    line = next((line for line in message.splitlines() if line.strip()), "(no message)")
    return re.sub(r"\d+", "N", line.removeprefix("sextant: ").removeprefix("command line: "))[:110]


def report(campaign, seconds):
    done = sum(campaign.table["precision"].values())
    print(f"{done} configurations held, {len(campaign.broken)} did not, {sum(campaign.refused.values())} draws were refused; "
          f"seed {campaign.options.seed}, {seconds:.0f} s")
    for kind, counts in campaign.table.items():
        print(f"  {kind}: " + ", ".join(f"{name} {count}" for name, count in counts.most_common()))
    if campaign.options.verbose:
        for message, count in campaign.refused.most_common():
            print(f"  refused {count}: {message}")
        for (precision, optimizer, field), off in sorted(campaign.farthest.items(), key=lambda item: -item[1])[:60]:
            print(f"  farthest: {precision} {optimizer} {field} {off:.2g}")


def main():
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--sextant", type=Path, default=CHECKOUT / "build/release/sextant")
    words.add_argument("--count", type=int, default=100, help="configurations to train")
    words.add_argument("--seed", type=int, default=1)
    words.add_argument("--jobs", type=int, default=2, help="at once")
    words.add_argument("--only", type=int, help="the number of one configuration")
    words.add_argument("--verbose", action="store_true", help="refusals, and the largest differences from one rank")
    words.add_argument("--out", type=Path, help="what was done, as JSON")
    options = words.parse_args()
    began = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="sextant-configurations-"))
    campaign = Configurations(options, work)
    campaign.run()
    seconds = time.monotonic() - began
    report(campaign, seconds)
    if options.out:
        options.out.write_text(json.dumps({
            "date": time.strftime("%Y-%m-%d"), "machine": platform.machine(), "seed": options.seed, "seconds": round(seconds),
            "held": sum(campaign.table["precision"].values()), "broken": sorted(campaign.broken),
            "refused_draws": dict(campaign.refused.most_common()), "drawn": campaign.table}, indent=1) + "\n")
    if campaign.broken:
        print(f"folders of what did not hold are in {work}")
        sys.exit(1)
    shutil.rmtree(work)


if __name__ == "__main__":
    main()
