// One chart: curves of some fields for all runs that are shown, on a canvas. Zoom along x is common to all charts.
const MOST_PARTS = 2000;  // of all curves of a chart; each has two points or fewer
const DOTTED = 60;  // points of a curve that are drawn as dots too
const MARGIN = {left: 58, right: 10, top: 8, bottom: 24};

class Chart {
  constructor(view, fields, label, unit, about, isMain) {
    Object.assign(this, {view, fields, label, unit, series: [], log: false, cursor: null, isVisible: false, isStale: true});
    this.figure = element("figure", {className: isMain ? "main" : ""});
    const head = element("div", {className: "head"});
    const title = element("h2", {textContent: label + " "});
    title.append(element("span", {textContent: unit}));
    title.title = about;
    this.logButton = element("button", {type: "button", textContent: "log", title: "Logarithmic scale"});
    this.logButton.setAttribute("aria-pressed", "false");
    this.logButton.setAttribute("aria-label", `${label}: logarithmic scale`);
    this.logButton.addEventListener("click", () => this.toggleLog());
    head.append(title, this.logButton);
    this.canvas = element("canvas", {tabIndex: 0});
    this.canvas.setAttribute("role", "img");
    this.canvas.setAttribute("aria-label", label);
    // Marks that follow the pointer have a layer of their own: the curves are not redrawn.
    this.layer = element("canvas", {className: "layer"});
    this.layer.setAttribute("aria-hidden", "true");
    const stack = element("div", {className: "stack"});
    stack.append(this.canvas, this.layer);
    this.tip = new Tip();
    this.figure.append(head, stack, this.tip.box);
    this.listenToPointer();
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("blur", () => this.setCursor(null));
  }

  toggleLog() {
    this.log = !this.log;
    this.logButton.setAttribute("aria-pressed", String(this.log));
    this.view.redraw([this]);
    this.view.saveState();
  }

  async load() {
    this.isStale = false;
    const view = this.view, width = this.canvas.clientWidth || 400;
    // Of many runs fewer points each: the pale curves lie upon each other, and a zoom draws all of them in every frame.
    const parts = Math.min(width / 2, MOST_PARTS / Math.max(1, view.shownRuns().length));
    const asked = view.question(Math.max(50, Math.round(parts)));
    const answers = await Promise.all(this.fields.map((field) => view.source.series({...asked, field})));
    // An answer to a range that is no longer shown may come late.
    this.series = answers.flatMap((list, i) => list.map((one) => ({run: one.run, field: this.fields[i], isSecond: i > 0, values: curveOf(one.x, one.y),
                                                                   smooth: one.smooth ? curveOf(one.smooth_x, one.smooth) : null})));
    this.canvas.setAttribute("aria-label", this.description());
    view.redraw([this]);
  }

  // The range of x over all that is shown, where nothing is zoomed; of y, over what is in it.
  scales(width, height) {
    const view = this.view, {from, to} = view.xRange();
    const x = new Scale(from, to, MARGIN.left, width - MARGIN.right, view.logX);
    let low = Infinity, high = -Infinity;
    const values = [];
    for (const one of this.series) {
      if (!view.isShown(one.run)) continue;
      for (const curve of [one.values, one.smooth]) {
        if (!curve || (view.outliers && one.smooth && curve !== one.smooth)) continue;
        for (let i = lowerBound(curve.x, from); i < curve.x.length && curve.x[i] <= to; ++i) {
          const value = curve.y[i];
          if (this.log && value <= 0) continue;
          if (view.outliers) values.push(value);
          if (value < low) low = value;
          if (value > high) high = value;
        }
      }
    }
    for (const {seconds} of this.plans()) {
      low = Math.min(low, seconds);
      high = Math.max(high, seconds);
    }
    if (view.outliers && values.length > 20) {
      values.sort((a, b) => a - b);
      low = values[Math.floor(values.length * 0.02)];
      high = values[Math.ceil(values.length * 0.98) - 1];
    }
    if (low > high) [low, high] = [0, 1];
    // A few bytes more or less of megabytes: their labels would all be the same.
    if (this.unit === "bytes" && high - low < 0.02 * high) [low, high] = [low - 0.01 * high, high + 0.01 * high];
    if (low === high) [low, high] = low === 0 ? [-1, 1] : [low - Math.abs(low) * 0.05, high + Math.abs(high) * 0.05];
    else if (this.log) [low, high] = [low / (high / low) ** 0.04, high * (high / low) ** 0.04];
    else [low, high] = [low - (high - low) * 0.05, high + (high - low) * 0.05];
    return {x, y: new Scale(low, high, height - MARGIN.bottom, MARGIN.top, this.log), width, height};
  }

