#!/usr/bin/env python3
"""Faults at random against supervised runs: `sextant run` must bring every one of them to its end, with the bits of a run that was left
alone, and repeat no more than the checkpoints leave open.

    tests/campaign/supervised.py --faults 50 --seed 1                 what CTest runs
    tests/campaign/supervised.py --faults 1000 --seconds 3000 --out results.json
    tests/campaign/supervised.py --seed 1 --only 17                   one trial again
    tests/campaign/supervised.py --sum a.json b.json                  parts as one
    tests/campaign/supervised.py --faults 0 --network 20              two hosts; needs root

A trial is one run on a random mesh, as threads or under mpirun, with several faults: injected ones (`--inject`) at random steps, signals
to random processes of it at random moments, and now and then the supervisor itself is killed and started again. Every twelfth loses a
rank's slot for good and gets it back later: with train.reproducible = "mesh" the run, on four ranks, three and four again, must have
the bits of an undisturbed one on a single rank. Exit 1: an invariant
was broken; the trial, its command and its output are printed, and its folder is kept. Python 3.11 and nothing else; mpirun is left out
where there is none.

With --network N, N further runs go over two hosts, which are namespaces of this machine with a network and a local disk of their own: at random
moments the cable between them is pulled, for a short or a long while, a host is replaced and its local disk lost, or mpirun is killed.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import random
import shutil
import signal
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
import network  # noqa: E402
from program import Broken, CHECKOUT, hold_to, start  # noqa: E402
from runs import read_metrics  # noqa: E402

STEPS = 40
EVERY = 4
LOCAL_EVERY = 2
NETWORK_EVERY = 15
LIMIT = 300.0  # seconds for one run with all its faults; the machine may be busy
MESHES = {  # settings, ranks, ranks that compute the loss, whether a flipped bit shows
    "one rank": ([], 1, (0,), False),
    "dp2": (["mesh.dp=2"], 2, (0, 1), True),
    "tp2": (["mesh.tp=2"], 2, (0, 1), False),
    "pp2": (["mesh.pp=2"], 2, (1,), False),
    "dp2 zero1": (["mesh.dp=2", "mesh.zero=1"], 2, (0, 1), False),
    "dp2 tp2": (["mesh.dp=2", "mesh.tp=2"], 4, (0, 1, 2, 3), True),
}
SHRINKING = "dp4, dp3, dp4"
REPRODUCIBLE = ["train.reproducible=mesh"]  # compared with one rank; four sequences leave two of three ranks a microbatch short
EVERY_TWELFTH = 12
INJECTED = ("throw", "kill", "abort", "nan", "corrupt", "stall", "stop", "disk_full", "slow", "flip_gemm",
            "flip_collective", "node")
WEIGHTS = (6, 8, 4, 3, 3, 1, 1, 2, 1, 3, 3, 4)  # those that are noticed by a time-out only are few: each takes seconds
PHASES = ("detecting", "ending", "waiting", "preflight", "starting")


class Trials:
    def __init__(self, options, work):
        self.options = options
        self.work = work
        self.lock = threading.Lock()
        self.sextant = str(options.sextant.resolve())
        self.cache = work / "cache"
        self.left_out = []
        self.launchers = ["threads"]
        if shutil.which("mpirun"):
            self.launchers.append("mpirun")
        else:
            self.left_out.append("mpirun is not installed")
        self.faults = 0
        self.runs = 0
        self.by_kind = collections.Counter()
        self.restarts = []
        self.goodput = []
        self.repeated = []
        self.broken = []
        self.deadline = time.monotonic() + options.seconds if options.seconds else None
        first, *others = MESHES
        self.reference = {first: self.undisturbed(first)}  # which makes the cache
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            self.reference.update(zip(others, pool.map(self.undisturbed, others)))
        self.reference[SHRINKING] = self.undisturbed(first, *REPRODUCIBLE)
        self.reference_files = last_tensors(self.work / f"reference-{first.replace(' ', '-')}-{len(REPRODUCIBLE)}" / "run")

    def undisturbed(self, mesh, *more):
        folder = self.work / f"reference-{mesh.replace(' ', '-')}-{len(more)}"
        folder.mkdir()
        hold_to(start(self.command("train", folder / "run", mesh, *more), folder, LIMIT), {0})
        return read_metrics(folder / "run")

    def command(self, verb, out, mesh, *more):
        return [self.sextant, verb, "configs/tiny-llama.toml", "--out", str(out), f"data.cache={self.cache}",
                "data.stories_bytes=60000", "train.threads=1", "train.eval_every=0", f"train.steps={STEPS}",
                "model.hidden=32", "model.ffn=64", "batch.sequences=4", "batch.microbatch=1", "batch.seq=16",
                "train.log_every=100", f"checkpoint.every={EVERY}", "checkpoint.keep=2", "train.timeout_s=2",
                "train.non_finite_steps=1", "train.check_replicas_every=1", "train.check_gemms=1",
                "train.check_collectives=1", *MESHES[mesh][0], *more]

    def injected(self, chance, mesh, local):
        """Faults by their own kind, at steps far enough apart that a checkpoint lies between two of them."""
        _, ranks, with_loss, bit_shows = MESHES[mesh]
        found = []
        step = chance.randint(1, 6)
        while step <= STEPS - 2:
            kind = chance.choices(INJECTED, WEIGHTS)[0]
            rank = chance.randrange(ranks)
            twice = kind == "nan" and any(earlier == "nan" for earlier, _ in found)  # which is given up
            if kind == "flip_collective" and mesh in ("one rank", "pp2"):  # which have none
                kind = "flip_gemm"
            if (kind == "abort" and ranks == 1) or (kind == "corrupt" and not bit_shows) or twice or (kind == "node" and (ranks == 1 or not local)):
                kind = "kill"
            if kind == "nan":
                rank = chance.choice(with_loss)
            amount = {"slow": "=5", "disk_full": "=3"}.get(kind, "")
            found.append((kind, f"{kind}{amount}@{step}:{rank}"))
            step += chance.randint(5, 9)
        return found

    def is_late(self):
        return self.deadline is not None and time.monotonic() > self.deadline

    def trial(self, number):
        if self.is_late() or self.faults >= self.options.faults:
            return
        chance = random.Random(f"{self.options.seed}/supervised/{number}")
        if number % EVERY_TWELFTH == EVERY_TWELFTH - 1 and "mpirun" in self.launchers:
            return self.shrinking_trial(number, chance)
        mesh = chance.choice(list(MESHES))
        launcher = "mpirun" if "mpirun" in self.launchers and chance.random() < 0.3 else "threads"  # mpirun takes 2 s to end a run
        background = chance.random() < 0.3
        local = random.Random(f"{self.options.seed}/local/{number}").random() < 0.5
        faults = self.injected(chance, mesh, local)
        folder = self.work / f"trial-{number}"
        folder.mkdir()
        out = folder / "run"
        more = [f"checkpoint.background={str(background).lower()}", "--stale", "2", "--backoff", "0.1", "--json"]
        if local:
            more += [f"checkpoint.local_every={LOCAL_EVERY}", f"checkpoint.local_dir={folder / 'memory'}"]
            if MESHES[mesh][1] > 1:
                more.append("checkpoint.replication_jump=1")  # so that what one rank holds may be lost
        for _, text in faults:
            more += ["--inject", text]
        if launcher == "mpirun":
            more += ["--mpi", str(MESHES[mesh][1]), "--launcher-arg", "--oversubscribe"]
        command = self.command("run", out, mesh, *more)
        try:
            struck = [kind for kind, _ in faults]
            if chance.random() < 0.15:
                after = time.monotonic() + chance.uniform(0.3, 2.0)
                ended = start(command, folder, LIMIT, SupervisorKill(out, after))
                if ended.code == -signal.SIGKILL:
                    struck.append("supervisor killed")
            else:
                outside = OutsideSignal(chance, out, launcher)
                ended = start(command, folder, LIMIT, outside)
                struck += outside.struck
            if struck[-1] == "supervisor killed":
                ended = start(command, folder, LIMIT)
            hold_to(ended, {0})
            self.check(out, mesh, launcher, ended, struck, LOCAL_EVERY if local else EVERY * (1 + background + ("disk_full" in struck)))
            if local and any((folder / "memory").iterdir()):
                raise Broken(f"local checkpoints are left behind\n{ended.told()}")
        except Broken as problem:
            self.tell_broken(number, mesh, launcher, problem, folder)
            return
        shutil.rmtree(folder, ignore_errors=True)

    def shrinking_trial(self, number, chance):
        folder = self.work / f"trial-{number}"
        folder.mkdir()
        out = folder / "run"
        hosts = LostSlot(chance, folder / "hosts", out)
        zero = chance.randrange(4)
        # Steps that last long enough for the slot to be lost where it is meant to be, and to be seen again before the end.
        slow = ["--inject", "slow=60@2:0", "--inject", f"slow=200@{hosts.lost_at + 4}:0"]
        command = self.command("run", out, "one rank", *REPRODUCIBLE, "mesh.dp=4", f"mesh.zero={zero}", "--stale", "5", "--backoff", "0.1",
                               "--json", "--mpi", "4", "--hosts", str(hosts.file), "--launcher-arg", "--oversubscribe", *slow)
        try:
            ended = start(command, folder, LIMIT, hosts)
            hold_to(ended, {0})
            log = (out / "run.log").read_text()
            meshes = [line.split("mesh: ")[1][:4] for line in log.splitlines() if "mesh: dp" in line]
            if meshes[:1] != ["dp 3"] or meshes[-1:] != ["dp 4"]:
                raise Broken(f"the run was to shrink to dp 3 and grow to dp 4 again, not {meshes}\n{ended.told()}")
            # A norm in f32 does not show every bit of the weights.
            if last_tensors(out) != self.reference_files:
                raise Broken(f"weights or optimizer states are not those of one undisturbed rank\n{ended.told()}")
            self.check(out, SHRINKING, "mpirun", ended, ["slot lost"], 2 * EVERY)
        except Broken as problem:
            self.tell_broken(number, f"{SHRINKING} zero {zero}", "mpirun", problem, folder)
            return
        shutil.rmtree(folder, ignore_errors=True)

    def tell_broken(self, number, mesh, launcher, problem, folder):
        again = f"tests/campaign/supervised.py --sextant {self.options.sextant} --seed {self.options.seed} --only {number}"
        with self.lock:
            self.broken.append({"trial": number, "mesh": mesh, "launcher": launcher, "problem": str(problem), "again": again})
            print(f"BROKEN trial {number}, {mesh}, {launcher}: {problem}\nfolder {folder}\nagain: {again}\n", flush=True)

    def check(self, out, mesh, launcher, ended, struck, repeats):
        if read_metrics(out) != self.reference[mesh]:
            raise Broken(f"the losses are not those of the undisturbed run\n{ended.told()}")
        report = json.loads(ended.out)
        if report["outcome"] != "finished" or report["last_step"] != STEPS:
            raise Broken(f"the report does not say that the run finished\n{ended.told()}")
        events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines() if line.endswith("}")]
        causes = {event["attempt"]: event["cause"] for event in events if event["event"] == "failure" and "cause" in event}
        reached = {event["attempt"]: event.get("step") or 0 for event in events if event["event"] == "failure" and "cause" in event}
        restarts = [event for event in events if event["event"] == "restart"]

        def distrusts(attempt):
            # And so it stays while attempts end before they have come any further.
            while attempt > 0:
                cause = causes.get(attempt, "")
                if cause.startswith("non-finite") or (cause == "corruption" and "corrupt" in struck):
                    return True
                if reached.get(attempt, 0) > reached.get(attempt - 1, 0):
                    return False
                attempt -= 1
            return False

        for event in restarts:
            # One interval; of durable checkpoints one more where the save of the last one was still under way, and one where it found no room.
            # Where no step from it was finite it is not trusted, nor are local ones (the line of that step counts too). A replica that
            # differs may have been copied before it was noticed.
            if event["steps_repeated"] > (repeats if not distrusts(event["attempt"] - 1) else EVERY * (3 + ("disk_full" in struck)) + 1):
                raise Broken(f"attempt {event['attempt']} repeats {event['steps_repeated']} steps\n{ended.told()}")
        left = [str(path) for path in out.rglob("*.tmp-*")]
        if left or (out / "supervisor.json").exists():
            raise Broken(f"left behind: {left}\n{ended.told()}")
        with self.lock:
            self.runs += 1
            self.faults += len(struck)
            self.by_kind.update(struck)
            self.restarts += restarts
            self.repeated += [event["steps_repeated"] for event in restarts]
            if report["predicted_goodput"] is not None:
                self.goodput.append({"launcher": launcher, "mesh": mesh, "faults": sorted(set(struck)), "measured": report["goodput"],
                                     "predicted": report["predicted_goodput"]})

    def network_trial(self, number):
        """One run over two hosts: the cable between them is pulled, one of them is replaced and its local disk lost, or mpirun is killed."""
        chance = random.Random(f"{self.options.seed}/network/{number}")
        mesh = chance.choice(("dp2", "tp2", "dp2 zero1"))
        folder = self.work / f"network-{number}"
        folder.mkdir()
        out = folder / "run"
        try:
            with network.TwoHosts(folder, number) as hosts:
                # Durable checkpoints so seldom that a restart from one repeats too many steps.
                more = [f"checkpoint.every={NETWORK_EVERY}", f"checkpoint.local_every={LOCAL_EVERY}", f"checkpoint.local_dir={hosts.disk}", "--stale", "4",
                        "--start-limit", "15", "--backoff", "0.1", "--retries", "20", "--json", "--mpi", "2", "--inject", "slow=100@1"]
                for word in hosts.launcher_words():
                    more += ["--launcher-arg", word]
                faults = HostFaults(chance, out, hosts)
                ended = start(hosts.inside(self.command("run", out, mesh, *more)), folder, LIMIT, faults)
                hold_to(ended, {0})
                self.check(out, mesh, "two hosts", ended, faults.struck, LOCAL_EVERY)
                if not all(hosts.is_empty(host) for host in range(2)):
                    raise Broken(f"local checkpoints are left behind\n{ended.told()}")
        except Broken as problem:
            with self.lock:
                self.broken.append({"trial": f"network {number}", "mesh": mesh, "launcher": "two hosts", "problem": str(problem)})
                print(f"BROKEN network trial {number}, {mesh}: {problem}\nfolder {folder}\n", flush=True)
            return
        shutil.rmtree(folder, ignore_errors=True)

    def record(self, seconds):
        """What `text_of` prints and --out keeps."""
        return {"seeds": [self.options.seed], "seconds": round(seconds), "at_a_time": self.options.jobs, "faults": self.by_kind, "runs": self.runs,
                "restarts": [{key: event[key] for key in ("attempt", "steps_repeated", "seconds_lost", "seconds")} for event in self.restarts],
                "goodput": self.goodput, "broken": self.broken, "left_out": self.left_out}


def sum_of(records):
    """Parts of one campaign as one."""
    whole = {"seeds": [], "seconds": 0, "at_a_time": 0, "faults": collections.Counter(), "runs": 0, "restarts": [], "goodput": [], "broken": [], "left_out": []}
    for part in records:
        for key in whole:
            if key == "faults":
                whole[key].update(part[key])
            else:
                whole[key] += part[key]
    return whole


def text_of(record):
    faults = collections.Counter(record["faults"])
    lines = [f"{faults.total()} faults in {record['runs']} runs, {len(record['restarts'])} restarts, {len(record['broken'])} broken; "
             f"{record['seconds']} s, seed {', '.join(map(str, record['seeds']))}, {record['at_a_time']} at a time",
             "faults    " + ", ".join(f"{count} {kind}" for kind, count in faults.most_common())]
    if record["restarts"]:
        lost = [event["seconds_lost"] for event in record["restarts"]]
        repeated = [event["steps_repeated"] for event in record["restarts"]]
        lines.append(f"restart   mean {statistics.mean(lost):.2f} s, median {statistics.median(lost):.2f} s, max {max(lost):.2f} s "
                     "from the last finished step to training again")
        parts = {phase: [event["seconds"][phase] for event in record["restarts"]] for phase in PHASES}
        lines.append("of which  " + ", ".join(f"{phase} {statistics.mean(part):.2f} s (max {max(part):.2f})"
                                              for phase, part in parts.items() if max(part) > 0))
        lines.append(f"repeated  mean {statistics.mean(repeated):.2f} steps, max {max(repeated)}; a checkpoint every {EVERY}")
    runs = record["goodput"]
    if runs:
        lines.append(f"goodput   {goodput_text(runs)}")
        apart = sorted(100 * abs(run["measured"] - run["predicted"]) for run in runs)
        lines.append(f"          a single run's are at most {apart[-1]:.1f} points apart, {statistics.median(apart):.1f} in the median")
        for launcher in sorted({run["launcher"] for run in runs}):
            lines.append(f"  {launcher + ':':<26}" + goodput_text([run for run in runs if run["launcher"] == launcher]))
        for kind in sorted({kind for run in runs for kind in run["faults"]}):
            lines.append(f"  {kind + ':':<26}" + goodput_text([run for run in runs if kind in run["faults"]]))
    lines += [f"left out  {what}" for what in record["left_out"]]
    return "\n".join(lines)


def goodput_text(runs):
    measured, predicted = (100 * statistics.mean(run[what] for run in runs) for what in ("measured", "predicted"))
    return f"{measured:.1f} % measured, {predicted:.1f} % by plan's formula, {predicted - measured:+.1f} (means of {len(runs)} runs)"


def last_tensors(out):
    """Weights and optimizer states of the last checkpoint, as bytes."""
    last = out / f"step-{STEPS:06}"
    files = {path.name: path.read_bytes() for path in sorted(last.glob("*.safetensors"))}
    if len(files) < 2:
        raise Broken(f"{last} has {sorted(files)}, not weights and states")
    return files


def ranks_of(out):
    """Processes of this run's attempts: `train` with its directory."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0")
            except OSError:
                continue
            if str(out).encode() in words and b"train" in words:
                found.append(int(entry.name))
    return found


