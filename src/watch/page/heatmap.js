// A list over time as a picture: a row for each element (a layer with experts, a rank), a column for each row kept.
class HeatMap {
  constructor(view, run, field, unit, about) {
    Object.assign(this, {view, run, field, unit, isVisible: false, isStale: true, data: null});
    this.figure = element("figure");
    const head = element("div", {className: "head"}), title = element("h2", {textContent: field + " "});
    title.title = about;
    title.append(element("span", {textContent: `${this.view.runName(run)}, by ${elementName(field)}`}));
    head.append(title);
    this.canvas = element("canvas", {tabIndex: 0});
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", field);
    this.tip = element("div", {className: "tip", hidden: true});
    this.figure.append(head, this.canvas, this.tip);
    this.canvas.addEventListener("pointermove", (event) => this.point(event.offsetX, event.offsetY));
    this.canvas.addEventListener("pointerleave", () => (this.tip.hidden = true));
    this.canvas.addEventListener("dblclick", () => this.view.resetZoom());
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("blur", () => (this.tip.hidden = true));
  }

  async load() {
    this.isStale = false;
    this.data = await this.view.source.list(this.run, this.field, this.view.axis);
    this.draw();
  }

  draw() {
    if (!this.isVisible || !this.data || !this.canvas.clientWidth) return;
    const {canvas, data} = this, ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight, colours = this.view.colours();
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    const {from, to} = this.view.xRange();
    const x = new Scale(from, to, MARGIN.left, width - MARGIN.right - 44, this.view.logX);
    const rows = data.width, rowHeight = (height - MARGIN.top - MARGIN.bottom) / rows;
    let low = Infinity, high = -Infinity;
    for (const value of data.values) {
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    if (!(high > low)) high = low + 1;
    this.drawn = {x, rowHeight, low, high};
    for (let i = 0; i < data.x.length; ++i) {
      const left = Math.max(x.pixelFrom, x.pixel(data.x[i]));
      const next = i + 1 < data.x.length ? data.x[i + 1] : to;
      const right = Math.min(x.pixelTo, x.pixel(next));
      if (right <= x.pixelFrom || left > x.pixelTo) continue;
      for (let e = 0; e < rows; ++e) {
        context.fillStyle = heatColour((data.values[i * rows + e] - low) / (high - low));
        context.fillRect(left, MARGIN.top + e * rowHeight, Math.max(1, right - left + 0.5), rowHeight + 0.5);
      }
    }
    this.drawFrame(context, width, height, colours);
    canvas.setAttribute("aria-label", `${this.field} of ${this.view.runName(this.run)}: ${rows} elements, from ${formatValue(low, this.unit)} to ${formatValue(high, this.unit)}`);
  }

  drawFrame(context, width, height, colours) {
    const {x, rowHeight, low, high} = this.drawn, rows = this.data.width;
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.quiet;
    context.textAlign = "right";
    context.textBaseline = "middle";
    const every = Math.ceil(14 / rowHeight);
    for (let e = 0; e < rows; e += every) context.fillText(String(e), MARGIN.left - 6, MARGIN.top + (e + 0.5) * rowHeight);
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const tick of x.ticks(width / 110)) context.fillText(formatX(this.view.axis, tick), x.pixel(tick), height - MARGIN.bottom + 7);
    const left = width - MARGIN.right - 36, length = height - MARGIN.top - MARGIN.bottom;
    for (let i = 0; i < length; ++i) {
      context.fillStyle = heatColour(1 - i / length);
      context.fillRect(left, MARGIN.top + i, 8, 1.5);
    }
    context.fillStyle = colours.quiet;
    context.textAlign = "left";
    context.fillText(formatValue(high, this.unit, 3), left + 11, MARGIN.top);
    context.textBaseline = "bottom";
    context.fillText(formatValue(low, this.unit, 3), left + 11, height - MARGIN.bottom);
  }

  point(px, py) {
    if (!this.drawn || this.data.x.length === 0) return;
    const {x, rowHeight} = this.drawn, rows = this.data.width;
    const e = Math.min(rows - 1, Math.max(0, Math.floor((py - MARGIN.top) / rowHeight)));
    const i = Math.max(0, lowerBound(this.data.x, x.value(px) + 1e-9) - 1);
    this.cell = {i, e};
    const text = `${elementName(this.field)} ${e}, ${AXIS_NAMES[this.view.axis]} ${formatX(this.view.axis, this.data.x[i])}: ${formatValue(this.data.values[i * rows + e], this.unit)}`;
    this.tip.textContent = text;
    this.tip.hidden = false;
    this.tip.style.left = `${Math.max(4, Math.min(px + 20, this.figure.clientWidth - this.tip.offsetWidth - 8))}px`;
    this.tip.style.top = `${py + 50}px`;
    return text;
  }

  onKey(event) {
    const moves = {ArrowLeft: [-8, 0], ArrowRight: [8, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    const move = moves[event.key];
    if (!move || !this.drawn) return;
    const {x, rowHeight} = this.drawn, cell = this.cell ?? {i: 0, e: 0};
    const px = Math.min(x.pixelTo, Math.max(x.pixelFrom, x.pixel(this.data.x[cell.i]) + move[0]));
    this.view.readOut(this.point(px, MARGIN.top + (cell.e + move[1] + 0.5) * rowHeight));
    event.preventDefault();
  }
}

// What the elements of a list are (docs/metrics.md).
function elementName(field) {
  if (field.endsWith("_by_rank")) return "rank";
  if (/expert|correction_bias/.test(field)) return "layer with experts";
  return /^(activation|gradient|weight|fp8)_|^(update_ratio|attention_logit_max)$/.test(field) ? "layer" : "element";
}

// From dark blue over green to yellow: readable without red and green, and in grey.
const HEAT = [[48, 32, 110], [46, 82, 150], [32, 130, 142], [60, 174, 110], [165, 210, 60], [250, 231, 60]];
function heatColour(share) {
  const at = Math.min(Math.max(share, 0), 1) * (HEAT.length - 1), i = Math.min(Math.floor(at), HEAT.length - 2), f = at - i;
  return `rgb(${HEAT[i].map((c, k) => Math.round(c + (HEAT[i + 1][k] - c) * f)).join(",")})`;
}
