// Parts of the page next to the charts: the list of runs, the table of events, the theme.
function element(name, properties = {}) {
  return Object.assign(document.createElement(name), properties);
}
const byId = (id) => document.getElementById(id);

// Of the run itself, whichever others are there: 24 hues in two tones, by a number that the server makes of its directory.
const RUN_HUES = 24;
function runColour(key, tones) {
  return `oklch(${tones[Math.floor(key / RUN_HUES) % tones.length]} 0.15 ${(key % RUN_HUES) * (360 / RUN_HUES) + 5})`;
}

// A table below the charts, and the button that leads there.
function showPanel(name, isShown) {
  byId(`${name}-panel`).hidden = byId(`to-${name}`).hidden = !isShown;
}
function listenToPlaces() {
  for (const name of ["compare", "ops", "events"])
    byId(`to-${name}`).addEventListener("click", () => {
      byId(`${name}-panel`).scrollIntoView({block: "start"});
      byId(`${name}-panel`).querySelector(".scroll").focus({preventScroll: true});
    });
}

class RunList {
  constructor(view) {
    this.view = view;
    byId("all-runs").addEventListener("click", () => view.showRuns(view.runs.map((run) => run.id)));
    byId("no-runs").addEventListener("click", () => view.showRuns([]));
    byId("run-filter").addEventListener("input", () => this.draw());
    this.items = new Map();
  }

  // Rows are kept, so that the focus is not lost when values change.
  draw() {
    const wanted = byId("run-filter").value.toLowerCase();
    const shown = this.view.runs.filter((run) => run.name.toLowerCase().includes(wanted));
    byId("run-count").textContent = String(this.view.runs.length);
    for (const id of [...this.items.keys()]) if (!shown.some((run) => run.id === id)) this.items.delete(id);
    const rows = shown.map((run) => this.row(run));
    const list = byId("runs");
    if (rows.length !== list.children.length || rows.some((row, i) => row !== list.children[i])) list.replaceChildren(...rows);
  }

  row(run) {
    let item = this.items.get(run.id);
    if (!item) {
      item = element("li");
      const label = element("label"), box = element("input", {type: "checkbox"});
      box.addEventListener("change", () => this.view.toggleRun(run.id));
      label.append(box, element("i"), element("span", {className: "name"}), element("span", {className: "facts"}));
      item.append(label);
      this.items.set(run.id, item);
    }
    const isShown = this.view.isShown(run.id), facts = item.querySelector(".facts");
    item.className = isShown ? "" : "off";
    item.querySelector("input").checked = isShown;
    item.querySelector("i").style.background = this.view.colours().run(run.id);
    item.querySelector(".name").textContent = run.name;
    const words = [];
    if (run.step !== null) words.push(`step ${formatX("step", run.step)}`);
    if (run.last.loss !== undefined) words.push(`loss ${formatValue(run.last.loss, "", 4)}`);
    if (run.last.tokens_per_s !== undefined) words.push(`${formatValue(run.last.tokens_per_s, "", 3)} tokens/s`);
    if (run.rows > 0 && run[this.view.axis] === null) words.push(`has no ${AXIS_NAMES[this.view.axis]}`);
    facts.replaceChildren(element("span", {className: run.state, textContent: run.loading ? "reading" : run.state}), words.length ? " · " + words.join(" · ") : "");
    return item;
  }
}

function drawEvents(view) {
  const events = view.shownEvents().sort((a, b) => (a.time < b.time ? -1 : a.time > b.time ? 1 : 0));
  showPanel("events", events.length > 0);
  const all = view.shownRuns().reduce((sum, run) => sum + run.events, 0);
  byId("event-count").textContent = all > events.length ? `the last ${events.length} of ${all}` : String(events.length);
  const rows = events.slice(-300).reverse().map((event) => {
    const row = element("tr", {className: isBadEvent(event.event) ? "bad" : ""});
    for (const text of [event.time.replace("T", " ").replace(/\.\d+Z$/, ""), view.runName(event.run)]) row.append(element("td", {textContent: text}));
    row.append(element("td", {className: "number", textContent: event.step ?? ""}), element("td", {textContent: event.event}),
               element("td", {textContent: event.text}));
    return row;
  });
  byId("events").replaceChildren(...rows);
}

// auto, light, dark, and again; kept by the browser.
class Theme {
  constructor(changed) {
    this.changed = changed;
    let kept = "auto";
    try {
      kept = localStorage.getItem("sextant-theme") ?? "auto";
    } catch { /* a file may be given no storage */ }
    this.set(["light", "dark"].includes(kept) ? kept : "auto", false);
    byId("theme").addEventListener("click", () => this.set({auto: "light", light: "dark", dark: "auto"}[this.name]));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.changed());
    addEventListener("beforeprint", () => this.apply("light"));
    addEventListener("afterprint", () => this.apply(this.name));
  }
  set(name, keep = true) {
    this.name = name;
    byId("theme").textContent = {auto: "◐ auto", light: "○ light", dark: "● dark"}[name];
    byId("theme").setAttribute("aria-label", `Theme: ${name === "auto" ? "as the system" : name}`);
    try {
      if (keep) localStorage.setItem("sextant-theme", name);
    } catch { /* as above */ }
    this.apply(name);
  }
  apply(name) {
    if (name === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = name;
    this.changed();
  }
}
