"""Kills: a run is ended with SIGKILL at random moments, started again, and must come to the losses of one that never was."""
import os
import shutil
import time

from program import Broken, hold_to, start
from runs import LIMIT

MOMENTS = ("any time", "a checkpoint appears", "a temporary name exists")
MOST_KILLS = 3  # of one run; then it is left to finish


class Kills:
    kind = "kills"

    def __init__(self, runs):
        self.runs = runs
        self.layouts = list(runs.losses)

    def trial(self, random, folder):
        """Returns how many kills struck, by name of the table's row, and the outcome."""
        layout = random.choices(self.layouts, weights=[5, 3, 2][:len(self.layouts)])[0]
        out, cache = folder / "run", folder / "cache"
        if random.random() < 0.75:
            shutil.copytree(self.runs.cache, cache)  # else it is killed while it makes the cache, too
        command = self.runs.train(out, cache, layout)
        struck = 0
        for _ in range(random.randint(1, MOST_KILLS)):
            ended = start(command, folder, LIMIT, moment(random, out, "mpirun" in layout))
            struck += ended.killed
            if not ended.killed:
                hold_to(ended, {0})
        ended = start(command, folder, LIMIT)
        hold_to(ended, {0})
        if "damaged" in ended.text():
            raise Broken(f"a kill left a checkpoint that is damaged under its final name\n{ended.told()}")
        self.runs.check_finished(out, layout, ended)
        self.runs.check_older_checkpoint(out, cache, layout, folder)
        return f"kill, {layout}", struck, "finished"


def moment(random, out, is_launched):
    """A function that turns true when the process is to be killed."""
    kind = random.choice(MOMENTS)
    after = time.monotonic() + random.uniform(0.0, 1.2 if is_launched else 0.6)
    pause = random.choice((0.0, random.uniform(0.0, 0.005)))
    seen = set(names(out))
    due = None

    def is_due():
        nonlocal due
        now = time.monotonic()
        if kind == "any time":
            return now >= after
        if due is None and now >= after - 0.3 and any(wanted(name, kind) and name not in seen for name in names(out)):
            due = now + pause
        return due is not None and now >= due

    return is_due


def wanted(name, kind):
    return ".tmp-" in name if kind == "a temporary name exists" else name.startswith("step-") and ".tmp-" not in name


def names(out):
    try:
        return os.listdir(out)
    except OSError:
        return []
