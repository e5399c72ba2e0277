// Numbers and scales: tables by hand, and what must hold for any range.
"use strict";
const assert = require("node:assert/strict");
const {drawer, loadPage} = require("./page_context.js");

module.exports = (folder) => {
  const page = loadPage(folder, ["Scale", "ThinnedPath", "formatDuration", "formatPower", "formatValue", "formatX", "heatColour", "runColour", "heatPixel", "heatParts", "elementName", "lowerBound"]);
  return {
    "values are written as people read them": () => {
      const cases = [[null, "", "–"], [undefined, "", "–"], [NaN, "bytes", "–"], [0, "", "0"], [1234.5, "", "1.2345 k"], [999, "", "999"], [1000, "", "1 k"],
                     [-1500, "", "-1.5 k"], [2.5e6, "", "2.5 M"], [3e9, "", "3 G"], [4e12, "", "4 T"], [5e15, "", "5 P"], [0.001, "", "0.001"],
                     [0.00012345, "", "1.234e-4"], [-2e-5, "", "-2e-5"], [1023, "bytes", "1023 B"], [1024, "bytes", "1 KiB"],
                     [1.5 * 2 ** 20, "bytes", "1.5 MiB"], [2 ** 30, "bytes", "1 GiB"], [2 ** 40, "bytes", "1 TiB"], [3 * 2 ** 50, "bytes", "3 PiB"]];
      for (const [value, unit, text] of cases) assert.equal(page.formatValue(value, unit), text, `${value} ${unit}`);
      assert.equal(page.formatValue(1.23456789, "", 3), "1.23");
    },
    "times and powers": () => {
      const times = [[0, "0 s"], [59.9, "59.9 s"], [60, "1 min"], [90, "1.5 min"], [3599, "60 min"], [3600, "1 h"], [47 * 3600, "47 h"], [48 * 3600, "2 d"], [864000, "10 d"]];
      for (const [seconds, text] of times) assert.equal(page.formatDuration(seconds), text);
      for (const [value, text] of [[0, "0"], [1.2345e21, "1.23e21"], [1e15, "1e15"], [0.5, "5e-1"]]) assert.equal(page.formatPower(value), text);
      for (const [axis, value, text] of [["step", 123456, "123456"], ["step", 2e6, "2 M"], ["tokens", 1.5e9, "1.5 G"], ["seconds", 7200, "2 h"], ["flops", 2e18, "2e18"], ["tokens", 12, "12"]])
        assert.equal(page.formatX(axis, value), text);
    },
    "pixels and values are inverse": () => {
      const random = drawer(1);
      for (let turn = 0; turn < 400; ++turn) {
        const log = turn % 2 === 1, from = log ? 10 ** (random.uniform() * 6 - 3) : random.normal() * 100, to = log ? from * 10 ** (0.1 + 4 * random.uniform()) : from + 0.1 + 50 * random.uniform();
        const begin = random.below(100), end = begin + 50 + random.below(900), flipped = turn % 3 === 0;
        const scale = new page.Scale(from, to, flipped ? end : begin, flipped ? begin : end, log);
        assert.ok(Math.abs(scale.pixel(from) - (flipped ? end : begin)) < 1e-6);
        assert.ok(Math.abs(scale.pixel(to) - (flipped ? begin : end)) < 1e-6);
        const middle = log ? Math.sqrt(from * to) : (from + to) / 2;
        assert.ok(Math.abs(scale.pixel(middle) - (begin + end) / 2) < 1e-6, "the middle is in the middle");
        const value = scale.value(begin + random.uniform() * (end - begin));
        assert.ok(Math.abs(scale.value(scale.pixel(value)) - value) <= 1e-9 * Math.abs(value) + 1e-12);
        const ticks = scale.ticks(5);
        assert.ok(ticks.every((tick) => tick >= from - 1e-9 * Math.abs(from) && tick <= to + 1e-9 * Math.abs(to)), "ticks are in the range");
        assert.ok(ticks.every((tick, i) => i === 0 || tick > ticks[i - 1]), "ticks rise");
        if (!log) {
          assert.ok(ticks.length >= 1 && ticks.length <= 6, `${ticks.length} ticks from ${from} to ${to}`);
          const step = ticks[1] - ticks[0], digit = Math.round(step / 10 ** Math.floor(Math.log10(step) + 1e-9));
          if (ticks.length > 1) assert.ok([1, 2, 5, 10].includes(digit), `steps of ${step}`);
        }
      }
    },
    "ticks of bytes and of decades": () => {
      assert.deepEqual([...new page.Scale(0, 4 * 2 ** 30, 0, 100, false).ticks(4, "bytes")], [0, 1, 2, 3, 4].map((g) => g * 2 ** 30));
      assert.deepEqual([...new page.Scale(1, 1e4, 0, 100, true).ticks(8)], [1, 10, 100, 1000, 10000]);
      assert.deepEqual([...new page.Scale(1, 50, 0, 100, true).ticks(8)], [1, 2, 5, 10, 20, 50]);
      assert.deepEqual([...new page.Scale(1, 1e8, 0, 100, true).ticks(4)], [1, 1e2, 1e4, 1e6, 1e8]);
    },
    "a thinned path stays within a third of a pixel": () => {
      const random = drawer(2);
      for (let turn = 0; turn < 60; ++turn) {
        const line = new page.ThinnedPath(), points = [];
        let x = 0, y = 100;
        for (let i = 0; i < 300; ++i) {
          x += turn % 3 === 0 ? 0.05 : random.uniform() * 2;
          y += turn % 2 === 0 ? random.normal() * 0.2 : random.normal() * 5;
          points.push([x, y]);
          line.to(x, y);
        }
        const kept = line.done().lines[0];
        assert.deepEqual([...kept[0]], points[0]);
        assert.deepEqual([...kept.at(-1)], points.at(-1));
        assert.equal(line.points, kept.length);
        let segment = 0;
        for (const [px, py] of points) {
          while (segment + 2 < kept.length && kept[segment + 1][0] < px) ++segment;
          const [[ax, ay], [bx, by]] = [kept[segment], kept[segment + 1]];
          const on = bx > ax ? ay + ((by - ay) * (px - ax)) / (bx - ax) : py;
          assert.ok(Math.abs(on - py) <= 0.3 + 1e-6, `a point is ${Math.abs(on - py)} pixels away`);
        }
        if (turn % 6 === 0) assert.ok(kept.length < 200, "nothing was left out");
      }
      const lifted = new page.ThinnedPath();
      for (const [x, y] of [[0, 0], [1, 5]]) lifted.to(x, y);
      lifted.lift();
      for (const [x, y] of [[3, 2], [4, 9]]) lifted.to(x, y);
      assert.deepEqual(lifted.done().lines.map((one) => one.map((point) => [...point])), [[[0, 0], [1, 5]], [[3, 2], [4, 9]]]);
    },
    "the first element that is not smaller": () => {
      const random = drawer(3);
      for (let turn = 0; turn < 300; ++turn) {
        const sorted = Array.from({length: random.below(12)}, () => random.below(10)).sort((a, b) => a - b), wanted = random.below(12) - 1;
        const first = sorted.findIndex((value) => value >= wanted);
        assert.equal(page.lowerBound(sorted, wanted), first < 0 ? sorted.length : first);
      }
    },
    "colours of runs": () => {
      const tones = ["50%", "64%"];
      assert.equal(page.runColour(0, tones), "oklch(50% 0.15 5)");
      assert.equal(page.runColour(48 * 7 + 24 + 6, tones), "oklch(64% 0.15 95)");
      const seen = new Set(Array.from({length: 48}, (_, key) => page.runColour(key, tones)));
      assert.equal(seen.size, 48);
    },
    "colours of heat maps": () => {
      assert.equal(page.heatColour(0), "rgb(48,32,110)");
      assert.equal(page.heatColour(1), "rgb(250,231,60)");
      assert.equal(page.heatColour(-3), page.heatColour(0));
      assert.equal(page.heatColour(3), page.heatColour(1));
      for (let share = 0; share <= 1; share += 1 / 64) {
        const [red, green, blue] = page.heatParts(share), bytes = new Uint8Array(Uint32Array.of(page.heatPixel(share)).buffer);
        assert.deepEqual([...bytes], [red, green, blue, 255]);
        // Brighter with every step, so that it is readable in grey.
        if (share > 0) assert.ok(light(page.heatParts(share)) >= light(page.heatParts(share - 1 / 64)) - 1);
      }
    },
    "what elements of lists are": () => {
      for (const [field, name] of [["own_s_by_rank", "rank"], ["expert_load_peak", "layer with experts"], ["correction_bias_max", "layer with experts"],
                                   ["activation_rms", "layer"], ["update_ratio", "layer"], ["attention_logit_max", "layer"], ["loads", "element"]])
        assert.equal(page.elementName(field), name);
    },
  };
};

function light([red, green, blue]) {
  return 0.3 * red + 0.6 * green + 0.1 * blue;
}