  // Returns how many points were drawn.
  draw() {
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    if (!width) return 0;
    const context = cleared(this.canvas, width, height), colours = this.view.colours();
    const {x, y} = (this.drawn = this.scales(width, height));
    drawAxes(context, {x, y, width, height, colours, axis: this.view.axis, unit: this.unit});
    context.save();
    clipToPlot(context, this.drawn);
    if (this.view.showMarks) this.drawMarks(context, x, height, colours);
    let points = 0;
    for (const one of this.series) {
      if (!this.view.isShown(one.run)) continue;
      const look = {x, y, colour: colours.run(one.run), isDashed: one.isSecond};
      if (one.smooth) points += drawCurve(context, one.values, {...look, isPale: true, isCoarse: this.view.isMoving()});
      points += drawCurve(context, one.smooth ?? one.values, look);
    }
    for (const {run, seconds} of this.plans()) drawLevel(context, y.pixel(seconds), {x, colour: colours.run(run), text: "predicted"});
    context.restore();
    if (this.cursor !== null || this.selection) this.drawLayer();
    return points;
  }

  // The cursor, the event under it, and what is being selected.
  drawLayer() {
    if (!this.drawn) return;
    const {x, width, height} = this.drawn, context = cleared(this.layer, width, height), colours = this.view.colours();
    context.save();
    clipToPlot(context, this.drawn);
    if (this.cursor !== null && this.markedEvent) this.drawMark(context, this.markedEvent, x, height, colours, true);
    if (this.cursor !== null) this.drawCursor(context, height, colours);
    context.restore();
    if (this.selection) {
      context.fillStyle = colours.accent;
      context.globalAlpha = 0.18;
      context.fillRect(this.selection[0], MARGIN.top, this.selection[1] - this.selection[0], height - MARGIN.top - MARGIN.bottom);
    }
  }

  // The step times that were predicted, on the chart of those.
  plans() {
    if (this.fields[0] !== "step_s") return [];
    return this.view.shownRuns().filter((run) => run.plan).map((run) => ({run: run.id, seconds: run.plan.step_s}));
  }

  drawMarks(context, x, height, colours) {
    let quietAt = -1;
    for (const event of this.view.marks()) {
      const at = x.pixel(event[this.view.axis]), isQuiet = QUIET_EVENTS.includes(event.event);
      if (at < MARGIN.left || !(at < x.pixelTo + 1) || (isQuiet && Math.abs(at - quietAt) < 1)) continue;
      // Checkpoints come by the hundred: a line for each would hide the curves.
      this.drawMark(context, event, x, height, colours, !isQuiet);
      if (isQuiet) quietAt = at;
    }
  }
  // The line stands at the event, the triangle as near as it is whole.
  drawMark(context, event, x, height, colours, hasLine) {
    const at = x.pixel(event[this.view.axis]), middle = Math.min(Math.max(at, x.pixelFrom + 4), x.pixelTo - 4);
    context.strokeStyle = context.fillStyle = isBadEvent(event.event) ? colours.bad : colours.run(event.run);
    context.globalAlpha = event === this.markedEvent ? 1 : 0.6;
    context.lineWidth = 1;
    if (hasLine) {
      context.setLineDash([2, 3]);
      context.beginPath();
      context.moveTo(at, MARGIN.top);
      context.lineTo(at, height - MARGIN.bottom);
      context.stroke();
      context.setLineDash([]);
    }
    context.globalAlpha = 0.9;
    context.beginPath();
    context.moveTo(middle - 4, height - MARGIN.bottom);
    context.lineTo(middle + 4, height - MARGIN.bottom);
    context.lineTo(middle, height - MARGIN.bottom - 6);
    context.fill();
    context.globalAlpha = 1;
  }

