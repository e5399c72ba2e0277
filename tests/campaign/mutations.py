"""Mutated files: a valid file of each kind is damaged and read by the verb that reads it."""
import gzip
import json
import os
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable

from damage import damaged
from program import Broken, CHECKOUT, hold_to, start
from runs import LIMIT, config_path

SEEDS = CHECKOUT / "tests" / "fuzz" / "seeds"
READER_CODES = {0, 2, 3, 6, 8}
READER_LIMIT = 20.0
CHECKPOINT = ("model.safetensors", "optimizer.safetensors", "run_state.json", "manifest.json", "config.json", "tokenizer.json")


@dataclass
class Reader:
    """A file of one kind: the valid one, the name it gets, and the command that reads the folder with it."""
    row: str
    source: Path
    name: str
    command: Callable
    beside: tuple = ()


class Mutations:
    kind = "mutations"

    def __init__(self, runs):
        self.runs = runs
        self.sextant = runs.sextant
        self.checkpoint = runs.midway / "step-000004"
        self.samples = runs.work / "samples"
        self.samples.mkdir()
        self.make_samples()
        self.readers = self.plan_readers() + self.data_readers()
        self.check_undamaged()

    def make_samples(self):
        samples, tokenizer = self.samples, self.checkpoint / "tokenizer.json"
        lines = [json.dumps({"text": f"Once upon a time there was a fox, number {n}.", "id": n}) for n in range(60)]
        text = ("\n".join(lines) + "\n").encode()
        (samples / "text.jsonl").write_bytes(text)
        (samples / "text.txt").write_bytes(b"One day a fox ran.<|endoftext|>The end.\n" * 40)
        (samples / "text.jsonl.gz").write_bytes(gzip.compress(text, mtime=0))
        (samples / "text.jsonl.zst").write_bytes(zstd(text))
        published = (SEEDS / "published.csv").read_bytes().splitlines(keepends=True)
        (samples / "published.csv").write_bytes(b"".join(published[:2]))
        self.run(["explain", config_path(), "mesh.pp=2", "--schedule-csv", samples / "schedule.csv"])
        self.run(["data", "tokenize", samples / "text.jsonl", "--tokenizer", tokenizer, "--out", samples / "tokens.bin"])
        self.run(["data", "tokenize", samples / "text.jsonl", "--tokenizer", tokenizer, "--format", "megatron", "--out",
                  samples / "pair.bin"])

    def run(self, words):
        hold_to(start([self.sextant, *map(str, words)], self.samples, LIMIT), {0})

    def check_undamaged(self):
        """Every command must succeed on the file as it was: one that always refuses would show nothing."""
        for number, reader in enumerate(self.readers):
            folder = self.samples / f"undamaged-{number}"
            folder.mkdir()
            ended = self.start_reader(reader, folder, reader.source.read_bytes())
            hold_to(ended, {0})
        for guarded in (True, False):
            folder = self.samples / f"undamaged-generate-{guarded}"
            folder.mkdir()
            hold_to(self.start_generate(folder, guarded, "config.json", lambda data: data), {0})

    def plan_readers(self):
        config = config_path()
        machine = CHECKOUT / "machines" / "h100-sxm.toml"
        return [
            Reader("config.toml: plan", config, "config.toml", lambda at: ["plan", at]),
            Reader("config.toml: explain", config, "config.toml", lambda at: ["explain", at]),
            Reader("machine.toml: plan", machine, "machine.toml", lambda at: ["plan", config, "--machine", at]),
            Reader("published.csv: validate", self.samples / "published.csv", "published.csv",
                   lambda at: ["validate", at]),
            Reader("published.csv: validate --json", self.samples / "published.csv", "published.csv",
                   lambda at: ["validate", at, "--json"]),
            Reader("runs.csv: laws --fit", SEEDS / "runs.csv", "runs.csv", lambda at: ["laws", "--fit", at]),
            Reader("runs.csv: laws --fit --json", SEEDS / "runs.csv", "runs.csv", lambda at: ["laws", "--fit", at, "--json"]),
            Reader("machine.toml: plan --json", machine, "machine.toml", lambda at: ["plan", config, "--machine", at, "--json"]),
            Reader("schedule.csv: explain", self.samples / "schedule.csv", "schedule.csv",
                   lambda at: ["explain", config, "mesh.pp=2", "pipeline.schedule=csv", f"pipeline.file={at}"]),
        ]

    def data_readers(self):
        tokenizer = self.checkpoint / "tokenizer.json"
        samples = self.samples

        def inspect(at):
            return ["data", "inspect", at]

        def inspect_tokens(at):
            return ["data", "inspect", at, "--tokenizer", tokenizer]

        texts = [Reader(f"{name}: data inspect", samples / name, name, inspect)
                 for name in ("text.txt", "text.jsonl", "text.jsonl.gz", "text.jsonl.zst")]
        return texts + [
            Reader("text.jsonl: data inspect --json", samples / "text.jsonl", "text.jsonl", lambda at: [*inspect(at), "--json"]),
            Reader("tokens.bin: data inspect", samples / "tokens.bin", "tokens.bin", inspect_tokens),
            Reader("pair.idx: data inspect", samples / "pair.idx", "pair.idx", inspect_tokens, (samples / "pair.bin",)),
            Reader("tokenizer.json: data tokenize", tokenizer, "tokenizer.json",
                   lambda at: ["data", "tokenize", samples / "text.jsonl", "--threads", "1", "--tokenizer", at, "--out",
                               at.parent / "written.bin"]),
            Reader("tokenizer.json: data inspect", tokenizer, "tokenizer.json",
                   lambda at: ["data", "inspect", samples / "tokens.bin", "--tokenizer", at]),
        ]

    def trial(self, random, folder):
        chosen = random.random()
        if chosen < 0.06:
            return self.resume(random, folder)
        if chosen < 0.10:
            return self.cache(random, folder)
        if chosen < 0.12:
            return self.beside_checkpoints(random, folder)
        if chosen < 0.35:
            return self.generate(random, folder)
        return self.read(random, folder, random.choice(self.readers))

    def start_reader(self, reader, folder, data):
        at = folder / reader.name
        at.write_bytes(data)
        for other in reader.beside:
            os.link(other, folder / other.name)
        return start([self.sextant, *map(str, reader.command(at))], folder, READER_LIMIT)

    def read(self, random, folder, reader):
        ended = self.start_reader(reader, folder, damaged(random, reader.source.read_bytes()))
        hold_to(ended, READER_CODES)
        return reader.row, 1, outcome(ended)

    def start_generate(self, folder, guarded, name, change):
        model = folder / "model"
        model.mkdir()
        for path in self.checkpoint.iterdir():
            if path.name == name:
                (model / name).write_bytes(change(path.read_bytes()))
            elif guarded or path.name != "manifest.json":
                os.link(path, model / path.name)
        return start([self.sextant, "generate", str(model), "--max-tokens", "2", "--threads", "1"], folder, READER_LIMIT)

    def generate(self, random, folder):
        """With its manifest a damaged model must be refused; without, whatever is read must be harmless."""
        guarded = random.random() < 0.3
        name = random.choice(("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json", "manifest.json"))
        if not guarded and name == "manifest.json":
            name = "model.safetensors"
        ended = self.start_generate(folder, guarded, name, lambda data: damaged(random, data))
        hold_to(ended, READER_CODES)
        if guarded and name == "model.safetensors" and ended.code == 0:
            raise Broken(f"wrote text with damaged weights\n{ended.told()}")
        return f"{name}: generate{'' if guarded else ', no manifest'}", 1, outcome(ended)

    def copy_midway(self, folder):
        shutil.copytree(self.runs.midway, folder / "run")
        shutil.copytree(self.runs.cache, folder / "cache")

    def resume(self, random, folder):
        """A damaged checkpoint is named and an older one taken, or the run refuses."""
        self.copy_midway(folder)
        name = random.choice(CHECKPOINT)
        path = folder / "run" / "step-000004" / name
        path.write_bytes(damaged(random, path.read_bytes()))
        ended = start(self.runs.train(folder / "run", folder / "cache"), folder, LIMIT)
        hold_to(ended, READER_CODES)
        if ended.code == 0:
            # A manifest that still says the same of every file guards nothing that was damaged.
            if name != "manifest.json" and "damaged" not in ended.text():
                raise Broken(f"{name} is damaged and nothing was said\n{ended.told()}")
            self.runs.check_finished(folder / "run", "one rank", ended)
        return f"{name}: resume", 1, outcome(ended)

    def cache(self, random, folder):
        """A damaged cache is made again: the losses stay what they were."""
        self.copy_midway(folder)
        path = random.choice([path for path in sorted((folder / "cache").rglob("*")) if path.is_file()])
        path.write_bytes(damaged(random, path.read_bytes()))
        ended = start(self.runs.train(folder / "run", folder / "cache"), folder, LIMIT)
        hold_to(ended, READER_CODES)
        if ended.code == 0:
            self.runs.check_finished(folder / "run", "one rank", ended)
            if path.name != "manifest.json" and "tokenizing" not in ended.text():
                raise Broken(f"the cache's {path.name} is damaged and was used\n{ended.told()}")
        return f"cache {path.name}: train", 1, "fell back" if "tokenizing" in ended.text() else outcome(ended)

    def beside_checkpoints(self, random, folder):
        """Files of a run that no hash guards."""
        self.copy_midway(folder)
        name = random.choice(("metrics.jsonl", "lock", "heartbeat/rank-0.json", "config.toml"))
        path = folder / "run" / name
        path.write_bytes(damaged(random, path.read_bytes() or b"\n"))
        ended = start(self.runs.train(folder / "run", folder / "cache"), folder, LIMIT)
        hold_to(ended, READER_CODES)
        if ended.code == 0 and name != "metrics.jsonl":
            self.runs.check_finished(folder / "run", "one rank", ended)
        return f"{Path(name).name}: resume", 1, outcome(ended)


def outcome(ended):
    if ended.code != 0:
        return "refused"
    return "fell back" if "damaged" in ended.text() else "finished"


def zstd(data):
    """Compressed where the tool is installed; else one frame with a raw block, which needs none."""
    if shutil.which("zstd"):
        return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True, timeout=20).stdout
    assert len(data) < 1 << 16
    header = b"\x28\xb5\x2f\xfd" + bytes([0b01100000]) + (len(data) - 256).to_bytes(2, "little")
    return header + (len(data) << 3 | 1).to_bytes(3, "little") + data
