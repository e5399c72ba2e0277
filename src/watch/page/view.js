// The view: which runs, which range, which axis; and the charts that show it.
const FIRST_FIELDS = ["loss", "grad_norm", "lr", "tokens_per_s", "mfu", "arena_bytes", "step_s"];
const TABLES_EVERY = 5000;  // milliseconds
const MOST_HEATMAPS = 4;  // runs whose lists are drawn

class View {
  constructor(source) {
    Object.assign(this, {source, runs: [], fields: [], events: [], hidden: new Set(), charts: new Map(), heatmaps: new Map(),
                         axis: "step", smoothing: 0.6, range: null, logX: false, outliers: false, showMarks: true, logs: new Set()});
    this.readState();
    this.runList = new RunList(this);
    this.comparison = new Comparison(this, this.keptBaseline);
    this.painter = new Painter();
    // Charts are loaded shortly before they come into view, and drawn where they are in view.
    const observe = (margin, called) => new IntersectionObserver((entries) => {
      for (const {target, isIntersecting} of entries) {
        const chart = this.all().find((one) => one.figure === target);
        if (chart) called(chart, isIntersecting);
      }
    }, {rootMargin: margin});
    this.observers = [
      observe("300px", (chart, isNear) => {
        chart.isNear = isNear;
        if (isNear && chart.isStale) this.load(chart);
      }),
      observe("40px", (chart, isVisible) => {
        chart.isVisible = isVisible;
        if (isVisible && chart.needsDrawing) this.redraw([chart]);
      }),
    ];
    new ResizeObserver(() => this.draw()).observe(byId("charts"));
    const panel = byId("runs-panel");
    addEventListener("beforeprint", () => {
      this.wasOpen = panel.open;
      panel.open = true;  // it tells the colours
      this.all().forEach((chart) => chart.draw());
    });
    addEventListener("afterprint", () => (panel.open = this.wasOpen));
    this.listenToControls();
    this.theme = new Theme(() => {
      this.palette = null;
      this.runList.draw();
      this.draw();
    });
  }

  all() {
    return [...this.charts.values(), ...this.heatmaps.values()];
  }

  // State that a link keeps.
  readState() {
    const kept = new URLSearchParams(location.hash.slice(1));
    if (Object.hasOwn(AXIS_NAMES, kept.get("x"))) this.axis = kept.get("x");
    if (kept.has("smooth")) this.smoothing = Math.min(Math.max(Number(kept.get("smooth")) || 0, 0), 0.99);
    this.logX = kept.get("logx") === "1";
    this.outliers = kept.get("outliers") === "1";
    this.logs = new Set((kept.get("log") ?? "").split(",").filter(Boolean));
    this.hiddenNames = new Set((kept.get("hide") ?? "").split(",").filter(Boolean));
    this.keptBaseline = kept.get("baseline");
    const [from, to] = (kept.get("range") ?? "").split(":").map(Number);
    if (to > from) this.range = {from, to};
  }
  saveState() {
    const kept = new URLSearchParams();
    if (this.axis !== "step") kept.set("x", this.axis);
    kept.set("smooth", this.smoothing);
    if (this.logX) kept.set("logx", "1");
    if (this.outliers) kept.set("outliers", "1");
    const logs = [...this.charts.values()].filter((chart) => chart.log).map((chart) => chart.fields[0]);
    if (logs.length) kept.set("log", logs.join(","));
    const hidden = this.runs.filter((run) => this.hidden.has(run.id)).map((run) => run.name);
    if (hidden.length) kept.set("hide", hidden.join(","));
    if (this.comparison.baselineName) kept.set("baseline", this.comparison.baselineName);
    if (this.range) kept.set("range", `${this.range.from}:${this.range.to}`);
    history.replaceState(null, "", "#" + kept);
  }

  listenToControls() {
    byId("controls").addEventListener("submit", (event) => event.preventDefault());
    const bind = (id, name, property, then) => {
      const input = byId(id);
      input[property] = this[name];
      input.addEventListener("input", () => {
        this[name] = property === "checked" ? input.checked : input.type === "range" ? Number(input.value) : input.value;
        then();
        this.saveState();
      });
    };
    byId("axis").replaceChildren(...Object.entries(AXIS_NAMES).map(([value, name]) => element("option", {value, textContent: name})));
    bind("axis", "axis", "value", () => {
      this.range = null;
      for (const chart of this.charts.values()) chart.setCursor(null);  // a place on the other axis
      this.runList.draw();
      for (const chart of this.all()) chart.wasLoaded = false;  // by this axis; paper has those out of view too
      this.reload();
      this.loadUnseen();
    });
    bind("smoothing", "smoothing", "value", () => {
      byId("smoothing-value").textContent = this.smoothing;
      this.reload();
    });
    byId("smoothing-value").textContent = this.smoothing;
    bind("log-x", "logX", "checked", () => this.draw());
    bind("outliers", "outliers", "checked", () => this.draw());
    bind("marks", "showMarks", "checked", () => this.draw());
    listenToPlaces();
    byId("reset").addEventListener("click", () => this.resetZoom());
    byId("field-filter").addEventListener("input", () => this.filterCharts());
  }