class OutsideSignal:
    """Polled while the run goes on; once, it signals a random process of the run, or kills mpirun."""

    def __init__(self, chance, out, launcher):
        self.chance = chance
        self.out = out
        self.due = time.monotonic() + chance.uniform(0.2, 3.0)
        self.signal = chance.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM))
        self.kills_launcher = launcher == "mpirun" and chance.random() < 0.4
        self.struck = []

    def __call__(self):
        if self.struck or time.monotonic() < self.due:
            time.sleep(0.005)
            return False
        launchers, ranks = split_launcher(ranks_of(self.out))
        processes = launchers if self.kills_launcher else ranks
        if processes:
            try:
                os.kill(self.chance.choice(processes), signal.SIGKILL if self.kills_launcher else self.signal)
                self.struck.append("launcher killed" if self.kills_launcher else f"{self.signal.name} from outside")
            except ProcessLookupError:
                pass
        return False


def split_launcher(processes):
    """Those that are mpirun, and the ranks."""
    is_launcher = {pid: name_of(pid).startswith(("mpirun", "orterun")) for pid in processes}
    return [pid for pid in processes if is_launcher[pid]], [pid for pid in processes if not is_launcher[pid]]


def name_of(pid):
    try:
        return Path(f"/proc/{pid}/comm").read_text()
    except OSError:
        return ""


