// Where the data comes from: this page's server, or the page itself where it was exported. Both answer alike.
class LiveSource {
  constructor(token) {
    this.token = token;
    this.live = true;
  }
  url(path, parameters) {
    const query = new URLSearchParams(parameters);
    if (this.token) query.set("token", this.token);
    const text = query.toString();
    return path + (text ? "?" + text : "");
  }
  async get(path, parameters = {}) {
    const answer = await fetch(this.url(path, parameters));
    if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }
  about() {
    return this.get("/api/runs");
  }
  async series(question) {
    if (question.runs.length === 0) return [];
    const {field, runs, axis, from, to, parts, smoothing} = question;
    const parameters = {field, runs: runs.join(","), x: axis, parts, smooth: smoothing};
    if (from !== null) Object.assign(parameters, {from, to});
    return (await this.get("/api/series", parameters)).series;
  }
  list(run, field, axis) {
    return this.get("/api/list", {run, field, x: axis});
  }
  async events(runs) {
    return runs.length ? this.get("/api/events", {runs: runs.join(",")}) : [];
  }
  ops(run) {
    return this.get("/api/ops", {run});
  }
  baselines(runs) {
    return runs;
  }
  async compare(baseline, others) {
    return (await this.get("/api/compare", {runs: [baseline, ...others].join(",")})).comparisons;
  }
  // Calls when runs appear or go ("runs"), grow ("change"), and when the server comes ("open") or goes ("lost").
  listen(called) {
    const stream = new EventSource(this.url("/api/stream", {}));
    stream.onopen = () => called("open");
    stream.onerror = () => called("lost");
    stream.addEventListener("runs", () => called("runs"));
    stream.addEventListener("change", () => called("change"));
  }
}

class EmbeddedSource {
  constructor(data) {
    this.data = data;
    this.live = false;
  }
  async about() {
    return this.data.about;
  }
  async series({field, runs, axis, from, to, smoothing}) {
    const found = [];
    for (const run of runs) {
      const column = this.data.series[run]?.[field];
      if (!column?.[axis]) continue;
      const all = column[axis], smooth = smoothing > 0 && !column.sparse ? movingAverage(column.y, smoothing) : null;
      let begin = 0, end = all.length;
      if (from !== null) {
        while (begin < end && all[begin] < from) ++begin;
        while (end > begin && all[end - 1] > to) --end;
        begin = Math.max(0, begin - 1);
        end = Math.min(all.length, end + 1);
      }
      const one = {run, x: all.slice(begin, end), y: column.y.slice(begin, end)};
      if (smooth) Object.assign(one, {smooth_x: one.x, smooth: smooth.slice(begin, end)});
      found.push(one);
    }
    return found;
  }
  async list(run, field, axis) {
    return this.data.lists[run][field][axis];
  }
  async events(runs) {
    return this.data.events.filter((event) => runs.includes(event.run));
  }
  async ops(run) {
    return this.data.ops[run];
  }
  baselines(runs) {
    return runs.filter((run) => this.data.comparisons[run.id]);
  }
  async compare(baseline, others) {
    const {runs, comparisons} = this.data.comparisons[baseline];
    return others.map((id) => comparisons[runs.indexOf(id)]);
  }
  listen() {}
}

// As the server smooths: corrected for the start.
function movingAverage(values, weight) {
  let average = 0, share = 0;
  return values.map((value) => {
    average = weight * average + (1 - weight) * value;
    share = weight * share + (1 - weight);
    return average / share;
  });
}