  drawCursor(context, height, colours) {
    const {x, y} = this.drawn, at = x.pixel(this.cursor);
    context.strokeStyle = colours.quiet;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(at, MARGIN.top);
    context.lineTo(at, height - MARGIN.bottom);
    context.stroke();
    for (const {point, run} of this.readings(this.cursor)) {
      context.fillStyle = colours.run(run);
      context.beginPath();
      context.arc(x.pixel(point[0]), y.pixel(point[1]), 3.5, 0, 7);
      context.fill();
    }
  }

  // Of each curve that is shown, its point nearest to `at`.
  readings(at) {
    const found = [];
    for (const one of this.series) {
      const {x: xs, y: ys} = one.smooth ?? one.values;
      if (!this.view.isShown(one.run) || xs.length === 0) continue;
      let i = lowerBound(xs, at);
      if (i === xs.length || (i > 0 && at - xs[i - 1] < xs[i] - at)) --i;
      found.push({run: one.run, isSecond: one.isSecond, field: one.field, point: [xs[i], ys[i]]});
    }
    return found.sort((a, b) => b.point[1] - a.point[1]);
  }

  curveName({run, field, isSecond}) {
    return this.view.runName(run) + (isSecond ? ` ${this.view.labelOf(field)}` : "");
  }
  description() {
    const parts = this.series.filter((one) => this.view.isShown(one.run) && one.values.y.length)
      .slice(0, 12)
      .map((one) => `${this.curveName(one)} ${formatValue(one.values.y.at(-1), this.unit)}`);
    return `${this.label} by ${AXIS_NAMES[this.view.axis]}, last values: ${parts.join(", ") || "none"}`;
  }

  // Drawn with the next frame, however often the pointer moves until then.
  setCursor(at, pointerY = 40) {
    this.cursor = at;
    this.pointerY = pointerY;
    this.cursorFrame ??= requestAnimationFrame(() => {
      this.cursorFrame = undefined;
      this.showCursor();
    });
  }
  showCursor() {
    const at = this.cursor;
    this.markedEvent = null;
    if (at === null || !this.drawn) {
      this.tip.hide();
      this.drawLayer();
      return;
    }
    const {x} = this.drawn, pixel = x.pixel(at);
    this.markedEvent = this.view.showMarks
      ? this.view.marks().find((event) => Math.abs(x.pixel(event[this.view.axis]) - pixel) < 5) : null;
    this.drawLayer();
    const rows = this.readings(at).slice(0, 14).map((one) => (
      {colour: this.view.colours().run(one.run), name: this.curveName(one), value: formatValue(one.point[1], this.unit)}));
    const notes = this.plans().map(({run, seconds}) => `predicted (${this.view.runName(run)}): ${formatValue(seconds, this.unit)}`);
    if (this.markedEvent) notes.push(`${this.markedEvent.event} (${this.view.runName(this.markedEvent.run)}): ${this.markedEvent.text}`);
    this.tip.show({title: `${AXIS_NAMES[this.view.axis]} ${this.xText(at)}`, rows, notes, at: pixel, width: this.drawn.width,
                   top: this.canvas.parentElement.offsetTop + Math.min(this.pointerY, this.drawn.height / 3)});
  }
  xText(at) {
    return formatX(this.view.axis, this.view.axis === "seconds" ? at : Math.round(at));
  }