  colours() {
    if (!this.palette) {
      const style = getComputedStyle(document.documentElement), of = (name) => style.getPropertyValue(name).trim();
      const tones = [of("--tone0"), of("--tone1")], keys = new Map(this.runs.map((run) => [run.id, run.colour]));
      this.palette = {quiet: of("--quiet"), grid: of("--grid"), accent: of("--accent"), bad: of("--bad"), run: (id) => runColour(keys.get(id) ?? 0, tones)};
    }
    return this.palette;
  }

  isShown(id) {
    return !this.hidden.has(id);
  }
  runName(id) {
    return this.runs.find((run) => run.id === id)?.name ?? "";
  }
  shownRuns() {
    return this.runs.filter((run) => this.isShown(run.id));
  }
  shownEvents() {
    return this.events.filter((event) => this.isShown(event.run));
  }
  // Events of runs that are shown, where they have a place on the axis: the same list until one of these changes.
  marks() {
    const {events, axis, hidden} = this;
    if (this.marked?.events !== events || this.marked.axis !== axis || this.marked.hidden !== hidden)
      this.marked = {events, axis, hidden, list: this.shownEvents().filter((event) => event[axis] !== undefined)};
    return this.marked.list;
  }
  toggleRun(id) {
    this.hidden = new Set(this.hidden);
    this.hidden.has(id) ? this.hidden.delete(id) : this.hidden.add(id);
    this.afterToggle();
  }
  showRuns(ids) {
    this.hidden = new Set(this.runs.map((run) => run.id).filter((id) => !ids.includes(id)));
    this.afterToggle();
  }
  afterToggle() {
    this.runList.draw();
    this.makeCharts();
    this.reload();
    drawEvents(this);
    this.drawTables();
    this.saveState();
  }

  xRange() {
    const last = Math.max(0, ...this.shownRuns().map((run) => run[this.axis] ?? 0));
    const range = this.range ?? {from: this.axis === "step" ? Math.min(1, last) : 0, to: last || 1};
    return this.logX ? {from: Math.max(range.from, last * 1e-5, 1e-9), to: range.to} : range;
  }
  zoom(from, to) {
    const last = Math.max(1, ...this.runs.map((run) => run[this.axis] ?? 0));
    from = Math.max(from, 0);
    to = Math.min(to, last * 1.05);
    if (!(to - from > last * 1e-7)) return;
    this.range = from <= (this.axis === "step" ? 1 : 0) && to >= last ? null : {from, to};
    this.afterZoom();
  }
  resetZoom() {
    this.range = null;
    this.afterZoom();
  }
  // Loaded points are drawn with the next frame, however many turns of the wheel there were; finer points follow.
  afterZoom() {
    this.draw();
    clearTimeout(this.zoomTimer);
    this.zoomTimer = setTimeout(() => {
      this.zoomTimer = undefined;
      this.reload();
      this.saveState();
    }, 80);
  }

  // Whether a zoom goes on: what is drawn is soon drawn again, from finer points.
  isMoving() {
    return this.zoomTimer !== undefined;
  }

  question(parts) {
    return {runs: this.shownRuns().map((run) => run.id), axis: this.axis, parts, smoothing: this.smoothing,
            from: this.range?.from ?? null, to: this.range?.to ?? null};
  }
  reload() {
    for (const chart of this.all()) {
      chart.isStale = true;
      if (chart.isNear) this.load(chart);
    }
  }
  // One request of a chart at a time; what changed meanwhile is asked for afterwards.
  async load(chart) {
    if (chart.isLoading) return;
    chart.isLoading = chart.wasLoaded = true;
    try {
      do await chart.load();
      while (chart.isStale && chart.isNear);
    } catch (error) {
      chart.isStale = true;
      this.say("lost", String(error.message ?? error));
    }
    chart.isLoading = false;
  }
  // Paper has all charts: those that nobody has scrolled to are loaded one by one while there is nothing else to do.
  loadUnseen() {
    requestIdleCallback(async () => {
      const unseen = this.all().find((chart) => !chart.wasLoaded);
      if (!unseen) return;
      await this.load(unseen);
      this.loadUnseen();
    }, {timeout: 500});  // a browser that draws nothing may have no idle moment at all
  }
  // Names of requests without an answer yet, and of drawing that is not done yet.
  unsettled() {
    const waits = {zoom: this.isMoving(), refresh: this.isRefreshing, frame: this.painter.frame};
    const charts = this.all().filter((chart) => chart.isLoading || !chart.wasLoaded)
      .map((chart) => `${chart.fields?.[0] ?? chart.field} ${chart.isLoading ? "is loading" : "was not loaded"}`);
    return [...Object.keys(waits).filter((name) => waits[name]), ...charts];
  }
  // With the next frames; those that are out of view when they come into it.
  redraw(charts) {
    for (const chart of charts) {
      chart.needsDrawing = true;
      if (chart.isVisible) this.painter.add(chart);
    }
  }
  draw() {
    this.redraw(this.all());
  }
  readOut(text) {
    byId("reading").textContent = text ?? "";
  }
  say(look, text) {
    byId("status").className = look;
    byId("status").textContent = text;
  }

