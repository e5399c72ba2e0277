"""System calls that fail: strace makes the K-th call of one kind return an error, once or from then on."""
import collections
import re
import shutil

from program import Broken, hold_to, start
from runs import LIMIT

ERRORS = {
    "openat": ("EIO", "ENOSPC", "EMFILE", "EACCES", "EINTR"),
    "read": ("EIO", "EINTR"),
    "pread64": ("EIO", "EINTR"),
    "write": ("EIO", "ENOSPC", "EINTR"),
    "pwrite64": ("EIO", "ENOSPC", "EDQUOT", "EINTR"),
    "fsync": ("EIO", "ENOSPC"),
    "rename": ("EIO", "ENOSPC", "EACCES"),
    "renameat2": ("EIO", "ENOSPC", "EINVAL"),
    "mkdir": ("EIO", "ENOSPC", "EACCES"),
    "ftruncate": ("EIO", "ENOSPC", "EINTR"),
    "fallocate": ("EOPNOTSUPP", "ENOSPC", "EINTR"),
    "flock": ("ENOLCK", "EIO", "EINTR"),
    "unlink": ("EIO", "EACCES"),
    "unlinkat": ("EIO", "EACCES"),
    "rmdir": ("EIO", "ENOTEMPTY"),
    "getdents64": ("EIO",),
    "newfstatat": ("EIO", "EACCES"),
    "mmap": ("ENOMEM",),
    "clone3": ("EAGAIN",),
}
# Where a run begins, and on which layout.
BEGINNINGS = {"fresh": "one rank", "midway": "one rank", "mesh": "dp2 tp2, threads"}


class Injections:
    kind = "injections"

    def __init__(self, runs):
        self.runs = runs
        self.why_not = None
        self.before = {}
        self.counts = {}
        if shutil.which("strace") is None:
            self.why_not = "strace is not installed"
            return
        # The dynamic linker's calls come first; where they fail, the program has not begun.
        self.before = self.count_calls("linker", [runs.sextant, "--version"])
        for beginning in BEGINNINGS:
            if self.why_not is None:
                self.prepare(runs.work / f"calls-{beginning}", beginning, with_cache=False)
                self.counts[beginning] = self.count_calls(beginning, self.command(runs.work / f"calls-{beginning}", beginning))

    def count_calls(self, name, command):
        """How often the busiest thread makes each call: `when=` counts for each thread by itself."""
        folder = self.runs.work / f"calls-{name}"
        folder.mkdir(exist_ok=True)
        log = folder / "calls"
        calls = ",".join(f"?{call}" for call in ERRORS)
        ended = start(["strace", "-f", "-e", f"trace={calls}", "-o", str(log), *command], folder, LIMIT)
        if ended.code != 0:
            self.why_not = f"strace cannot trace here: {ended.err.decode(errors='replace').strip()[:200]}"
            return {}
        threads = collections.Counter(re.findall(r"^(\d+) +(\w+)\(", log.read_text(errors="replace"), re.M))
        most = {}
        for (_, call), count in threads.items():
            most[call] = max(count, most.get(call, 0))
        return most

    def prepare(self, folder, beginning, with_cache):
        folder.mkdir(exist_ok=True)
        if beginning == "midway":
            shutil.copytree(self.runs.midway, folder / "run")
        if with_cache:
            shutil.copytree(self.runs.cache, folder / "cache")

    def command(self, folder, beginning):
        return self.runs.train(folder / "run", folder / "cache", BEGINNINGS[beginning])

    def trial(self, random, folder):
        beginning = random.choice(list(BEGINNINGS))
        counts = self.counts[beginning]
        call = random.choice([name for name in ERRORS if counts.get(name, 0) > self.before.get(name, 0)])
        error = random.choice(ERRORS[call])
        first = random.randint(self.before.get(call, 0) + 1, counts[call])
        # A disk that stays full or broken; a call that is interrupted for ever is no fault of a disk.
        lasting = error != "EINTR" and random.random() < 0.3
        self.prepare(folder, beginning, with_cache=random.random() < 0.7)
        log = folder / "calls"
        inject = f"inject={call}:error={error}:when={first}{'+' if lasting else ''}"
        ended = start(["strace", "-f", "-qq", "-e", f"trace={call}", "-e", inject, "-o", str(log),
                       *self.command(folder, beginning)], folder, LIMIT)
        struck = b"(INJECTED)" in log.read_bytes()
        # A write that fails may be that of the message.
        if call != "write" or ended.code not in (2, 3):
            hold_to(ended, {0, 2, 3})
        self.check_next_start(folder, beginning, ended)
        return f"{call} fails", int(struck), outcome(ended)

    def check_next_start(self, folder, beginning, ended):
        again = start(self.command(folder, beginning), folder, LIMIT)
        try:
            hold_to(again, {0})
            self.runs.check_finished(folder / "run", BEGINNINGS[beginning], again)
        except Broken as problem:
            raise Broken(f"{problem}\nafter\n{ended.told()}") from problem


def outcome(ended):
    if ended.code != 0:
        return "refused"
    return "fell back" if re.search(r"damaged|cannot|could not|failed", ended.text()) else "finished"
