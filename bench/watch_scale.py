"""The page of `sextant watch` over many long runs, in a headless Chromium: time to the first paint and to the first curves from the start of
the server, frames per second while zooming by the browser's own trace, memory of the server. Then the server alone: thousands of
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
                      f'"input_s":{1e-4 * draw.random():.9f},"processor_s":{1 + draw.random():.7f},"mfu":0.41,"arena_bytes":2147483648}}\n')


def memory_of(process):
    """The most that it had, in MB."""
    for line in open(f"/proc/{process.pid}/status"):
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0


def measure_page(arguments, folder):
    with Browser(find_chromium(), 1400, 1000) as browser:
        started = time.monotonic()
        with Server(arguments.sextant, folder) as server:
            browser.open(server.url)
            browser.wait_for("document.querySelector('canvas')?.getAttribute('aria-label')?.match(/last values: [^n]/)", 60)
            curves = time.monotonic() - started
            paint = browser.value("performance.getEntriesByType('paint').find(e => e.name === 'first-contentful-paint')?.startTime")
            print(f"first paint {paint:.0f} ms after the page was asked for; curves of {browser.value('document.querySelectorAll(`#runs li`).length')} "
                  f"runs {curves:.2f} s after the start of the server")
            browser.wait_for("!document.getElementById('status').textContent.includes('reading')", 120)
            print(f"all {arguments.runs} x {arguments.steps} steps read after {time.monotonic() - started:.1f} s; the server has {memory_of(server.process):.0f} MB")
            started = time.monotonic()
            browser.open(server.url + "?again")
            browser.wait_for("document.querySelector('canvas')?.getAttribute('aria-label')?.match(/last values: [^n]/)", 60)
            paint = browser.value("performance.getEntriesByType('paint').find(e => e.name === 'first-contentful-paint')?.startTime")
            print(f"opened again: first paint {paint:.0f} ms, curves {time.monotonic() - started:.2f} s")
            zoom(browser)
            print(f"after that the server has {memory_of(server.process):.0f} MB")


def zoom(browser):
    box = browser.value("(() => { const e = document.querySelector('canvas'); e.focus(); const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
    x, y = box[0] + box[2] / 2, box[1] + box[3] / 2
    # Frames of the page are counted by itself, those that the browser drew by its trace.
    browser.value("window.frames_ = 0, window.longest_ = 0, window.last_ = performance.now(), (function tick() { const now = performance.now();"
                  " longest_ = Math.max(longest_, now - last_); last_ = now; ++frames_; requestAnimationFrame(tick); })()")
    browser.call("Tracing.start", transferMode="ReportEvents", traceConfig={"includedCategories": ["disabled-by-default-devtools.timeline.frame", "devtools.timeline.frame"]})
    begin, count = time.monotonic(), browser.value("frames_")
    browser.value("longest_ = 0")
    moves = 0
    while time.monotonic() - begin < 5:
        browser.mouse("mouseWheel", x + 40 * math.sin(moves / 7), y, deltaX=0, deltaY=-100 if moves % 60 < 30 else 100)
        moves += 1
    seconds = time.monotonic() - begin
    frames, longest = browser.value("frames_") - count, browser.value("longest_")
    drawn = trace_frames(browser)
    print(f"zooming ({moves} turns of the wheel in {seconds:.1f} s): {frames / seconds:.0f} frames/s by requestAnimationFrame, the longest {longest:.0f} ms; "
          f"{drawn / seconds:.0f} frames/s drawn by the browser's trace")


def trace_frames(browser):
    browser.call("Tracing.end")
    drawn, deadline = 0, time.monotonic() + 20
    while True:
        message = browser._message(deadline)
        if message.get("method") == "Tracing.dataCollected":
            drawn += sum(event.get("name") == "DrawFrame" for event in message["params"]["value"])
        if message.get("method") == "Tracing.tracingComplete":
            return drawn


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
