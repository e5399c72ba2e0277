// Panels next to the charts: comparisons, ops, events, the list of runs, tips and the theme, from made-up runs.
"use strict";
const assert = require("node:assert/strict");
const {loadPage} = require("./page_context.js");

module.exports = (folder) => {
  const load = () => loadPage(folder, ["Comparison", "comparisonFigures", "keyLines", "slownessOf", "drawOps", "drawEvents", "RunList", "Tip", "Theme"]);
  const run = (id, more = {}) => ({id, name: `run ${id}`, state: "running", step: null, last: {}, rows: 0, events: 0, ...more});
  const rows = (page, id) => page.elements.get(id).children.map((row) => row.children.map((cell) => cell.words));
  const viewOf = (runs, more = {}) => ({
    runs, axis: "step", hidden: new Set(), saved: 0,
    isShown(id) {
      return !this.hidden.has(id);
    },
    shownRuns() {
      return this.runs.filter(({id}) => this.isShown(id));
    },
    runName: (id) => `run ${id}`,
    colours: () => ({run: (id) => `colour ${id}`}),
    saveState() {
      ++this.saved;
    },
    ...more,
  });
  const same = {verdict: "not known", sentence: "they are alike", config: [], equal_flops: null, to_loss: {loss: null, a: {}, b: {}}, basis: {measure: "loss"}};

  return {
    "figures of a comparison": () => {
      const page = load(), reached = {loss: 2.34567, a: {tokens: 5e6, seconds: 7200}, b: {tokens: 4e6, seconds: 90}};
      const figures = (more) => [...page.comparisonFigures({...same, ...more})];
      assert.deepEqual(figures({}), []);
      assert.deepEqual(figures({equal_flops: {flops: 1.2e21, a: {loss: 3}, b: {loss: 2.5}}}), ["at 1.2e21 FLOPs of each: 2.5 against 3"]);
      const took = "4 M tokens in 1.5 min, against 5 M tokens in 2 h";
      assert.deepEqual(figures({to_loss: reached, basis: {measure: "validation_loss"}}), [`to validation loss 2.346: ${took}`]);
      assert.deepEqual(figures({to_loss: reached, basis: {measure: "bits_per_byte"}}), [`to 2.346 bits per byte: ${took}`]);
      for (const none of [{...reached, loss: null}, {...reached, a: {tokens: null}}, {...reached, b: {tokens: null}}]) assert.deepEqual(figures({to_loss: none}), []);
    },
    "keys that differ": () => {
      const {keyLines} = load(), keys = (n) => Array.from({length: n}, (_, i) => ({key: `k${i}`, before: i, after: i + 1}));
      assert.deepEqual([...keyLines(null)], ["configs not compared"]);
      assert.deepEqual([...keyLines([])], ["none"]);
      assert.deepEqual([...keyLines(keys(2))], ["k0 0 → 1", "k1 1 → 2"]);
      assert.equal(keyLines(keys(12)).at(-1), "k11 11 → 12");
      assert.deepEqual([keyLines(keys(15)).length, keyLines(keys(15)).at(-1)], [13, "and 3 more"]);
    },
    "runs are compared with the baseline that was chosen": async () => {
      const page = load(), asked = [];
      const view = viewOf([1, 2, 3].map((id) => run(id)), {source: {
        baselines: (runs) => runs,
        compare: async (baseline, others) => {
          asked.push([baseline, [...others]]);
          return others.map((id) => ({...same, verdict: "not clear", sentence: `${id} and ${baseline}`, config: [{key: "lr", before: 1, after: id}]}));
        }}});
      const comparison = new page.Comparison(view, "run 2");
      await comparison.draw();
      assert.deepEqual(asked, [[2, [1, 3]]]);
      assert.deepEqual(rows(page, "comparisons"), [["run 1", "1 and 2", "lr 1 → 1"], ["run 3", "3 and 2", "lr 1 → 3"]]);
      const [row] = page.elements.get("comparisons").children;
      assert.equal(row.children[0].children[0].style.background, "colour 1");
      assert.equal(row.children[1].children[0].className, "not-clear");
      assert.deepEqual(page.elements.get("baseline").children.map(({value, selected}) => [value, selected]), [["run 1", false], ["run 2", true], ["run 3", false]]);
      await page.elements.get("baseline").listeners.input({target: {value: "run 3"}});
      await null;
      assert.deepEqual([asked.at(-1), view.saved], [[3, [1, 2]], 1]);
      comparison.baselineName = "of a run that is gone";
      await comparison.draw();
      assert.deepEqual(asked.at(-1), [1, [2, 3]]);
      view.hidden = new Set([1, 2]);
      await comparison.draw();
      assert.equal(asked.length, 3, "one run is compared with none");
      assert.ok(page.elements.get("compare-panel").hidden && page.elements.get("to-compare").hidden);
    },
    "of many runs the first twenty are compared": async () => {
      const page = load(), counts = [];
      const view = viewOf(Array.from({length: 25}, (_, i) => run(i)), {source: {
        baselines: (runs) => runs, compare: async (_, others) => (counts.push(others.length), others.map(() => same))}});
      const comparison = new page.Comparison(view, null), about = () => page.elements.get("compare-about").textContent;
      await comparison.draw();
      assert.deepEqual([counts, about(), rows(page, "comparisons").length], [[20], "the first 20 of 24 others", 20]);
      view.hidden = new Set([0, 1, 2, 3]);
      await comparison.draw();
      assert.deepEqual([counts, about()], [[20, 20], ""]);
    },
    "an answer for runs that are no longer shown is left": async () => {
      const page = load(), answers = [];
      const view = viewOf([1, 2, 3].map((id) => run(id)), {source: {
        baselines: (runs) => runs, compare: (baseline, others) => new Promise((resolve) => answers.push(() => resolve(others.map((id) => ({...same, sentence: `of ${id}`})))))}});
      const comparison = new page.Comparison(view, null), first = comparison.draw();
      view.hidden = new Set([2]);
      const second = comparison.draw();
      answers[1]();
      await second;
      answers[0]();
      await first;
      assert.deepEqual(rows(page, "comparisons").map(([name]) => name), ["run 3"]);
    },
    "which ops are slow, and why": () => {
      const {slownessOf} = load(), op = {slowdown: 2, measured_s: 1, rank_s: null, rank: null, since_step: null, is_message: false};
      const slow = (more, all = 10) => slownessOf({...op, ...more}, all);
      assert.equal(slow({}), "than predicted");
      assert.equal(slow({is_message: true}), "waiting for other ranks included");
      assert.equal(slow({rank: 3, rank_s: 1.23456}), "rank 3 (1235 ms)");
      assert.equal(slow({rank: 0, rank_s: 1, since_step: 40, slowdown: 1.3}), "rank 0 (1000 ms), since step 40");
      assert.equal(slow({since_step: 7, is_message: true}), "since step 7, waiting for other ranks included");
      assert.equal(slow({slowdown: 1.5}), "", "a prediction is not that good");
      assert.equal(slow({slowdown: 1.29, since_step: 4}), "");
      assert.equal(slow({slowdown: null, since_step: 4}), "");
      assert.equal(slow({}, 201), "", "less than 0.5 % of the time");
      assert.equal(slow({rank: 1, rank_s: 2}, 201), "rank 1 (2000 ms)", "of its own rank it is more");
    },
    "a table of ops": async () => {
      const page = load(), op = (name, more) => ({op: name, path: `of ${name}`, predicted_s: 0.5, measured_s: 1, slowdown: 2, rank: null, rank_s: null, since_step: null, is_message: false, ...more});
      const many = Array.from({length: 50}, (_, i) => op(`op${i}`));
      const ops = {1: {steps: [10, 20], ops: [op("linear", {}), op("add", {predicted_s: null, measured_s: null, slowdown: null})]}, 2: {steps: [5], ops: many}};
      const source = {ops: async (id) => ops[id] ?? {steps: [], ops: []}}, view = viewOf([1, 2, 3, 4, 5].map((id) => run(id)), {source});
      ops[5] = {steps: [1], ops: many};
      await page.drawOps(view);
      const drawn = rows(page, "ops");
      assert.equal(drawn.length, 2 + 40, "of four runs, forty ops each");
      assert.deepEqual(drawn.slice(0, 2), [["run 1", "linear of linear", "500", "1000", "2.00", "than predicted"], ["run 1", "add of add", "–", "–", "–", ""]]);
      assert.deepEqual(page.elements.get("ops").children.slice(0, 2).map(({className}) => className), ["bad", ""]);
      assert.equal(page.elements.get("ops-about").textContent, "3 timed steps");
      view.hidden = new Set([1, 3, 4, 5]);
      await page.drawOps(view);
      assert.equal(page.elements.get("ops-about").textContent, "1 timed step");
      assert.equal(page.elements.get("ops-panel").hidden, false);
      view.hidden.add(2);
      await page.drawOps(view);
      assert.equal(page.elements.get("ops-panel").hidden, true);
    },
    "events are listed by time, the newest first": () => {
      const page = load(), time = (i) => new Date(Date.UTC(2026, 0, 1) + i * 60e3).toISOString();
      const events = Array.from({length: 320}, (_, i) => ({run: 1 + i % 2, time: time((i * 7) % 320), event: i === 0 ? "failure" : "save", step: i, text: `text ${i}`}));
      events[3].step = undefined;
      const view = viewOf([run(1, {events: 160}), run(2, {events: 1000})], {shownEvents: () => [...events]});
      page.drawEvents(view);
      const drawn = rows(page, "events");
      assert.equal(drawn.length, 300);
      assert.deepEqual(drawn.map(([at]) => at), Array.from({length: 300}, (_, i) => time(319 - i).replace("T", " ").slice(0, 19)));
      assert.deepEqual(drawn.find((row) => row[4] === "text 5"), ["2026-01-01 00:35:00", "run 2", "5", "save", "text 5"]);
      assert.deepEqual(drawn.find((row) => row[4] === "text 3")[2], "");
      assert.equal(page.elements.get("event-count").textContent, "the last 320 of 1160");
      view.runs[1].events = 160;
      view.shownEvents = () => events.slice(0, 2);
      page.drawEvents(view);
      assert.deepEqual(page.elements.get("events").children.map(({className}) => className), ["", "bad"]);
      view.runs = [run(1, {events: 2})];
      page.drawEvents(view);
      assert.equal(page.elements.get("event-count").textContent, "2");
      view.shownEvents = () => [];
      page.drawEvents(view);
      assert.equal(page.elements.get("events-panel").hidden, true);
    },
    "the list of runs": () => {
      const page = load(), toggled = [], shown = [];
      const runs = [run(1, {step: 1500, last: {loss: 2.34567, tokens_per_s: 81234}, rows: 3}), run(2, {name: "Other", state: "finished", rows: 1, tokens: null}), run(3, {loading: true})];
      const view = viewOf(runs, {toggleRun: (id) => toggled.push(id), showRuns: (ids) => shown.push([...ids])}), list = new page.RunList(view), items = () => page.elements.get("runs").children;
      page.elements.set("run-filter", page.elements.get("run-filter"));
      page.elements.get("run-filter").value = "";
      view.hidden = new Set([2]);
      view.axis = "tokens";
      list.draw();
      assert.deepEqual(items().map((item) => item.querySelector(".facts").words), ["running| · step 1500 · loss 2.346 · 81.2 k tokens/s", "finished| · has no tokens", "reading"]);
      assert.deepEqual(items().map((item) => [item.className, item.querySelector("input").checked, item.querySelector(".name").textContent, item.querySelector("i").style.background]),
                       [["", true, "run 1", "colour 1"], ["off", false, "Other", "colour 2"], ["", true, "run 3", "colour 3"]]);
      assert.equal(page.elements.get("run-count").textContent, "3");
      const first = items()[0];
      page.elements.get("run-filter").value = "RUN";
      list.draw();
      assert.deepEqual(items().map((item) => item.querySelector(".name").textContent), ["run 1", "run 3"]);
      assert.equal(items()[0], first, "an item is kept, and its focus");
      items()[1].querySelector("input").listeners.change();
      page.elements.get("all-runs").listeners.click();
      page.elements.get("no-runs").listeners.click();
      assert.deepEqual([toggled, shown], [[3], [[1, 2, 3], []]]);
    },
    "a tip is on the side with more room, with a row for each curve": () => {
      const page = load(), tip = new page.Tip(), row = (name) => ({colour: `of ${name}`, name, value: `value ${name}`});
      const place = {at: 100, width: 600, top: 8};
      tip.show({title: "step 5", rows: [row("a"), row("b")], notes: ["spike"], ...place});
      assert.equal(tip.box.words, "step 5|a|value a|b|value b|spike");
      assert.deepEqual([tip.box.style.left, tip.box.style.right, tip.box.hidden], ["126px", "auto", false]);
      const [first] = tip.rows;
      tip.show({title: "step 6", rows: [row("c")], notes: [], ...place, at: 500});
      assert.equal(tip.rows[0], first);
      assert.deepEqual([first.name.textContent, first.swatch.style.background], ["c", "of c"]);
      assert.deepEqual([...tip.rows.map(({line}) => line.hidden)], [false, true]);
      assert.deepEqual([...tip.notes.map(({hidden}) => hidden)], [true]);
      assert.deepEqual([tip.box.style.left, tip.box.style.right], ["auto", "126px"]);
      tip.hide();
      assert.equal(tip.box.hidden, true);
    },
    "the theme is kept, and paper is light": () => {
      const page = load(), {kept, listeners} = page.globals, data = page.globals.document.documentElement.dataset;
      let changes = 0;
      const theme = new page.Theme(() => ++changes), click = page.elements.get("theme").listeners.click;
      assert.deepEqual([theme.name, data.theme, kept.size], ["auto", undefined, 0]);
      const names = [1, 2, 3, 4].map(() => (click(), [theme.name, data.theme, kept.get("sextant-theme")].join()));
      assert.deepEqual(names, ["light,light,light", "dark,dark,dark", "auto,,auto", "light,light,light"]);
      click();
      listeners.beforeprint();
      assert.equal(data.theme, "light");
      listeners.afterprint();
      assert.equal(data.theme, "dark");
      const before = changes;
      listeners.scheme();
      assert.equal(changes, before + 1);
      assert.equal(new page.Theme(() => {}).name, "dark", "as it was kept");
      kept.set("sextant-theme", "purple");
      assert.equal(new page.Theme(() => {}).name, "auto");
    },
  };
};
