"""The page of `sextant watch` over many long runs, in a headless Chromium: time to the first paint and to the first curves from the start of
the server, frames per second while zooming, panning, pointing and scrolling by the browser's own trace with the processor time of each
frame, memory of the server. Then the server alone: thousands of
connections at a time, slow clients and garbage, while a page is asked for.

  bench/watch_scale.py --sextant build/release/sextant [--runs 20] [--steps 100000] [--connections 10000] [--out FOLDER]
"""

import argparse
import json
import math
import os
import pathlib
import random
import resource
import socket
import sys
import tempfile
import time
import urllib.parse
import urllib.request

REPOSITORY = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(REPOSITORY / "tests" / "peers"))
from browser import Browser, find_chromium  # noqa: E402
from watch_page import Server  # noqa: E402


def write_run(folder, number, steps):
    draw = random.Random(number)
    folder.mkdir(parents=True)
    with open(folder / "metrics.jsonl", "w") as out:
        for step in range(1, steps + 1):
            loss = 2 + 0.02 * number + 6 * math.exp(-step / 5000) + 0.05 * draw.random()
            out.write(f'{{"step":{step},"loss":{loss:.7f},"grad_norm":{1 + draw.random():.7f},"lr":{3e-4 * (1 - step / steps):.10f},'
                      f'"tokens":{step * 4096},"tokens_per_s":{8000 + 100 * draw.random():.6f},"step_s":{0.5 + 0.01 * draw.random():.9f},'
                      f'"input_s":{1e-4 * draw.random():.9f},"processor_s":{1 + draw.random():.7f},"model_flops":2.1e15,"mfu":0.41,"arena_bytes":2147483648}}\n')


