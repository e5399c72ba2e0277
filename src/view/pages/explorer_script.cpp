#include "view/pages/explorer_script.h"

namespace sextant {

// No "less than" and no ampersand: the page is well-formed XML, too.
std::string_view explorer_script() {
  return R"js(
(() => {
  const data = JSON.parse(document.getElementById("plans").textContent);
  const part = (name) => document.getElementById("chosen-" + name);
  const inputs = data.axes.map((axis, i) => document.getElementById("axis-" + i));
  const outputs = data.axes.map((axis, i) => document.getElementById("axis-" + i + "-value"));
  const space = "http:" + "//www.w3.org/2000/svg";

  const element = (name, look, text) => {
    const made = document.createElement(name);
    if (look) made.className = look;
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const drawn = (name, attributes, text) => {
    const made = document.createElementNS(space, name);
    Object.entries(attributes).forEach(([key, value]) => made.setAttribute(key, value));
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const picture = (width, height, name) => {
    const svg = drawn("svg", {viewBox: `0 0 ${width} ${height}`, width: "100%", class: "pic", role: "img", "aria-label": name});
    svg.append(drawn("rect", {class: "paper", width: width, height: height}));
    return svg;
  };
  const table = (content) => {
    const made = element("table"), head = made.createTHead().insertRow(), body = made.createTBody();
    content.heads.forEach((name) => head.append(element("th", "", name)));
    content.rows.forEach((cells, i) => {
      const row = body.insertRow();
      if (i >= content.rows.length - content.total_rows) row.className = "total";
      cells.forEach((cell) => row.append(element("td", "", cell)));
    });
    return made;
  };
  const legend = (entries) => {
    const list = element("div", "legend");
    entries.forEach(([name, colour]) => {
      const entry = element("span"), mark = drawn("svg", {class: "pic", width: 12, height: 12, "aria-hidden": "true"});
      mark.append(drawn("rect", {class: "c" + colour, width: 12, height: 12}));
      entry.append(mark, " " + name);
      list.append(entry);
    });
    return list;
  };
  const seconds = (time, whole) => whole >= 1 ? Number(time.toPrecision(3)) + " s" : Number((1e3 * time).toPrecision(3)) + " ms";
  const units = [["TiB", 2 ** 40], ["GiB", 2 ** 30], ["MiB", 2 ** 20], ["KiB", 2 ** 10], ["B", 1]];
  const unit_of = (bytes) => units.find(([name, size]) => bytes >= size) || units[4];

  const timeline = (step, width) => {
    const left = 30, right = 12, top = 6, plot = width - left - right, scale = plot / data.resolution;
    const height = step.rows.reduce((sum, row) => sum + (row.compute ? 27 : 9), top);
    const svg = picture(width, height + 22, "timeline of the step");
    let y = top;
    step.rows.forEach((row) => {
      const tall = row.compute ? 20 : 7;
      if (row.compute) {
        svg.append(drawn("text", {x: left - 6, y: y + 14, "text-anchor": "end"}, row.rank));
        svg.append(drawn("rect", {class: "band", x: left, y: y, width: plot, height: tall}));
      }
      row.blocks.forEach(([start, length, ...shares]) => {
        let from = y;
        for (let i = 0; shares.length > i; i += 2) {
          const block = drawn("rect", {class: "c" + step.kinds[shares[i]][1], x: (left + start * scale).toFixed(2), y: from.toFixed(2),
                                       width: Math.max(0.3, length * scale).toFixed(2), height: (tall * shares[i + 1] / 100).toFixed(2)});
          block.append(drawn("title", {}, `${step.kinds[shares[i]][0]}, from ${seconds(start / data.resolution * step.end_s, step.end_s)}, ` +
                                              seconds(length * shares[i + 1] / 100 / data.resolution * step.end_s, step.end_s)));
          svg.append(block);
          from += tall * shares[i + 1] / 100;
        }
      });
      y += row.compute ? 22 : 14;
    });
    (plot >= 420 ? [0, 0.25, 0.5, 0.75, 1] : [0, 0.5, 1]).forEach((share) => {
      svg.append(drawn("text", {class: "quiet", x: left + share * plot, y: height + 16, "text-anchor": share == 0 ? "start" : share == 1 ? "end" : "middle"},
                       share == 0 ? "0" : seconds(share * step.end_s, step.end_s)));
      svg.append(drawn("line", {class: "axis", x1: left + share * plot, x2: left + share * plot, y1: height - 2, y2: height + 3}));
    });
    return svg;
  };

  const curve = (memory, width) => {
    const left = 46, right = 12, top = 16, tall = 170, plot = width - left - right;
    let most = Math.max(memory.allocated, memory.peak);
    const limit = memory.limit > 0 ? memory.limit : 0;
    if (limit > most) if (3 * most >= limit) most = limit;
    const high = 1.06 * most, y = (bytes) => top + tall * (1 - bytes / high), x = (column) => left + plot * column / memory.columns;
    const svg = picture(width, top + tall + 26, "memory through the step");
    const [unit, size] = unit_of(most), raw = most / size / 4, power = 10 ** Math.floor(Math.log10(raw));
    const tick = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= raw);
    for (let at = 0; high / size >= at; at += tick) {
      svg.append(drawn("line", {class: "grid", x1: left, x2: width - right, y1: y(at * size), y2: y(at * size)}));
      svg.append(drawn("text", {class: "quiet", x: left - 5, y: y(at * size) + 4, "text-anchor": "end"}, Number(at.toPrecision(3))));
    }
    svg.append(drawn("text", {class: "quiet", x: left - 5, y: top - 5, "text-anchor": "end"}, unit));
    let below = Array(memory.columns).fill(0);
    memory.parts.forEach(([name, colour, values]) => {
      const above = below.map((bytes, i) => bytes + (Array.isArray(values) ? values[i] : values) * memory.unit);
      let path = `M${x(0)} ${y(above[0])}`;
      above.forEach((bytes, i) => { path += `V${y(bytes).toFixed(1)}H${x(i + 1).toFixed(1)}`; });
      [...below.keys()].reverse().forEach((i) => { path += `V${y(below[i]).toFixed(1)}H${x(i).toFixed(1)}`; });
      const area = drawn("path", {class: "c" + colour, d: path + "Z"});
      area.append(drawn("title", {}, name));
      svg.append(area);
      below = above;
    });
    const line = (look, bytes, words) => {
      svg.append(drawn("line", {...look, x1: left, x2: width - right, y1: y(bytes), y2: y(bytes)}));
      svg.append(drawn("text", {class: "quiet", x: width - right - 2, y: y(bytes) - 4, "text-anchor": "end"}, words));
    };
    line({class: "mark", "stroke-dasharray": "5 4"}, memory.allocated, "allocated");
    if (limit > 0) if (high >= limit) line({class: "limit", "stroke-width": 2}, limit, Math.abs(y(limit) - y(memory.allocated)) > 14 ? "the device has" : "");
    let from = 0;
    memory.phases.forEach(([name, columns]) => {
      if (x(columns) - left > 6.5 * name.length + 4)
        svg.append(drawn("text", {class: "quiet", x: (x(from) + x(from + columns)) / 2, y: y(0) + 16, "text-anchor": "middle"}, name));
      from += columns;
      if (memory.columns > from) svg.append(drawn("line", {class: "axis", "stroke-dasharray": "2 3", x1: x(from), x2: x(from), y1: top, y2: y(0)}));
    });
    if (memory.phases.length == 0)
      svg.append(drawn("text", {class: "quiet", x: left, y: y(0) + 16}, "ops of the step, in order"));
    svg.append(drawn("line", {class: "axis", x1: left, x2: width - right, y1: y(0), y2: y(0)}));
    return svg;
  };

  const show = () => {
    let index = 0;
    data.axes.forEach((axis, i) => {
      const at = Number(inputs[i].value);
      index = index * axis.values.length + at;
      if (!outputs[i]) return;
      outputs[i].textContent = Number(axis.values[at]).toLocaleString("en");
      inputs[i].setAttribute("aria-valuetext", axis.values[at]);
    });
    const point = data.points[index], shown = point.shown;
    part("command").textContent = [data.command, ...point.overrides].join(" ") + data.options;
    part("why").textContent = point.why_not;
    part("figures").replaceChildren(...(shown ? shown.figures : [["no plan", "this combination is refused", "bad"]]).map(([value, meaning, mood]) => {
      const box = element("div", mood);
      box.append(element("b", "", value), element("span", "", meaning));
      return box;
    }));
    const width = Math.max(280, part("figures").clientWidth);
    part("step").replaceChildren();
    part("memory").replaceChildren();
    part("tables").replaceChildren();
    if (!shown) return;
    if (shown.timeline) {
      const left_out = shown.timeline.left_out;
      part("step").append(element("h3", "", "One step"), timeline(shown.timeline, width), legend(shown.timeline.kinds),
                          element("figcaption", "", "A row for each stage, and thin rows for the messages beside it." + (left_out > 0 ? ` ${left_out} stages more are not drawn.` : "")));
    }
    part("memory").append(element("h3", "", "Memory of the fullest device through the step"), curve(shown.memory, width),
                          legend(shown.memory.parts), element("figcaption", "", shown.memory.caption));
    if (shown.step_table) part("tables").append(table(shown.step_table));
    part("tables").append(table(shown.memory_table));
  };

  inputs.forEach((input) => input.addEventListener("input", show));
  document.getElementById("as-in-config").addEventListener("click", () => {
    data.axes.forEach((axis, i) => { inputs[i].value = axis.chosen; });
    show();
  });
  let width = 0;
  addEventListener("resize", () => {
    if (part("figures").clientWidth != width) show();
    width = part("figures").clientWidth;
  });
  show();
})();
)js";
}

std::string_view explorer_style() {
  return R"css(
.controls { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 220px), 1fr)); gap: 10px 22px; margin-bottom: 10px; }
.controls label { display: grid; grid-template-columns: 1fr auto; gap: 0 8px; align-content: start; font-size: 0.92rem; }
.controls input, .controls select { grid-column: 1 / -1; width: 100%; min-width: 0; font: inherit; }
.controls input { margin: 6px 0; }
.controls output { font-weight: 600; font-variant-numeric: tabular-nums; }
.controls button { font: inherit; align-self: end; justify-self: start; padding: 4px 12px; }
.chosen h3 { font-size: 1rem; margin: 16px 0 4px; }
.chosen svg { display: block; height: auto; }
.chosen .figures div { background: var(--ground); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; font-size: 0.85rem; margin: 4px 0; }
.legend svg { display: inline; vertical-align: -1px; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 340px), 1fr)); gap: 14px 30px; align-items: start; margin-top: 12px; }
#chosen-why { color: var(--bad); white-space: pre-line; margin: 0; }
@media print { .controls button, .controls input { display: none; } .chosen .figures div { background: none; }
  section:has(.chosen) { break-inside: auto; } .chosen figure, .chosen .figures, .pair > table { break-inside: avoid; } }
)css";
}

}  // namespace sextant
