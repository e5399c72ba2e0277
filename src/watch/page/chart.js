// One chart: curves of some fields for all runs that are shown, on a canvas. Zoom along x is common to all charts.
const MOST_PARTS = 3000;  // of all curves of a chart; each has two points or fewer
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
    this.tip = element("div", {className: "tip", hidden: true});
    this.figure.append(head, this.canvas, this.tip);
    this.listenToPointer();
    this.canvas.addEventListener("keydown", (event) => this.onKey(event));
    this.canvas.addEventListener("blur", () => this.setCursor(null));
  }

  toggleLog() {
    this.log = !this.log;
    this.logButton.setAttribute("aria-pressed", String(this.log));
    this.draw();
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
    this.series = answers.flatMap((list, i) => list.map((one) => ({...one, field: this.fields[i], isSecond: i > 0})));
    this.draw();
  }

  // The range of x over all that is shown, where nothing is zoomed.
  scales() {
    const view = this.view, {from, to} = view.xRange();
    const width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    const x = new Scale(from, to, MARGIN.left, width - MARGIN.right, view.logX);
    let low = Infinity, high = -Infinity, values = [];
    for (const one of this.series) {
      if (!view.isShown(one.run)) continue;
      for (const [xs, ys] of [[one.x, one.y], [one.smooth_x, one.smooth]]) {
        if (!xs || (one.smooth && ys === one.y && view.outliers)) continue;
        for (let i = 0; i < xs.length; ++i) {
          if (xs[i] < from || xs[i] > to || (this.log && ys[i] <= 0)) continue;
          if (view.outliers) values.push(ys[i]);
          low = Math.min(low, ys[i]);
          high = Math.max(high, ys[i]);
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
    if (low === high) [low, high] = low === 0 ? [-1, 1] : [low - Math.abs(low) * 0.05, high + Math.abs(high) * 0.05];
    else if (this.log) [low, high] = [low / (high / low) ** 0.04, high * (high / low) ** 0.04];
    else [low, high] = [low - (high - low) * 0.05, high + (high - low) * 0.05];
    return {x, y: new Scale(low, high, height - MARGIN.bottom, MARGIN.top, this.log)};
  }

  draw() {
    if (!this.isVisible || !this.canvas.clientWidth) return;
    const {canvas} = this, ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d"), colours = this.view.colours();
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    const {x, y} = (this.drawn = this.scales());
    drawAxes(context, {x, y, width, height, colours, axis: this.view.axis, unit: this.unit});
    context.save();
    context.beginPath();
    context.rect(MARGIN.left, 0, width - MARGIN.left - MARGIN.right, height - MARGIN.bottom);
    context.clip();
    if (this.view.showMarks) this.drawMarks(context, x, height, colours);
    for (const one of this.series) {
      if (!this.view.isShown(one.run)) continue;
      const colour = colours.run(one.run);
      if (one.smooth) drawCurve(context, one.x, one.y, {x, y, colour, alpha: 0.25, isDashed: one.isSecond});
      drawCurve(context, one.smooth_x ?? one.x, one.smooth ?? one.y, {x, y, colour, alpha: 1, isDashed: one.isSecond});
    }
    for (const {run, seconds} of this.plans()) drawLevel(context, y.pixel(seconds), {x, colour: colours.run(run), text: "predicted"});
    if (this.cursor !== null) this.drawCursor(context, height, colours);
    context.restore();
    if (this.selection) {
      context.fillStyle = colours.accent;
      context.globalAlpha = 0.18;
      context.fillRect(this.selection[0], MARGIN.top, this.selection[1] - this.selection[0], height - MARGIN.top - MARGIN.bottom);
      context.globalAlpha = 1;
    }
    canvas.setAttribute("aria-label", this.description());
  }

  // The step times that were predicted, on the chart of those.
  plans() {
    if (this.fields[0] !== "step_s") return [];
    return this.view.shownRuns().filter((run) => run.plan).map((run) => ({run: run.id, seconds: run.plan.step_s}));
  }

  drawMarks(context, x, height, colours) {
    for (const event of this.view.marks()) {
      const at = x.pixel(event[this.view.axis]), colour = isBadEvent(event.event) ? colours.bad : colours.run(event.run);
      if (at < MARGIN.left || !(at < x.pixelTo + 1)) continue;
      context.strokeStyle = context.fillStyle = colour;
      context.globalAlpha = event === this.markedEvent ? 1 : 0.6;
      context.lineWidth = 1;
      // Checkpoints come by the hundred: a line for each would hide the curves.
      if (event === this.markedEvent || !QUIET_EVENTS.includes(event.event)) {
        context.setLineDash([2, 3]);
        context.beginPath();
        context.moveTo(at, MARGIN.top);
        context.lineTo(at, height - MARGIN.bottom);
        context.stroke();
        context.setLineDash([]);
      }
      context.globalAlpha = 0.9;
      context.beginPath();
      context.moveTo(at - 4, height - MARGIN.bottom);
      context.lineTo(at + 4, height - MARGIN.bottom);
      context.lineTo(at, height - MARGIN.bottom - 6);
      context.fill();
      context.globalAlpha = 1;
    }
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
      if (!this.view.isShown(one.run) || one.x.length === 0) continue;
      const xs = one.smooth_x ?? one.x, ys = one.smooth ?? one.y;
      let i = lowerBound(xs, at);
      if (i === xs.length || (i > 0 && at - xs[i - 1] < xs[i] - at)) --i;
      found.push({run: one.run, isSecond: one.isSecond, field: one.field, point: [xs[i], ys[i]]});
    }
    return found.sort((a, b) => b.point[1] - a.point[1]);
  }

  description() {
    const parts = this.series.filter((one) => this.view.isShown(one.run) && one.y.length)
      .slice(0, 12)
      .map((one) => `${this.view.runName(one.run)} ${one.isSecond ? one.field + " " : ""}${formatValue(one.y.at(-1), this.unit)}`);
    return `${this.label} by ${AXIS_NAMES[this.view.axis]}, last values: ${parts.join(", ") || "none"}`;
  }

  setCursor(at, pointerY = 40) {
    this.cursor = at;
    this.markedEvent = null;
    if (at === null) {
      this.tip.hidden = true;
      this.draw();
      return;
    }
    const {x} = this.drawn ?? this.scales(), pixel = x.pixel(at);
    this.markedEvent = this.view.showMarks
      ? this.view.marks().find((event) => Math.abs(x.pixel(event[this.view.axis]) - pixel) < 5) : null;
    this.draw();
    const lines = [element("div", {textContent: `${AXIS_NAMES[this.view.axis]} ${formatX(this.view.axis, this.view.axis === "seconds" ? at : Math.round(at))}`})];
    for (const {run, field, isSecond, point} of this.readings(at).slice(0, 14)) {
      const line = element("div"), swatch = element("i");
      swatch.style.background = this.view.colours().run(run);
      line.append(swatch, element("span", {className: "name", textContent: this.view.runName(run) + (isSecond ? ` ${field}` : "")}),
                  element("b", {textContent: formatValue(point[1], this.unit)}));
      lines.push(line);
    }
    for (const {run, seconds} of this.plans())
      lines.push(element("div", {className: "text", textContent: `predicted (${this.view.runName(run)}): ${formatValue(seconds, this.unit)}`}));
    if (this.markedEvent) {
      const {event, text, run} = this.markedEvent;
      lines.push(element("div", {className: "text", textContent: `${event} (${this.view.runName(run)}): ${text}`}));
    }
    this.tip.replaceChildren(...lines);
    this.tip.hidden = false;
    const box = this.figure.getBoundingClientRect(), canvasBox = this.canvas.getBoundingClientRect();
    const left = pixel + canvasBox.left - box.left, width = this.tip.offsetWidth;
    this.tip.style.left = `${Math.max(4, left + width + 18 > box.width ? left - width - 12 : left + 12)}px`;
    this.tip.style.top = `${canvasBox.top - box.top + Math.min(pointerY, canvasBox.height / 3)}px`;
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
      if (chosen) this.view.zoom(this.drawn.x.value(chosen[0]), this.drawn.x.value(chosen[1]));
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", () => {
      start = this.selection = null;
      this.draw();
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
      this.view.readOut(`${AXIS_NAMES[this.view.axis]} ${formatX(this.view.axis, this.view.axis === "seconds" ? this.cursor : Math.round(this.cursor))}: ` + this.readings(this.cursor)
        .map(({run, point}) => `${this.view.runName(run)} ${formatValue(point[1], this.unit)}`).join(", "));
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

// Few points are also shown as dots, or a curve of one point would not be seen.
function drawCurve(context, xs, ys, {x, y, colour, alpha, isDashed}) {
  context.strokeStyle = context.fillStyle = colour;
  context.globalAlpha = alpha;
  // A pale curve is a band of all values: thin lines without joins are drawn many times as fast.
  context.lineWidth = alpha < 1 ? 1 : 1.6;
  context.lineJoin = alpha < 1 ? "bevel" : "round";
  context.setLineDash(isDashed ? [6, 4] : []);
  context.beginPath();
  let pen = false;
  for (let i = 0; i < xs.length; ++i) {
    if (y.log && ys[i] <= 0) {
      pen = false;
      continue;
    }
    const px = x.pixel(xs[i]), py = y.pixel(ys[i]);
    if (pen) context.lineTo(px, py);
    else context.moveTo(px, py);
    pen = true;
  }
  context.stroke();
  context.setLineDash([]);
  if (xs.length <= 60)
    for (let i = 0; i < xs.length; ++i) {
      context.beginPath();
      context.arc(x.pixel(xs[i]), y.pixel(ys[i]), 2.5, 0, 7);
      context.fill();
    }
  context.globalAlpha = 1;
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
