// The ops of the runs that are shown: what the plan predicts for each, what the timed steps took, and which are slower
// than they should be.
const MOST_OP_RUNS = 4, MOST_OPS = 40;
const WORTH_A_WORD = 0.005;  // of the time of all ops

// Digits alone: "1235", not the "1.235 k" of other values.
function milliseconds(seconds) {
  return seconds === null ? "–" : trimmed(seconds * 1e3, 4);
}

function slownessOf(op, allSeconds) {
  if (op.slowdown === null || op.slowdown < 1.3 || (op.rank_s ?? op.measured_s) < WORTH_A_WORD * allSeconds) return "";
  const words = [];
  if (op.rank !== null) words.push(`rank ${op.rank} (${milliseconds(op.rank_s)} ms)`);
  if (op.since_step !== null) words.push(`since step ${op.since_step}`);
  if (op.is_message && words.length) words.push("waiting for other ranks included");
  if (!words.length && op.slowdown > 1.5) words.push(op.is_message ? "waiting for other ranks included" : "than predicted");
  return words.join(", ");
}

async function drawOps(view) {
  const runs = view.shownRuns().slice(0, MOST_OP_RUNS);
  const found = await Promise.all(runs.map(async (run) => ({run, ops: await view.source.ops(run.id)})));
  const rows = [];
  let steps = 0;
  for (const {run, ops} of found) {
    steps += ops.steps.length;
    const allSeconds = ops.ops.reduce((sum, op) => sum + (op.measured_s ?? 0), 0);
    for (const op of ops.ops.slice(0, MOST_OPS)) {
      const slow = slownessOf(op, allSeconds), row = element("tr", {className: slow ? "bad" : ""});
      row.append(element("td", {textContent: run.name, title: run.name}), element("td", {textContent: `${op.op} ${op.path}`}));
      for (const text of [milliseconds(op.predicted_s), milliseconds(op.measured_s), op.slowdown === null ? "–" : op.slowdown.toFixed(2)])
        row.append(element("td", {className: "number", textContent: text}));
      row.append(element("td", {textContent: slow}));
      rows.push(row);
    }
  }
  showPanel("ops", rows.length > 0);
  byId("ops-about").textContent = `${steps} timed step${steps === 1 ? "" : "s"}`;
  byId("ops").replaceChildren(...rows);
}
