// The view: which runs, range and axis are shown, what a link keeps of it, and what is asked for when something changes.
"use strict";
const assert = require("node:assert/strict");
const {loadPage} = require("./page_context.js");

module.exports = (folder) => {
  const run = (id, more = {}) => ({id, name: `run-${id}`, colour: id, state: "running", step: 100 * id, tokens: 1000 * id, seconds: null, flops: null, rows: 10, events: 0, modified: 0, last: {loss: 1}, lists: {},
                                   plan: null, loading: false, ...more});
  const settled = () => new Promise((resolve) => setImmediate(resolve));

  // A page with these runs, after its first refresh.
  async function open({runs = [run(1), run(2)], fields = [], events = [], hash = "", live = true} = {}) {
    const page = loadPage(folder, ["View", "Chart", "AXIS_NAMES"], hash), asked = [];
    page.globals.document.getElementById("run-filter").value = "";
    page.globals.document.getElementById("field-filter").value = "";
    const source = {
      live, asked, about: async () => ({fields, runs: source.runs, now: 1700000000}), runs,
      events: async (ids) => (asked.push(["events", [...ids]]), events), baselines: (all) => all, compare: async (_, others) => others.map(() => ({})),
      ops: async () => ({steps: [], ops: []}), series: async (question) => (asked.push(["series", question]), []), list: async (...given) => (asked.push(["list", ...given]), {x: [], values: [], width: 1, until: []}),
    };
    const view = new page.View(source);
    await view.refresh();
    await settled();
    const input = (id, values) => {
      Object.assign(page.elements.get(id), values);
      page.elements.get(id).listeners.input({target: page.elements.get(id)});
    };
    return {page, view, source, asked, input, timers: page.globals.timers, text: (id) => page.elements.get(id).textContent,
            kept: () => Object.fromEntries(new URLSearchParams(page.globals.location.hash.slice(1)))};
  }
  const charts = (view) => [...view.charts.keys()];

  return {
    "a link keeps what is shown": async () => {
      const first = await open({runs: [run(1), run(2), run(3)]});
      const {view, input} = first;
      view.toggleRun(2);
      view.charts.get("loss").toggleLog();
      input("smoothing", {value: "0.9", type: "range"});
      input("log-x", {checked: true});
      input("outliers", {checked: true});
      input("axis", {value: "tokens", type: "select"});
      view.zoom(500, 1500);
      first.timers.run();
      view.comparison.baselineName = "run-3";
      view.saveState();
      assert.deepEqual(first.kept(), {x: "tokens", smooth: "0.9", logx: "1", outliers: "1", log: "loss", hide: "run-2", baseline: "run-3", range: "500:1500"});
      const {view: next} = await open({runs: [run(1), run(2), run(3)], hash: first.page.globals.location.hash});
      assert.deepEqual([next.axis, next.smoothing, next.logX, next.outliers, next.charts.get("loss").log, next.comparison.baselineName], ["tokens", 0.9, true, true, true, "run-3"]);
      assert.deepEqual([next.range.from, next.range.to, [...next.hidden]], [500, 1500, [2]]);
    },
    "a link with nonsense is a link without": async () => {
      const {view} = await open({hash: "#x=toString&smooth=x&range=9:3&logx=yes&hide=gone"});
      assert.deepEqual([view.axis, view.smoothing, view.range, view.logX, view.hidden.size], ["step", 0, null, false, 0]);
      assert.equal((await open({hash: "#smooth=7"})).view.smoothing, 0.99);
    },
    "the range of x is that of the runs that are shown": async () => {
      const {view} = await open(), range = () => [view.xRange().from, view.xRange().to];
      assert.deepEqual(range(), [1, 200]);
      view.hidden = new Set([2]);
      assert.deepEqual(range(), [1, 100]);
      view.axis = "tokens";
      assert.deepEqual(range(), [0, 1000]);
      view.axis = "flops";
      assert.deepEqual(range(), [0, 1], "no run has it");
      view.axis = "tokens";
      view.logX = true;
      assert.deepEqual(range(), [1000 * 1e-5, 1000]);
      view.range = {from: 20, to: 30};
      assert.deepEqual(range(), [20, 30]);
    },
    "a zoom stays on the page": async () => {
      const {view} = await open(), zoom = (from, to) => (view.zoom(from, to), view.range && [view.range.from, view.range.to]);
      assert.deepEqual(zoom(-50, 150), [0, 150]);
      assert.deepEqual(zoom(40, 1e9), [40, 210]);
      assert.deepEqual(zoom(70, 70), [40, 210], "nothing is no range");
      assert.deepEqual(zoom(80, 60), [40, 210]);
      assert.deepEqual(zoom(1, 199), [1, 199]);
      assert.equal(zoom(1, 200), null, "all of it is no zoom");
      assert.deepEqual(zoom(1.5, 205), [1.5, 205]);
      view.axis = "tokens";
      assert.deepEqual(zoom(1, 2000), [1, 2000], "tokens begin at 0");
      assert.equal(zoom(0, 2000), null);
    },
    "charts ask for what is shown, once, and again for what changed": async () => {
      const {view, asked, timers} = await open(), chart = view.charts.get("loss");
      timers.run();
      await settled();
      asked.length = 0;
      view.range = {from: 5, to: 9};
      chart.isNear = true;
      view.hidden = new Set([1]);
      view.reload();
      view.reload();
      await settled();
      const questions = asked.filter(([kind, question]) => kind === "series" && question.field === "loss").map(([, question]) => question);
      assert.equal(questions.length, 2, "while one is on its way a second waits");
      const {runs, axis, smoothing, from, to} = questions[0];
      assert.deepEqual([[...runs], axis, smoothing, from, to], [[2], "step", 0.6, 5, 9]);
      chart.isNear = false;
      asked.length = 0;
      view.reload();
      assert.deepEqual([asked.length, chart.isStale], [0, true], "not where nobody looks");
    },
    "charts that were not scrolled to are loaded one by one": async () => {
      const {view, timers} = await open({runs: [run(1, {last: {loss: 1, lr: 2, mfu: 3}})]});
      assert.ok(view.unsettled().includes("lr was not loaded"));
      for (let i = 0; i < 6; ++i) {
        timers.run();
        await settled();
      }
      assert.deepEqual([...view.unsettled()], []);
    },
    "a zoom asks for finer points when it has ended": async () => {
      const {view, asked, timers, kept} = await open();
      timers.run();
      await settled();
      view.charts.get("loss").isNear = true;
      asked.length = 0;
      for (const from of [10, 20, 30]) view.zoom(from, 90);
      assert.deepEqual([asked.length, view.isMoving()], [0, true]);
      timers.run();
      await settled();
      assert.deepEqual(asked.map(([, question]) => question.from), [30, 30], "loss and its validation");
      assert.deepEqual([view.isMoving(), kept().range], [false, "30:90"]);
      view.resetZoom();
      timers.run();
      assert.equal(kept().range, undefined);
    },
    "charts come in the order of the fields": async () => {
      const last = {made_up: 1, step_s: 1, loss: 1, validation_loss: 1, b_known: 1, lr: 1, another: 1, a_known: 1};
      const fields = ["a_known", "b_known", "lr"].map((name) => ({name, unit: `unit of ${name}`, about: "about", label: name === "a_known" ? "A" : undefined}));
      const {view, source, page} = await open({runs: [run(1, {last}), run(2)], fields});
      assert.deepEqual(charts(view), ["loss", "lr", "step_s", "a_known", "b_known", "another", "made_up"]);
      assert.deepEqual([...view.charts.get("loss").fields], ["loss", "validation_loss"]);
      assert.deepEqual(["a_known", "made_up"].map((name) => view.labelOf(name)), ["A", "made up"]);
      assert.equal(page.elements.get("charts").children.length, 7);
      source.runs = [run(1, {last: {validation_loss: 2, lr: 1}})];
      view.isRefreshing = false;
      await view.refresh();
      assert.deepEqual(charts(view), ["lr", "validation_loss"], "of fields that are gone no chart stays");
    },
    "pictures of lists are those of four runs that have some": async () => {
      const lists = {loads: 4}, some = [1, 2, 3, 4, 5, 6].map((id) => run(id, id === 2 ? {} : {lists}));
      const {view} = await open({runs: some, fields: [{name: "loads", unit: "list of tokens", about: "about"}]});
      assert.deepEqual([...view.heatmaps.keys()], ["1 loads", "3 loads", "4 loads", "5 loads"]);
      assert.equal(view.heatmaps.get("1 loads").unit, "tokens");
      view.toggleRun(3);
      assert.deepEqual([...view.heatmaps.keys()].sort(), ["1 loads", "4 loads", "5 loads", "6 loads"]);
    },
    "events of runs that are shown have marks": async () => {
      const events = [{run: 1, event: "spike", step: 5, time: "b", text: ""}, {run: 2, event: "start", time: "a", text: ""}, {run: 2, event: "save", step: 9, time: "c", text: ""}];
      const {view, asked} = await open({runs: [run(1, {events: 1}), run(2, {events: 2}), run(3)], events}), marks = () => view.marks().map(({event}) => event);
      assert.deepEqual(asked.find(([kind]) => kind === "events"), ["events", [1, 2]]);
      assert.deepEqual(marks(), ["spike", "save"]);
      assert.equal(view.marks(), view.marks(), "the same list until something changes");
      view.toggleRun(1);
      assert.deepEqual(marks(), ["save"]);
      view.toggleRun(1);
      assert.deepEqual(marks(), ["spike", "save"]);
      view.axis = "tokens";
      assert.deepEqual(marks(), [], "none has a number of tokens");
    },
    "runs are shown and hidden": async () => {
      const {view, kept} = await open({runs: [run(1), run(2), run(3)]}), shown = () => view.shownRuns().map(({id}) => id);
      view.toggleRun(2);
      assert.deepEqual([shown(), kept().hide], [[1, 3], "run-2"]);
      view.toggleRun(2);
      assert.deepEqual([shown(), kept().hide], [[1, 2, 3], undefined]);
      view.showRuns([3]);
      assert.deepEqual(shown(), [3]);
      view.showRuns([1, 2, 3]);
      assert.deepEqual(shown(), [1, 2, 3]);
    },
    "another axis begins anew": async () => {
      const {view, input, page, timers} = await open({runs: [run(1, {flops: 5})]});
      assert.deepEqual(page.elements.get("axis").children.map(({value, disabled}) => [value, disabled]), [["step", false], ["tokens", false], ["seconds", true], ["flops", false]]);
      view.zoom(10, 20);
      view.charts.get("loss").cursor = 15;
      input("axis", {value: "tokens", type: "select"});
      assert.deepEqual([view.axis, view.range, view.charts.get("loss").cursor], ["tokens", null, null]);
      assert.ok(view.unsettled().includes("loss was not loaded"));
      timers.run();
    },
    "charts are found by name and by field": async () => {
      const {view, input} = await open({runs: [run(1, {last: {loss: 1, grad_norm: 2}})], fields: [{name: "grad_norm", unit: "", about: "", label: "Length of the gradient"}]});
      const found = (value) => (input("field-filter", {value}), [...view.charts].filter(([, chart]) => !chart.figure.hidden).map(([name]) => name));
      assert.deepEqual(found("GRAD_"), ["grad_norm"]);
      assert.deepEqual(found("length of"), ["grad_norm"]);
      assert.deepEqual(found("validation"), ["loss"]);
      assert.deepEqual(found(""), ["loss", "grad_norm"]);
    },
    "the page reports its state": async () => {
      const {view, source, text, page, timers} = await open({runs: []});
      assert.equal(text("empty"), "No runs yet. They appear here when train writes metrics.jsonl or events.jsonl.");
      assert.equal(page.elements.get("empty").hidden, false);
      assert.equal(text("status"), "live");
      const again = async (runs) => {
        source.runs = runs;
        view.isRefreshing = false;
        await view.refresh();
        return text("status");
      };
      assert.equal(await again([run(1, {loading: true})]), "reading metrics");
      assert.equal(await again([run(1, {modified: 1700000000}), run(2, {modified: 1600000000})]), `live, last change ${new Date(1700000000e3).toLocaleTimeString()}`);
      assert.equal(page.elements.get("empty").hidden, true);
      source.about = async () => {
        throw new Error("gone");
      };
      assert.equal(await again([]), "gone");
      assert.equal(page.elements.get("status").className, "lost");
      timers.run();
      assert.match((await open({live: false})).text("status"), /^exported .*; curves are decimated$/);
    },
    "changes that come while one is shown are shown afterwards": async () => {
      const {view, source, timers} = await open();
      let times = 0;
      source.about = async () => (++times, {fields: [], runs: source.runs});
      await view.refresh();
      await view.refresh();
      assert.equal(times, 0, "half a second after the first");
      timers.run();
      await settled();
      assert.equal(times, 1);
    },
  };
};
