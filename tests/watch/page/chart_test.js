// Charts on made-up series: ranges, points that are drawn, what the pointer reads, zoom by keys; and pictures of lists.
"use strict";
const assert = require("node:assert/strict");
const {drawer, loadPage} = require("./page_context.js");

module.exports = (folder) => {
  const page = loadPage(folder, ["Chart", "HeatMap", "Painter", "isBadEvent", "drawCurve", "Scale", "curveOf", "MARGIN", "LEGEND", "HEAT", "heatPixel"]);

  // A view as Chart asks it, with all of its own answers to be set.
  function viewOf(settings) {
    const zooms = [];
    return {
      axis: "step", logX: false, outliers: false, showMarks: false, range: {from: 0, to: 100}, hidden: [], runs: [], events: [], zooms,
      xRange() {
        return this.range;
      },
      isShown(run) {
        return !this.hidden.includes(run);
      },
      shownRuns() {
        return this.runs.filter((run) => this.isShown(run.id));
      },
      marks() {
        return this.events;
      },
      colours: () => ({quiet: "quiet", grid: "grid", accent: "accent", bad: "bad", run: (id) => `run ${id}`}),
      runName: (id) => `name ${id}`,
      labelOf: (field) => field,
      isMoving: () => false,
      redraw() {},
      saveState() {},
      readOut(text) {
        this.read = text;
      },
      zoom: (from, to) => zooms.push([from, to]),
      resetZoom: () => zooms.push("reset"),
      ...settings,
    };
  }
  function chartOf(view, series, {fields = ["loss"], unit = "", size = [600, 300]} = {}) {
    const chart = new page.Chart(view, fields, "label", unit, "about", false);
    [chart.canvas.clientWidth, chart.canvas.clientHeight] = size;
    chart.series = series.map(({run, x, y, smooth, isSecond = false}) => (
      {run, field: fields[0], isSecond, values: page.curveOf(x, y), smooth: smooth ? page.curveOf(x, smooth) : null}));
    return chart;
  }
  const points = (random, n) => Array.from({length: n}, (_, i) => i * 100 / n).map((x) => [x, 2 + random.normal()]);
  const near = (a, b, what) => assert.ok(Math.abs(a - b) <= 1e-9 * (1 + Math.abs(b)), `${what}: ${a}, expected ${b}`);
  const key = (name, more = {}) => ({key: name, preventDefault() {}, ...more});

  return {
    "the range of y is that of what is shown in the range of x": () => {
      const random = drawer(11);
      for (let turn = 0; turn < 80; ++turn) {
        const all = [1, 2, 3].map((run) => {
          const drawn = points(random, 40);
          return {run, x: drawn.map(([x]) => x), y: drawn.map(([, y]) => y), smooth: turn % 2 ? drawn.map(() => 2 + random.uniform()) : undefined};
        });
        const from = random.uniform() * 50, to = from + 10 + random.uniform() * 40, hidden = turn % 3 ? [2] : [];
        const view = viewOf({range: {from, to}, hidden}), chart = chartOf(view, all);
        chart.log = turn % 5 === 0;
        const seen = all.filter(({run}) => !hidden.includes(run))
          .flatMap(({x, y, smooth}) => x.flatMap((at, i) => (at >= from && at <= to ? [y[i], ...(smooth ? [smooth[i]] : [])] : [])))
          .filter((value) => !chart.log || value > 0);
        const low = Math.min(...seen), high = Math.max(...seen), {x, y} = chart.scales(600, 300);
        near(x.from, from, "left");
        near(x.to, to, "right");
        const spread = chart.log ? [low / (high / low) ** 0.04, high * (high / low) ** 0.04] : [low - 0.05 * (high - low), high + 0.05 * (high - low)];
        near(y.from, spread[0], "bottom");
        near(y.to, spread[1], "top");
        assert.ok(y.pixel(high) < y.pixel(low), "more is higher");
      }
    },
    "without outliers the lowest and highest fiftieth are cut off": () => {
      const random = drawer(12);
      for (let turn = 0; turn < 40; ++turn) {
        const n = 21 + random.below(300), ys = Array.from({length: n}, () => (random.normal() * 10) ** 3), xs = ys.map((_, i) => i * 100 / n);
        const chart = chartOf(viewOf({outliers: true}), [{run: 1, x: xs, y: ys, smooth: turn % 2 ? ys.map((y) => y / 2) : undefined}]);
        const counted = [...(turn % 2 ? ys.map((y) => y / 2) : ys)].sort((a, b) => a - b);
        const low = counted[Math.floor(n / 50)], high = counted[Math.ceil(n * 49 / 50) - 1], {y} = chart.scales(600, 300);
        near(y.from, low - 0.05 * (high - low), "bottom");
        near(y.to, high + 0.05 * (high - low), "top");
      }
      // Of few points none is one.
      const few = chartOf(viewOf({outliers: true}), [{run: 1, x: [1, 2, 3], y: [1, 2, 100]}]).scales(600, 300).y;
      near(few.to, 100 + 0.05 * 99, "top");
    },
    "a logarithm leaves zeros and what is below out": () => {
      const chart = chartOf(viewOf({}), [{run: 1, x: [1, 2, 3, 4], y: [0, 10, -3, 1000]}]);
      chart.log = true;
      const {y} = chart.scales(600, 300);
      near(y.from, 10 / 100 ** 0.04, "bottom");
      near(y.to, 1000 * 100 ** 0.04, "top");
    },
    "flat curves and empty charts have a range": () => {
      const range = (y, more = {}) => {
        const scale = chartOf(viewOf({}), [{run: 1, x: y.map((_, i) => i), y}], more).scales(600, 300).y;
        return [scale.from, scale.to];
      };
      assert.deepEqual(range([]), [-0.05, 1.05]);
      assert.deepEqual(range([0, 0]), [-1, 1]);
      assert.deepEqual(range([4, 4]), [3.8, 4.2]);
      assert.deepEqual(range([-4, -4]), [-4.2, -3.8]);
      const [low, high] = range([1e9, 1e9 + 1e3], {unit: "bytes"});
      assert.ok(low < 0.99e9 + 1 && high > 1.01e9, "labels of nearly equal bytes differ");
    },
    "predictions of the step time are part of its chart": () => {
      const runs = [{id: 1, plan: {step_s: 9}}, {id: 2, plan: null}, {id: 3, plan: {step_s: 50}}], series = [{run: 1, x: [1, 2], y: [3, 4]}];
      const scale = (fields, hidden) => chartOf(viewOf({runs, hidden}), series, {fields}).scales(600, 300).y;
      near(scale(["step_s"], [3]).to, 9 + 0.05 * 6, "top");
      near(scale(["step_s"], []).to, 50 + 0.05 * 47, "top");
      near(scale(["loss"], []).to, 4.05, "top");
    },
    "the pointer reads the nearest point of each curve": () => {
      const random = drawer(13);
      for (let turn = 0; turn < 100; ++turn) {
        const series = [1, 2, 3].map((run) => {
          const xs = Array.from({length: 1 + random.below(9)}, () => random.uniform() * 100).sort((a, b) => a - b);
          return {run, x: xs, y: xs.map(() => random.normal())};
        });
        const chart = chartOf(viewOf({hidden: turn % 2 ? [3] : []}), [...series, {run: 1, x: [], y: []}]), at = random.uniform() * 120 - 10;
        const expected = series.filter(({run}) => !(turn % 2 && run === 3)).map(({run, x, y}) => {
          const best = x.reduce((found, one, i) => (Math.abs(one - at) < Math.abs(x[found] - at) ? i : found), 0);
          return {run, point: [x[best], y[best]]};
        }).sort((a, b) => b.point[1] - a.point[1]);
        assert.deepEqual([...chart.readings(at)].map(({run, point}) => ({run, point: [...point]})), expected);
      }
    },
    "keys move the cursor and the range": () => {
      const view = viewOf({range: {from: 10, to: 60}}), chart = chartOf(view, [{run: 1, x: [10, 34, 60], y: [1, 3, 2]}]);
      chart.draw();
      chart.onKey(key("ArrowRight"));
      const {x} = chart.drawn, pixels = (value) => x.pixel(value);
      near(pixels(chart.cursor) - pixels(35), 6, "to the right of the middle");
      chart.onKey(key("ArrowLeft"));
      near(chart.cursor, 35, "and back");
      assert.match(view.read, /^step 35: name 1 3$/);
      for (let i = 0; i < 200; ++i) chart.onKey(key("ArrowLeft"));
      near(chart.cursor, 10, "not beyond the left end");
      for (let i = 0; i < 400; ++i) chart.onKey(key("ArrowRight"));
      near(chart.cursor, 60, "nor the right one");
      chart.onKey(key("ArrowRight", {shiftKey: true}));
      chart.onKey(key("ArrowLeft", {shiftKey: true}));
      [[20, 70], [0, 50]].forEach((range, i) => range.forEach((end, side) => near(view.zooms[i][side], end, "a fifth of the range")));
      chart.cursor = 20;
      chart.onKey(key("+"));
      chart.onKey(key("-"));
      [[20 - 7, 20 + 28], [20 - 10 / 0.7, 20 + 40 / 0.7]].forEach((range, i) => range.forEach((end, side) => near(view.zooms[2 + i][side], end, "about the cursor")));
      for (const name of ["0", "Home", "Escape"]) chart.onKey(key(name));
      assert.deepEqual(view.zooms.slice(4), ["reset", "reset", "reset"]);
      chart.onKey(key("l"));
      assert.equal(chart.log, true);
      chart.onKey(key("0", {ctrlKey: true}));
      assert.equal(view.zooms.length, 7, "keys of the browser are left to it");
    },
    "a drag zooms to what it covers, the wheel about the pointer": () => {
      const view = viewOf({}), chart = chartOf(view, [{run: 1, x: [0, 100], y: [1, 2]}]), {listeners} = chart.canvas;
      chart.draw();
      const {x} = chart.drawn;
      const drag = (from, to) => {
        listeners.pointerdown({button: 0, clientX: from, pointerId: 1});
        listeners.pointermove({clientX: to, offsetY: 50});
        listeners.pointerup({});
      };
      drag(x.pixel(80), x.pixel(20));
      view.zooms[0].forEach((end, side) => near(end, [20, 80][side], "of the drag"));
      drag(x.pixel(50), x.pixel(50) + 3);
      assert.equal(view.zooms.length, 1, "a click is no drag");
      listeners.wheel({ctrlKey: true, deltaY: -1, clientX: x.pixel(40), preventDefault() {}});
      view.zooms[1].forEach((end, side) => near(end, [40 - 0.8 * 40, 40 + 0.8 * 60][side], "of the wheel"));
      listeners.wheel({ctrlKey: false, deltaY: -1, clientX: x.pixel(40), preventDefault() {}});
      assert.equal(view.zooms.length, 2, "without a key the page scrolls");
    },
    "all curves that are shown are drawn, in their colours": () => {
      const random = drawer(14), drawn = points(random, 500), series = [1, 2].map((run) => ({run, x: drawn.map(([x]) => x), y: drawn.map(([, y]) => y * run)}));
      const strokes = (chart) => chart.canvas.context.calls.filter(({name, given}) => name === "stroke" && given.length).map(({look}) => look.strokeStyle);
      const both = chartOf(viewOf({}), series), one = chartOf(viewOf({hidden: [1]}), series);
      assert.ok(both.draw() > one.draw());
      assert.deepEqual([...new Set(strokes(both))], ["run 1", "run 2"]);
      assert.deepEqual([...new Set(strokes(one))], ["run 2"]);
      assert.equal(chartOf(viewOf({}), series, {size: [0, 0]}).draw(), 0, "what has no size is not drawn");
    },
    "coarse curves keep the extremes": () => {
      const random = drawer(15);
      for (let turn = 0; turn < 20; ++turn) {
        const n = 100 + random.below(50), xs = Array.from({length: n}, (_, i) => i), ys = xs.map(() => random.normal() * 50);
        const peak = random.below(n);
        ys[peak] = 1000;
        const paths = [], canvas = new (class {
          constructor() {
            return new Proxy({}, {get: (_, name) => (given) => name === "stroke" && paths.push(given), set: () => true});
          }
        })();
        const scale = {x: new page.Scale(0, n - 1, 0, 3 * n, false), y: new page.Scale(-1000, 1000, 2000, 0, false), colour: "red"};
        const coarse = page.drawCurve(canvas, page.curveOf(xs, ys), {...scale, isCoarse: true}), fine = page.drawCurve(canvas, page.curveOf(xs, ys), scale);
        assert.ok(coarse < fine, "fewer points");
        for (const path of paths) {
          const high = path.lines[0].reduce((a, b) => (b[1] < a[1] ? b : a));
          assert.deepEqual([...high], [3 * peak * n / (n - 1), 0].map((v, i) => (i ? v : scale.x.pixel(peak))));
          assert.equal(path.lines[0].at(-1)[0], scale.x.pixel(n - 1), "to the last point");
        }
      }
    },
    "in a range, one point on each side is drawn too": () => {
      const paths = [], canvas = new Proxy({}, {get: (_, name) => (given) => name === "stroke" && paths.push(given), set: () => true});
      const xs = [0, 10, 20, 30, 40, 50], ys = [0, 5, 0, 5, 0, 5];
      assert.equal(page.drawCurve(canvas, page.curveOf(xs, ys), {x: new page.Scale(15, 35, 0, 200, false), y: new page.Scale(0, 5, 100, 0, false), colour: "red"}), 4);
      assert.deepEqual(paths[0].lines[0].map(([x]) => x), [-50, 50, 150, 250]);
      // Where a logarithm has no place for a point, the line is broken.
      page.drawCurve(canvas, page.curveOf(xs, [1, 10, 0, 10, 1, -5]), {x: new page.Scale(0, 50, 0, 50, false), y: new page.Scale(1, 10, 100, 0, true), colour: "red"});
      assert.deepEqual(paths.at(-1).lines.map((line) => line.map(([x]) => x)), [[0, 10], [30, 40]]);
    },
    "checkpoints have no lines, bad events have a colour": () => {
      for (const kind of ["failure", "spike", "skipped_step", "rewind", "straggler", "drift"]) assert.ok(page.isBadEvent(kind), kind);
      for (const kind of ["checkpoint", "start", "finish", "resume", ""]) assert.ok(!page.isBadEvent(kind), kind);
      const events = [{event: "checkpoint", step: 10, run: 1}, {event: "checkpoint", step: 10.1, run: 1}, {event: "spike", step: 10, run: 1}, {event: "failure", step: 500, run: 1},
                      {event: "start", step: 50, run: 2}];
      const chart = chartOf(viewOf({showMarks: true, events}), [{run: 1, x: [0, 100], y: [1, 2]}]);
      chart.draw();
      const {calls} = chart.canvas.context, marks = calls.filter(({name, look}) => name === "fill" && look.globalAlpha === 0.9).map(({look}) => look.fillStyle);
      assert.deepEqual(marks, ["run 1", "bad", "run 2"], "one of two checkpoints on one pixel, none outside");
      assert.equal(calls.filter(({name, given}) => name === "setLineDash" && given[0].join() === "2,3").length, 1, "a line for the spike alone");
    },
    "a picture of a list shows the last column that has begun": async () => {
      const data = {x: [10, 20, 40], until: [20, 40, 50], width: 2, values: [0, 8, 4, 2, 6, 1]};
      const view = viewOf({range: {from: 0, to: 50}, source: {list: async () => data}}), map = new page.HeatMap(view, 1, "loads", "", "about");
      [map.canvas.clientWidth, map.canvas.clientHeight] = [50 + page.MARGIN.left + page.MARGIN.right + page.LEGEND, 200];
      await map.load();
      assert.deepEqual([map.low, map.high], [0, 8]);
      assert.equal(map.draw(), 100);
      const image = map.picture.context.calls.find(({name}) => name === "putImageData").given[0], pixels = new Uint32Array(image.data.buffer);
      for (let column = 0; column < 50; ++column)
        for (const element of [0, 1]) {
          const begun = data.x.filter((x) => x < column + 1).length - 1;
          const expected = begun < 0 ? 0 : page.heatPixel(data.values[begun * 2 + element] / 8);
          assert.equal(pixels[element * 50 + column], expected, `column ${column}, element ${element}`);
        }
      assert.match(map.point(page.MARGIN.left + 25, page.MARGIN.top + 1), /^element 0, step 20: 4$/);
      assert.match(map.point(page.MARGIN.left + 45, 190), /^element 1, step 40: 1$/);
      data.values.fill(3);
      await map.load();
      assert.equal(map.draw(), 0, "one colour says nothing");
    },
    "a picture of a list ends where its list does, and has gaps": async () => {
      const data = {x: [10, 20, 40], until: [20, 25, 45], width: 2, values: [0, 8, 4, null, 6, 1]};
      const view = viewOf({range: {from: 0, to: 50}, source: {list: async () => data}}), map = new page.HeatMap(view, 1, "loads", "", "about");
      [map.canvas.clientWidth, map.canvas.clientHeight] = [50 + page.MARGIN.left + page.MARGIN.right + page.LEGEND, 200];
      await map.load();
      assert.deepEqual([map.low, map.high], [0, 8]);
      map.draw();
      const image = map.picture.context.calls.find(({name}) => name === "putImageData").given[0], pixels = new Uint32Array(image.data.buffer);
      const there = (column, element) => pixels[element * 50 + column] !== 0;
      assert.deepEqual([5, 15, 22, 30, 42, 48].map((column) => there(column, 0)), [false, true, true, false, true, false]);
      assert.ok(there(15, 1) && !there(22, 1));
      assert.match(map.point(page.MARGIN.left + 22, 190), /: no value$/);
      assert.match(map.point(page.MARGIN.left + 30, page.MARGIN.top + 1), /: no value$/);
    },
    "the painter draws each chart once, and fewer where frames are late": () => {
      const painter = new page.Painter(), frames = page.frames, drawn = [], chart = (name) => ({draw: () => drawn.push(name)});
      frames.length = 0;
      const charts = Array.from({length: 20}, (_, i) => chart(i));
      for (const one of [...charts, ...charts]) painter.add(one);
      assert.equal(frames.length, 1);
      frames.shift()(1000);
      assert.deepEqual(drawn, [0, 1, 2, 3, 4, 5, 6, 7]);
      frames.shift()(1100);  // late: half as many
      assert.equal(drawn.length, 12);
      frames.shift()(1110);
      assert.equal(drawn.length, 17);
      frames.shift()(1120);
      assert.deepEqual(drawn, charts.map((_, i) => i));
    },
  };
};
