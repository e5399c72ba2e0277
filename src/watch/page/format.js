// Numbers as a person reads them.
const SI = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
const BINARY = [[2 ** 50, "PiB"], [2 ** 40, "TiB"], [2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"]];

function trimmed(value, digits) {
  return String(Number(value.toPrecision(digits)));
}

function scaled(value, table, digits, between) {
  for (const [size, name] of table) if (Math.abs(value) >= size) return trimmed(value / size, digits) + between + name;
  return null;
}

// A value of a field; `unit` is that of docs/metrics.md.
function formatValue(value, unit, digits = 5) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (unit === "bytes") return scaled(value, BINARY, 4, " ") ?? trimmed(value, 4) + " B";
  if (value !== 0 && Math.abs(value) < 1e-3) return Number(value.toPrecision(Math.min(digits, 4))).toExponential();
  return scaled(value, SI, digits, " ") ?? trimmed(value, digits);
}

function formatDuration(seconds) {
  if (seconds < 60) return trimmed(seconds, 3) + " s";
  const minutes = seconds / 60, hours = minutes / 60, days = hours / 24;
  if (minutes < 60) return trimmed(minutes, 3) + " min";
  if (hours < 48) return trimmed(hours, 3) + " h";
  return trimmed(days, 3) + " d";
}

// As FLOPs are written: 1.2e21.
function formatPower(value) {
  return value === 0 ? "0" : Number(value.toPrecision(3)).toExponential().replace("e+", "e");
}

function formatX(axis, value) {
  if (axis === "seconds") return formatDuration(value);
  if (axis === "flops") return formatPower(value);
  if (axis === "step" && value < 1e6) return trimmed(value, 7);
  return scaled(value, SI, 4, " ") ?? trimmed(value, 6);
}

const AXIS_NAMES = {step: "step", tokens: "tokens", seconds: "time in steps", flops: "model FLOPs"};