  listenToPointer() {
    const {canvas} = this;
    let start = null;
    const xOf = (event) => event.clientX - canvas.getBoundingClientRect().left;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button !== 0) return;
      start = xOf(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.drawn) return;
      const at = xOf(event);
      this.selection = start !== null && Math.abs(at - start) > 4 ? [Math.min(start, at), Math.max(start, at)] : null;
      const {x} = this.drawn;
      this.setCursor(x.value(Math.min(Math.max(at, x.pixelFrom), x.pixelTo)), event.offsetY);
    });
    const end = () => {
      const chosen = this.selection;
      start = this.selection = null;
      this.drawLayer();
      if (chosen) this.view.zoom(this.drawn.x.value(chosen[0]), this.drawn.x.value(chosen[1]));
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", () => {
      start = this.selection = null;
      this.drawLayer();
    });
    canvas.addEventListener("pointerleave", () => {
      if (start === null) this.setCursor(null);
    });
    canvas.addEventListener("dblclick", () => this.view.resetZoom());
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      this.zoomAt(this.drawn.x.value(xOf(event)), event.deltaY < 0 ? 0.8 : 1.25);
    }, {passive: false});
  }

  // Keeps `at` where it is.
  zoomAt(at, factor) {
    const {x} = this.drawn, pixel = x.pixel(at);
    const left = pixel - (pixel - x.pixelFrom) * factor, right = pixel + (x.pixelTo - pixel) * factor;
    this.view.zoom(x.value(left), x.value(right));
  }

  onKey(event) {
    if (!this.drawn || event.ctrlKey || event.metaKey || event.altKey) return;
    const {x} = this.drawn, middle = x.value((x.pixelFrom + x.pixelTo) / 2), at = this.cursor ?? middle;
    const direction = {ArrowLeft: -1, ArrowRight: 1}[event.key];
    if (direction && event.shiftKey) {
      const shift = ((x.pixelTo - x.pixelFrom) / 5) * direction;
      this.view.zoom(x.value(x.pixelFrom + shift), x.value(x.pixelTo + shift));
    } else if (direction) {
      const pixel = Math.min(Math.max(x.pixel(at) + direction * 6, x.pixelFrom), x.pixelTo);
      this.setCursor(x.value(pixel));
      this.view.readOut(`${AXIS_NAMES[this.view.axis]} ${this.xText(this.cursor)}: ` + this.readings(this.cursor)
        .map((one) => `${this.curveName(one)} ${formatValue(one.point[1], this.unit)}`).join(", "));
    } else if (event.key === "+" || event.key === "=") this.zoomAt(at, 0.7);
    else if (event.key === "-") this.zoomAt(at, 1 / 0.7);
    else if (event.key === "0" || event.key === "Home" || event.key === "Escape") this.view.resetZoom();
    else if (event.key === "l" || event.key === "L") this.toggleLog();
    else return;
    event.preventDefault();
  }
}

const QUIET_EVENTS = ["checkpoint", "start", "finish"];

function isBadEvent(kind) {
  return ["failure", "spike", "skipped_step", "rewind", "straggler", "drift"].includes(kind);
}

function lowerBound(sorted, value) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] < value) low = middle + 1;
    else high = middle;
  }
  return low;
}

function drawAxes(context, {x, y, width, height, colours, axis, unit}) {
  context.font = "11px system-ui, sans-serif";
  context.lineWidth = 1;
  context.strokeStyle = colours.grid;
  context.fillStyle = colours.quiet;
  context.textBaseline = "middle";
  context.textAlign = "right";
  for (const tick of y.ticks(height > 250 ? 7 : 5, unit)) {
    const at = Math.round(y.pixel(tick)) + 0.5;
    context.beginPath();
    context.moveTo(MARGIN.left, at);
    context.lineTo(width - MARGIN.right, at);
    context.stroke();
    context.fillText(formatValue(tick, unit, 4), MARGIN.left - 6, at);
  }
  context.textBaseline = "top";
  context.textAlign = "center";
  for (const tick of x.ticks(width / 75)) {
    const at = Math.round(x.pixel(tick)) + 0.5, text = formatX(axis, tick), half = context.measureText(text).width / 2;
    context.beginPath();
    context.moveTo(at, MARGIN.top);
    context.lineTo(at, height - MARGIN.bottom);
    context.stroke();
    if (at + half <= width) context.fillText(text, at, height - MARGIN.bottom + 7);
  }
}

