// The two sources of a page's data: what the exported page cuts out and smooths, against loops over all points; what the live page asks.
"use strict";
const assert = require("node:assert/strict");
const {drawer, loadPage} = require("./page_context.js");

module.exports = (folder) => {
  const page = loadPage(folder, ["EmbeddedSource", "LiveSource", "movingAverage"]);
  return {
    "a range has its points and one on each side": async () => {
      const random = drawer(5);
      for (let turn = 0; turn < 300; ++turn) {
        const n = random.below(30), step = [];
        for (let i = 0, x = random.below(3); i < n; ++i, x += 1 + random.below(4)) step.push(x);
        const y = step.map(() => random.normal()), source = new page.EmbeddedSource({series: {1: {loss: {step, y}}, 2: {}}});
        const from = turn % 5 === 0 ? null : random.below(60) - 5, to = from === null ? null : from + random.below(40), smoothing = turn % 2 ? 0.6 : 0;
        const found = await source.series({field: "loss", runs: [1, 2], axis: "step", from, to, smoothing});
        assert.equal(found.length, 1);
        assert.equal(found[0].run, 1);
        const inside = step.map((x, i) => i).filter((i) => from === null || (step[i] >= from && step[i] <= to));
        // Nothing inside: the neighbours between which the range lies.
        const before = step.filter((x) => from !== null && x < from).length;
        const begin = Math.max(0, (inside.length ? inside[0] : before) - (from === null ? 0 : 1));
        const end = Math.min(n, (inside.length ? inside.at(-1) + 1 : before) + (from === null ? 0 : 1));
        assert.deepEqual([...found[0].x], step.slice(begin, end), `${step} from ${from} to ${to}`);
        assert.deepEqual([...found[0].y], y.slice(begin, end));
        if (!smoothing) assert.equal(found[0].smooth, undefined);
        else {
          // The weighted mean of all points so far, those of the whole run and not of the range alone.
          const smooth = y.map((_, i) => {
            let sum = 0, weights = 0;
            for (let k = 0; k <= i; ++k) {
              const weight = smoothing ** (i - k);
              sum += weight * y[k];
              weights += weight;
            }
            return sum / weights;
          });
          found[0].smooth.forEach((value, i) => assert.ok(Math.abs(value - smooth[begin + i]) < 1e-9));
          assert.equal(found[0].smooth.length, end - begin);
          assert.deepEqual([...found[0].smooth_x], [...found[0].x]);
        }
      }
    },
    "sparse fields are not smoothed, other axes are used": async () => {
      const source = new page.EmbeddedSource({series: {7: {validation_loss: {step: [10, 20], tokens: [1000, 2000], y: [3, 2], sparse: true}}}});
      const question = {field: "validation_loss", runs: [7], from: null, to: null, smoothing: 0.9};
      const [one] = await source.series({...question, axis: "tokens"});
      assert.deepEqual([...one.x], [1000, 2000]);
      assert.equal(one.smooth, undefined);
      assert.equal((await source.series({...question, axis: "flops"})).length, 0);
      assert.equal((await source.series({...question, runs: [8], axis: "step"})).length, 0);
    },
    "runs keep their order in comparisons": async () => {
      const data = {comparisons: {2: {runs: [5, 3, 9], comparisons: ["of 5", "of 3", "of 9"]}}, events: [{run: 1, event: "a"}, {run: 2, event: "b"}, {run: 1, event: "c"}],
                    lists: {1: {loads: {step: "a list"}}}, ops: {4: "ops of 4"}};
      const source = new page.EmbeddedSource(data);
      assert.deepEqual([...(await source.compare(2, [9, 5]))], ["of 9", "of 5"]);
      assert.deepEqual([...source.baselines([{id: 1}, {id: 2}])], [{id: 2}]);
      assert.deepEqual((await source.events([1])).map((event) => event.event), ["a", "c"]);
      assert.equal(await source.list(1, "loads", "step"), "a list");
      assert.equal(await source.ops(4), "ops of 4");
      assert.equal(source.live, false);
    },
    "the live page asks for what it shows": async () => {
      const asked = [];
      page.globals.fetch = async (url) => {
        asked.push(url);
        return {ok: true, json: async () => ({series: ["answer"], comparisons: ["compared"]})};
      };
      const source = new page.LiveSource("a&b"), question = {field: "loss", runs: [3, 1], axis: "tokens", parts: 200, smoothing: 0.6};
      assert.deepEqual([...(await source.series({...question, from: null, to: null}))], ["answer"]);
      await source.series({...question, from: 5, to: 90});
      assert.deepEqual([...(await source.series({...question, runs: []}))], []);
      await source.events([1, 2]);
      assert.deepEqual([...(await source.events([]))], []);
      await source.compare(4, [6, 5]);
      await source.list(1, "loads", "step");
      await source.ops(7);
      await source.about();
      const parsed = asked.map((url) => [url.split("?")[0], Object.fromEntries(new URLSearchParams(url.split("?")[1]))]);
      const token = "a&b", series = {field: "loss", runs: "3,1", x: "tokens", parts: "200", smooth: "0.6", token};
      assert.deepEqual(parsed, [["/api/series", series], ["/api/series", {...series, from: "5", to: "90"}], ["/api/events", {runs: "1,2", token}],
                                ["/api/compare", {runs: "4,6,5", token}], ["/api/list", {run: "1", field: "loads", x: "step", token}], ["/api/ops", {run: "7", token}],
                                ["/api/runs", {token}]]);
      assert.equal(new page.LiveSource("").url("/api/runs", {}), "/api/runs");
      page.globals.fetch = async () => ({ok: false, status: 503, text: async () => "busy"});
      await assert.rejects(() => source.about(), /\/api\/runs: 503 busy/);
    },
  };
};