def memory_of(process):
    """The most that it had, in MB."""
    for line in open(f"/proc/{process.pid}/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0


FIRST_PAINT = "performance.getEntriesByType('paint').find(e => e.name === 'first-contentful-paint')?.startTime"


def measure_page(arguments, folder):
    with Browser(find_chromium(), 1400, 1000) as browser:
        started = time.monotonic()
        with Server(arguments.sextant, folder) as server:
            browser.open(server.url)
            browser.wait_for("document.querySelector('canvas')?.getAttribute('aria-label')?.match(/last values: [^n]/)", 60)
            curves = time.monotonic() - started
            paint = browser.wait_for(FIRST_PAINT)
            print(f"first paint {paint:.0f} ms after the page was asked for; curves of {browser.value('document.querySelectorAll(`#runs li`).length')} "
                  f"runs {curves:.2f} s after the start of the server")
            browser.wait_for("!document.getElementById('status').textContent.includes('reading')", 120)
            print(f"all {arguments.runs} x {arguments.steps} steps read after {time.monotonic() - started:.1f} s; the server has {memory_of(server.process):.0f} MB")
            started = time.monotonic()
            browser.open(server.url + "?again")
            browser.wait_for("document.querySelector('canvas')?.getAttribute('aria-label')?.match(/last values: [^n]/)", 60)
            paint = browser.wait_for(FIRST_PAINT)
            print(f"opened again: first paint {paint:.0f} ms, curves {time.monotonic() - started:.2f} s")
            for move in ("zoom", "pan", "point", "scroll"):
                gesture(browser, move, arguments.seconds)
            print(f"after that the server has {memory_of(server.process):.0f} MB")


# A turn of the wheel, or a step to the side, with every frame for some seconds; the times between frames, in milliseconds.
GESTURE = """new Promise((resolve) => {
  const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect(), between = [], begin = performance.now();
  let last = begin, turn = 0;
  canvas.focus();
  requestAnimationFrame(function tick(now) {
    if (turn > 0) between.push(now - last);
    last = now;
    if (now - begin > SECONDS * 1000) return resolve(between);
    if (MOVE === "zoom") canvas.dispatchEvent(new WheelEvent("wheel", {ctrlKey: true, cancelable: true, deltaY: turn % 60 < 30 ? -100 : 100,
        clientX: box.left + box.width / 2 + 40 * Math.sin(turn / 7), clientY: box.top + 100}));
    else if (MOVE === "pan") canvas.dispatchEvent(new KeyboardEvent("keydown", {key: turn % 20 < 10 ? "ArrowLeft" : "ArrowRight", shiftKey: true}));
    else if (MOVE === "point") canvas.dispatchEvent(new PointerEvent("pointermove", {clientX: box.left + 80 + 5 * turn % (box.width - 100), clientY: box.top + 100}));
    else scrollTo(0, 400 * (1 - Math.cos(turn / 10)));
    ++turn;
    requestAnimationFrame(tick);
  });
})"""


def gesture(browser, move, seconds):
    before = browser.value("({...drawingWork})")
    browser.call("Tracing.start", transferMode="ReportEvents", traceConfig={"includedCategories": ["toplevel", "devtools.timeline", "devtools.timeline.frame",
                                                                                                   "disabled-by-default-devtools.timeline.frame"]})
    between = sorted(browser.value(GESTURE.replace("MOVE", json.dumps(move)).replace("SECONDS", str(seconds))))
    drawn, processor = read_trace(browser)
    work = browser.value("({...drawingWork})")
    frames = len(between)
    charts = work["charts"] - before["charts"]
    print(f"{move}: {frames / seconds:.0f} frames/s by requestAnimationFrame (between two: median {between[frames // 2]:.0f} ms, 99 of 100 below "
          f"{between[frames * 99 // 100]:.0f} ms), {drawn / seconds:.0f} frames/s by the browser's trace")
    busiest = ", ".join(f"{name} {1e3 * used / frames:.1f} ms" for name, used in sorted(processor.items(), key=lambda one: -one[1])[:4])
    print(f"  {charts / frames:.1f} charts and {(work['points'] - before['points']) / max(1, charts):.0f} points of each a frame, "
          f"{(work['milliseconds'] - before['milliseconds']) / frames:.1f} ms of scripts; processor time a frame by thread: {busiest}")


def read_trace(browser):
    """Frames that were drawn, and the seconds of processor time that each thread used in its tasks."""
    browser.call("Tracing.end")
    drawn, deadline, names, tasks = 0, time.monotonic() + 60, {}, []
    while True:
        message = browser._message(deadline)
        for event in message["params"]["value"] if message.get("method") == "Tracing.dataCollected" else []:
            drawn += event.get("name") == "DrawFrame"
            thread = (event["pid"], event["tid"])
            if event.get("name") == "thread_name":
                names[thread] = event["args"]["name"]
            if event.get("ph") == "X" and "tdur" in event:
                tasks.append((thread, event["tts"], event["tts"] + event["tdur"]))
        if message.get("method") == "Tracing.tracingComplete":
            break
    # Tasks lie within others: the time that they cover together.
    processor, covered = {}, {}
    for thread, begin, end in sorted(tasks):
        begin = max(begin, covered.get(thread, 0))
        if end > begin:
            name = names.get(thread, "?")
            processor[name] = processor.get(name, 0) + (end - begin) / 1e6
            covered[thread] = end
    return drawn, processor


def ask(url):
    started = time.monotonic()
    with urllib.request.urlopen(url, timeout=30) as answer:
        answer.read()
    return time.monotonic() - started


def measure_connections(arguments, folder):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, arguments.connections + 200)), hard))
    with Server(arguments.sextant, folder) as server:
        place = urllib.parse.urlparse(server.url)
        url = server.url + "api/runs"
        quiet = sorted(ask(url) for _ in range(20))[10]
        clients, refused, failed = [], 0, 0
        started = time.monotonic()
        for i in range(arguments.connections):
            try:
                client = socket.create_connection((place.hostname, place.port), timeout=10)
            except OSError:
                failed += 1
                continue
            # A third sends nothing, a third a part of a request, a third garbage.
            kind = i % 3
            try:
                if kind == 1:
                    client.send(b"GET /api/runs HTTP/1.1\r\nHost: ")
                if kind == 2:
                    client.send(os.urandom(200) + b"\r\n\r\n")
            except OSError:
                refused += 1
            clients.append(client)
        took = time.monotonic() - started
        fits = None
        begin = time.monotonic()
        while fits is None and time.monotonic() - begin < 60:
            try:
                fits = ask(url)
            except OSError:
                time.sleep(0.1)
        waited = time.monotonic() - begin
        print(f"{len(clients)} connections opened in {took:.1f} s and held ({failed} not opened): a page that asks meanwhile is answered "
              f"after {waited:.1f} s (alone: {1e3 * quiet:.0f} ms); the server has {memory_of(server.process):.0f} MB")
        for client in clients:
            client.close()
        print(f"after them: {1e3 * sorted(ask(url) for _ in range(20))[10]:.0f} ms")
        assert server.process.poll() is None, "the server ended"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sextant", required=True)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--connections", type=int, default=10_000)
    parser.add_argument("--out", type=pathlib.Path, help="where the runs are made, or lie already")
    parser.add_argument("--seconds", type=float, default=5, help="of each gesture")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = arguments.out or pathlib.Path(scratch) / "runs"
        for number in range(arguments.runs):
            if not (folder / f"run-{number:02}").exists():
                write_run(folder / f"run-{number:02}", number, arguments.steps)
        if find_chromium():
            measure_page(arguments, folder)
        measure_connections(arguments, folder)


if __name__ == "__main__":
    sys.exit(main())
