"""What a run offers to other programs, read by those programs: event files by TensorBoard, values by the parser of
prometheus_client. Both must show what metrics.jsonl has. Exit code 77 where the packages are missing.

  watch_formats.py --sextant build/release/sextant
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import urllib.request

try:
    from prometheus_client.parser import text_string_to_metric_families
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from tensorboard.plugins.hparams import plugin_data_pb2
except ImportError as error:
    print(f"skipped: {error}; scripts/checkers --boards installs it")
    sys.exit(77)

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
SIZES = {"scalars": 0, "histograms": 0, "tensors": 0, "compressedHistograms": 0, "images": 1, "audio": 1}


def lines_of(run):
    return [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]


def scraped(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    return {family.name: {sample.labels["run"]: sample.value for sample in family.samples}
            for family in text_string_to_metric_families(text)}


def close(a, b):
    return abs(a - b) <= 1e-5 * max(abs(a), abs(b), 1e-30)


def check_board(folder, lines, config_key):
    board = EventAccumulator(str(folder), size_guidance=SIZES)
    board.Reload()
    tags = board.Tags()
    for name in ("loss", "grad_norm", "lr", "tokens", "step_s"):
        shown = {event.step: event.value for event in board.Scalars(name)}
        assert shown.keys() == {line["step"] for line in lines}, f"{name}: steps {sorted(shown)}"
        for line in lines:
            assert close(shown[line["step"]], line[name]), (name, line["step"], shown[line["step"]], line[name])
    validation = {event.step: event.value for event in board.Scalars("validation_loss")}
    assert validation.keys() == {line["step"] for line in lines if "validation_loss" in line}
    if any("own_s_by_rank" in line for line in lines):
        histograms = {event.step: event.histogram_value for event in board.Histograms("own_s_by_rank")}
        for line in lines:
            one = histograms[line["step"]]
            assert one.num == len(line["own_s_by_rank"]) and close(one.sum, sum(line["own_s_by_rank"]))
            assert sum(one.bucket) == one.num and one.max <= one.bucket_limit[-1] * (1 + 1e-12)
    texts = [tag for tag in tags["tensors"] if tag.startswith("events/")]
    assert "events/start" in texts and "config" in tags["tensors"], tags["tensors"]
    table = board.Tensors("config")[0].tensor_proto.string_val[0].decode()
    assert f"| `{config_key}` |" in table, table
    metadata = board.SummaryMetadata("_hparams_/session_start_info")
    data = plugin_data_pb2.HParamsPluginData.FromString(metadata.plugin_data.content)
    assert data.session_start_info.hparams["optimizer.lr"].number_value == 0.003, data
    return len(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sextant", required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        run = pathlib.Path(scratch) / "run"
        command = [arguments.sextant, "train", REPOSITORY / "configs" / "tiny-llama.toml", "mesh.dp=2", "train.steps=300",
                   "train.threads=1", f"data.cache={scratch}/cache", "data.stories_bytes=60000", "checkpoint.every=50",
                   "log.tensorboard=true", "log.prometheus=:0", "--inject", "slow=5@1", "--out", run]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        port = None
        for line in process.stdout:
            if found := re.match(r"values   port (\d+)", line):
                port = int(found[1])
                break
        assert port, "train did not say where its values are"
        seen = None
        while process.poll() is None and not (seen and "sextant_loss" in seen):
            time.sleep(0.3)
            try:
                seen = scraped(port)
            except OSError:
                break
        assert seen and "sextant_loss" in seen, f"no loss was served while the run trained: {seen}"
        process.stdout.read()
        assert process.wait(120) == 0
        step = int(seen["sextant_step"]["run"])
        by_step = {line["step"]: line for line in lines_of(run)}
        assert close(seen["sextant_loss"]["run"], by_step[step]["loss"]), (step, seen["sextant_loss"])
        steps = check_board(run / "tensorboard", lines_of(run), "optimizer.lr")
        # A run that goes on writes the steps that count, once.
        subprocess.run([*command[:-4], "train.steps=320", "--out", run], check=True, stdout=subprocess.DEVNULL)
        more = check_board(run / "tensorboard", lines_of(run), "optimizer.lr")
        assert (steps, more) == (300, 320), (steps, more)
        subprocess.run([arguments.sextant, "watch", run, "--tensorboard", f"{scratch}/board", "--quiet"], check=True)
        exported = EventAccumulator(f"{scratch}/board/run", size_guidance=SIZES)
        exported.Reload()
        assert [event.step for event in exported.Scalars("loss")] == list(range(1, 321))
    print("TensorBoard and the Prometheus parser show what metrics.jsonl has")


if __name__ == "__main__":
    main()
