"""The page of `sextant watch` in a headless Chromium: it loads, zooms, toggles runs, changes axes, fits a phone, follows the
system's dark mode, reads with the keyboard, and shows a run while it trains. Exit code 77 where there is no Chromium.

  watch_page.py --sextant build/release/sextant [--screenshots FOLDER]
"""

import argparse
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(__file__))
from browser import Browser, find_chromium  # noqa: E402

SHOWN = "[...document.querySelectorAll('#charts h2')].map(h => h.firstChild.textContent.trim())"


def write_run(folder, name, steps, shift, experts=0):
    run = folder / name
    run.mkdir(parents=True)
    with open(run / "metrics.jsonl", "w") as out:
        for step in range(1, steps + 1):
            line = {"step": step, "loss": 2 + shift + 6 * math.exp(-step / 200) + 0.05 * math.sin(step * 1.7),
                    "grad_norm": 1 + 0.2 * math.cos(step), "lr": 3e-4 * (1 - step / steps), "tokens": step * 4096,
                    "tokens_per_s": 8000 + step % 7, "step_s": 0.5, "model_flops": (2 + 10 * shift) * 1e15, "mfu": 0.4, "arena_bytes": 2 << 30, "made_up_field": step}
            if step == steps // 2:
                line["loss"] += 3
            if step % 100 == 0:
                line["validation_loss"] = 2.1 + shift + 6 * math.exp(-step / 200)
            if experts:
                line["expert_load_peak"] = [1 + i * math.exp(-step / 300) for i in range(experts)]
            out.write(json.dumps(line, separators=(",", ":")) + "\n")
    with open(run / "events.jsonl", "w") as out:
        for step, kind in ((1, "start"), (steps // 2, "spike"), (steps, "finish")):
            out.write(json.dumps({"time": "2026-11-17T10:00:00.000Z", "event": kind, "step": step,
                                  "text": f"<b>{kind}</b> of {name}"}) + "\n")
    return run


class Server:
    """Ends once the page has left it: a connection that waits to be accepted by a server that ends is reset, and the
    browser would report that."""

    def __init__(self, sextant, *arguments, browser=None):
        self.browser = browser
        self.process = subprocess.Popen([sextant, "watch", *map(str, arguments), "--port", "0", "--json", "--stop-after", "300"],
                                        stdout=subprocess.PIPE, text=True)
        text = ""
        while "}" not in text:
            text += self.process.stdout.readline()
        self.url = json.loads(text)["url"]

    def __enter__(self):
        return self

    def __exit__(self, error, *_):
        if self.browser and error is None:
            self.browser.leave()
        self.process.terminate()
        assert self.process.wait(20) == 0, "watch did not end well"


def centre(browser, selector):
    box = browser.value(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center'}});"
                        "const b = e.getBoundingClientRect(); return [b.left, b.top, b.width, b.height]; })()")
    return box[0], box[1], box[2], box[3]


def hash_value(browser, name):
    return browser.value(f"new URLSearchParams(location.hash.slice(1)).get({json.dumps(name)})")


def painted(browser):
    """Pixels of the first chart that are not transparent."""
    return browser.value("(() => { const c = document.querySelector('canvas'); const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                         "let n = 0; for (let i = 3; i < d.length; i += 4) n += d[i] > 0; return n; })()")


def ready(browser, url):
    browser.open(url)
    browser.wait_for("document.documentElement?.dataset.ready === '1'")
    browser.wait_for("document.querySelector('canvas')?.getAttribute('aria-label').includes('last values: ')")


def check_page(browser, url, names):
    started = time.monotonic()
    ready(browser, url)
    print(f"ready after {time.monotonic() - started:.2f} s")
    assert browser.value("document.querySelectorAll('#runs li').length") == len(names)
    for wanted in ("loss, validation loss dashed", "gradient norm", "learning rate", "tokens/s", "MFU", "memory of rank 0",
                   "step time", "made up field", "expert load peak"):
        browser.wait_for(f"{SHOWN}.includes({json.dumps(wanted)})")  # files are read one after the other
    assert painted(browser) > 500
    browser.wait_for(f"document.querySelectorAll('#events tr').length === {3 * len(names)}")
    assert browser.value("document.querySelectorAll('#events b').length") == 0, "texts of events became markup"
    browser.wait_for(f"document.querySelectorAll('#comparisons tr').length === {len(names) - 1}")
    browser.wait_for(f"document.getElementById('comparisons').textContent.includes('{names[1]} is worse than {names[0]} at')")
    browser.value("document.getElementById('to-compare').click()")
    assert browser.value("(b => b.top >= -1 && b.bottom <= innerHeight)(document.getElementById('compare-panel').getBoundingClientRect())")
    browser.value("scrollTo(0, 0)")
    unnamed = browser.value("[...document.querySelectorAll('canvas, button, input, select')].filter(e => !e.getAttribute('aria-label') && !e.ariaHidden"
                            " && !e.textContent.trim() && !e.closest('label')).map(e => e.id || e.outerHTML)")
    assert unnamed == [], f"without a name for screen readers: {unnamed}"


def check_zoom(browser):
    left, top, width, height = centre(browser, "canvas")
    browser.drag(left + width * 0.4, top + height / 2, left + width * 0.6, top + height / 2)
    browser.wait_for("location.hash.includes('range=')")
    from_, to = map(float, hash_value(browser, "range").split(":"))
    assert 300 < from_ < to < 700, (from_, to)
    browser.value("document.querySelector('canvas').focus()")
    before = to - from_
    browser.mouse("mouseWheel", left + width / 2, top + height / 2, deltaX=0, deltaY=-100)
    browser.wait_for(f"(([a, b]) => b - a < {before * 0.95})(new URLSearchParams(location.hash.slice(1)).get('range').split(':').map(Number))")
    browser.key("-")
    browser.key("0")
    browser.wait_for("!location.hash.includes('range=')")
    browser.value("document.querySelector('canvas').focus()")
    browser.key("ArrowRight")
    reading = browser.wait_for("document.getElementById('reading').textContent")
    assert reading.startswith("step "), reading
    browser.key("l")
    browser.wait_for("location.hash.includes('log=loss')")
    browser.key("l")


def check_flops(browser, names):
    """In the middle of the axis, at 1.8e18, the first run of 2e15 a step is at its step 900 and the second, of 4e15, at 450."""
    browser.wait_for("isSettled()")  # the cursor is where the axis that is drawn has it
    browser.value("document.querySelector('canvas').focus()")
    browser.key("ArrowRight")
    reading = browser.wait_for("(t => t.startsWith('model FLOPs') && t)(document.getElementById('reading').textContent)")
    assert 1.8e18 < float(reading.split(":")[0].split(" ")[2]) < 1.9e18, reading
    values = dict(one.rsplit(" ", 1) for one in reading.split(": ")[1].split(", "))
    for name, loss in ((names[0], 2 + 6 * math.exp(-900 / 200)), (names[1], 2.2 + 6 * math.exp(-450 / 200))):
        assert abs(float(values[name]) - loss) < 0.15, (name, loss, reading)


def check_controls(browser, names):
    browser.value("document.querySelector('#runs input').click()")
    browser.wait_for(f"new URLSearchParams(location.hash.slice(1)).get('hide') === {json.dumps(names[0])}")
    label = browser.wait_for(f"(l => !l.includes({json.dumps(names[0])}) && l)(document.querySelector('canvas').getAttribute('aria-label'))")
    assert names[1] in label
    # Of the two that are left, the first is compared with; another can be chosen.
    browser.wait_for(f"document.getElementById('comparisons').textContent.includes('{names[2]} is better than {names[1]} at')")
    browser.value("document.getElementById('all-runs').click()")
    browser.value(f"(s => {{ s.value = '{names[1]}'; s.dispatchEvent(new Event('input')); }})(document.getElementById('baseline'))")
    browser.wait_for(f"document.getElementById('comparisons').textContent.includes('{names[0]} is better than {names[1]} at')")
    browser.wait_for(f"location.hash.includes('baseline={names[1]}')")
    for axis in ("tokens", "seconds", "flops", "step"):
        browser.value(f"(s => {{ s.value = '{axis}'; s.dispatchEvent(new Event('input')); }})(document.getElementById('axis'))")
        name = {"tokens": "tokens", "seconds": "time in steps", "flops": "model FLOPs", "step": "step"}[axis]
        browser.wait_for(f"document.querySelector('canvas').getAttribute('aria-label').includes('by {name},')")
        if axis == "flops":
            check_flops(browser, names)
            browser.wait_for("isSettled()")  # charts out of view too, which paper has
    browser.value("(s => { s.value = '0.9'; s.dispatchEvent(new Event('input')); })(document.getElementById('smoothing'))")
    browser.wait_for("location.hash.includes('smooth=0.9')")
    browser.value("(s => { s.value = 'learning'; s.dispatchEvent(new Event('input')); })(document.getElementById('field-filter'))")
    assert browser.value("[...document.querySelectorAll('figure')].filter(f => !f.hidden).length") == 1
    browser.value("(s => { s.value = ''; s.dispatchEvent(new Event('input')); })(document.getElementById('field-filter'))")


def check_looks(browser, url, shots):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = browser.value(ground)
    browser.dark()
    dark = browser.wait_for(f"{ground} !== {json.dumps(light)} && {ground}")
    assert sum(map(int, dark[4:-1].split(","))) < 150, dark
    if shots:
        browser.screenshot(shots / "watch-dark.png")
    browser.value("document.getElementById('theme').click()")  # light, whatever the system says
    browser.wait_for(f"{ground} === {json.dumps(light)}")
    browser.value("localStorage.clear()")
    browser.dark(False)
    browser.size(390, 844, mobile=True)
    ready(browser, url)
    assert browser.value("document.documentElement.scrollWidth") <= 390
    assert browser.value("document.querySelector('canvas').getBoundingClientRect().width") > 300
    if shots:
        browser.screenshot(shots / "watch-phone.png")
    browser.size(1280, 900)


# Turns of the wheel, or moves of the pointer, over the first chart: one a frame. What was drawn for them.
GESTURE = """new Promise((resolve) => {
  const canvas = document.querySelector("canvas"), box = canvas.getBoundingClientRect(), before = {...drawingWork};
  const prototype = CanvasRenderingContext2D.prototype, stroke = prototype.stroke;
  let turn = 0, wide = 0;
  prototype.stroke = function (...path) {
    if (this.lineWidth * this.getTransform().a > 1.001) ++wide;
    return stroke.apply(this, path);
  };
  requestAnimationFrame(function tick() {
    if (turn === 30) {
      prototype.stroke = stroke;
      return resolve({wide, ...Object.fromEntries(Object.keys(before).map((key) => [key, drawingWork[key] - before[key]]))});
    }
    const place = {clientX: box.left + 100 + 5 * turn, clientY: box.top + 100};
    canvas.dispatchEvent(KIND === "wheel" ? new WheelEvent("wheel", {ctrlKey: true, cancelable: true, deltaY: turn % 10 < 5 ? -100 : 100, ...place})
                                          : new PointerEvent("pointermove", place));
    ++turn;
    requestAnimationFrame(tick);
  });
})"""


def check_work(browser, url):
    """What a frame of a zoom over 20 runs costs, counted and not timed: frames depend on what else the machine does."""
    ready(browser, url)
    browser.wait_for("!document.getElementById('status').textContent.includes('reading')")
    in_view = browser.value("(scrollTo(0, 0), [...document.querySelectorAll('figure')].filter(f => f.getBoundingClientRect().top < innerHeight + 40).length)")
    all_charts = browser.value("document.querySelectorAll('figure').length")
    assert in_view < all_charts
    browser.wait_for("isSettled()")
    zoom = browser.value(GESTURE.replace("KIND", "'wheel'"))
    print(f"a zoom over 20 runs: {zoom}")
    assert zoom["frames"] > 0 and zoom["points"] > 0
    assert zoom["charts"] <= in_view * zoom["frames"], f"charts out of view are drawn: {zoom}, {in_view} in view"
    assert zoom["points"] <= 10_000 * zoom["charts"], f"points of a chart do not stay bounded: {zoom}"
    assert zoom["wide"] == 0, f"curves are drawn with wide lines, which take fifty times as long: {zoom}"
    assert zoom["milliseconds"] <= 100 * zoom["charts"], f"scripts take too long to draw a chart: {zoom}"
    # When what the zoom asked for has come, the pointer alone draws no curve.
    browser.wait_for("isSettled()")
    point = browser.value(GESTURE.replace("KIND", "'pointer'"))
    assert point["charts"] == 0, f"the pointer draws curves again: {point}"
    assert browser.value("!document.querySelector('.tip').hidden && document.querySelectorAll('.tip')[0].textContent.includes('run-')")


def check_training(browser, sextant, folder):
    run = folder / "live"
    config = pathlib.Path(__file__).parents[2] / "configs/tiny-llama.toml"
    with Server(sextant, folder, browser=browser) as server:
        browser.open(server.url)
        browser.wait_for("document.documentElement?.dataset.ready === '1'")
        training = subprocess.Popen([sextant, "train", config, "--out", run, "train.steps=400", "train.threads=1", "optimizer.warmup=0",
                                     f"data.cache={folder / 'cache'}", "data.stories_bytes=60000", "--quiet"],
                                    stdout=subprocess.DEVNULL)
        seen = set()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and 400 not in seen:
            text = browser.value("document.querySelector('#runs .facts')?.textContent ?? ''")
            if "step " in text:
                seen.add(int(text.split("step ")[1].split(" ")[0]))
            time.sleep(0.05)
        assert training.wait(60) == 0
        assert 400 in seen and len(seen) > 2, f"the page did not follow the run: {sorted(seen)}"
        browser.wait_for("document.querySelector('#runs .facts').textContent.startsWith('finished')")
        assert painted(browser) > 300
        print(f"live: the page showed {len(seen)} different steps while the run trained")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--sextant", required=True)
    parser.add_argument("--screenshots", type=pathlib.Path)
    arguments = parser.parse_args()
    chromium = find_chromium()
    if not chromium:
        print("left out: no chromium on this machine (apt-get install chromium)")
        return 77
    names = ["a-run", "b-run", "experts"]
    with tempfile.TemporaryDirectory() as place, Browser(chromium) as browser:
        folder = pathlib.Path(place) / "runs"
        write_run(folder, names[0], 1000, 0)
        write_run(folder, names[1], 900, 0.2)
        write_run(folder, names[2], 1000, 0.1, experts=6)
        with Server(arguments.sextant, folder, browser=browser) as server:
            check_page(browser, server.url, names)
            check_zoom(browser)
            check_controls(browser, names)
            check_looks(browser, server.url, arguments.screenshots)
        with Server(arguments.sextant, folder, "--host", "127.0.0.1", browser=browser) as server:
            assert "?token=" in server.url, server.url
            check_page(browser, server.url, names)
        page = pathlib.Path(place) / "page.html"
        subprocess.run([arguments.sextant, "watch", folder, "--html", page, "--quiet"], check=True)
        check_page(browser, page.as_uri(), names)
        check_zoom(browser)
        many = pathlib.Path(place) / "many"
        for number in range(20):
            write_run(many, f"run-{number:02}", 1000, 0.02 * number)
        with Server(arguments.sextant, many, browser=browser) as server:
            check_work(browser, server.url)
        live = pathlib.Path(place) / "training"
        live.mkdir()
        check_training(browser, arguments.sextant, live)
        # A server that ends is reported by the browser as a stream that broke, and asked for again.
        errors = [e for e in browser.errors if "ERR_CONNECTION_REFUSED" not in e and "ERR_INCOMPLETE_CHUNKED" not in e and "Failed to fetch" not in e]
        assert errors == [], errors
    print("the page works")
    return 0


if __name__ == "__main__":
    sys.exit(main())
