const LEGEND = 68;  // pixels, for the colours and what the first and the last stand for

// A list over time as a picture: a row for each element (a layer with experts, a rank), a column for each row kept.
class HeatMap {
  constructor(view, run, field, unit, about) {
    Object.assign(this, {view, run, field, unit, isVisible: false, isStale: true, data: null});
    this.figure = element("figure");
    const head = element("div", {className: "head"}), title = element("h2", {textContent: `${view.labelOf(field)} `});
    title.title = about;
    title.append(element("span", {textContent: `${this.view.runName(run)}, by ${elementName(field)}`}));
    head.append(title);
    this.canvas = element("canvas", {tabIndex: 0});
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", field);
    this.tip = new Tip();
    this.figure.append(head, this.canvas, this.tip.box);
    this.canvas.addEventListener("pointermove", (event) => this.point(event.offsetX, event.offsetY));
    this.canvas.addEventListener("pointerleave", () => this.tip.hide());
    this.canvas.addEventListener("dblclick", () => this.view.resetZoom());
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("blur", () => this.tip.hide());
  }

  async load() {
    this.isStale = false;
    this.data = await this.view.source.list(this.run, this.field, this.view.axis);
    this.colourCells();
    this.view.redraw([this]);
  }

  // The colour of each value, as the pixels of a canvas want it.
  colourCells() {
    const {values, width: rows} = this.data;
    let low = Infinity, high = -Infinity;
    for (const value of values) {
      if (value === null) continue;
      low = Math.min(low, value);
      high = Math.max(high, value);
    }
    // Nothing to see in a picture of one colour: a line says it.
    this.isFlat = !(high > low);
    this.figure.classList.toggle("flat", this.isFlat);
    Object.assign(this, {low, high, cells: Uint32Array.from(this.isFlat ? [] : values, (value) => (value === null ? 0 : heatPixel((value - low) / (high - low))))});
    this.canvas.setAttribute("aria-label", `${this.field} of ${this.view.runName(this.run)}: ${rows} elements, from ${formatValue(low, this.unit)} to ${formatValue(high, this.unit)}`);
  }

  // Returns how many cells were drawn.
  draw() {
    const {canvas, data} = this, width = canvas.clientWidth, height = canvas.clientHeight;
    if (!data || !width) return 0;
    const context = cleared(canvas, width, height), {from, to} = this.view.xRange();
    if (this.isFlat) {
      this.drawn = null;
      this.sayFlat(context, height);
      return 0;
    }
    const x = new Scale(from, to, MARGIN.left, width - MARGIN.right - LEGEND, this.view.logX);
    const rows = data.width, rowHeight = (height - MARGIN.top - MARGIN.bottom) / rows;
    this.drawn = {x, rowHeight, width};
    const columns = Math.max(1, Math.round(x.pixelTo - x.pixelFrom));
    if (rows && data.x.length) {
      // A pixel for each column of the screen and each element, which the browser makes as high as its row.
      const image = new ImageData(columns, rows), pixels = new Uint32Array(image.data.buffer);
      for (let column = 0, i = -1; column < columns; ++column) {
        const left = x.value(x.pixelFrom + column), right = x.value(x.pixelFrom + column + 1);
        while (i + 1 < data.x.length && data.x[i + 1] < right) ++i;
        if (i >= 0 && !(left > data.until[i])) for (let e = 0; e < rows; ++e) pixels[e * columns + column] = this.cells[i * rows + e];
      }
      this.picture ??= element("canvas");
      this.picture.width = columns;
      this.picture.height = rows;
      this.picture.getContext("2d").putImageData(image, 0, 0);
      context.imageSmoothingEnabled = false;
      context.drawImage(this.picture, x.pixelFrom, MARGIN.top, columns, height - MARGIN.top - MARGIN.bottom);
    }
    this.drawFrame(context, width, height, this.view.colours());
    return columns * rows;
  }

  sayFlat(context, height) {
    context.font = "12px system-ui, sans-serif";
    context.fillStyle = this.view.colours().quiet;
    context.textBaseline = "middle";
    context.fillText(this.data.x.length ? `${formatValue(this.low, this.unit)} throughout` : `no values by ${AXIS_NAMES[this.view.axis]}`, 2, height / 2);
  }

  drawFrame(context, width, height, colours) {
    const {x, rowHeight} = this.drawn, {low, high} = this, rows = this.data.width;
    context.font = "11px system-ui, sans-serif";
    context.fillStyle = colours.quiet;
    context.textAlign = "right";
    context.textBaseline = "middle";
    const every = Math.ceil(14 / rowHeight);
    for (let e = 0; e < rows; e += every) context.fillText(String(e), MARGIN.left - 6, MARGIN.top + (e + 0.5) * rowHeight);
    context.textAlign = "center";
    context.textBaseline = "top";
    for (const tick of x.ticks(width / 110)) context.fillText(formatX(this.view.axis, tick), x.pixel(tick), height - MARGIN.bottom + 7);
    const left = width - MARGIN.right - LEGEND + 8, length = height - MARGIN.top - MARGIN.bottom;
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
    const {x, rowHeight, width} = this.drawn, rows = this.data.width;
    const e = Math.min(rows - 1, Math.max(0, Math.floor((py - MARGIN.top) / rowHeight)));
    const i = Math.max(0, lowerBound(this.data.x, x.value(px) + 1e-9) - 1);
    this.cell = {i, e};
    const value = this.data.values[i * rows + e], isThere = value !== null && !(x.value(px) > Math.max(this.data.until[i], this.data.x[i]));
    const text = `${elementName(this.field)} ${e}, ${AXIS_NAMES[this.view.axis]} ${formatX(this.view.axis, this.data.x[i])}: ${isThere ? formatValue(value, this.unit) : "no value"}`;
    this.tip.show({title: text, rows: [], notes: [], at: px, width, top: py + 50});
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

// Name for one element of a list (docs/metrics.md).
function elementName(field) {
  if (field.endsWith("_by_rank")) return "rank";
  if (/expert|correction_bias/.test(field)) return "layer with experts";
  return /^(activation|gradient|inner_gradient|weight|fp8)_|^(update_ratio|attention_logit_max)$/.test(field) ? "layer" : "element";
}

// From dark blue over green to yellow: readable without red and green, and in grey.
const HEAT = [[48, 32, 110], [46, 82, 150], [32, 130, 142], [60, 174, 110], [165, 210, 60], [250, 231, 60]];
function heatParts(share) {
  const at = Math.min(Math.max(share, 0), 1) * (HEAT.length - 1), i = Math.min(Math.floor(at), HEAT.length - 2), f = at - i;
  return HEAT[i].map((c, k) => Math.round(c + (HEAT[i + 1][k] - c) * f));
}
function heatColour(share) {
  return `rgb(${heatParts(share).join(",")})`;
}
// As one number of the four bytes that a canvas has, on machines whose lowest byte comes first: all that browsers run on.
function heatPixel(share) {
  const [red, green, blue] = heatParts(share);
  return ((255 << 24) | (blue << 16) | (green << 8) | red) >>> 0;
}