  // Tables that the server computes from whole runs.
  drawTables() {
    clearTimeout(this.tablesTimer);
    this.tablesTimer = undefined;
    this.tablesDrawn = Date.now();
    this.comparison.draw().catch(() => {});
    drawOps(this).catch(() => {});
  }

  aboutField(name) {
    return this.fields.find((field) => field.name === name) ?? {unit: "", about: "A field of metrics.jsonl."};
  }
  labelOf(name) {
    return this.aboutField(name).label ?? name.replaceAll("_", " ");
  }
  // Charts for the fields that runs have: the ones asked for most come first, then as docs/metrics.md orders them.
  makeCharts() {
    const present = new Set(this.runs.flatMap((run) => Object.keys(run.last)));
    const known = this.fields.map((field) => field.name);
    const order = [...new Set([...FIRST_FIELDS, ...known, ...[...present].sort()])].filter((name) => present.has(name));
    for (const name of order) {
      if (this.charts.has(name) || (name === "validation_loss" && present.has("loss"))) continue;
      const {unit, about} = this.aboutField(name), isLoss = name === "loss";
      const fields = isLoss ? ["loss", "validation_loss"] : [name];
      const label = isLoss ? "loss, validation loss dashed" : this.labelOf(name);
      const chart = new Chart(this, fields, label, unit, about, isLoss);
      if (this.logs.has(name)) chart.toggleLog();
      this.charts.set(name, chart);
    }
    for (const name of [...this.charts.keys()]) if (!present.has(name)) this.charts.delete(name);
    const wanted = new Map();
    for (const run of this.shownRuns().filter((one) => Object.keys(one.lists).length).slice(0, MOST_HEATMAPS))
      for (const field of Object.keys(run.lists)) wanted.set(`${run.id} ${field}`, {run: run.id, field});
    for (const [key, {run, field}] of wanted)
      if (!this.heatmaps.has(key)) this.heatmaps.set(key, new HeatMap(this, run, field, this.aboutField(field).unit.replace("list of ", "").replace("list", ""), this.aboutField(field).about));
    for (const key of [...this.heatmaps.keys()]) if (!wanted.has(key)) this.heatmaps.delete(key);
    const figures = [...order.filter((name) => this.charts.has(name)).map((name) => this.charts.get(name)),
                     ...[...wanted.keys()].map((key) => this.heatmaps.get(key))].map((chart) => chart.figure);
    const list = byId("charts");
    if (figures.length !== list.children.length || figures.some((figure, i) => figure !== list.children[i])) {
      list.replaceChildren(...figures);
      for (const observer of this.observers) {
        observer.disconnect();
        for (const figure of figures) observer.observe(figure);
      }
    }
    byId("empty").hidden = this.runs.length > 0;
    byId("empty").textContent = this.source.live ? "No runs yet. They appear here when train writes metrics.jsonl or events.jsonl." : "No runs.";
    this.filterCharts();
  }
  filterCharts() {
    const wanted = byId("field-filter").value.toLowerCase();
    for (const chart of this.all())
      chart.figure.hidden = !`${chart.label ?? ""} ${(chart.fields ?? [chart.field]).join(" ")}`.toLowerCase().includes(wanted);
  }

  async refresh() {
    if (this.isRefreshing) {
      this.refreshAgain = true;
      return;
    }
    this.isRefreshing = true;
    try {
      const about = await this.source.about();
      this.fields = about.fields;
      for (const run of about.runs) if (this.hiddenNames.delete(run.name)) this.hidden.add(run.id);
      this.runs = about.runs;
      this.palette = null;
      for (const option of byId("axis").options) option.disabled = this.runs.length > 0 && !this.runs.some((run) => run[option.value] !== null);
      this.events = await this.source.events(this.runs.filter((run) => run.events > 0).map((run) => run.id));
      this.runList.draw();
      this.makeCharts();
      this.reload();
      this.loadUnseen();
      drawEvents(this);
      // Not with every change, but after the last one.
      this.tablesTimer ??= setTimeout(() => this.drawTables(), Math.max(0, (this.tablesDrawn ?? 0) + TABLES_EVERY - Date.now()));
      const latest = Math.max(0, ...this.runs.map((run) => run.modified));
      const when = latest ? `, last change ${new Date(latest * 1000).toLocaleTimeString()}` : "";
      if (this.source.live) this.say("live", this.runs.some((run) => run.loading) ? "reading metrics" : `live${when}`);
      else this.say("", `exported ${new Date(about.now * 1000).toLocaleString()}; curves are decimated`);
      document.documentElement.dataset.ready = "1";
    } catch (error) {
      this.say("lost", String(error.message ?? error));
    }
    // A busy run must not keep the page busy.
    setTimeout(() => {
      this.isRefreshing = false;
      if (this.refreshAgain) {
        this.refreshAgain = false;
        this.refresh();
      }
    }, this.source.live ? 500 : 0);
  }
}
