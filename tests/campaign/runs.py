"""The small run that is killed and damaged: its command on each layout, its uninterrupted losses, and what must hold at its end."""
import json
import shutil
from pathlib import Path

from program import Broken, CHECKOUT, hold_to, start

STEPS = 6
KEEP = 2
LIMIT = 60.0  # seconds for a start that takes one; the machine may be busy
LAYOUTS = {
    "one rank": [],
    "dp2 tp2, threads": ["mesh.dp=2", "mesh.tp=2", "batch.microbatch=1"],
    "dp2, mpirun": ["mesh.dp=2"],
}


class Runs:
    """Commands, reference losses and prepared directories, made once and then only copied."""

    def __init__(self, sextant, work):
        self.sextant = str(sextant)
        self.work = work
        self.cache = work / "cache"
        self.losses = {}
        self.reference = {}
        self.left_out = []
        for layout in LAYOUTS:
            self.run_reference(layout)
        self.midway = work / "midway"
        self.make_midway()

    def train(self, out, cache, layout="one rank", *more):
        words = [self.sextant, "train", "configs/tiny-llama.toml", "--out", str(out), f"data.cache={cache}",
                 "data.stories_bytes=60000", "train.threads=1", "train.eval_every=0", f"train.steps={STEPS}",
                 "checkpoint.every=1", f"checkpoint.keep={KEEP}", *LAYOUTS[layout], *more]
        return ["mpirun", "-n", "2", "--oversubscribe", *words] if "mpirun" in layout else words

    def run_reference(self, layout):
        if "mpirun" in layout and shutil.which("mpirun") is None:
            self.left_out.append(f"{layout}: mpirun is not installed")
            return
        folder = self.work / f"reference-{len(self.losses)}"
        folder.mkdir()
        ended = start(self.train(folder / "run", self.cache, layout, f"checkpoint.keep={STEPS}"), folder, LIMIT)
        if ended.code != 0 and "mpirun" in layout:
            self.left_out.append(f"{layout}: {ended.err.decode(errors='replace').strip()[:200]}")
            return
        hold_to(ended, {0})
        self.losses[layout] = read_metrics(folder / "run")
        self.reference[layout] = folder / "run"

    def make_midway(self):
        """A run after four of its six steps with two checkpoints, as a kill leaves it."""
        shutil.copytree(self.reference["one rank"], self.midway)
        for step in (1, 2, 5, 6):
            shutil.rmtree(self.midway / f"step-{step:06}")
        lines = (self.midway / "metrics.jsonl").read_text().splitlines(keepends=True)
        (self.midway / "metrics.jsonl").write_text("".join(lines[:4]))

    def check_losses(self, out, layout, ended):
        """Every step once, in order, with the bits of the uninterrupted run."""
        found = read_metrics(out)
        if found != self.losses[layout]:
            raise Broken(f"metrics.jsonl has {found}, the uninterrupted run {self.losses[layout]}\n{ended.told()}")

    def check_finished(self, out, layout, ended):
        self.check_losses(out, layout, ended)
        left = [str(path) for path in out.rglob("*.tmp-*")]
        if left:
            raise Broken(f"temporary files are left: {left}\n{ended.told()}")
        steps = sorted(out.glob("step-*"))
        if not 1 <= len(steps) <= KEEP or steps[-1].name != f"step-{STEPS:06}":
            raise Broken(f"checkpoints at the end: {[step.name for step in steps]}\n{ended.told()}")
        for step in steps:
            for name, told in json.loads((step / "manifest.json").read_text())["files"].items():
                if (step / name).stat().st_size != told["bytes"]:
                    raise Broken(f"{step / name} is not of the size in manifest.json\n{ended.told()}")

    def check_older_checkpoint(self, out, cache, layout, folder):
        """Goes on from the checkpoint before the last, which verifies its hashes, and must come to the same losses."""
        if len(list(out.glob("step-*"))) < 2:
            return
        shutil.rmtree(out / f"step-{STEPS:06}")
        ended = start(self.train(out, cache, layout), folder, LIMIT)
        hold_to(ended, {0})
        if "damaged" in ended.text():
            raise Broken(f"the checkpoint before the last is damaged\n{ended.told()}")
        self.check_finished(out, layout, ended)


def read_metrics(out):
    """(step, loss, gradient norm) of each line; a line that is no JSON is a broken promise."""
    path = Path(out) / "metrics.jsonl"
    try:
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return [(line["step"], line["loss"], line["grad_norm"]) for line in lines]
    except (OSError, ValueError, KeyError) as problem:
        raise Broken(f"{path}: {problem!r}") from problem


def config_path():
    return CHECKOUT / "configs" / "tiny-llama.toml"