function curveOf(xs, ys) {
  return {x: Float64Array.from(xs), y: Float64Array.from(ys)};
}

// The context of a canvas of that size in CSS pixels, with nothing on it.
function cleared(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1, columns = Math.round(width * ratio), rows = Math.round(height * ratio);
  if (canvas.width !== columns || canvas.height !== rows) {
    canvas.width = columns;
    canvas.height = rows;
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  return context;
}

function clipToPlot(context, {width, height}) {
  context.beginPath();
  context.rect(MARGIN.left, 0, width - MARGIN.left - MARGIN.right, height - MARGIN.bottom);
  context.clip();
}

// Returns how many points it draws of those in the range of x, and one on each side. Coarse: of every four the least and the greatest.
function drawCurve(context, {x: xs, y: ys}, {x, y, colour, isPale = false, isCoarse = false, isDashed}) {
  const begin = Math.max(0, lowerBound(xs, x.from) - 1), end = Math.min(xs.length, lowerBound(xs, x.to) + 1);
  const line = new ThinnedPath(), isFew = end - begin <= DOTTED;
  const add = (i) => (y.log && ys[i] <= 0 ? line.lift() : line.to(x.pixel(xs[i]), y.pixel(ys[i])));
  let i = begin;
  if (isCoarse && !isFew)
    for (; i + 4 <= end; i += 4) {
      let least = i, most = i;
      for (let k = i + 1; k < i + 4; ++k) {
        if (ys[k] < ys[least]) least = k;
        if (ys[k] > ys[most]) most = k;
      }
      add(Math.min(least, most));
      add(Math.max(least, most));
    }
  for (; i < end; ++i) add(i);
  context.strokeStyle = context.fillStyle = colour;
  context.globalAlpha = isPale ? 0.25 : 1;
  context.setLineDash(isDashed ? [6, 4] : []);
  strokeThin(context, line.done(), isPale ? 1 : 1.6);
  context.setLineDash([]);
  // Few points are also shown as dots, or a curve of one point would not be seen.
  if (isFew)
    for (let i = begin; i < end; ++i) {
      context.beginPath();
      context.arc(x.pixel(xs[i]), y.pixel(ys[i]), 2.5, 0, 7);
      context.fill();
    }
  context.globalAlpha = 1;
  return line.points;
}

// A line of some width, by lines of one pixel of the device beside each other: browsers without a GPU draw such lines
// fifty times as fast as wider ones.
function strokeThin(context, path, width) {
  const pixel = 1 / (window.devicePixelRatio || 1), count = Math.max(1, Math.ceil(width / pixel)), spread = Math.max(0, width - pixel);
  context.lineWidth = pixel;
  context.lineJoin = "bevel";
  for (let i = 0; i < count; ++i) {
    const shift = count > 1 ? (i / (count - 1) - 0.5) * spread : 0;
    context.translate(-shift / 2, shift);
    context.stroke(path);
    context.translate(shift / 2, -shift);
  }
}

// A horizontal line with a word at its right end.
function drawLevel(context, at, {x, colour, text}) {
  context.strokeStyle = context.fillStyle = colour;
  context.lineWidth = 1.5;
  context.setLineDash([6, 4]);
  context.beginPath();
  context.moveTo(x.pixelFrom, at);
  context.lineTo(x.pixelTo, at);
  context.stroke();
  context.setLineDash([]);
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "right";
  context.textBaseline = "bottom";
  context.fillText(text, x.pixelTo - 4, at - 2);
}