class LostSlot:
    """Polled while the run goes on: at a random step a process is killed and the host has three slots, later four again."""

    def __init__(self, chance, file, out):
        self.chance = chance
        self.file = file
        self.out = out
        self.lost_at = chance.randint(3, 10)
        self.back_at = self.lost_at + 4
        self.slots(4)

    def slots(self, count):
        self.count = count
        written = self.file.with_suffix(".new")
        written.write_text(f"localhost slots={count}\n")
        written.rename(self.file)

    def steps(self):
        try:
            return (self.out / "metrics.jsonl").read_bytes().count(b"\n")
        except OSError:
            return 0

    def __call__(self):
        time.sleep(0.005)
        if self.lost_at and self.steps() >= self.lost_at:
            processes = ranks_of(self.out)
            if processes:
                self.slots(3)
                self.lost_at = 0
                try:
                    os.kill(self.chance.choice(processes), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        elif not self.lost_at and self.count == 3 and self.steps() >= self.back_at:
            self.slots(4)


class HostFaults:
    """Polled while the run goes on; two faults of hosts or of what joins them. A cut lasts less than the run's time-out or more."""
    KINDS = ("network cut for 0.3 s", "network cut for 5 s", "local disk lost", "launcher killed")

    def __init__(self, chance, out, hosts):
        self.chance = chance
        self.out = out
        self.hosts = hosts
        self.faults = [(chance.randint(*steps), chance.choice(self.KINDS)) for steps in ((3, 12), (20, 30))]
        self.until = None
        self.struck = []

    def __call__(self):
        time.sleep(0.01)
        now = time.monotonic()
        if self.until is not None and now > self.until:
            self.hosts.join()
            self.until = None
        metrics = self.out / "metrics.jsonl"
        if self.until is None and self.faults and metrics.exists() and metrics.read_bytes().count(b"\n") >= self.faults[0][0]:
            if self.strike(self.faults[0][1], now):
                self.struck.append(self.faults.pop(0)[1])
        return False

    def strike(self, kind, now):
        launchers, ranks = split_launcher(ranks_of(self.out))
        if kind.startswith("network cut"):
            self.hosts.cut()
            self.until = now + float(kind.split()[3])
        elif kind == "launcher killed":
            for pid in launchers:
                os.kill(pid, signal.SIGKILL)
            return bool(launchers)
        else:
            host = self.chance.randrange(2)
            processes = self.hosts.of_host(host, ranks)
            if not processes:  # between two attempts
                return False
            self.hosts.replace(host, processes)
        return True


class SupervisorKill:
    """True when the supervisor is to be killed; only it, not what it started."""

    def __init__(self, out, after):
        self.out = out
        self.after = after
        self.done = False

    def __call__(self):
        time.sleep(0.005)
        if self.done or time.monotonic() < self.after:
            return False
        self.done = True
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if str(self.out).encode() in words and b"run" in words[1:2]:
                    os.kill(int(entry.name), signal.SIGKILL)
        return False


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sextant", type=Path, default=CHECKOUT / "build" / "release" / "sextant")
    parser.add_argument("--faults", type=int, default=50)
    parser.add_argument("--seconds", type=float, help="begin no run after this time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, help="the number of one trial")
    parser.add_argument("--network", type=int, default=0, help="so many runs over two hosts whose network is cut, and of which one is lost")
    parser.add_argument("--sum", type=Path, nargs="+", help="print what several files of --out come to together, and do nothing else")
    parser.add_argument("--out", type=Path, help="write the results as JSON")
    return parser.parse_args()


def main():
    options = parse()
    if options.sum:
        print(text_of(sum_of([json.loads(part.read_text()) for part in options.sum])))
        return 0
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended by SIGTERM"))
    begin = time.monotonic()
    work = Path(tempfile.mkdtemp(prefix="sextant-supervised-"))
    try:
        trials = Trials(options, work)
    except Broken as problem:
        print(f"the run that everything is compared with fails: {problem}", file=sys.stderr)
        shutil.rmtree(work, ignore_errors=True)
        return 1
    numbers = [options.only] if options.only is not None else range(options.faults)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for done in [pool.submit(trials.trial, number) for number in numbers]:
            done.result()
    if options.network and network.why_not():
        trials.left_out.append(f"two hosts: {network.why_not()}")
    elif options.network:
        for number in range(options.network):
            if not trials.is_late():
                trials.network_trial(number)
    seconds = time.monotonic() - begin
    record = trials.record(seconds)
    print(text_of(record))
    if options.out:
        options.out.write_text(json.dumps(record, indent=1) + "\n")
    if trials.broken:
        print(f"{len(trials.broken)} broken; their folders are under {work}", file=sys.stderr)
        return 1
    shutil.rmtree(work, ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
