// Which of the runs that are shown is better than one of them, by how much more than noise, and which keys of their configs differ.
const MOST_COMPARED = 20, MOST_KEYS = 12;

class Comparison {
  constructor(view, baselineName) {
    Object.assign(this, {view, baselineName, asked: 0});
    byId("baseline").addEventListener("input", (event) => {
      this.baselineName = event.target.value;
      view.saveState();
      this.draw();
    });
  }

  async draw() {
    const {view} = this, shown = view.shownRuns(), asked = ++this.asked;
    const possible = view.source.baselines(shown), baseline = possible.find((run) => run.name === this.baselineName) ?? possible[0];
    showPanel("compare", shown.length > 1 && baseline !== undefined);
    if (shown.length < 2 || !baseline) return;
    const others = shown.filter((run) => run !== baseline), compared = others.slice(0, MOST_COMPARED);
    const found = await view.source.compare(baseline.id, compared.map((run) => run.id));
    if (asked !== this.asked) return;  // runs were toggled meanwhile
    byId("baseline").replaceChildren(...possible.map(({name}) => element("option", {value: name, textContent: name, selected: name === baseline.name})));
    byId("compare-about").textContent = others.length > compared.length ? `the first ${MOST_COMPARED} of ${others.length} others` : "";
    byId("comparisons").replaceChildren(...found.map((one, i) => comparisonRow(one, compared[i], view.colours())));
  }
}

function comparisonRow(one, run, colours) {
  const row = element("tr"), name = element("td"), verdict = element("td"), keys = element("td");
  const swatch = element("i");
  swatch.style.background = colours.run(run.id);
  name.append(swatch, run.name);
  verdict.append(element("div", {className: one.verdict.replace(" ", "-"), textContent: one.sentence}));
  for (const line of comparisonFigures(one)) verdict.append(element("div", {className: "quiet", textContent: line}));
  keys.append(...keyLines(one.config).map((line) => element("div", {textContent: line})));
  row.append(name, verdict, keys);
  return row;
}

function comparisonFigures({equal_flops: flops, to_loss: reached, basis}) {
  const lines = [], loss = (value) => formatValue(value, "", 4);
  if (flops) lines.push(`at ${formatPower(flops.flops)} FLOPs of each: ${loss(flops.b.loss)} against ${loss(flops.a.loss)}`);
  const took = ({tokens, seconds}) => `${formatX("tokens", tokens)} tokens in ${formatDuration(seconds)}`;
  if (reached.loss !== null && reached.a.tokens !== null && reached.b.tokens !== null)
    lines.push(`to ${basis.measure === "bits_per_byte" ? `${loss(reached.loss)} bits per byte` : `${basis.measure.replace("_", " ")} ${loss(reached.loss)}`}: ${took(reached.b)}, against ${took(reached.a)}`);
  return lines;
}

function keyLines(config) {
  if (config === null) return ["configs not compared"];
  if (config.length === 0) return ["none"];
  const lines = config.slice(0, MOST_KEYS).map(({key, before, after}) => `${key} ${before} → ${after}`);
  if (config.length > MOST_KEYS) lines.push(`and ${config.length - MOST_KEYS} more`);
  return lines;
}
