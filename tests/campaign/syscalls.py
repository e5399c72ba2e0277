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
# What the dynamic linker says when a library cannot be opened: the program has not begun.
LINKER = "error while loading shared libraries"


class Injections:
    kind = "injections"

    def __init__(self, runs):
        self.runs = runs
        self.why_not = None
        self.counts = {"fresh": {}, "midway": {}}
        if shutil.which("strace") is None:
            self.why_not = "strace is not installed"
            return
        for beginning in self.counts:
            self.counts[beginning] = self.count_calls(beginning)

    def count_calls(self, beginning):
        """How often the busiest thread makes each call: `when=` counts for each thread by itself."""
        folder = self.runs.work / f"calls-{beginning}"
        folder.mkdir()
        self.prepare(folder, beginning, with_cache=False)
        log = folder / "calls"
        calls = ",".join(f"?{name}" for name in ERRORS)
        ended = start(["strace", "-f", "-e", f"trace={calls}", "-o", str(log), *self.command(folder)], folder, LIMIT)
        if ended.code != 0:
            self.why_not = f"strace cannot trace here: {ended.err.decode(errors='replace').strip()[:200]}"
            return {}
        threads = collections.Counter(re.findall(r"^(\d+) +(\w+)\(", log.read_text(errors="replace"), re.M))
        most = {}
        for (_, name), count in threads.items():
            most[name] = max(count, most.get(name, 0))
        return most

    def prepare(self, folder, beginning, with_cache):
        if beginning == "midway":
            shutil.copytree(self.runs.midway, folder / "run")
        if with_cache:
            shutil.copytree(self.runs.cache, folder / "cache")

    def command(self, folder):
        return self.runs.train(folder / "run", folder / "cache")

    def trial(self, random, folder):
        beginning = random.choice(("fresh", "midway"))
        counts = self.counts[beginning]
        call = random.choice([name for name in ERRORS if name in counts])
        error = random.choice(ERRORS[call])
        first = random.randint(1, counts[call])
        # A disk that stays full or broken; a call that is interrupted for ever is no fault of a disk.
        lasting = error != "EINTR" and random.random() < 0.3
        self.prepare(folder, beginning, with_cache=random.random() < 0.7)
        inject = f"inject={call}:error={error}:when={first}{'+' if lasting else ''}"
        ended = start(["strace", "-f", "-qq", "-e", f"trace={call}", "-e", inject, "-o", "/dev/null", *self.command(folder)],
                      folder, LIMIT)
        self.hold(ended, call, lasting)
        again = start(self.command(folder), folder, LIMIT)
        try:
            hold_to(again, {0})
            self.runs.check_finished(folder / "run", "one rank", again)
        except Broken as problem:
            raise Broken(f"{problem}\nafter\n{ended.told()}") from problem
        outcome = "finished" if ended.code == 0 else "refused"
        if ended.code == 0 and re.search(r"damaged|cannot|could not", ended.text()):
            outcome = "fell back"
        return f"{call} fails", 1, outcome

    def hold(self, ended, call, lasting):
        if ended.code == 127 and LINKER in ended.text():
            return
        if call == "write" and ended.code in (2, 3):
            return  # its message may be the very write that fails
        if call in ("mmap", "openat", "read", "pread64", "newfstatat") and ended.code == 127:
            return  # the linker again, where it has no words left
        hold_to(ended, {0, 2, 3})
