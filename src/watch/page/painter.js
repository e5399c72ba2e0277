// Draws charts with the frames of the browser: each once for a frame, however often it was asked for. Where frames come late, fewer
// charts are drawn in each, so that a zoom stays fluid; the others follow in the next.
const FRAME_MS = 1000 / 30;

class Painter {
  constructor() {
    this.waiting = new Set();
    this.perFrame = 8;
    // Totals of drawing since the page was opened; tests and bench/watch_scale.py read them.
    this.work = globalThis.drawingWork = {frames: 0, charts: 0, points: 0, milliseconds: 0};
  }

  add(chart) {
    this.waiting.add(chart);
    this.frame ??= requestAnimationFrame((time) => this.paint(time));
  }

  paint(time) {
    if (this.painted) this.adapt(time - this.painted);
    this.painted = this.frame = undefined;
    if (this.waiting.size === 0) return;
    const started = performance.now();
    // Who waits longest comes first.
    for (const chart of [...this.waiting].slice(0, this.perFrame)) {
      this.waiting.delete(chart);
      chart.needsDrawing = false;
      this.work.points += chart.draw();
      ++this.work.charts;
    }
    ++this.work.frames;
    this.work.milliseconds += performance.now() - started;
    // When the next frame comes tells what this one took, of which drawing on the screen is no part of the time above.
    this.painted = time;
    this.frame = requestAnimationFrame((next) => this.paint(next));
  }

  adapt(took) {
    if (took > FRAME_MS) this.perFrame = Math.max(1, this.perFrame >> 1);
    else ++this.perFrame;
  }
}
